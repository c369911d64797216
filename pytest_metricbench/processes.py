"""An argv run in a process group of its own, bounded in time and output, and killed whole.

``subprocess.run(timeout=...)`` kills the child and leaves its children alive, and a pipe that a grandchild holds
open blocks for ever. Here every process leads a session of its own, writes to files, and its group is gone when
:func:`run_process` returns, however it returns.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

PYTHON: Final = "{python}"
"""Stands for the running interpreter in an argv; digests use it as written."""

GRACE: Final = 2.0
"""Seconds between SIGTERM and SIGKILL: time to write what was gathered."""
LOG_LIMIT: Final = 1 << 20
"""Bytes of an output that are kept: its beginning and its end."""
OUTPUT_LIMIT: Final = 256 << 20
"""Bytes of output at which a process is stopped."""
_LOOK_EVERY: Final = 0.5

_running: Final[set[int]] = set()
_running_lock: Final = threading.Lock()


class CannotStartError(Exception):
    """The process could not be started; the message says which executable and why."""


class MissingVariableError(Exception):
    """A variable that ``env`` takes from the environment is not set there."""


# ---------------------------------------------------------------- command lines in YAML


@dataclass(frozen=True, slots=True)
class Argv:
    """A command line from an experiment: as written, as run, and the files beside the YAML that it names.

    In YAML it is a list of texts, never a shell string. Its first item is an absolute path or ``{python}``; an item
    that names a file beside the YAML becomes its absolute path.
    """

    written: tuple[str, ...]
    resolved: tuple[str, ...]
    files: tuple[tuple[str, Path], ...] = ()
    """(as written, where it is) of each argument that names a file beside the YAML."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A list of texts in YAML and JSON Schema; checked against ``folder`` of the validation context."""
        texts = core_schema.list_schema(core_schema.str_schema(strict=True, min_length=1), min_length=1)
        return core_schema.with_info_after_validator_function(
            _checked_argv,
            texts,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda argv: list(argv.written)),
        )


def _checked_argv(written: list[str], info: ValidationInfo) -> Argv:
    context: dict[str, Any] = info.context or {}
    folder: Path | None = context.get("folder")
    executable = written[0]
    if executable != PYTHON:
        if not os.path.isabs(executable):
            raise PydanticCustomError(
                "argv_relative",
                "{executable} is not an absolute path; write {example}",
                {"executable": repr(executable), "example": _absolute_example(executable)},
            )
        if not context.get("cached_only") and not os.access(executable, os.X_OK):
            problem = "is not executable" if os.path.exists(executable) else "does not exist"
            raise PydanticCustomError(
                "argv_missing",
                "the executable {executable} {problem}",
                {"executable": executable, "problem": problem},
            )
    resolved = [executable.replace(PYTHON, sys.executable)]
    files = []
    script = _script_position(written)
    for position, argument in enumerate(written[1:], start=1):
        path = _named_file(argument, folder)
        if path is not None:
            files.append((argument, path))
        elif position == script and not context.get("cached_only"):
            _require_script(argument, folder)
        resolved.append(str(path) if path is not None else argument.replace(PYTHON, sys.executable))
    return Argv(tuple(written), tuple(resolved), tuple(files))


def _require_script(argument: str, folder: Path | None) -> None:
    """Refuse a script that does not exist: Python would start, fail, and look like an agent that died."""
    if folder is not None and not (folder / argument).is_file():
        raise PydanticCustomError(
            "argv_script", "the script {script} does not exist beside the file", {"script": repr(argument)}
        )


def _absolute_example(executable: str) -> str:
    if os.path.basename(executable).startswith("python"):
        return f"{PYTHON} (the running interpreter) or /usr/bin/env followed by {executable}"
    return f"its whole path, or /usr/bin/env followed by {executable}"


def _script_position(written: Sequence[str]) -> int | None:
    """Where a Python command line names its script; None where it runs a module, a text, or something else."""
    start = 0
    if os.path.basename(written[0]) == "env" and len(written) > 1:
        start = 1
    if written[start] != PYTHON and not os.path.basename(written[start]).startswith("python"):
        return None
    for position, argument in enumerate(written[start + 1 :], start=start + 1):
        if argument in ("-m", "-c", "-"):
            return None
        if argument in ("-W", "-X"):
            return None  # their value follows; not worth guessing
        if not argument.startswith("-"):
            return position
    return None


