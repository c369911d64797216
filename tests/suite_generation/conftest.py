"""Fixtures of the tests of mutants made of Python source."""

from pathlib import Path

import pytest

from tests.suite_generation.code_lab import CodeLab


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodeLab:
    monkeypatch.chdir(tmp_path)
    return CodeLab(tmp_path)
