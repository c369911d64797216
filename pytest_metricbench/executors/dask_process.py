"""A process of a Dask worker for the jobs of one run, asked over a socket and ended whole."""

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.process_groups import running_group, signal_group

_LOOK_EVERY: Final = 1.0
"""Seconds between two looks at whether an answer is still wanted."""


class GoneError(Exception):
    """The process ended while it was asked; the message says how."""


class Child:
    """A process for jobs of one site."""

    def __init__(self, cwd: Path) -> None:
        """Start it in that folder.

        Raises:
            OSError: it cannot be started.
        """
        self._ending: Final = ExitStack()
        self._channel, theirs = Pipe()
        try:
            command = [sys.executable, "-P", "-m", "pytest_metricbench.executors.dask_child", str(theirs.fileno())]
            self._process = self._ending.enter_context(running_group(partial(_start, command, cwd, theirs)))
        except BaseException:
            self._channel.close()
            raise
        finally:
            theirs.close()

    @property
    def lives(self) -> bool:
        """Whether it has not ended by itself, as one does that was not asked for long."""
        return self._process.poll() is None

    def ask(self, verb: str, *arguments: Any, wanted: Callable[[], bool] = lambda: True) -> Any:
        """Have it do something, and wait for the answer as long as that is wanted.

        Raises:
            GoneError: it ended, or was ended since nobody wants the answer any more.
        """
        try:
            self._channel.send((verb, arguments))
            while not self._channel.poll(_LOOK_EVERY):
                if not wanted():
                    self.kill()
            return self._channel.recv()
        except (EOFError, OSError):
            status = self.end()
            how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
            raise GoneError(f"the process that ran it {how}") from None

    def kill(self) -> None:
        """End it and all it started, from any thread; who waits for its answer is told that it is gone."""
        if self._process.returncode is None:
            signal_group(self._process.pid, signal.SIGKILL)

    def end(self) -> int:
        """End it and let go of it; gives its exit status."""
        with suppress(OSError):
            self._channel.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)  # else the kill below would stand for what ended it
        self._ending.close()
        return self._process.returncode


def _start(command: list[str], cwd: Path, channel: Connection) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.DEVNULL, pass_fds=(channel.fileno(),), start_new_session=True
    )
