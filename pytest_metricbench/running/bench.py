"""What the items of one experiment share in a process: the experiment, its fingerprints, its store. No pytest here."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

from pytest_metricbench.budget import Allowance, Budget
from pytest_metricbench.contracts import AttemptKey, AttemptRecord, CoverageRecord
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.definition.scoring import Status
from pytest_metricbench.executor_settings import ExecutorSettings
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.attempts import Attempts, Performed
from pytest_metricbench.running.budgeted import BudgetedAttempts
from pytest_metricbench.running.coverage_plan import PlannedRequest
from pytest_metricbench.running.describing import known_files
from pytest_metricbench.running.naming import ItemNames
from pytest_metricbench.running.stops import StopNote
from pytest_metricbench.store.layout import Layout
from pytest_metricbench.store.reading import read_store

Measure: TypeAlias = Callable[
    ["Bench", Sequence[PlannedRequest], Callable[[int], None]], Generator[tuple[PlannedRequest, CoverageRecord]]
]
"""Measures coverage requests of an experiment, as :func:`.measuring.measure_requests` does."""


class Bench:
    """What the items of one experiment share in this process: the experiment, its fingerprints, its store."""

    def __init__(
        self,
        experiment: Experiment,
        store: Path,
        *,
        retry_died: bool = False,
        cached: str = "",
        executor: ExecutorSettings | None = None,
    ) -> None:
        """Nothing is read or opened yet.

        Args:
            experiment: what to run.
            store: the folder of its store.
            retry_died: run attempts again that died.
            cached: the option that forbids to run attempts; empty where they may run.
            executor: what makes the attempts beneath the items; None: the items themselves.
        """
        self.experiment: Final = experiment
        self.layout: Final = Layout(store)
        self.stored: Mapping[AttemptKey, AttemptRecord] | None = None
        """The store's attempts; the process that writes the store sets it, a worker reads it at its first item."""
        self.deliver: Callable[[AttemptKey, Performed, Status], str] | None = None
        """Keeps what an attempt learned and gives its word; set where the store is written by this process."""
        self.leave: Callable[[AttemptKey, str], None] | None = None
        """Notes that an attempt of a group was not started, and the limit that was reached; set likewise."""
        self.elsewhere: Callable[[Planned], Performed] | None = None
        """Waits for an attempt that an executor makes; set where one makes the attempts of this process."""
        self.ended_elsewhere: Callable[[AttemptKey], bool] | None = None
        """Whether an attempt that an executor makes has ended and not been asked for; set likewise."""
        self.cached: Final = cached
        self.executor: Final = executor
        self.retry_died: Final = retry_died
        self._read: dict[AttemptKey, AttemptRecord] | None = None
        """The store's attempts where another process writes it, with what :meth:`remember` added."""

    @property
    def budget(self) -> Budget | None:
        """What one run may spend; None where nothing may run anyway."""
        return None if self.cached else self.experiment.budget

    @property
    def allowance(self) -> Allowance | None:
        """What says whether another attempt may start; None where nothing limits it."""
        is_limited = self.budget is not None and self.budget.limits
        return Allowance(self.layout.root / "budget") if is_limited else None

    @property
    def stop_note(self) -> StopNote:
        """What tells every process of a run that it stops."""
        return StopNote(self.layout.root / "stopped")

    @cached_property
    def names(self) -> ItemNames:
        """The names of the experiment's items."""
        return ItemNames(self.experiment)

    @cached_property
    def fingerprints(self) -> Fingerprints:
        """Of the experiment; reads every input file when first asked."""
        return Fingerprints(self.experiment, known=known_files(self.layout) if self.cached else None)

    @cached_property
    def attempts(self) -> Attempts:
        """Runs the experiment's attempts or takes them from the store."""
        return Attempts(
            self.experiment,
            self.fingerprints,
            self.layout,
            self._stored,
            retry_died=self.retry_died,
            cached=self.cached,
        )

    @cached_property
    def _budgeted(self) -> BudgetedAttempts | None:
        allowance = self.allowance
        return None if allowance is None else BudgetedAttempts(self.attempts, self.experiment.runner, allowance)

    @property
    def at_a_time(self) -> int:
        """How many attempts one process has under way at a time, as far as that is known beforehand."""
        executor = None if self.executor is None else self.executor.at_a_time
        return executor or max(self.experiment.runner.ahead, 1)

    def expect(self, planned: Iterable[Planned]) -> None:
        """Say which attempts of this process come next, so that a runner may begin them before their turn."""
        if self.elsewhere is not None:
            return  # as many are under way as the executor makes at a time
        (self._budgeted or self.attempts).expect(planned)

    def perform(self, planned: Planned) -> Performed:
        """Take an attempt from the store or make it, as the budget allows; or wait for the executor that makes it.

        Raises:
            BudgetReachedError: it would have to be made, and the budget of this run is spent.
            AllowanceError: nobody knows what of the budget is left.
            NotCachedError: it would have to be made, and nothing may.
            ExecutorError: its executor cannot make it.
        """
        return self.make(planned) if self.elsewhere is None else self.elsewhere(planned)

    def make(self, planned: Planned) -> Performed:
        """Take an attempt from the store or make it in this process and thread, as the budget allows.

        Raises:
            BudgetReachedError, AllowanceError, NotCachedError: as :meth:`perform`.
        """
        if self._budgeted is None:
            return self.attempts.perform(planned.case, planned.variant, planned.task, planned.slot)
        return self._budgeted.perform(planned)

    def close(self) -> None:
        """End what the runner has begun and nobody asks for any more."""
        if "attempts" in self.__dict__:
            self.attempts.close()

    def remember(self, record: AttemptRecord) -> None:
        """Take an attempt that this process made for one of the store, should something run its item again.

        Where this process writes the store, that knows it already; a worker reads it once.
        """
        if self._read is not None:
            self._read[record.key] = record

    def _stored(self) -> Mapping[AttemptKey, AttemptRecord]:
        if self.stored is None:
            self.stored = self._read = dict(read_store(self.layout.root).attempts)
        return self.stored


def affinity_of(bench: Bench, keys: Iterable[AttemptKey]) -> str | None:
    """The key of the costly set-up that all attempts of an item share; None where they share none."""
    affinities = {bench.experiment.runner.affinity(*key[:3]) for key in keys}
    return affinities.pop() if len(affinities) == 1 else None
