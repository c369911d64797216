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

End: TypeAlias = Literal["ended", "timeout", "cpu", "overflow", "unwanted"]

_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of Linux."""
_CPU_OF_PROCESS: Final = 2
"""CPUCLOCK_SCHED of Linux: in the number of a clock, beside the process whose CPU time it tells."""
_LOOK_EVERY: Final = 0.05
"""Seconds between two looks at what a child has printed, and used."""
_LEAST_PAUSE: Final = 0.005
"""Seconds between two looks at a child whose CPU time is about to run out: alone it cannot use it up sooner."""


def die_with_parent() -> None:
    """On Linux: be killed when the process that forked this one is gone, however it went."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Limit:
    """What a forked child may take for one of the things that it does, one after the other."""

    seconds: float
    """Of wall time."""
    cpu: float | None
    """Seconds of CPU time; where the system does not tell them, the child's own limit holds."""
    done: str
    """The file that is there when it is done."""


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

    def wait(self, limits: Sequence[Limit], channel: socket.socket, outputs: Sequence[str], output: int) -> End:
        """Wait until it ends by itself or there is a reason to end it.

        Args:
            limits: one for each thing that it does; the file of one is there when it is done.
            channel: to whoever asked for it; when that side closes it, the child is not wanted any more.
            outputs: files that it writes to.
            output: bytes that they may have together.
        """
        poll = select.poll()
        poll.register(channel, select.POLLIN | select.POLLHUP)
        watched = self._descriptor()
        if watched is not None:
            poll.register(watched, select.POLLIN)
        at, used, deadline = 0, 0.0, time.monotonic() + limits[0].seconds
        pause = 0.0005 if watched is None else _LOOK_EVERY
        try:
            while True:
                left = deadline - time.monotonic()
                ready = [found for found, _ in poll.poll(max(min(left, pause), 0.0001) * 1000)]
                if watched in ready or (watched is None and self._reap(os.WNOHANG)):
                    return "ended"
                if channel.fileno() in ready:
                    return "unwanted"
                before = at
                while at + 1 < len(limits) and os.path.exists(limits[at].done):
                    at += 1
                if at > before:
                    used, deadline = self._cpu_seconds(), time.monotonic() + limits[at].seconds
                elif left <= 0:
                    return "timeout"
                if (spare := self._spare(limits[at], used)) <= 0:
                    return "cpu"
                if sum(_size(path) for path in outputs) > output:
                    return "overflow"
                pause = min(pause * 2, 0.02) if watched is None else min(_LOOK_EVERY, max(spare, _LEAST_PAUSE))
        finally:
            if watched is not None:
                os.close(watched)

    def _spare(self, limit: Limit, used: float) -> float:
        """Seconds of CPU time that are left of a limit; it had used so many before that began to count."""
        return float("inf") if limit.cpu is None else limit.cpu - (self._cpu_seconds() - used)

    def _cpu_seconds(self) -> float:
        """Of CPU time that it has used so far; 0 where the system tells that of no other process."""
        if sys.platform != "linux":
            return 0.0
        try:
            return time.clock_gettime((~self.pid << 3) | _CPU_OF_PROCESS)
        except OSError:  # it has ended
            return 0.0

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
