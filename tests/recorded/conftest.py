"""Fixtures of the tests about recorded attempts."""

import sys

import pytest

from tests.recorded.recorded_lab import RecordedLab


@pytest.fixture
def recorded(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, unasked: None) -> RecordedLab:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return RecordedLab(pytester)
