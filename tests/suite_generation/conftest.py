"""Fixtures of the tests of mutants made of Python source."""

from pathlib import Path

import pytest
from code_lab import CodeLab

# Imported once here, since a session in this process forgets the modules that it imported itself.
import pytest_metricbench.opening
import pytest_metricbench.runners.suite
import pytest_metricbench.scheduling
import pytest_metricbench.session  # noqa: F401


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodeLab:
    monkeypatch.chdir(tmp_path)
    return CodeLab(tmp_path)
