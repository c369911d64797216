"""One experiment in a session: what was selected, what arrived, what the store adds, and the answer.

A :class:`Bench` is what the items of an experiment share in any process; an :class:`ExperimentRun` is the writer's
side, on the controller only. Neither knows pytest.
"""

import os
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Final

from pytest_metricbench.ahead import Planned
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.analysis.summary_json import summary_to_json
from pytest_metricbench.attempts import Attempts, Performed
from pytest_metricbench.budget import Allowance, AllowanceError, Budget, Spending, unpriced_note
from pytest_metricbench.budgeted import BudgetedAttempts
from pytest_metricbench.contracts import (
    AttemptError,
    AttemptKey,
    AttemptRecord,
    CoverageKey,
    CoverageRecord,
)
from pytest_metricbench.definition.experiment import BASELINE, Case, Experiment, Task, Variant
from pytest_metricbench.definition.fingerprints import Fingerprints, attempt_seed
from pytest_metricbench.definition.lock import write_lock
from pytest_metricbench.definition.scoring import Status
from pytest_metricbench.describing import description, known_files
from pytest_metricbench.measuring import (
    DAMAGED,
    CoveragePlan,
    PlannedRequest,
    cached_answers,
    measure_requests,
    plan_coverage,
)
from pytest_metricbench.store.files import files_match
from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.layout import Layout
from pytest_metricbench.store.reading import read_store
from pytest_metricbench.store.writing import StoreWriter
from pytest_metricbench.wire import WireError, from_wire, to_wire

CACHED_ONLY: Final = "--metricbench-cached-only"


class Bench:
    """What the items of one experiment share in this process: the experiment, its fingerprints, its store."""

    def __init__(self, experiment: Experiment, store: Path, *, retry_died: bool = False, cached: str = "") -> None:
        """Nothing is read or opened yet.

        Args:
            experiment: what to run.
            store: the folder of its store.
            retry_died: run attempts again that died.
            cached: the option that forbids to run attempts; empty where they may run.
        """
        self.experiment: Final = experiment
        self.layout: Final = Layout(store)
        self.stored: Mapping[AttemptKey, AttemptRecord] | None = None
        """The store's attempts; the process that writes the store sets it, a worker reads it at its first item."""
        self.deliver: Callable[[AttemptKey, Performed, Status], str] | None = None
        """Keeps what an attempt learned and gives its word; set where the store is written by this process."""
        self.cached: Final = cached
        self._retry_died: Final = retry_died

    @property
    def budget(self) -> Budget | None:
        """What one run may spend; None where nothing may run anyway."""
        return None if self.cached else self.experiment.budget

    @property
    def allowance(self) -> Allowance | None:
        """What says whether another attempt may start; None where nothing limits it."""
        is_limited = self.budget is not None and self.budget.limits
        return Allowance(self.layout.root / "budget") if is_limited else None

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
            retry_died=self._retry_died,
            cached=self.cached,
        )

    @cached_property
    def _budgeted(self) -> BudgetedAttempts | None:
        allowance = self.allowance
        return None if allowance is None else BudgetedAttempts(self.attempts, self.experiment.runner, allowance)

    def expect(self, planned: Iterable[Planned]) -> None:
        """Say which attempts of this process come next, so that a runner may begin them before their turn."""
        (self._budgeted or self.attempts).expect(planned)

    def perform(self, case: Case, variant: Variant, task: Task, slot: int) -> Performed:
        """Take an attempt from the store or make it, as the budget allows.

        Raises:
            BudgetReachedError: it would have to be made, and the budget of this run is spent.
            AllowanceError: nobody knows what of the budget is left.
            NotCachedError: it would have to be made, and nothing may.
        """
        if self._budgeted is None:
            return self.attempts.perform(case, variant, task, slot)
        return self._budgeted.perform(Planned(case, variant, task, slot))

    def close(self) -> None:
        """End what the runner has begun and nobody asks for any more."""
        if "attempts" in self.__dict__:
            self.attempts.close()

    def _stored(self) -> Mapping[AttemptKey, AttemptRecord]:
        if self.stored is None:
            self.stored = read_store(self.layout.root).attempts
        return self.stored


