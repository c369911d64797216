"""The fixture of ``tests/faults``, which these tests share."""

from tests.faults.session_lab import lab

__all__ = ["lab"]
