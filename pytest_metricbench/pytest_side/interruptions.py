"""Ctrl-C and SIGTERM end a session in order; after Ctrl-C, where somebody waits, quickly as well."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import pytest

from pytest_metricbench.deadlines import interrupted_after

_ANALYSIS: Final = 1.0
"""Seconds of CPU time that the analysis may take after Ctrl-C."""
UNFINISHED: Final = (
    "interrupted before the answer was whole; what was measured is kept: run the same command again for it"
)
"""What is said where the analysis, or a report of it, did not come to its end."""
_SIGTERM: Final = "SIGTERM"


class Interruptions:
    """How the session was interrupted. A plugin, registered with the controller."""

    NAME: Final = "metricbench-interruptions"

    def __init__(self) -> None:
        """It was not."""
        self._is_waited_for = False
        """Whether somebody pressed Ctrl-C, and waits for the prompt."""
        self._before: Any = None
        """The handler of SIGTERM that was there before ours, to be put back."""

    def begin(self) -> None:
        """Make SIGTERM an orderly stop from now on, like Ctrl-C: the summary is written and the workers are told."""

        def interrupt(number: int, frame: FrameType | None) -> None:
            raise KeyboardInterrupt(_SIGTERM)

        in_main = threading.current_thread() is threading.main_thread()  # in no other may signals be handled
        if in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._before = signal.signal(signal.SIGTERM, interrupt)

    def end(self) -> None:
        """Let SIGTERM mean what it meant before."""
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Tell Ctrl-C from SIGTERM, and from ``-x`` and the like, whose exceptions are of kinds of their own."""
        self._is_waited_for = excinfo.type is KeyboardInterrupt and excinfo.value.args != (_SIGTERM,)

    @contextmanager
    def analysing(self) -> Iterator[None]:
        """Analyse inside: what takes long is interrupted, where somebody has pressed Ctrl-C and waits.

        Raises:
            KeyboardInterrupt: it took too long, or Ctrl-C was pressed inside.
        """
        if not self._is_waited_for:
            yield
            return
        with interrupted_after(_ANALYSIS):
            yield