def _named_file(argument: str, folder: Path | None) -> Path | None:
    """The file beside the YAML that an argument names.

    Raises:
        PydanticCustomError: it names a file outside the experiment's folder.
    """
    if (
        folder is None
        or os.path.isabs(argument)
        or argument.startswith("-")
        or len(argument) > 1024
        or "\0" in argument
    ):
        return None
    path = folder / argument
    try:
        if not path.is_file():
            return None
    except OSError:
        return None
    if not path.resolve().is_relative_to(folder.resolve()):
        raise PydanticCustomError(
            "argv_outside",
            "{argument} leaves the experiment's folder; copy the file into it, or name it absolutely",
            {"argument": repr(argument)},
        )
    return Path(os.path.abspath(path))


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
    """It was stopped because it printed more than :data:`OUTPUT_LIMIT` bytes."""
    duration: float
    """Seconds of wall time."""

    def describe(self, timeout: float | None) -> str | None:
        """In words why this is no success; None for exit status 0."""
        if self.timed_out:
            return f"ran longer than {timeout:g} s and was stopped"
        if self.overflowed:
            return f"printed more than {OUTPUT_LIMIT >> 20} MiB and was stopped"
        if self.returncode < 0:
            with suppress(ValueError):
                return f"was killed by {signal.Signals(-self.returncode).name}"
        return f"ended with exit status {self.returncode}" if self.returncode else None


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdout: Path,
    stderr: Path,
    timeout: float | None,
) -> Finished:
    """Run a command to its end, its output in two files, and leave none of its process group behind.

    At the time-out the group gets SIGTERM and, :data:`GRACE` seconds later, SIGKILL. When the leader ends by
    itself, what it left running is killed. A child that starts a session of its own escapes.

    Raises:
        CannotStartError: the executable cannot be run, or the folder or an output cannot be opened.
    """
    began = time.monotonic()
    process = _start(argv, cwd, env, stdout, stderr)
    with _running_lock:
        _running.add(process.pid)
    timed_out = overflowed = False
    try:
        with _exit_watch(process.pid) as ended:
            end = _await_end(ended, None if timeout is None else began + timeout, (stdout, stderr))
            timed_out, overflowed = end == "timeout", end == "overflow"
            if end != "ended":
                _signal_group(process.pid, signal.SIGTERM)
                ended(GRACE)
    finally:
        # The leader is not reaped yet, so its pid, which is the group's, cannot belong to anyone else.
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()
        with _running_lock:
            _running.discard(process.pid)
    for log in (stdout, stderr):
        bound_log(log)
    return Finished(process.returncode, timed_out, overflowed, time.monotonic() - began)


def kill_running() -> None:
    """Kill the group of every process that :func:`run_process` waits for in any thread."""
    with _running_lock:
        for pid in _running:
            _signal_group(pid, signal.SIGKILL)


def _start(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdout: Path, stderr: Path
) -> subprocess.Popen[bytes]:
    try:
        with stdout.open("wb") as out, stderr.open("wb") as err:
            return subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        raise CannotStartError(f"{argv[0]} cannot be started: {error}") from error


def _await_end(ended: Callable[[float], bool], deadline: float | None, outputs: Sequence[Path]) -> str:
    while True:
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            return "timeout"
        if ended(_LOOK_EVERY if deadline is None else min(_LOOK_EVERY, deadline - now)):
            return "ended"
        if sum(_size(path) for path in outputs) > OUTPUT_LIMIT:
            return "overflow"


@contextmanager
def _exit_watch(pid: int) -> Iterator[Callable[[float], bool]]:
    """A function that waits up to some seconds for the process to end, without reaping it."""
    if hasattr(os, "pidfd_open"):
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:  # an old kernel, or one that forbids it
            yield lambda seconds: _poll_exit(pid, seconds)
            return
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        try:
            yield lambda seconds: bool(poll.poll(seconds * 1000))
        finally:
            os.close(descriptor)
    else:
        yield lambda seconds: _poll_exit(pid, seconds)


def _poll_exit(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    pause = 0.001
    while True:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return True
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        time.sleep(min(pause, remaining))
        pause = min(pause * 2, 0.05)


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# ---------------------------------------------------------------- output


def bound_log(path: Path, limit: int = LOG_LIMIT) -> None:
    """Cut a log to its beginning and its end when it is larger than ``limit`` bytes, with a line that says so."""
    size = _size(path)
    if size <= limit:
        return
    head, tail = limit // 4, limit - limit // 4
    with path.open("r+b") as file:
        file.seek(size - tail)
        end = file.read(tail)
        file.seek(head)
        file.write(b"\n[... %d bytes left out ...]\n" % (size - head - tail))
        file.write(end)
        file.truncate()


def log_tail(path: Path, limit: int = 2000) -> str:
    """The end of a log as text, for a message; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, _size(path) - limit))
            return file.read(limit).decode("utf-8", "replace").strip()
    except OSError:
        return ""
