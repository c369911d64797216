"""What runs in a process of the tested project: pytest collects a file there, then each attempt is a fork of it."""

import gc
import importlib
import os
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from types import CodeType
from typing import Any, Final, NoReturn

import pytest

from pytest_metricbench.suite import child, overlay
from pytest_metricbench.suite.alike import UnfitError
from pytest_metricbench.suite.calls import Calls
from pytest_metricbench.suite.channel import receive, send
from pytest_metricbench.suite.inplace import Imported, Plan
from pytest_metricbench.suite.inside_fork import Fork, shortened
from pytest_metricbench.suite.inside_pytest import (
    OVERRULED,
    Extensions,
    Quiet,
    dependencies,
    environment,
    is_marked_idle,
    let_others_load,
    own_options,
    what_matters,
)
from pytest_metricbench.suite.waiting import Child, End, Limit

_TAIL: Final = 2000
"""Bytes that are read of the end of the log."""
LOG: Final = "server.log"
"""What pytest, conftest files and test modules print while they are collected: in the scratch folder of a server."""


def serve(channel: socket.socket) -> NoReturn:
    """Be the server of a variant and a test file, as the first message of the channel asks; never returns."""
    job = receive(channel)
    if job is None:
        os._exit(0)
    server = Server(channel, job)
    server.prepare()
    status: object = "?"
    try:
        status = pytest.main([*job["collect"], *job["arguments"], *own_options(job["scratch"])], plugins=[server])
    except BaseException as error:  # a conftest file may raise anything
        status = f"{type(error).__name__}: {error}"
    server.failed(f"pytest could not begin ({status})")
    os._exit(1)


