"""Progress on the terminal: how many tests there will be, and a line that says how far a run is, what is left of it
and what it has cost.

Nothing of the line is shown where output is no terminal, with ``-q``, with ``-s`` in one process (agents print beside
it) and beside pytest-sugar, which draws a line of its own.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from time import monotonic
from typing import Any, Final, TypeAlias

import pytest

from pytest_metricbench.contracts import AttemptKey
from pytest_metricbench.private_names import write_uncounted
from pytest_metricbench.reporting.amounts import duration_text, money_text
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.forecast import Estimates, Remaining, likely_to_run
from pytest_metricbench.running.runs import ExperimentRun
from pytest_metricbench.workers import worker_count

_EVERY: Final = 0.1
"""Seconds between two changes of the line at least, so that short attempts are not held up by it."""


class Progress:
    """Tells pytest, and pytest-sugar, how many tests there will be."""

    def __init__(self, session: pytest.Session) -> None:
        """Of this session."""
        self._session: Final = session
        self._reporter: Final[Any] = session.config.pluginmanager.get_plugin("terminalreporter")
        self._counts_itself: Final = hasattr(self._reporter, "tests_count")  # pytest-sugar's does

    def expect(self, tests: int) -> None:
        """Say how many there will be, from the first to the last."""
        self._session.testscollected = tests
        if self._counts_itself:
            self._reporter.tests_count = tests


class PassingText:
    """Text on a terminal that says what goes on, and gives way; nothing where output is not a terminal."""

    def __init__(self, config: pytest.Config) -> None:
        """Nothing is shown yet."""
        self._reporter: Final[Any] = config.pluginmanager.get_plugin("terminalreporter")
        self._beside = 0
        self._own_line = False

    def show(self, *texts: str, beside: bool = False) -> None:
        """Show the first of these that fits, instead of what was shown before, behind a line that goes on.

        Letters that had to begin a new line after every text would each be a line; so where the rest of theirs has
        no room, nothing is shown until the next one.

        Args:
            texts: ever shorter.
            beside: begin no line of its own where the last one is full: something will be printed behind it.
        """
        reporter = self._reporter
        if reporter is None or not reporter.isatty or reporter.verbosity < 0:
            return
        self.clear()
        writer = reporter.config.get_terminal_writer()
        if hasattr(reporter, "tests_count"):  # pytest-sugar's lines are not where pytest believes they are
            reporter.ensure_newline()
            reporter.rewrite(next((text for text in texts if len(text) < writer.fullwidth), ""), erase=True)
            self._own_line = True
            return
        if not beside and self._is_full(min(map(len, texts), default=0) + 3):
            reporter.ensure_newline()
            if writer.width_of_current_line:  # which with pytest-xdist is not enough
                writer.line()
        used = writer.width_of_current_line
        self._show_beside([f"  {text}" if used else text for text in texts], writer.fullwidth - used)

    def _is_full(self, needed: int) -> bool:
        """Whether the line is at its end: letters stand on it until then, anything else is a line of its own."""
        writer = self._reporter.config.get_terminal_writer()
        room = writer.fullwidth - writer.width_of_current_line
        return bool(room <= 1 or (self._reporter.verbosity > 0 and room < needed))

    def _show_beside(self, texts: Sequence[str], room: int) -> None:
        fitting = next((text for text in texts if len(text) < room), None)
        if fitting is not None:
            self._write(fitting + "\b" * len(fitting))
            self._beside = len(fitting)

    def clear(self) -> None:
        """Take the text away before something else is printed."""
        if self._beside:
            self._write(" " * self._beside + "\b" * self._beside)
            self._beside = 0
        if self._own_line:
            self._reporter.rewrite("", erase=True)
            self._own_line = False

    def _write(self, text: str) -> None:
        """Write without pytest's count of what stands on the line, which has to be as if nothing had been."""
        writer = self._reporter.config.get_terminal_writer()
        write_uncounted(writer, text)


# ---------------------------------------------------------------- the line of a run


def at_a_time(config: pytest.Config, bench: Bench) -> int:
    """How many attempts of an experiment are in flight at once: workers, times what each has under way."""
    return max(worker_count(config), 1) * bench.at_a_time


_Find: TypeAlias = Callable[[str], tuple[Bench, Sequence[AttemptKey]] | None]


