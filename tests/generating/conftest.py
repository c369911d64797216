"""Fixtures of the tests of generated mutants."""

from pathlib import Path

import pytest

from tests.generating.generating_lab import Bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path)
