"""Fixtures of the tests of generated mutants."""

from pathlib import Path

import pytest
from generating_lab import Bench

# Imported once here, since a session in this process forgets the modules that it imported itself.
import pytest_metricbench.opening
import pytest_metricbench.scheduling
import pytest_metricbench.session  # noqa: F401


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path)
