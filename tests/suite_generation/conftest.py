"""Fixtures of the tests of mutants made of Python source."""

from pathlib import Path

import pytest

# Imported once here, since a session in this process forgets the modules that it imported itself.
import pytest_metricbench.pytest_side.opening
import pytest_metricbench.pytest_side.scheduling
import pytest_metricbench.pytest_side.session
import pytest_metricbench.runners.suite  # noqa: F401
from tests.suite_generation.code_lab import CodeLab


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodeLab:
    monkeypatch.chdir(tmp_path)
    return CodeLab(tmp_path)
