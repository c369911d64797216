"""A run protocol of our own for the items of an experiment: one phase and one report an item.

pytest's standard protocol runs three phases, each with a capture, two log handlers and a report of its own. An item
of ours has no fixtures, so nothing happens in two of the three. Here set-up, call and teardown stand in one capture,
and the one report is that of the call; set-up is reported only where it fails, teardown where it fails or prints.
What everybody sees is the same: captured output and log of an attempt that failed, warnings, ``PYTEST_CURRENT_TEST``,
unraisable exceptions, set-up of the packages above, ``-x``, ``--lf``, ``--durations``.
:mod:`pytest_metricbench.pytest_side.protocol_choice` says when this protocol is taken.

It relies on more of pytest than its documentation promises: the names in ``_NEEDED`` and the set-up state of
:mod:`pytest_metricbench.private_names`. A test fails by name where one is gone, and the standard protocol is taken
then.
"""

import bdb
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

import pytest

from pytest_metricbench.private_names import setup_state
from pytest_metricbench.pytest_side.items import LEARNED, ExperimentItem
from pytest_metricbench.pytest_side.protocol_choice import is_end_heard, is_start_heard, why_standard
from pytest_metricbench.running.bench import Bench

Phase: TypeAlias = Literal["setup", "call", "teardown"]

_CURRENT: Final = "PYTEST_CURRENT_TEST"
_PASSED_ON: Final = (pytest.exit.Exception, KeyboardInterrupt)
"""What ends the session and is no item's outcome."""
_NO_OUTCOME: Final = (pytest.skip.Exception, bdb.BdbQuit)
"""What no debugger is interested in."""
_STANDARD_MARKS: Final = frozenset({"skip", "skipif", "xfail"})
"""Marks that pytest heeds in the phases that are left out here: an item with one goes through the standard protocol."""


class ShortProtocol:
    """Runs items of ours, where nothing in the session needs the standard protocol. A plugin.

    It is registered after pytest's own ``runner`` and so asked before it, and after whoever else wants to know which
    item is next.
    """

    NAME: Final = "metricbench-protocol"

    def __init__(self) -> None:
        """What else is registered is looked at when the first item comes, and again when there is more."""
        self._phases: _Phases | None = None
        self._is_settled = False
        self._is_start_heard = self._is_end_heard = True

    def pytest_plugin_registered(self) -> None:
        """Look again who listens, before the next item."""
        self._is_settled = False

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run an item of ours; None where the standard protocol is to run it."""
        if not isinstance(item, ExperimentItem):
            self._leave()
            return None
        if not self._is_settled:
            self._settle(item.session)
        phases = self._phases
        if phases is None or _has_standard_mark(item):
            self._leave()
            return None
        hooks = item.ihook
        if self._is_start_heard:
            hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        _run(item, nextitem, phases)
        if self._is_end_heard:
            hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _leave(self) -> None:
        """Leave an item to the standard protocol, which tears down what the next one does not need."""
        if self._phases is not None:
            self._phases.inside = None

    def _settle(self, session: pytest.Session) -> None:
        self._is_settled = True
        self._phases = None
        if why_standard(session.config) is None and not missing(session):
            self._phases = _Phases(session)
            self._is_start_heard = is_start_heard(session.config)
            self._is_end_heard = is_end_heard(session.config)


_NEEDED: Final = {
    "runner": ("pytest_runtest_call",),
    "capturemanager": ("resume_global_capture", "suspend_global_capture", "read_global_capture"),
    "logging-plugin": ("report_handler", "log_level"),
    "threadexception": ("pytest_runtest_call",),
    "unraisableexception": ("pytest_runtest_call",),
}
"""Plugin of pytest -> what is asked of it here; any but the first may be turned off with ``-p no:NAME``."""


def missing(session: pytest.Session) -> list[str]:
    """What this protocol needs and the installed pytest does not have, as ``plugin.name``."""
    state = setup_state(session)
    found = [f"session._setupstate.{name}" for name in ("setup", "teardown_exact") if not hasattr(state, name)]
    for name, attributes in _NEEDED.items():
        plugin = session.config.pluginmanager.get_plugin(name)
        if plugin is not None or name == "runner":
            found += [f"{name}.{attribute}" for attribute in attributes if not hasattr(plugin, attribute)]
    return found


class _Phases:
    """The phases of an item, and what of pytest stands around them."""

    __slots__ = ("_call", "_capture", "_checks", "_handler", "_level", "_root", "_state", "inside")

    def __init__(self, session: pytest.Session) -> None:
        plugins = session.config.pluginmanager
        self.inside: Bench | None = None
        """The experiment whose file, and all above it, is set up."""
        self._state: Final[Any] = setup_state(session)
        runner: Any = plugins.get_plugin("runner")
        self._call: Final[Any] = runner.pytest_runtest_call
        self._capture: Final[Any] = plugins.get_plugin("capturemanager")
        logs: Any = plugins.get_plugin("logging-plugin")
        self._handler: Final[Any] = None if logs is None else logs.report_handler
        self._level: Final[int | None] = None if logs is None else logs.log_level
        self._root: Final = logging.getLogger()
        checks = (plugins.get_plugin(name) for name in ("unraisableexception", "threadexception"))  # as pytest orders
        self._checks: Final = [check.pytest_runtest_call for check in checks if check is not None]

    def set_up(self, item: pytest.Item) -> None:
        """Set up what is above the item: the package of a folder may have something to do."""
        os.environ[_CURRENT] = f"{item.nodeid} (setup)"
        self._state.setup(item)
        self._check(item)

    def call(self, item: pytest.Item) -> None:
        """Run the item, and raise what its threads and finalizers raised, where that is an error."""
        self._state.setup(item)
        self._call(item)
        self._check(item)

    def tear_down(self, nextitem: pytest.Item | None) -> None:
        """Tear down what the next item does not need."""
        self._state.teardown_exact(nextitem)

    def tear_down_apart(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Tear down likewise, and raise what threads and finalizers of the item raised, if its call could not."""
        os.environ[_CURRENT] = f"{item.nodeid} (teardown)"
        self._state.teardown_exact(nextitem)
        self._check(item)

    def _check(self, item: pytest.Item) -> None:
        """Raise what threads and finalizers raised, where that is an error; else warn."""
        for check in self._checks:
            check(item)

    def apart(self, phase: Phase, item: pytest.Item, run: Callable[[], None]) -> pytest.CallInfo[None]:
        """Run a phase with sections of its own."""
        with self.kept(phase, item):
            return _phase(phase, run)

    @contextmanager
    def kept(self, phase: Phase, item: pytest.Item) -> Iterator[None]:
        """Keep what is printed and logged off the terminal, for the sections of the item's report."""
        capture, handler, root = self._capture, self._handler, self._root
        level = root.level
        if handler is not None:
            if handler.records:
                handler.reset()
            root.addHandler(handler)
            if self._level is not None:
                handler.setLevel(self._level)
                root.setLevel(min(level, self._level))
        if capture is not None:
            capture.resume_global_capture()
        try:
            yield
        finally:
            if capture is not None:
                capture.suspend_global_capture(in_=False)
                for stream, text in zip(("stdout", "stderr"), capture.read_global_capture(), strict=True):
                    item.add_report_section(phase, stream, text)
            if handler is not None:
                if self._level is not None:
                    root.setLevel(level)
                root.removeHandler(handler)
                if handler.records:
                    item.add_report_section(phase, "log", handler.stream.getvalue().strip())


