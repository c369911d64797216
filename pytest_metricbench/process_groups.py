"""The process group of a child: its leader watched without being reaped, and all of it killed.

A leader that is not reaped keeps its pid, which is the group's number, from being given to anyone else.
"""

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from pytest_metricbench.orphans import WATCH

_HEED_EVERY: Final = 0.1
"""Seconds between two looks at whether the run was interrupted."""
_SETTLE: Final = 0.5
"""Seconds that killed processes are given to be gone."""


class StoppedError(KeyboardInterrupt):
    """The run was interrupted while a thread beside the main one waited, which no signal reaches."""


STOPPING: Final[ContextVar[threading.Event | None]] = ContextVar("metricbench_stopping", default=None)
"""In a thread that makes attempts beside the main one: what says that the run was interrupted."""


def heed_stop() -> None:
    """Go on, unless the run was interrupted.

    Raises:
        StoppedError: it was, and this thread is to end what it does.
    """
    stopping = STOPPING.get()
    if stopping is not None and stopping.is_set():
        raise StoppedError("the run was interrupted")


def pause(seconds: float) -> None:
    """Sleep, unless the run is interrupted meanwhile.

    Raises:
        StoppedError: it was.
    """
    if STOPPING.get() is None:
        time.sleep(seconds)
        return
    until = time.monotonic() + seconds
    heed_stop()
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, _HEED_EVERY))
        heed_stop()


_running: Final[dict[int, threading.Event | None]] = {}
"""Leader of each group that runs -> what says to the thread that waits for it that the run was interrupted."""
_running_lock: Final = threading.RLock()


@contextmanager
def running_group(start: Callable[[], subprocess.Popen[bytes]]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that leads a session of its own; its group is gone when the block ends, however it ends.

    What ``start`` raises is raised.

    Raises:
        StoppedError: the run was interrupted, and nothing is started.
    """
    process = None
    WATCH.prepare()
    try:
        with _running_lock:
            heed_stop()
            process = start()
            _running[process.pid] = STOPPING.get()
            WATCH.started(process.pid)
        yield process
    finally:
        if process is not None:
            _end_group(process)


def kill_running() -> None:
    """Kill the group of every process that any thread waits for in :func:`running_group`."""
    with _running_lock:
        for pid in list(_running):
            signal_group(pid, signal.SIGKILL)


def any_running(stopping: threading.Event) -> bool:
    """Whether a thread whose :data:`STOPPING` is that event has a process running."""
    with _running_lock:
        return any(heeded is stopping for heeded in _running.values())


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a group; a group that is gone is none."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


@contextmanager
def exit_watch(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """A function that waits up to some seconds for the process to end, and says whether it did."""
    if hasattr(os, "pidfd_open"):
        try:
            descriptor = os.pidfd_open(process.pid)
        except OSError:  # an old kernel, or one that forbids it
            yield lambda seconds: _poll_exit(process, seconds)
            return
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        try:
            yield lambda seconds: bool(poll.poll(seconds * 1000))
        finally:
            os.close(descriptor)
    else:
        yield lambda seconds: _poll_exit(process, seconds)


def _poll_exit(process: subprocess.Popen[bytes], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    pause = 0.001
    while True:
        if _has_ended(process):
            return True
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        time.sleep(min(pause, remaining))
        pause = min(pause * 2, 0.05)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    # macOS before Python 3.13 has no look that does not reap. The pid could be given away before the group is killed
    # a moment later; not while the group has a member, which is when the kill matters.
    return process.poll() is not None


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a group, reap its leader, and see the rest go."""
    signal_group(process.pid, signal.SIGKILL)
    with _running_lock:
        _running.pop(process.pid, None)
    WATCH.ended(process.pid)
    process.wait()
    # SIGKILL is delivered, not awaited: a process in the middle of a system call still finishes that.
    deadline, pause = time.monotonic() + _SETTLE, 0.0005
    while _group_lives(process.pid) and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def _group_lives(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    # Orphans that nobody reaps (a container's process 1 may not) stay in the group; they do nothing any more.
    states = [state for group, state in _groups_and_states() if group == pid]
    return not states or any(state not in "ZX" for state in states)


def _groups_and_states() -> Iterator[tuple[int, str]]:
    """The process group and the state letter of every process, where /proc tells them."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            state, _, group = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[:3]
            yield int(group), state
