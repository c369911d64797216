"""Fixtures of the tests of generated mutants."""

from pathlib import Path

import pytest

# Imported once here, since a session in this process forgets the modules that it imported itself.
import pytest_metricbench.pytest_side.opening
import pytest_metricbench.pytest_side.scheduling
import pytest_metricbench.pytest_side.session  # noqa: F401
from tests.generating.generating_lab import Bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path)
