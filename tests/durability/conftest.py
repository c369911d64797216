"""What the tests of durability share."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durability.durability_lab import Lab


@pytest.fixture
def lab(pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unasked: None) -> Iterator[Lab]:
    """A folder for an experiment; nothing that it started outlives the test."""
    # A module that is rewritten within a second must not be taken from its compiled file.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "lab"
    folder.mkdir()
    made = Lab(folder, pytester)
    yield made
    made.kill_all()
