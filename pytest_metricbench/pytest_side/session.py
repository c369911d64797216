"""The controller's side of a session: what arrives from items, coverage, the answer, the exit status.

Without pytest-xdist this process runs the items too; with it, the workers do and what they learned arrives on test
reports. Every record is in its journal when the hook that brought it returns, so nothing depends on how the session
ends.
"""

import traceback
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_metricbench.analysis.reach import unreachable_warning
from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.contracts import AttemptKey
from pytest_metricbench.executors.base import ExecutorError
from pytest_metricbench.pytest_side.arrivals import Arrivals
from pytest_metricbench.pytest_side.benches import benches, chosen_systems
from pytest_metricbench.pytest_side.executing import Executing
from pytest_metricbench.pytest_side.finding import NamedAttempts
from pytest_metricbench.pytest_side.interruptions import UNFINISHED, Interruptions
from pytest_metricbench.pytest_side.items import LEARNED, ExperimentItem
from pytest_metricbench.pytest_side.publishing import Publisher, PublishError
from pytest_metricbench.pytest_side.sorting import slots_of, sort_items
from pytest_metricbench.pytest_side.stopping import WorkerStops
from pytest_metricbench.pytest_side.stores import STORE_FAILED, OpenStores, refuse
from pytest_metricbench.reporting.announcing import BUDGET_REACHED, budget_sentence, headline, many_items_notice
from pytest_metricbench.reporting.junit import suite_properties
from pytest_metricbench.reporting.progress import PassingText, Progress, ProgressLine
from pytest_metricbench.reporting.request_reports import report_request
from pytest_metricbench.reporting.words import Words
from pytest_metricbench.reporting.writing import write_section
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.runs import ExperimentRun
from pytest_metricbench.running.staleness import stale_notice
from pytest_metricbench.store.journal import StoreError


