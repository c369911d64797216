"""A forked child that is waited for, within limits, and killed with all that it started."""

import ctypes
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

End: TypeAlias = Literal["ended", "timeout", "overflow", "unwanted"]

_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of Linux."""
_LOOK_EVERY: Final = 0.1
"""Seconds between two looks at what a child has printed."""


def die_with_parent() -> None:
    """On Linux: be killed when the process that forked this one is gone, however it went."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


@dataclass(slots=True)
class Child:
    """A forked process that leads a group of its own, or will in a moment."""

    pid: int
    _ended: tuple[int, float] | None = None

    def end(self) -> tuple[int, float]:
        """Kill it and its group, whatever is left of them; gives its exit code (-N: signal N) and its CPU seconds."""
        # While it is not reaped its number is nobody else's. It may not lead its group yet: it is told too.
        if self._ended is None:
            for kill in (os.killpg, os.kill):
                with suppress(ProcessLookupError, PermissionError):
                    kill(self.pid, signal.SIGKILL)
            self._reap(0)
        else:  # reaped while it was watched: only where the system offers no other way
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        assert self._ended is not None
        return self._ended

    def wait(self, seconds: float, channel: socket.socket, outputs: Sequence[str], limit: int) -> End:
        """Wait until it ends by itself or there is a reason to end it.

        Args:
            seconds: of wall time that it may take.
            channel: to whoever asked for it; when that side closes it, the child is not wanted any more.
            outputs: files that it writes to.
            limit: bytes that they may have together.
        """
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(channel, select.POLLIN | select.POLLHUP)
        watched = self._descriptor()
        if watched is not None:
            poll.register(watched, select.POLLIN)
        try:
            pause = 0.0005 if watched is None else _LOOK_EVERY
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    return "timeout"
                ready = [found for found, _ in poll.poll(max(min(left, pause), 0.0001) * 1000)]
                if watched in ready or (watched is None and self._reap(os.WNOHANG)):
                    return "ended"
                if channel.fileno() in ready:
                    return "unwanted"
                if sum(_size(path) for path in outputs) > limit:
                    return "overflow"
                pause = min(pause * 2, 0.02) if watched is None else pause
        finally:
            if watched is not None:
                os.close(watched)

    def _descriptor(self) -> int | None:
        if not hasattr(os, "pidfd_open"):
            return None
        try:
            return os.pidfd_open(self.pid)
        except OSError:  # an old kernel, or one that forbids it
            return None

    def _reap(self, options: int) -> bool:
        pid, status, usage = os.wait4(self.pid, options)
        if pid:
            self._ended = (os.waitstatus_to_exitcode(status), _cpu(usage))
        return bool(pid)


def _cpu(usage: Any) -> float:
    return float(usage.ru_utime + usage.ru_stime)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
