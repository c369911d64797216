"""The fixture of sessions that go wrong."""

from session_lab import lab

__all__ = ["lab"]
