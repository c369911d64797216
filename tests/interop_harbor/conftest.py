"""Fixtures of the tests about Harbor's files."""

from pathlib import Path

import pytest

from tests.interop_harbor.harbor_lab import HarborLab


@pytest.fixture
def harbor_lab(tmp_path: Path) -> HarborLab:
    return HarborLab(tmp_path)
