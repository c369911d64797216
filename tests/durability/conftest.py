"""What the tests of durability share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from durability_lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A folder for an experiment; nothing that it started outlives the test."""
    folder = tmp_path / "lab"
    folder.mkdir()
    made = Lab(folder)
    yield made
    made.kill_all()
