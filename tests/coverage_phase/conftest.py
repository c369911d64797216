"""The fixture of ``tests/faults``, which these tests share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

from session_lab import lab

__all__ = ["lab"]
