"""One experiment in a session: what was selected, what arrived, what the store adds, and the answer.

An :class:`ExperimentRun` is the writer's side, on the controller only. It knows no pytest.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.analysis.summary_json import summary_to_json
from pytest_metricbench.budget import AllowanceError, Spending, unpriced_note
from pytest_metricbench.contracts import (
    AttemptKey,
    AttemptRecord,
    CoverageKey,
    CoverageRecord,
    attempt_name,
)
from pytest_metricbench.definition.experiment import BASELINE
from pytest_metricbench.definition.lock import write_lock
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.definition.scoring import Status
from pytest_metricbench.messages import counted
from pytest_metricbench.running.bench import Bench, Measure
from pytest_metricbench.running.coverage_plan import DAMAGED, CoveragePlan, PlannedRequest, plan_coverage
from pytest_metricbench.running.describing import description
from pytest_metricbench.running.measuring import cached_answers, measure_requests
from pytest_metricbench.running.wire import WireError, from_wire, group_from_wire
from pytest_metricbench.store.files import files_match
from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.writing import StoreWriter

CACHED_ONLY: Final = "--metricbench-cached-only"


@dataclass(slots=True)
class ExperimentRun:
    """An experiment in this session, with its store open for writing.

    Every attempt of the experiment is ``selected``, ``kept`` or ``outside``, and stays that. One that is selected has
    ``arrived`` or is ``left``; as long as it is neither it is missing.
    """

    bench: Bench
    """The experiment, and what the options say about it."""
    writer: StoreWriter
    """Its store."""
    selected: AbstractSet[AttemptKey]
    """The attempts that are part of this session."""
    systems: AbstractSet[str] | None = None
    """Coverage systems to measure; None: all."""
    arrived: dict[AttemptKey, bool] = field(default_factory=dict)
    """Selected attempts with an outcome -> whether it was taken from the store."""
    left: set[AttemptKey] = field(default_factory=set)
    """Selected attempts that were not started since the budget of this run was spent."""
    kept: dict[AttemptKey, AttemptRecord] = field(default_factory=dict)
    """Attempts that are not part of this session and valid in the store -> their records."""
    outside: set[AttemptKey] = field(default_factory=set)
    """Attempts that are not part of this session and not valid in the store either."""
    coverage: dict[CoverageKey, CoverageRecord] = field(default_factory=dict)
    """Coverage requests that are answered; none before :meth:`measure_coverage`."""
    coverage_absent: dict[CoverageKey, str] = field(default_factory=dict)
    """All others, once they are planned -> why they are not answered, in words."""
    notes: list[str] = field(default_factory=list)
    """What was done beside the attempts, in words."""
    damaged: list[AttemptKey] = field(default_factory=list)
    """Attempts that ran again since files that they had left were missing or had changed; until that is noted."""
    reached: str | None = None
    """The limit of the budget that was reached first, in words."""
    spending: Spending = field(default_factory=Spending)
    """What the attempts of this run took."""

    @classmethod
    def begin(
        cls, bench: Bench, writer: StoreWriter, selected: AbstractSet[AttemptKey], systems: AbstractSet[str] | None
    ) -> "ExperimentRun":
        """Start from the list of what was selected, and from what the store adds to it.

        Raises:
            StoreError: the store cannot be written.
        """
        run = cls(bench, writer, selected, systems)
        bench.stop_note.clear()
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
            selected = counted(declared, "attempt") if spent else ""
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
        self._check(key, message.records)
        return self.keep(key, message.records, message.status)

    def receive_group(self, keys: Collection[AttemptKey], wire: str) -> str:
        """Keep what arrived of an item of several attempts, all of it or nothing, and give the item's word.

        Raises:
            WireError: it is not what the item sends.
            StoreError: the store cannot be written.
        """
        message = group_from_wire(wire)
        case, variant = next(iter(keys))[:2]
        arrived = [((case, variant, part.task, part.slot), part) for part in message.attempts]
        left = [((case, variant, part.task, part.slot), part.reached) for part in message.left]
        told = Counter(key for key, _ in (*arrived, *left))
        for key, times in told.items():
            if key not in keys or times > 1:
                raise WireError(f"it is about {attempt_name(key)}{f' {times} times' if times > 1 else ''}")
        for key, part in arrived:
            self._check(key, part.records)
        for key, part in arrived:
            self.keep(key, part.records, part.status)
        for key, reached in left:
            self.leave(key, reached)
        return message.word

    def _check(self, key: AttemptKey, records: Sequence[AttemptRecord]) -> None:
        """Hold what is said of an attempt against the store.

        Raises:
            WireError: it cannot be true.
        """
        strange = [record.key for record in records if record.key != key]
        if strange:
            raise WireError(f"it is about {attempt_name(strange[0])}")
        if not records and key not in self.writer.contents.attempts:
            raise WireError("it says that the attempt is in the store, which does not have it")

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
            self._note_again("ran", [attempt_name(key) for key in self.damaged])
            self.damaged.clear()

    def _note_again(self, what: str, names: Sequence[str]) -> None:
        which = first_names(names, 1)
        self.notes.append(f"{what} again, since files that it had left were missing or had changed: {which}")

    def became(self, key: AttemptKey) -> Literal["measured", "unmeasured", "reused", "left", "missing"]:
        """What became of a selected attempt until now."""
        if key not in self.arrived:
            return "left" if key in self.left else "missing"
        if self.arrived[key]:
            return "reused"
        return "unmeasured" if self.writer.contents.attempts[key].outcome == "unmeasured" else "measured"

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
        self, plan: CoveragePlan, waiting: Callable[[int], None], measure: Measure | None
    ) -> Generator[tuple[PlannedRequest, CoverageRecord, bool]]:
        """Answer the planned requests, keep each, and yield it with whether it was taken from the store.

        ``measure`` does it where an executor does; None: this process, as many at a time as it has processors.

        Raises:
            StoreError: the store cannot be written.
            ExecutorError: the executor cannot measure any more.
        """
        if self.bench.cached == CACHED_ONLY:
            answers = cached_answers(plan.requests)
        elif measure is not None:
            answers = measure(self.bench, plan.requests, waiting)
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

    def conclude(self, progress: Callable[[str], None], compare: Callable[[Summary], Summary]) -> tuple[Summary, Path]:
        """Analyse, and write the summary: as the whole answer only when every attempt has an outcome.

        ``progress`` is told what is analysed, which can take a while; ``compare`` adds what changed since an earlier
        run.

        Raises:
            StoreError: the store cannot be written.
        """
        self._note_damage()
        if (unpriced := unpriced_note(self.bench.budget, self.spending)) is not None:
            self.notes.append(unpriced)
        summary = compare(summarize(self.results(), progress))
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