def crash_to_wire(bench: Bench, key: AttemptKey, message: str) -> str:
    """What is known of an attempt whose process died under it: nothing."""
    case_id, variant_id, task_id, slot = key
    case = bench.experiment.case(case_id)
    variant = next(variant for variant in case.variants if variant.id == variant_id)
    task = next(task for task in case.tasks if task.id == task_id)
    earlier = (bench.stored or {}).get(key)
    record = AttemptRecord(
        case=case_id,
        variant=variant_id,
        task=task_id,
        attempt=slot,
        trial_id=secrets.token_hex(16),
        outcome="unmeasured",
        scores={},
        error=AttemptError("WorkerCrashed", message, "setup"),
        time_limit=None,
        fingerprint=bench.fingerprints.attempt(case, variant, task),
        verifier=bench.fingerprints.verifier(),
        seed=attempt_seed(bench.experiment.seed, case_id, variant_id, task_id, slot),
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        duration=0.0,
        files={},
        supersedes=None if earlier is None else earlier.trial_id,
    )
    return to_wire("unmeasured", [record])


@dataclass(slots=True)
class ExperimentRun:
    """An experiment in this session, with its store open for writing.

    Attributes:
        bench: the experiment.
        writer: its store.
        selected: the attempts that are part of this session.
        arrived: those of them with an outcome, and whether it was taken from the store.
        kept: attempts that are not part of this session and valid in the store.
        outside: attempts that are neither.
        notes: what was done beside the attempts, in words.
    """

    bench: Bench
    writer: StoreWriter
    selected: AbstractSet[AttemptKey]
    systems: AbstractSet[str] | None = None
    """Coverage systems to measure; None: all."""
    arrived: dict[AttemptKey, bool] = field(default_factory=dict)
    kept: dict[AttemptKey, AttemptRecord] = field(default_factory=dict)
    outside: set[AttemptKey] = field(default_factory=set)
    coverage: dict[CoverageKey, CoverageRecord] = field(default_factory=dict)
    coverage_absent: dict[CoverageKey, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    damaged: list[AttemptKey] = field(default_factory=list)
    """Attempts that ran again since files that they had left were missing or had changed."""
    left: set[AttemptKey] = field(default_factory=set)
    """Selected attempts that were not started since the budget of this run was spent."""
    reached: str | None = None
    """The limit of the budget that was reached, in words."""
    spending: Spending = field(default_factory=Spending)

    @classmethod
    def begin(
        cls, bench: Bench, writer: StoreWriter, selected: AbstractSet[AttemptKey], systems: AbstractSet[str] | None
    ) -> "ExperimentRun":
        """Start from the list of what was selected, and from what the store adds to it.

        Raises:
            StoreError: the store cannot be written.
        """
        run = cls(bench, writer, selected, systems)
        if bench.budget is not None:
            run.spending.names = bench.budget.cost_scores
            if bench.allowance is not None:
                bench.allowance.open(bench.budget)
        for case, variant, task, slot in bench.experiment.attempts():
            key = (case.id, variant.id, task.id, slot)
            if key not in selected:
                record = bench.attempts.reusable(case, variant, task, slot)
                if record is None:
                    run.outside.add(key)
                else:
                    run.kept[key] = record
        run.notes += writer.contents.warnings
        if interrupted := writer.set_aside_interrupted():
            count = f"{len(interrupted)} attempts were" if len(interrupted) > 1 else "1 attempt was"
            run.notes.append(f"{count} in flight when a run ended; what was left is in {writer.layout.interrupted}")
        if writer.kept_aside is not None:
            run.notes.append(f"the old store is kept in {writer.kept_aside}")
        run._keep_lock()
        if not bench.cached:  # what was run is what the store says already
            writer.write_experiment(description(bench.experiment, bench.fingerprints))
        return run

    def _keep_lock(self) -> None:
        lock = self.bench.experiment.lock
        if lock is None or not lock.missing:
            return
        try:
            write_lock(lock)
            self.notes.append(f"wrote {lock.path}: review it and commit it")
        except OSError as error:
            self.notes.append(f"{lock.path} cannot be written ({error.strerror}); the store keeps a copy")
            (self.writer.layout.root / lock.path.name).write_text(lock.text, encoding="utf-8")

    @property
    def part(self) -> str | None:
        """What part of the experiment this is, in words; None for the whole."""
        declared = len(self.selected) + len(self.kept) + len(self.outside)
        spent = f"the budget of {self.reached} was reached before {len(self.left):,} of them" if self.left else ""
        if not self.kept and not self.outside:
            coverage = f"coverage of {', '.join(sorted(self.systems))} only" if self.systems is not None else ""
            selected = f"{declared:,} attempts" if spent else ""
            return "; ".join(filter(None, (coverage, selected, spent))) or None
        taken = f", {len(self.kept)} more taken from the store" if self.kept else ""
        selected = f"{len(self.selected)} of {declared} attempts selected"
        return f"{selected}; {spent}{taken}" if spent else f"{selected}{taken}"

    @property
    def absent(self) -> AbstractSet[AttemptKey]:
        """Attempts of the experiment that this run does not answer for, and that are not in the store."""
        return self.outside | self.left

    def receive(self, key: AttemptKey, wire: str) -> str:
        """Keep what arrived of an attempt and give its word: passed, missed, died, unmeasured or reused.

        Raises:
            WireError: it is not what the attempt's item sends.
            StoreError: the store cannot be written.
        """
        message = from_wire(wire)
        strange = [record.key for record in message.records if record.key != key]
        if strange:
            raise WireError(f"it is about {strange[0]}")
        if not message.records and key not in self.writer.contents.attempts:
            raise WireError("it says that the attempt is in the store, which does not have it")
        return self.keep(key, message.records, message.status)

    def keep(self, key: AttemptKey, records: Sequence[AttemptRecord], status: Status) -> str:
        """Keep an attempt's new records, none when it was taken from the store, and give its word.

        Raises:
            StoreError: the store cannot be written.
        """
        for record in records:
            # Who ran it may not know the last one: a worker reads the store once, and a rerun follows in another.
            known = self.writer.contents.attempts.get(key)
            supersedes = None if known is None else known.trial_id
            linked = record if record.supersedes == supersedes else replace(record, supersedes=supersedes)
            if known is not None and self._was_damaged(known, linked):
                self.damaged.append(key)
            self.writer.add_attempt(linked)
            self.spending.add(linked, ran_before=known is not None and known.trial_id == linked.trial_id)
            layout = self.writer.layout
            if known is not None and known.files and layout.left_by(known) != layout.left_by(linked):
                self.writer.set_aside(known)
        self.arrived[key] = not records
        if records:
            self._heed_cost()
        return status if records else "reused"

    def leave(self, key: AttemptKey, reached: str) -> None:
        """Note that an attempt was not started since a limit of the budget, in words, was reached."""
        self.left.add(key)
        self.reached = self.reached or reached

    def _heed_cost(self) -> None:
        """Let no further attempt start once those of this run cost what they may."""
        budget, allowance = self.bench.budget, self.bench.allowance
        if budget is None or allowance is None or budget.cost is None or self.spending.assumed < budget.cost:
            return
        try:
            allowance.end(f"cost {budget.cost:,g}")
        except AllowanceError as error:
            raise StoreError(str(error)) from None

    def _was_damaged(self, known: AttemptRecord, new: AttemptRecord) -> bool:
        """Whether an attempt ran again although nothing has changed but the files that it had left."""
        if known.outcome == "unmeasured" or not known.files or known.fingerprint != new.fingerprint:
            return False
        return new.trial_id != known.trial_id and not files_match(self.writer.layout.left_by(known), known.files)

    def _note_damage(self) -> None:
        if self.damaged:
            self._note_again("ran", [f"{'::'.join(key[:3])}[{key[3]}]" for key in self.damaged])
            self.damaged.clear()

    def _note_again(self, what: str, names: Sequence[str]) -> None:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        self.notes.append(f"{what} again, since files that it had left were missing or had changed: {names[0]}{more}")

    def missing(self) -> Iterator[AttemptKey]:
        """Selected attempts without an outcome."""
        return (key for key in self.selected if key not in self.arrived and key not in self.left)

    # ------------------------------------------------ coverage

    def expected_requests(self) -> int:
        """How many coverage requests this session will answer, as far as that can be told beforehand."""
        outside = {(case, task) for case, variant, task, _ in self.absent if variant == BASELINE}
        count = 0
        for case in self.bench.experiment.cases:
            subsets = [subset.tasks for subset in case.subsets] + [tuple(task.id for task in case.tasks)]
            whole = sum(not any((case.id, task) in outside for task in tasks) for tasks in subsets)
            systems = [e for e in self.bench.experiment.coverage if self.systems is None or e.id in self.systems]
            count += whole * len(systems)
        return count

    def plan_coverage(self) -> CoveragePlan:
        """Plan the coverage requests from the attempts that are there now."""
        plan = plan_coverage(
            self.bench.experiment,
            self.bench.fingerprints,
            self.writer.layout,
            self._attempts(),
            self.writer.contents.coverage,
            outside=self.absent,
            missing=tuple(self.missing()),
            systems=self.systems,
        )
        damaged = [" ".join(planned.key) for planned in plan.requests if planned.why == DAMAGED]
        if damaged and self.bench.cached != CACHED_ONLY:
            self._note_again("measured", damaged)
        if self.left:
            _leave_unmeasured(plan)
        self.coverage_absent.update(plan.absent)
        for planned in plan.requests:
            self.coverage_absent[planned.key] = "the run ended before it was measured"
        return plan

    def measure_coverage(
        self, plan: CoveragePlan, waiting: Callable[[int], None]
    ) -> Generator[tuple[PlannedRequest, CoverageRecord, bool]]:
        """Answer the planned requests, keep each, and yield it with whether it was taken from the store.

        Raises:
            StoreError: the store cannot be written.
        """
        if self.bench.cached == CACHED_ONLY:
            answers = cached_answers(plan.requests)
        else:
            answers = measure_requests(plan.requests, self.writer.layout, workers=os.cpu_count() or 1, waiting=waiting)
        with closing(answers):
            for planned, record in answers:
                reused = record is planned.kept
                if not reused and self.bench.cached != CACHED_ONLY:
                    self.writer.add_coverage(record)
                self.coverage[planned.key] = record
                self.coverage_absent.pop(planned.key, None)
                yield planned, record, reused

    # ------------------------------------------------ the answer

    def _attempts(self) -> dict[AttemptKey, AttemptRecord]:
        stored = self.writer.contents.attempts
        return {**self.kept, **{key: stored[key] for key in self.arrived}}

    def results(self) -> Results:
        """Everything that is known."""
        reused = {key for key, taken in self.arrived.items() if taken} | set(self.kept)
        return Results(
            self.bench.experiment,
            self._attempts(),
            self.coverage,
            self.coverage_absent,
            self.absent,
            reused,
            self.part,
        )

    def conclude(
        self,
        progress: Callable[[str], None] | None = None,
        compare: Callable[[Summary], Summary] | None = None,
    ) -> tuple[Summary, Path]:
        """Analyse, and write the summary: as the whole answer only when every attempt has an outcome.

        ``progress`` is told what is analysed, which can take a while; ``compare`` adds what changed since an earlier
        run.

        Raises:
            StoreError: the store cannot be written.
        """
        self._note_damage()
        if (unpriced := unpriced_note(self.bench.budget, self.spending)) is not None:
            self.notes.append(unpriced)
        summary = summarize(self.results(), progress)
        if compare is not None:
            summary = compare(summary)
        partial = bool(self.absent) or next(self.missing(), None) is not None or self._lacks_coverage()
        return summary, self.writer.write_summary(summary_to_json(summary), partial=partial)

    def _lacks_coverage(self) -> bool:
        return len(self.coverage) < self.bench.experiment.coverage_requests


def _leave_unmeasured(plan: CoveragePlan) -> None:
    """Measure nothing any more: what the store has stays in the plan."""
    for planned in plan.requests:
        if planned.kept is None:
            plan.absent[planned.key] = "left for the next run, since the budget of this one was reached"
    plan.requests[:] = [planned for planned in plan.requests if planned.kept is not None]
