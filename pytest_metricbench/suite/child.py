"""The process of one attempt: what it may use, where its output goes, and what of the source it reached.

It is forked from a server in which the test is collected, and ends with ``os._exit``: no exit handler of the tested
project runs, and nothing of ours depends on one.
"""

import json
import math
import os
import random
import resource
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

STDOUT: Final = "stdout"
STDERR: Final = "stderr"
TEMPORARY: Final = "tmp"
"""Names in an attempt's scratch folder."""

OUR_FAULT: Final = 113
"""Exit status of an attempt in which something of ours went wrong before there was a result."""

_STARTS_PROCESSES: Final = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "os.exec"}
)


def redirect(folder: str) -> None:
    """Let what is printed go to files of the folder, and nothing be read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    for number, name in ((1, STDOUT), (2, STDERR)):
        descriptor = os.open(os.path.join(folder, name), flags, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)


def printed(folder: str) -> dict[str, int]:
    """How many bytes were printed so far, to each stream."""
    found = {}
    for name in (STDOUT, STDERR):
        with suppress(OSError):  # whatever a test does to its own output
            found[name] = os.stat(os.path.join(folder, name)).st_size
    return found


def use_temporary(folder: str) -> None:
    """Let pytest's ``tmp_path`` and Python's ``tempfile`` use a folder that is removed after the attempt."""
    path = os.path.join(folder, TEMPORARY)
    os.makedirs(path, exist_ok=True)
    os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = path
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None  # type: ignore[attr-defined]  # it keeps the first answer


def limit_memory(memory: int | None) -> None:
    """Bound the bytes of address space that this process may use beyond what it has now; None: no limit."""
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        _lower(resource.RLIMIT_AS, memory + _address_space())


def limit_cpu(seconds: int | None) -> None:
    """Bound the CPU time of this process, from its start; None takes the bound away."""
    soft = resource.RLIM_INFINITY if seconds is None else seconds
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def limit_further_cpu(seconds: float | None) -> None:
    """Bound the CPU time of this process from now on, in whole seconds: the last resort, where nobody watches it."""
    limit_cpu(None if seconds is None else math.ceil(time.process_time() + seconds) + 1)


class Surroundings:
    """What a test may change of its process and the next one must not find changed."""

    def __init__(self) -> None:
        """As they are now."""
        self._folder: Final = os.getcwd()
        self._environment: Final = dict(os.environ)
        self._path: Final = list(sys.path)
        self._recursion: Final = sys.getrecursionlimit()

    def restore(self) -> None:
        """Make them what they were."""
        os.chdir(self._folder)
        if dict(os.environ) != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)
        sys.path[:] = self._path
        sys.setrecursionlimit(self._recursion)


def seed_random(seed: int) -> None:
    """Seed the global random numbers, of numpy too where it is loaded: forks would all draw the same ones."""
    random.seed(seed)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(seed)


def result_file(number: int) -> str:
    """The name, in the scratch folder, of what a test leaves that is the ``number``th of its process, from 0."""
    return f"result-{number}.json"


def write_result(folder: str, number: int, result: Mapping[str, Any]) -> None:
    """Leave what came of an attempt in a file, whole or not at all: a test may have closed every descriptor."""
    path = os.path.join(folder, result_file(number))
    with open(path + ".part", "wb") as file:
        file.write(json.dumps(result).encode("utf-8"))
    os.rename(path + ".part", path)


# ---------------------------------------------------------------- what of the source is reached


class Tracing:
    """Which lines of the source this process runs, from :meth:`start` to :meth:`stop`; coverage.py does the tracing."""

    def __init__(self, homes: list[str]) -> None:
        """Of the files in some folders, or some files; real paths."""
        import coverage

        greenlets = ["greenlet"] if "greenlet" in sys.modules else []
        self._coverage: Final = coverage.Coverage(
            data_file=None,
            config_file=False,
            branch=True,
            include=[_as_pattern(home) for home in homes] + [_as_pattern(os.path.join(home, "*")) for home in homes],
            concurrency=["thread", *greenlets],
            messages=False,
        )
        # What it would warn of is told by what stop() gives, or does not matter.
        quiet = ["no-data-collected", "couldnt-parse", "trace-changed", "already-imported", "no-ctracer", "no-sysmon"]
        self._coverage.set_option("run:disable_warnings", quiet)
        self._trace: Any = None
        self._is_started = False
        self._is_alone = True

    def prepare(self) -> None:
        """Do what costs the most of a start, so that forks of this process need not do it."""
        self._coverage.start()
        self._coverage.stop()

    def start(self) -> None:
        """Begin; at the latest when the first line runs that matters."""
        self._is_alone = threading.active_count() == 1
        self._coverage.start()
        self._trace = sys.gettrace()
        self._is_started = True

    def stop(self) -> tuple[dict[str, list[list[int]]], bool]:
        """End; gives the arcs (from line, to line; negative: into and out of code) by file, and whether they are whole.

        They are not when the process stopped the tracing under way, as debuggers and other tracers do, or when a thread
        was there before. Nothing ran where it was never begun.
        """
        if not self._is_started:
            return {}, True
        whole = self._is_alone and sys.gettrace() is self._trace
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._coverage.stop()
            data = self._coverage.get_data()
        return {path: sorted(map(list, data.arcs(path) or ())) for path in sorted(data.measured_files())}, whole


class ProcessStarts:
    """Whether this process started another one, whose lines nobody traces. It cannot be taken away: for forks only."""

    def __init__(self) -> None:
        """Watch from now on."""
        self.seen = False
        sys.addaudithook(self._heed)

    def _heed(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STARTS_PROCESSES:
            self.seen = True


def threads_left() -> bool:
    """Whether threads still run beside the main one: what they reach may come after the end."""
    return threading.active_count() > 1


def guarded(function: Callable[[], Any]) -> str | None:
    """Call a function and give what it raised, in a line; None when it returned."""
    try:
        function()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:2000]
    return None


def _as_pattern(path: str) -> str:
    """A path in which no character but a last ``*`` means another one, as coverage.py reads patterns."""
    head, star = (path[:-1], "*") if path.endswith(f"{os.sep}*") else (path, "")
    return "".join("?" if character in "*?[]{}" else character for character in head) + star


def _lower(kind: int, value: int) -> None:
    soft, hard = resource.getrlimit(kind)
    bounds = [limit for limit in (value, soft, hard) if limit != resource.RLIM_INFINITY]
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (min(bounds), hard))


def _address_space() -> int:
    """Bytes of address space that this process has."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0