class Controller:
    """The plugin that is registered on the controller once an experiment is in the session.

    :meth:`begin` is called once, when it is known what was selected: before the loop over this process's items, or when
    the first worker of pytest-xdist has collected. It opens every store or ends the session. From then on what arrives
    is kept as it arrives; :meth:`after_loop` measures coverage; the end of the session analyses, closes and sets the
    exit status; the terminal's summary prints what is known by then and computes nothing.
    """

    NAME: Final = "metricbench-controller"

    def __init__(self, session: pytest.Session) -> None:
        """Of this session; no store is opened yet."""
        self._session: Final = session
        self._config: Final = session.config
        config = session.config
        self._distributed: Final = config.pluginmanager.has_plugin("dsession")
        """Whether workers run the items; this process then has none."""
        self._runs: Final[dict[Bench, ExperimentRun]] = {}
        """The experiments with a selected item, each with its store open; empty before :meth:`begin`."""
        self._named: Final = NamedAttempts(session)
        self._items = 0
        """How many items were selected, of other files too."""
        self._requests = 0
        """How many coverage requests there will be: foretold at first, known once they are planned."""
        self._fatal: str | None = None
        """Why a store cannot be written any more, in words; the first reason stays."""
        self._summaries: Final[list[tuple[ExperimentRun, Summary, Path]]] = []
        """The analysed runs, each with its summary and where that stands."""
        self._faults: Final[list[str]] = []
        """What went wrong beside attempts and requests, in words; with any the exit status is not 0."""
        self._publisher: Final = Publisher(config)
        self._stores: Final = OpenStores(config, self._publisher)
        self._arrivals: Final = Arrivals(self._runs, self.find, self._stop, self._faults)
        self._executing: Final = Executing(session)
        self._worker_stops: Final = WorkerStops(session, self._runs.keys())
        self._interruptions: Final = Interruptions()
        self._progress: Final = Progress(session)
        config.pluginmanager.register(Words(LEARNED), Words.NAME)
        config.pluginmanager.register(self._interruptions, Interruptions.NAME)

    # ------------------------------------------------ beginning

    def begin(self, nodeids: Iterable[str]) -> None:
        """Start the experiments of these items; other ids are left alone.

        Raises:
            UsageError: a store cannot be opened or written, a chosen coverage system does not exist, or an executor
                cannot serve an experiment.
        """
        selected: dict[Bench, set[AttemptKey]] = {}
        self._items = 0
        for nodeid in nodeids:
            self._items += 1
            found = self.find(nodeid)
            if found is not None:
                selected.setdefault(found[0], set()).update(found[1])
        systems = chosen_systems(self._config, selected) if selected else None
        self._executing.accept(selected)
        for text in self._executing.warnings():
            self._say_first(text)
        for bench, keys in selected.items():
            self._say_first(many_items_notice(bench, len(keys)))
            self._say_first(unreachable_warning(bench.experiment))
            self._stores.open(bench)  # all, before any is begun: one that cannot be opened ends the session
        for bench, keys in selected.items():
            try:
                self._tell_stale(bench, keys)
                run = ExperimentRun.begin(bench, self._stores.writers[bench], keys, systems)
            except (StoreError, OSError) as error:
                refuse(error)
            run.notes += self._stores.notes
            self._runs[bench] = run
            bench.deliver, bench.leave = partial(self._arrivals.keep, run), run.leave
            self._requests += run.expected_requests()
        if self._runs:
            self._executing.begin(self._runs, self._session.items if not self._distributed else ())
            self._worker_stops.begin()
            self._interruptions.begin()
            self._start_line()

    def _start_line(self) -> None:
        """Show how far the run is, where the output is a terminal."""
        line = ProgressLine(self._config, LEARNED)
        if line.is_wanted and not self._config.pluginmanager.has_plugin(ProgressLine.NAME):
            line.begin(list(self._runs.values()), self.find)
            self._config.pluginmanager.register(line, ProgressLine.NAME)
            self._arrivals.line = line

    def _tell_stale(self, bench: Bench, keys: set[AttemptKey]) -> None:
        """Say before anything is paid for again that saved attempts are stale, and since what has changed."""
        if not bench.cached:  # else they fail, each by name
            stored = bench.stored or {}
            self._say_first(stale_notice(bench.experiment, bench.fingerprints, bench.layout, stored, keys))

    def _say_first(self, text: str | None) -> None:
        """Say something before anything is paid for."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if text is not None and reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"metricbench: {text}", yellow=True)

    def find(self, nodeid: str) -> tuple[Bench, tuple[AttemptKey, ...]] | None:
        """The experiment and the attempts that a node id names; None for anything but an item of ours."""
        return self._named.find(nodeid)

    def header(self) -> list[str]:
        """A line for each named experiment: what it holds and where its store is."""
        return [headline(bench, self._config.invocation_params.dir) for bench in benches(self._config)]

    # ------------------------------------------------ order

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Open the stores and put the items in order; under pytest-xdist the scheduler does."""
        if self._distributed:
            return
        if not config.option.collectonly and not config.getoption("metricbench_show"):
            for item in items:
                if isinstance(item, ExperimentItem):
                    self._stores.open(item.bench)
        if not config.getoption("stepwise", False):  # it goes on where it stopped in the order of the files
            sort_items(items)

    def plan(self, nodeids: Sequence[str]) -> Any:
        """The scheduler's slot for each id; None when none is an item of ours."""
        return slots_of(nodeids, self.find)

    # ------------------------------------------------ what arrives

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Count the coverage requests into the progress; pytest-xdist sets the number of items anew."""
        if self._runs:
            self._progress.expect(self._items + self._requests)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what an attempt learned, and leave its word on the report for whoever shows it."""
        self.pytest_runtest_logstart()  # which a worker does not send where nobody else listens
        self._arrivals.receive(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport, sched: Any) -> None:
        """Record the attempts that a worker was running when it crashed, like any other."""
        self._arrivals.crashed(crashitem, report)

    def _stop(self, message: str) -> None:
        """End the session: what still runs could not be kept."""
        if self._fatal is None:
            self._fatal = message
            self._session.shouldfail = f"metricbench: {message}"
            distribution = self._config.pluginmanager.get_plugin("dsession")
            if distribution is not None:
                self._worker_stops.tell(self._session.shouldfail)
                distribution.shouldstop = f"metricbench: {message}"

    # ------------------------------------------------ the loop and coverage

    def before_loop(self) -> None:
        """Start the experiments of this process's items; under pytest-xdist the workers say which there are."""
        if not self._distributed:
            self.begin(item.nodeid for item in self._session.items)

    def begin_distributed(self, nodeids: Sequence[str]) -> None:
        """Start the experiments of what the workers collected; each worker says the same."""
        if not self._runs:
            self.begin(nodeids)

    def after_loop(self) -> None:
        """Measure coverage after the last item.

        Raises:
            Failed: a store cannot be written or an executor cannot go on, or too many attempts or requests failed.
            Interrupted: another plugin asked to stop.
        """
        for run in self._runs.values():
            self._heed_stops()
            try:
                self._measure_coverage(run)
            except ExecutorError as error:
                self._session.shouldfail = f"metricbench: coverage cannot be measured: {error}"
                raise self._session.Failed(self._session.shouldfail) from None
            except (StoreError, OSError) as error:
                problem = f"coverage cannot be measured: {error}" if isinstance(error, OSError) else str(error)
                self._stop(problem)
                raise self._session.Failed(self._session.shouldfail) from None

    def _heed_stops(self) -> None:
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _measure_coverage(self, run: ExperimentRun) -> None:
        plan = run.plan_coverage()
        expected = run.expected_requests()
        self._requests += len(plan.requests) - expected
        line, total = PassingText(self._config), len(plan.requests)
        measured = run.measure_coverage(
            plan, lambda done: line.show(f"coverage {done}/{total}"), self._executing.measure(run.bench)
        )
        with closing(measured) as answers:
            for planned, record, reused in answers:
                line.clear()
                prefix = self._named.file_of(run.bench)
                report_request(self._config, prefix, planned.key, record, reused=reused, attribute=LEARNED)
                self._heed_stops()

    # ------------------------------------------------ the end

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Analyse, write the summaries, close the stores, and let what is not green show in the exit status."""
        try:
            self._executing.end()
            self._worker_stops.tell("the run has ended")
            for run in self._runs.values():
                with self._interruptions.analysing():
                    self._conclude(run)
        except KeyboardInterrupt:  # the answer can be had again, and the stores are to be closed
            self._faults.append(UNFINISHED)
            session.exitstatus = pytest.ExitCode.INTERRUPTED
        for bench in self._runs:
            if bench.allowance is not None:
                bench.allowance.close()
        for problem in self._stores.close():
            self._stop(problem)
        self._interruptions.end()
        if self._fatal is not None:
            session.exitstatus = STORE_FAILED
        elif session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = self._exit_status()

    def _exit_status(self) -> int:
        """The exit status of a session in which pytest found nothing wrong."""
        if not self._green():
            return pytest.ExitCode.TESTS_FAILED
        return BUDGET_REACHED if any(run.left for run in self._runs.values()) else pytest.ExitCode.OK

    def _conclude(self, run: ExperimentRun) -> None:
        """Analyse an experiment, and write its summary and reports."""
        line = PassingText(self._config)
        run.notes += self._executing.notes(run.bench)
        try:
            summary, path = run.conclude(line.show, partial(self._publisher.compare, run.bench.experiment))
            self._summaries.append((run, summary, path))
            self._add_properties(summary)
            run.notes += self._publisher.publish(
                run.results(), summary, path, run.bench.fingerprints, several=len(self._runs) > 1
            )
        except PublishError as error:
            self._faults.append(str(error))
        except StoreError as error:
            self._stop(str(error))
        except Exception:
            self._faults.append(f"the analysis failed:\n{traceback.format_exc()}")
        finally:
            line.clear()

    def _add_properties(self, summary: Summary) -> None:
        """Give JUnit's test suite the headline; pytest writes the file after this."""
        for plugin in self._config.pluginmanager.get_plugins():
            if (add := getattr(plugin, "add_global_property", None)) is not None:
                for name, value in suite_properties(summary):
                    add(name, value)

    def _green(self) -> bool:
        if self._faults:
            return False
        return all(
            not summary.problems and all(gate.holds is not False for gate in summary.gates)
            for _, summary, _ in self._summaries
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print each experiment's section."""
        for run, summary, path in self._summaries:
            try:
                write_section(terminalreporter, summary, path, run.notes)
            except Exception:
                self._faults.append(f"the summary cannot be shown:\n{traceback.format_exc()}")
            if run.left:
                terminalreporter.write_line(f"metricbench: {budget_sentence(run)}", yellow=True)
        for command in self._publisher.commands():
            terminalreporter.write_line(command)
        for fault in self._faults:
            terminalreporter.write_line(f"metricbench: {fault}", red=True)
        if self._fatal is not None:
            terminalreporter.write_line(f"metricbench: {self._fatal}", red=True)
