"""Fixtures of the tests of the ``suite`` runner."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.suite_runner.suite_lab import SuiteLab


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[SuiteLab]:
    lab = SuiteLab(tmp_path)
    yield lab
    lab.close()
