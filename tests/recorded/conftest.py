"""Fixtures of the tests about recorded attempts."""

import sys

import pytest
from recorded_lab import RecordedLab

# Imported once here, since a session in this process forgets the modules that it imported itself.
import pytest_metricbench.opening
import pytest_metricbench.scheduling
import pytest_metricbench.session  # noqa: F401


@pytest.fixture
def recorded(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, unasked: None) -> RecordedLab:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return RecordedLab(pytester)
