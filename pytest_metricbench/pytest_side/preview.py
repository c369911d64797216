"""``--metricbench-show``: a part of what a store holds, or the plan of a run, printed without running anything.

Items are collected as for a run, so that ``-k``, ``-m``, ``::`` and shards choose what is shown; then the part is
printed in place of the run. No store is opened for writing, so that one can look while a run goes on.
"""

import os
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from pytest_metricbench.contracts import AttemptKey
from pytest_metricbench.definition.experiment import BASELINE
from pytest_metricbench.pytest_side.benches import cached_by
from pytest_metricbench.pytest_side.items import ExperimentItem
from pytest_metricbench.reporting.layout import Line
from pytest_metricbench.reporting.plan import plan_lines
from pytest_metricbench.reporting.showing import Shown, origin_lines, shown_of, survivor_lines
from pytest_metricbench.reporting.showing_attempts import attempt_lines, task_lines
from pytest_metricbench.reporting.showing_matrix import matrix_lines
from pytest_metricbench.running.attempts import Standing
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.coverage_plan import plan_coverage
from pytest_metricbench.running.forecast import Estimates, Plan, plan_of, standings
from pytest_metricbench.running.staleness import stale_notice
from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.reading import Store, read_store
from pytest_metricbench.workers import worker_count

_Writer: TypeAlias = Callable[[Shown, str, int], list[Line]]
_PARTS: Final[dict[str, _Writer]] = {
    "survivors": lambda shown, store, width: survivor_lines(shown, width),
    "matrix": lambda shown, store, width: matrix_lines(shown, width),
    "tasks": lambda shown, store, width: task_lines(shown, width),
    "attempts": lambda shown, store, width: attempt_lines(shown, store),
}
_SILENT: Final = -2
"""Verbosity at which pytest says nothing of a session in which nothing goes wrong."""


def prepare(config: pytest.Config) -> None:
    """Have this session print a part and run nothing: no workers are started, and pytest says nothing of its own.

    Raises:
        UsageError: the other options ask for something that only a run does.
    """
    part = config.getoption("metricbench_show")
    for name in ("merge", "fresh"):
        if config.getoption(f"metricbench_{name}") and not (name == "fresh" and part == "plan"):
            raise _usage(part, f"nothing is run or written, so --metricbench-{name} would do nothing; leave it out")
    if part == "plan" and (cached := cached_by(config)):
        raise _usage(part, f"with {cached} no attempt runs, so there is nothing to plan; leave one of them out")
    config.pluginmanager.register(Preview(config, part, max(worker_count(config), 1)), Preview.NAME)
    if hasattr(config.option, "tx"):
        config.option.dist, config.option.tx = "no", []
    config.option.verbose = _SILENT


def _usage(part: str, message: str) -> pytest.UsageError:
    return pytest.UsageError(f"metricbench: --metricbench-show {part}: {message}")


