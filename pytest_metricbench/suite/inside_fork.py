"""A fork of a server: it becomes a mutant, runs tests with pytest, and leaves what came of each in a file."""

import faulthandler
import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn, TextIO

import pytest

from pytest_metricbench.suite import child, overlay
from pytest_metricbench.suite.inplace import Plan
from pytest_metricbench.suite.waiting import die_with_parent

_TEXT_LIMIT: Final = 2000
"""Characters that are kept of what went wrong."""


class Fork:
    """The process of one attempt, or of several in a row."""

    def __init__(
        self,
        mutated: overlay.Overlay,
        reports: list[dict[str, Any]],
        stdout: TextIO,
        job: Mapping[str, Any],
        tracing: child.Tracing | None,
    ) -> None:
        """Of a server.

        Args:
            mutated: the sources in place.
            reports: to which the server's plugin adds what pytest reports.
            stdout: Python's own.
            job: the server's, see :class:`.inside.Server`.
            tracing: of the lines that the test runs, not started yet; None where they do not matter.
        """
        self._overlay: Final = mutated
        self._reports: Final = reports
        self._stdout: Final = stdout
        self._job: Final = job
        self._tracing: Final = tracing
        self._process = 0

    def be(self, items: Sequence[pytest.Item], request: Mapping[str, Any], plan: Plan | None) -> NoReturn:
        """Run the tests up to the first that does not pass, and end. It ends there, too, where threads are left.

        Args:
            items: the tests.
            request: ``tests`` (of each ``seed``, ``cpu``), ``scratch``, ``memory``, ``recursion``.
            plan: how this process becomes the mutant; None: it is what it has to be.
        """
        try:
            die_with_parent()
            os.setsid()
            self._process = os.getpid()
            wrong = self._begin(request, plan)
            surroundings = child.Surroundings() if len(items) > 1 else None
            for number, item in enumerate(items):
                if surroundings is not None and number:
                    surroundings.restore()
                goes_on = self._run(item, number, request, wrong)
                if not goes_on or child.threads_left():
                    break
        except BaseException:
            with suppress(OSError):
                os.write(2, traceback.format_exc().encode("utf-8", "replace"))
            os._exit(child.OUR_FAULT)
        os._exit(0)

    def _begin(self, request: Mapping[str, Any], plan: Plan | None) -> str | None:
        folder = request["scratch"]
        child.redirect(folder)
        sys.stdout = self._stdout
        child.use_temporary(folder)
        _enable_faulthandler()
        child.limit_memory(request["memory"])
        return None if plan is None else plan.carry_out(self._overlay)

    def _run(self, item: pytest.Item, number: int, request: Mapping[str, Any], wrong: str | None) -> bool:
        """Run a test and leave what came of it; gives whether it passed."""
        test = request["tests"][number]
        child.limit_further_cpu(test["cpu"])
        if request["recursion"] is not None:
            sys.setrecursionlimit(request["recursion"])
        child.seed_random(test["seed"])
        if hasattr(item.config.option, "randomly_seed"):  # pytest-randomly seeds again, before every phase
            item.config.option.randomly_seed = test["seed"]
        item.repr_failure = _brief_failure  # type: ignore[method-assign]  # a long one takes longer than many a test
        self._reports.clear()
        tracing, starts = self._tracing, None
        if tracing is not None:
            starts = child.ProcessStarts()
            tracing.start()
        began = time.process_time()
        error = child.guarded(lambda: item.config.hook.pytest_runtest_protocol(item=item, nextitem=None))
        result: dict[str, Any] = {"reports": self._reports, "error": error, "cpu": time.process_time() - began}
        if tracing is not None and starts is not None:
            left = child.threads_left()
            arcs, whole = tracing.stop()
            result |= {"arcs": arcs, "whole": whole and not starts.seen and not left}
        if os.getpid() != self._process:  # a fork of the test's that came here too
            os._exit(0)
        result["proof"] = self._overlay.proof()
        result["wrong"] = wrong
        result["elsewhere"] = overlay.imported_elsewhere(self._job["expected"].items())
        for stream in (sys.stdout, sys.stderr, self._stdout):
            with suppress(Exception):  # they are whatever the project makes of them
                stream.flush()
        result["printed"] = child.printed(request["scratch"])
        child.write_result(request["scratch"], number, result)
        return error is None and not any(report["outcome"] == "failed" for report in self._reports)


def _brief_failure(excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
    try:
        return shortened(excinfo.exconly(tryshort=True))
    except Exception:  # an exception that cannot say anything
        return excinfo.typename


def shortened(text: str) -> str:
    """As much of a text as is kept."""
    return text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]} [...]"


def _enable_faulthandler() -> None:
    """Write the stack of a crash to the attempt's own stderr; pytest's plugin keeps that of the server."""
    with suppress(Exception):
        faulthandler.enable(file=2, all_threads=True)
