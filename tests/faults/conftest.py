"""The fixture of sessions that go wrong."""

from tests.faults.session_lab import lab

__all__ = ["lab"]