def _has_standard_mark(item: ExperimentItem) -> bool:
    for node in item.listchain():
        for mark in node.own_markers:
            if mark.name in _STANDARD_MARKS:
                return True
    return False


def _run(item: ExperimentItem, nextitem: pytest.Item | None, phases: _Phases) -> None:
    """Run the phases of an item and report the call; set-up and teardown only where there is something to say."""
    session, call, torn_down = item.session, None, None
    stays = isinstance(nextitem, ExperimentItem) and nextitem.bench is item.bench

    def following() -> pytest.Item | None:
        return None if session.shouldfail or session.shouldstop else nextitem

    if phases.inside is not item.bench:
        call = phases.apart("setup", item, lambda: phases.set_up(item))
    if call is None or call.excinfo is None:
        with phases.kept("call", item):
            call = _phase("call", lambda: phases.call(item))
            if stays and call.excinfo is None:
                torn_down = _phase("teardown", lambda: phases.tear_down(following()))
    _report(item, call)
    is_apart = torn_down is None
    if torn_down is None:  # after the report, which may have ended the session: then all is torn down
        torn_down = phases.apart("teardown", item, lambda: phases.tear_down_apart(item, following()))
    os.environ.pop(_CURRENT, None)
    if torn_down.excinfo is not None:
        _report(item, torn_down)
    elif is_apart:
        _report_what_was_said(item, torn_down)
    phases.inside = item.bench if stays and call.when == "call" and torn_down.excinfo is None else None


def _phase(phase: Phase, run: Callable[[], None]) -> pytest.CallInfo[None]:
    return pytest.CallInfo.from_call(run, phase, reraise=_PASSED_ON)


def _report(item: ExperimentItem, call: pytest.CallInfo[None]) -> None:
    hooks = item.ihook
    if call.excinfo is None:
        report = pytest.TestReport.from_item_and_call(item, call)
        setattr(report, LEARNED, item.learned)
        hooks.pytest_runtest_logreport(report=report)
        return
    report = hooks.pytest_runtest_makereport(item=item, call=call)
    hooks.pytest_runtest_logreport(report=report)
    if not isinstance(call.excinfo.value, _NO_OUTCOME):
        hooks.pytest_exception_interact(node=item, call=call, report=report)


def _report_what_was_said(item: ExperimentItem, call: pytest.CallInfo[None]) -> None:
    """Report a teardown that succeeded where it printed or logged: pytest shows that below what the item left."""
    report = pytest.TestReport.from_item_and_call(item, call)
    if any(title.endswith(" teardown") for title, _ in report.sections):
        item.ihook.pytest_runtest_logreport(report=report)
