"""Fixtures of the tests about tables."""

from pathlib import Path

import pytest

from tests.interop_tables.table_lab import TableLab


@pytest.fixture
def table_lab(tmp_path: Path) -> TableLab:
    return TableLab(tmp_path)
