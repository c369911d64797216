"""A Harbor of another environment, run as a process that is asked to end before it is killed.

A Harbor that is killed leaves its containers behind. Asked with SIGTERM, and not its children, which it needs for
that, it cancels the trial, removes the environment and writes the trial's result.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from pytest_metricbench.plain_files import replace_file
from pytest_metricbench.process_groups import exit_watch, running_group
from pytest_metricbench.processes import OUTPUT_LIMIT, CannotStartError, Finished, bound_log

GRACE: Final = 30.0
"""Seconds that Harbor may take to remove an environment: ``docker compose down`` waits ten for a container alone."""

_LOOK_EVERY: Final = 0.5


def run_harbor(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: Path, stderr: Path, timeout: float | None
) -> Finished:
    """Run Harbor to its end, its output in two files, and leave none of its process group behind.

    At the time-out, when it prints too much, and when the waiting is interrupted, it is asked to end and given
    :data:`GRACE` seconds; a second interruption kills it.

    Raises:
        CannotStartError: the executable cannot be run, or the folder or an output cannot be opened.
    """
    began = time.monotonic()
    with ExitStack() as stack:
        logs = [stack.enter_context(_log(argv[0], path)) for path in (stdout, stderr)]
        process = stack.enter_context(running_group(lambda: _start(argv, cwd, env, logs)))
        ended = stack.enter_context(exit_watch(process))
        try:
            end = _await_end(ended, None if timeout is None else began + timeout, logs)
        except BaseException:
            _ask_to_end(process, ended)
            raise
        if end != "ended":
            _ask_to_end(process, ended)
    return Finished(process.returncode, end == "timeout", end == "overflow", time.monotonic() - began)


def _ask_to_end(process: subprocess.Popen[bytes], ended: Callable[[float], bool]) -> None:
    process.send_signal(signal.SIGTERM)
    ended(GRACE)


def _await_end(ended: Callable[[float], bool], deadline: float | None, logs: Sequence[int]) -> str:
    while True:
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            return "timeout"
        if ended(_LOOK_EVERY if deadline is None else min(_LOOK_EVERY, deadline - now)):
            return "ended"
        if sum(os.fstat(log).st_size for log in logs) > OUTPUT_LIMIT:
            return "overflow"


@contextmanager
def _log(executable: str, path: Path) -> Iterator[int]:
    try:
        descriptor = replace_file(path)
    except OSError as error:
        raise CannotStartError(f"{executable} cannot be started: its output cannot be kept: {error}") from error
    try:
        yield descriptor
    finally:
        bound_log(descriptor)
        os.close(descriptor)


def _start(argv: Sequence[str], cwd: Path, env: Mapping[str, str], logs: Sequence[int]) -> subprocess.Popen[bytes]:
    stdout, stderr = logs
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