class Server:
    """A pytest plugin: notes what collection gave, then answers requests in place of pytest's own loop."""

    def __init__(self, channel: socket.socket, job: Mapping[str, Any]) -> None:
        """Of one job.

        Args:
            channel: to the runner.
            job: ``collect`` (arguments that say what), ``arguments``, ``scratch``, ``folder`` (the working directory),
                ``path`` (first entries of ``sys.path``), ``sources`` (real path -> mutated source, as Latin-1),
                ``homes`` (real paths of the source), ``expected`` (module name -> where it must come from),
                ``trace`` (note the lines that run), ``shared`` (forks may be mutants), ``list``, ``cpu`` (seconds for
                collecting, or null), ``bytecode`` (a folder, or null).
        """
        self._channel: Final = channel
        self._job: Final = job
        sources = {path: text.encode("latin-1") for path, text in job["sources"].items()}
        self._overlay: Final = overlay.Overlay(sources, self._watch)
        self._tracing = child.Tracing(job["homes"]) if job["trace"] else None
        self._calls = Calls() if job["shared"] else None
        self._is_watching = False
        self._leave_threads: Callable[[], None] = lambda: None
        """Lets threads be started as they were before."""
        self._seen: Mapping[int, CodeType] | None = None
        """Codes that ran while the tests were collected, by identity; None where that is not known."""
        self._imported: Imported | None = None
        self._plan: tuple[str, Plan] | None = None
        """The mutant that was asked for last, and how a fork becomes it."""
        self._items: dict[str, pytest.Item] = {}
        self._deselected: set[str] = set()
        self._errors: list[str] = []
        self._reports: list[dict[str, Any]] = []
        self._stdout: Final = sys.stdout
        self._quiet: Final = Quiet(self._stdout)
        self._before: set[str] = set()
        self._environment: dict[str, str] = {}

    # ------------------------------------------------ before pytest begins

    def prepare(self) -> None:
        """Make this process the one in which the project's tests are collected."""
        job = self._job
        path = os.path.join(job["scratch"], LOG)
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        for descriptor, number in ((null, 0), (log, 1), (log, 2)):
            os.dup2(descriptor, number)
        os.close(null)
        os.close(log)
        # pytest's own reports are nobody's business: its terminal keeps the sys.stdout that it finds now.
        sys.stdout = self._quiet
        sys.argv = ["pytest"]
        if job["bytecode"] is None:
            sys.dont_write_bytecode = True
        else:
            sys.pycache_prefix = job["bytecode"]
        os.chdir(job["folder"])
        os.environ["PWD"] = job["folder"]
        sys.path[:0] = job["path"]
        importlib.invalidate_caches()
        self._overlay.install()
        let_others_load(self._overlay)
        self._before, self._environment = set(sys.modules), environment()
        child.limit_cpu(job["cpu"])
        if self._calls is not None:
            self._calls.heed_threads()
        self._watch_before_threads()

    def _watch_before_threads(self) -> None:
        """Note what runs from the first thread on that is started, or the first import of the source.

        Until then it is pytest, at length. A thread that was there before would not be watched.
        """
        start = threading.Thread.start

        def watched(thread: threading.Thread) -> None:
            self._watch()
            start(thread)

        def restore() -> None:
            if threading.Thread.start is watched:  # else somebody has put one around it
                threading.Thread.start = start  # type: ignore[method-assign]

        self._leave_threads = restore
        threading.Thread.start = watched  # type: ignore[method-assign, assignment]

    def _watch(self) -> None:
        """Note from now on what runs, if that is not done yet."""
        if self._is_watching:
            return
        self._is_watching = True
        self._leave_threads()
        if self._tracing is not None:
            self._tracing.start()
        if self._calls is not None:
            self._calls.start()

    def failed(self, what: str) -> None:
        """Say that there is nothing to serve, with the end of what was printed."""
        self._flush()
        with open(os.path.join(self._job["scratch"], LOG), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            tail = file.read().decode("utf-8", "replace")
        with suppress(OSError):
            send(self._channel, {"failed": f"{what}: {what_matters(tail)}", "errors": self._errors})

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr, self._stdout):
            with suppress(Exception):  # they are whatever the project makes of them
                stream.flush()

    # ------------------------------------------------ hooks

    def pytest_addhooks(self, pluginmanager: pytest.PytestPluginManager) -> None:
        """Let a conftest file extend pytest-metricbench, which is not loaded here."""
        pluginmanager.add_hookspecs(Extensions)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config, args: list[str]) -> Generator[None]:
        """Overrule what the project asks of plugins that measure, distribute or shuffle, where they are loaded."""
        for name, value, option in OVERRULED:
            if hasattr(early_config.known_args_namespace, name):
                setattr(early_config.known_args_namespace, name, value)
                args.append(option)
        return (yield)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self._errors.append(shortened(str(report.longrepr)))

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Note what the options leave out."""
        self._deselected.update(_tail(item.nodeid) for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what came of a phase of the attempt."""
        expected = getattr(report, "wasxfail", None)
        text = "" if report.passed else _reason(report) if expected is None else shortened(str(expected))
        xfail = expected is not None
        self._reports.append({"when": report.when, "outcome": report.outcome, "text": text, "xfail": xfail})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer until the runner closes the channel, then end without a word."""
        child.limit_cpu(None)
        self._leave_threads()
        if self._calls is not None and self._calls.stop():
            self._seen = self._calls.seen
        imported, is_whole = self._tracing.stop() if self._tracing is not None else ({}, True)
        self._tracing = self._calls = None  # another one for the forks
        self._items = {_tail(item.nodeid): item for item in reversed(session.items)}
        ready: dict[str, Any] = {"ready": True, "errors": self._errors, "count": len(self._items)}
        if self._job["list"]:
            ready["tests"] = [_listed(item) for item in session.items]
            ready |= {"modules": dependencies(self._before), "calm": environment() == self._environment}
        elsewhere = overlay.imported_elsewhere(self._job["expected"].items())
        ready |= {"imported": imported, "whole": is_whole, "elsewhere": elsewhere}
        send(self._channel, ready | {"proof": self._overlay.proof()})
        self._quiet.silent = True
        self._flush()  # what is buffered would be printed by every fork
        gc.collect()
        gc.freeze()  # a collection in a fork would copy every page
        while (request := receive(self._channel)) is not None:
            self._attempts(request)
        os._exit(0)

    # ------------------------------------------------ attempts

    def _attempts(self, request: dict[str, Any]) -> None:
        """Run some tests in a fork, one after another up to the first that does not pass."""
        names = [test["test"] for test in request["tests"]]
        absent = [name for name in names if name not in self._items]
        if absent:
            left_out, known = absent[0] in self._deselected, sorted(self._items)
            send(self._channel, {"absent": absent[0], "deselected": left_out, "tests": known})
            return
        try:
            plan = self._planned(request["mutant"], request["sources"])
        except UnfitError as error:
            send(self._channel, {"unfit": str(error)})
            return
        tracing = self._prepared_tracing() if request["trace"] else None
        began = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads that the project started: the fork does not wait for them
            pid = os.fork()
        if not pid:
            self._channel.close()
            fork = Fork(self._overlay, self._reports, self._stdout, self._job, tracing)
            fork.be([self._items[name] for name in names], request, plan)
        forked, folder = Child(pid), request["scratch"]
        limits = [
            Limit(test["seconds"], test["cpu"], os.path.join(folder, child.result_file(number)))
            for number, test in enumerate(request["tests"])
        ]
        try:
            send(self._channel, {"started": pid})
            outputs = [os.path.join(folder, name) for name in (child.STDOUT, child.STDERR)]
            end: End = forked.wait(limits, self._channel, outputs, request["output"])
        finally:
            code, cpu = forked.end()
        if end == "unwanted":
            os._exit(0)
        seconds = time.monotonic() - began
        send(self._channel, {"end": end, "code": code, "cpu": cpu, "duration": seconds})

    def _prepared_tracing(self) -> child.Tracing:
        """What the next fork notes its lines with."""
        if self._tracing is None:
            self._tracing = child.Tracing(self._job["homes"])
            self._tracing.prepare()
        return self._tracing

    def _planned(self, mutant: str | None, sources: dict[str, str] | None) -> Plan | None:
        """How a fork becomes the mutant; None where it stays what this process is.

        Raises:
            UnfitError: it cannot.
        """
        if mutant is None:
            return None
        if sources is not None:
            self._plan = None
            if self._seen is None:
                raise UnfitError("what ran while the tests were collected is not known")
            if self._imported is None:
                self._imported = Imported(self._overlay, self._seen)
                gc.freeze()
            self._plan = (mutant, self._imported.plan({path: text.encode("latin-1") for path, text in sources.items()}))
        if self._plan is None or self._plan[0] != mutant:
            raise UnfitError("it was refused")
        return self._plan[1]


def _tail(nodeid: str) -> str:
    """What follows the file in a node id."""
    return str(nodeid).partition("::")[2]


def _listed(item: pytest.Item) -> dict[str, Any]:
    path = getattr(item, "path", None)
    return {"file": str(path), "test": _tail(item.nodeid), "idle": _is_idle(item)}


def _is_idle(item: pytest.Item) -> bool:
    """Whether the test is marked as one that is skipped, or expected to fail, here and now."""
    if item.get_closest_marker("skip") is not None:
        return True
    if item.get_closest_marker("skipif") is None and item.get_closest_marker("xfail") is None:
        return False
    try:
        return is_marked_idle(item)
    except BaseException:  # a condition that cannot be judged, or another pytest: the attempts will tell
        return False


def _reason(report: pytest.TestReport) -> str:
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):  # file, line, reason: of a skipped test
        return shortened(str(longrepr[2]))
    crash = getattr(longrepr, "reprcrash", None)
    return shortened(str(longrepr if crash is None else crash.message))
