"""A note in the store that the run stops: for the workers of pytest-xdist, which are told so only between two items."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


class RunStoppedError(Exception):
    """An attempt that is not started, since the run stops; the message says why it does."""


@dataclass(frozen=True, slots=True)
class StopNote:
    """The file that says why a run stops; there is none while it goes on."""

    path: Path

    def write(self, reason: str) -> None:
        """Let no process of the run start a further attempt; what cannot be written is not told."""
        with suppress(OSError):
            self.path.write_text(reason, encoding="utf-8")

    def read(self) -> str:
        """Why the run stops; empty while it goes on. Asked before every attempt of a worker."""
        try:
            return self.path.read_text("utf-8") or "the run stops"
        except OSError:
            return ""

    def clear(self) -> None:
        """Forget it: no process of that run is left, or another run begins."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
