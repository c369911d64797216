"""An argv run in a process group of its own, bounded in time and output, and killed whole.

``subprocess.run(timeout=...)`` kills the child and leaves its children alive, and a pipe that a grandchild holds
open blocks for ever. Here every process leads a session of its own, writes to files, and its group is gone when
:func:`run_process` returns, however it returns.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_metricbench.plain_files import open_regular, replace_file
from pytest_metricbench.process_groups import exit_watch, heed_stop, running_group, signal_group

GRACE: Final = 2.0
"""Seconds between SIGTERM and SIGKILL: time to write what was gathered."""
LOG_LIMIT: Final = 1 << 20
"""Bytes of an output that are kept: its beginning and its end."""
OUTPUT_LIMIT: Final = 256 << 20
"""Bytes of output at which a process is stopped."""
_LOOK_EVERY: Final = 0.1


class CannotStartError(Exception):
    """The process could not be started; the message says which executable and why."""


class MissingVariableError(Exception):
    """A variable that ``env`` takes from the environment is not set there."""


# ---------------------------------------------------------------- environments


def clean_environment(declared: Mapping[str, str | None]) -> dict[str, str]:
    """The environment of a child: PATH, HOME and LANG of this process, and what the experiment declares.

    A declared value of None is taken from this process. Nothing else is inherited, so that pytest's own variables
    do not reach a nested pytest and results do not depend on who runs them.

    Raises:
        MissingVariableError: a variable to be taken from this process is not set.
    """
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    for name, value in declared.items():
        if value is None:
            if name not in os.environ:
                raise MissingVariableError(f"env takes {name} from the environment, and it is not set there")
            value = os.environ[name]
        environment[name] = value
    return environment


# ---------------------------------------------------------------- running


@dataclass(frozen=True, slots=True)
class Finished:
    """How a process ended."""

    returncode: int
    """Its exit status; -N when signal N killed it."""
    timed_out: bool
    overflowed: bool
    """It printed more than :data:`OUTPUT_LIMIT` bytes, for which it was stopped if it still ran."""
    duration: float
    """Seconds of wall time."""

    def describe(self, timeout: float | None) -> str | None:
        """In words why this is no success; None for exit status 0."""
        if self.timed_out:
            return f"ran longer than {timeout:g} s and was stopped"
        if self.overflowed:
            return f"printed more than {OUTPUT_LIMIT >> 20} MiB, which is the limit"
        if self.returncode < 0:
            return f"was killed by {_signal_name(-self.returncode)}"
        return f"ended with exit status {self.returncode}" if self.returncode else None


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdout: Path,
    stderr: Path,
    timeout: float | None,
    leader_grace: float | None = None,
) -> Finished:
    """Run a command to its end, its output in two files, and leave none of its process group behind.

    At the time-out the group gets SIGTERM and, :data:`GRACE` seconds later, SIGKILL. When the leader ends by
    itself, what it left running is killed. A child that starts a session of its own escapes.

    ``leader_grace``: for a command that needs its children to clean up. It alone gets SIGTERM and so many seconds, at
    the time-out and when the waiting is interrupted; a second interruption kills it.

    Raises:
        CannotStartError: the executable cannot be run, or the folder or an output cannot be opened.
        StoppedError: the run was interrupted, and this is not the main thread.
    """
    began = time.monotonic()
    deadline = None if timeout is None else began + timeout
    with _new_log(argv[0], stdout) as out, _new_log(argv[0], stderr) as err:
        with running_group(lambda: _start(argv, cwd, env, out, err)) as process, exit_watch(process) as ended:
            try:
                end = _await_end(ended, deadline, (out, err))
            except BaseException:
                if leader_grace is not None:
                    _ask_to_end(process, ended, leader_grace)
                raise
            if end != "ended":
                _ask_to_end(process, ended, leader_grace)
        overflowed = end == "overflow" or (end == "ended" and _printed((out, err)) > OUTPUT_LIMIT)
        for log in (out, err):
            bound_log(log)
    return Finished(process.returncode, end == "timeout", overflowed, time.monotonic() - began)


def _ask_to_end(process: subprocess.Popen[bytes], ended: Callable[[float], bool], leader_grace: float | None) -> None:
    if leader_grace is None:
        signal_group(process.pid, signal.SIGTERM)
        ended(GRACE)
    else:
        process.send_signal(signal.SIGTERM)
        ended(leader_grace)


@contextmanager
def _new_log(executable: str, path: Path) -> Iterator[int]:
    """A new file under a name that an earlier process of the same workspace could write to.

    What it left there, a link to someone's file or a pipe, is removed and neither followed nor waited for.
    """
    try:
        descriptor = replace_file(path)
    except OSError as error:
        raise CannotStartError(f"{executable} cannot be started: its output cannot be kept: {error}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _start(argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: int, stderr: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CannotStartError(f"{argv[0]} cannot be started: {error}") from error


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _await_end(ended: Callable[[float], bool], deadline: float | None, outputs: Sequence[int]) -> str:
    while True:
        heed_stop()
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            return "timeout"
        if ended(_LOOK_EVERY if deadline is None else min(_LOOK_EVERY, deadline - now)):
            return "ended"
        if _printed(outputs) > OUTPUT_LIMIT:
            return "overflow"


def _printed(outputs: Sequence[int]) -> int:
    return sum(os.fstat(output).st_size for output in outputs)


# ---------------------------------------------------------------- output


def bound_log(descriptor: int, limit: int = LOG_LIMIT) -> None:
    """Cut a log to its beginning and its end when it is larger than ``limit`` bytes, with a line that says so."""
    size = os.fstat(descriptor).st_size
    if size <= limit:
        return
    head, tail = limit // 4, limit - limit // 4
    end = os.pread(descriptor, tail, size - tail)
    note = b"\n[... %d bytes left out ...]\n" % (size - head - tail)
    os.ftruncate(descriptor, head)
    for piece in (note, end):
        _write_at_end(descriptor, piece)


def _write_at_end(descriptor: int, content: bytes) -> None:
    position = os.fstat(descriptor).st_size
    while content:
        written = os.pwrite(descriptor, content, position)
        position, content = position + written, content[written:]


def env_problem(argv: Sequence[str], ended: Finished, stderr: Path) -> str | None:
    """What ``/usr/bin/env`` says when it did not start its command; None when it did, or when argv is something else.

    Its exit status alone says nothing: the command may have ended with the same.
    """
    if os.path.basename(argv[0]) != "env" or ended.returncode not in (125, 126, 127):
        return None
    said = log_tail(stderr)
    return said if said.startswith(("env:", f"{argv[0]}:")) else None


def log_tail(path: Path, limit: int = 2000) -> str:
    """The end of a log as text, for a message; empty when there is none, or something else in its place."""
    try:
        with open_regular(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - limit))
            return file.read(limit).decode("utf-8", "replace").strip()
    except OSError:
        return ""