class Preview:
    """Stands in for the run of a session."""

    NAME: Final = "metricbench-preview"

    def __init__(self, config: pytest.Config, part: str, workers: int) -> None:
        """Show ``part``, as for a run with so many workers."""
        self._config: Final = config
        self._part: Final = part
        self._workers: Final = workers

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Print the part of every experiment that has selected attempts.

        Raises:
            UsageError: there is nothing to show, or a store cannot be read.
        """
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return None  # pytest says what could not be collected
        selected: dict[Bench, set[AttemptKey]] = {}
        for item in session.items:
            if isinstance(item, ExperimentItem):
                selected.setdefault(item.bench, set()).update(item.keys)
        blocks = [(bench, list(self._lines(bench, keys))) for bench, keys in selected.items()]
        for bench, lines in blocks:
            self._print(f"metricbench: {bench.experiment.name}: {self._part}", lines)
        return True

    def _lines(self, bench: Bench, selected: AbstractSet[AttemptKey]) -> Iterator[Line]:
        contents = self._read(bench)
        bench.stored = contents.attempts
        try:
            found = standings(bench.experiment, bench.attempts)
            if self._part == "plan":
                yield from plan_lines(self._plan(bench, contents, found, selected), self._width)
                return
        except OSError as error:
            raise _usage(self._part, f"{error.filename}: {error.strerror}") from None
        store = os.path.relpath(bench.layout.root, self._config.invocation_params.dir)
        cost_scores = () if bench.budget is None else bench.budget.cost_scores
        shown = shown_of(bench.experiment, bench.attempts, found, selected, cost_scores)
        if not shown.attempts:
            raise _usage(self._part, _nothing(contents, store, bench.experiment.path))
        yield from origin_lines(shown, store, self._width)
        yield Line()
        yield from _PARTS[self._part](shown, store, self._width)

    def _read(self, bench: Bench) -> Store:
        if self._config.getoption("metricbench_fresh"):
            return Store(bench.layout)
        try:
            return read_store(bench.layout.root)
        except StoreError as error:
            raise _usage(self._part, str(error)) from None
        except OSError as error:
            raise _usage(self._part, f"{error.filename}: {error.strerror}") from None

    def _plan(
        self, bench: Bench, contents: Store, found: dict[AttemptKey, Standing], selected: AbstractSet[AttemptKey]
    ) -> Plan:
        if bench.executor is not None and self._workers > 1:
            only = f"the executor {bench.executor.kind} goes without pytest -n; leave it out, or take"
            raise _usage(self._part, f"{only} --metricbench-executor local")
        experiment, budget = bench.experiment, bench.budget
        changes = stale_notice(experiment, bench.fingerprints, bench.layout, contents.attempts, selected)
        return plan_of(
            experiment,
            {key: standing for key, standing in found.items() if key in selected},
            Estimates(contents.attempts.values(), () if budget is None else budget.cost_scores),
            at_a_time=self._workers * bench.at_a_time,
            executor=bench.executor.describe() if bench.executor is not None else "",
            changes=changes,
            requests=_requests(bench, contents, found, selected, self._config.getoption("metricbench_coverage")),
            budget=budget,
        )

    # ------------------------------------------------ printing

    @property
    def _width(self) -> int:
        reporter = self._reporter
        return 80 if reporter is None else max(int(self._config.get_terminal_writer().fullwidth), 40)

    @property
    def _reporter(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")

    def _print(self, title: str, lines: list[Line]) -> None:
        reporter = self._reporter
        if reporter is None:
            print("\n".join([title, *(found.text for found in lines)]))
            return
        reporter.write_sep("=", title)
        for found in lines:
            for span in found.spans:
                reporter.write(span.text, **({span.style: True} if span.style else {}))
            reporter.line("")


def _nothing(contents: Store, store: str, path: Path) -> str:
    run_first = f"run it first: pytest {path.name}"
    if not contents.attempts:
        return f"the store {store} holds no attempt; {run_first} (--metricbench-store says where another store is)"
    count = len(contents.attempts)
    what = "1 attempt, which does not fit" if count == 1 else f"{count:,} attempts, none of which fits"
    why = f"--metricbench-show plan says why; to make new ones, {run_first.partition(': ')[2]}"
    return f"the store {store} holds {what} the experiment as it is now; {why}"


def _requests(
    bench: Bench,
    contents: Store,
    found: dict[AttemptKey, Standing],
    selected: AbstractSet[AttemptKey],
    systems: list[str],
) -> tuple[int, int]:
    """Coverage requests that a run would measure, and those that the store has answered."""
    known = {key: s.record for key, s in found.items() if s.state == "reusable" and s.record is not None}
    plan = plan_coverage(
        bench.experiment,
        bench.fingerprints,
        bench.layout,
        known,
        contents.coverage,
        outside=found.keys() - known.keys(),
        systems=systems or None,
    )
    kept = sum(1 for request in plan.requests if request.kept is not None)
    never = {key[:1] + key[2:3] for key in found.keys() - known.keys() - selected if key[1] == BASELINE}
    possible = 0
    for case in bench.experiment.cases:
        subsets = [*(subset.tasks for subset in case.subsets), [task.id for task in case.tasks]]
        whole = sum(1 for tasks in subsets if not any((case.id, task) in never for task in tasks))
        possible += whole * sum(1 for entry in bench.experiment.coverage if not systems or entry.id in systems)
    return max(possible - kept, 0), kept
