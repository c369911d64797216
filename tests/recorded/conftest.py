"""Fixtures of the tests about recorded attempts."""

import sys

import pytest

# Imported once here, since a session in this process forgets the modules that it imported itself.
import pytest_metricbench.pytest_side.opening
import pytest_metricbench.pytest_side.scheduling
import pytest_metricbench.pytest_side.session  # noqa: F401
from tests.recorded.recorded_lab import RecordedLab


@pytest.fixture
def recorded(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, unasked: None) -> RecordedLab:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return RecordedLab(pytester)