class ProgressLine:
    """The line of a run: attempts done, failed and reused, how long it will go on, and what it has cost."""

    NAME: Final = "metricbench-progress"

    def __init__(self, config: pytest.Config, attribute: str) -> None:
        """Nothing is shown yet; ``attribute`` is the one of a test report that carries an attempt's word."""
        self._config: Final = config
        self._attribute: Final = attribute
        self._text: Final = PassingText(config)
        self._find: _Find = lambda nodeid: None
        self._runs: Sequence[ExperimentRun] = ()
        self._remaining: dict[Bench, Remaining] = {}
        self._done = self._failed = self._reused = self._left = 0
        self._within: Final[set[tuple[Bench, AttemptKey]]] = set()
        """Attempts counted already, of groups that have not ended."""
        self._crash: pytest.TestReport | None = None
        self._said_at = 0.0
        self._said: list[str] = []

    @property
    def is_wanted(self) -> bool:
        """Whether there is a terminal that it can be shown on."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or not reporter.isatty or reporter.verbosity < 0 or hasattr(reporter, "tests_count"):
            return False
        return bool(self._config.getoption("dist", "no") != "no" or self._config.getoption("capture") != "no")

    def begin(self, runs: Sequence[ExperimentRun], find: _Find) -> None:
        """Follow these runs; ``find`` knows which attempts a node id names."""
        self._runs, self._find = runs, find
        for run in runs:
            bench, stored = run.bench, run.bench.stored or {}
            pending = likely_to_run(bench.experiment, bench.fingerprints, stored, run.selected)
            estimates = Estimates(stored.values(), run.spending.names)
            self._remaining[bench] = Remaining(pending, estimates, len(run.selected))

    # ------------------------------------------------ what pytest prints goes first

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, object, object]:
        """Make room for what is printed before an attempt, and show the line while it runs."""
        self._text.clear()
        result = yield
        self._show()
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Make room for what is printed after an attempt, and count it."""
        self._text.clear()
        result = yield
        if report.when == "call":
            self._count(report)
        if report is not self._crash:  # what pytest-xdist then says of a new worker has no hook before it
            self._show()
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, report: pytest.TestReport) -> None:
        """Know the report of an attempt whose worker crashed."""
        self._crash = report

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_testnodedown(self) -> None:
        """Make room for what pytest-xdist says of a worker that is gone, and of the one that takes its place."""
        self._text.clear()

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_newgateway(self) -> None:
        """Likewise."""
        self._text.clear()

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_testnodeready(self) -> None:
        """Likewise."""
        self._text.clear()

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Likewise."""
        self._text.clear()

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Make room for the end."""
        self.end()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Make room for the end."""
        self.end()

    def end(self) -> None:
        """Show nothing any more."""
        self._text.clear()
        self._runs = ()

    # ------------------------------------------------ what it says

    def kept(self, run: ExperimentRun, key: AttemptKey) -> None:
        """Count an attempt inside an item that goes on, and say so; what it prints is captured meanwhile."""
        if self._runs:
            self._count_one(run, key)
            if monotonic() - self._said_at >= _EVERY:
                capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
                with nullcontext() if capture is None else capture.global_and_fixture_disabled():
                    self._show()

    def arrived(self, run: ExperimentRun, keys: Sequence[AttemptKey]) -> None:
        """Count those attempts of a worker's item that have an outcome by now."""
        if self._runs:
            for key in keys:
                if run.became(key) != "missing":
                    self._count_one(run, key)

    def _count(self, report: pytest.TestReport) -> None:
        found = self._find(report.nodeid)
        if found is None or found[0] not in self._remaining:
            return
        bench, keys = found
        if bench.experiment.items != "attempt":
            run = next(run for run in self._runs if run.bench is bench)
            for key in keys:
                self._count_one(run, key)
            self._within.difference_update((bench, key) for key in keys)
            return
        word = getattr(report, self._attribute, None)
        self._done += 1
        self._failed += report.failed
        self._reused += word == "reused"
        self._left += report.skipped
        ran = not report.skipped and word != "reused"
        self._remaining[bench].ended(keys[0], report.duration if ran else None)

    def _count_one(self, run: ExperimentRun, key: AttemptKey) -> None:
        """Count an attempt of a group, as the run knows it, once."""
        if (run.bench, key) in self._within:
            return
        self._within.add((run.bench, key))
        became = run.became(key)
        self._done += 1
        self._failed += became in ("unmeasured", "missing")
        self._reused += became == "reused"
        self._left += became == "left"
        ran = became in ("measured", "unmeasured")
        seconds = run.writer.contents.attempts[key].duration if ran else None
        self._remaining[run.bench].ended(key, seconds)

    def _show(self) -> None:
        total = sum(remaining.total for remaining in self._remaining.values())
        if not self._runs or self._done >= total:
            return
        now = monotonic()
        if now - self._said_at >= _EVERY:
            self._said_at, self._said = now, self.texts()
        self._text.show(*self._said, beside=True)

    def texts(self) -> list[str]:
        """What the line says, at length and ever shorter."""
        total = sum(remaining.total for remaining in self._remaining.values())
        counts = [f"{self._done:,}/{total:,} attempts"]
        counts += [
            f"{number:,} {word}"
            for number, word in (
                (self._failed, "failed"),
                (self._reused, "reused"),
                (self._left, "left for the next run"),
            )
            if number
        ]
        time, money = self._time(), self._money()
        whole = [*counts, *([f"about {time} to go"] if time else []), *([f"{money} spent"] if money else [])]
        brief = [f"{self._done:,}/{total:,}", *([f"{self._failed:,} failed"] if self._failed else [])]
        brief += [text for text in (time, money) if text]
        return [", ".join(whole), ", ".join(brief), brief[0]]

    def _time(self) -> str | None:
        """What is left of all experiments, which share the workers."""
        seconds = [
            (left, at_a_time(self._config, bench))
            for bench, remaining in self._remaining.items()
            if remaining.pending
            for left in [remaining.seconds()]
        ]
        if not seconds:
            return None
        needed = [None if left is None else left / parallel for left, parallel in seconds]
        known = [part for part in needed if part is not None]
        return duration_text(sum(known)) if len(known) == len(needed) else None

    def _money(self) -> str | None:
        spent = [(run.spending.total, run.spending.unit) for run in self._runs]
        known = [(total, unit) for total, unit in spent if total is not None]
        units = {unit for _, unit in known}
        return money_text(sum(total for total, _ in known), units.pop()) if len(units) == 1 else None
