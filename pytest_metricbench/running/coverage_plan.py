"""Which coverage requests a run answers: each with its evidence, and with what the store has answered already."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from pytest_metricbench.contracts import (
    RESERVED_FILES,
    AttemptKey,
    AttemptRecord,
    CaseRef,
    CoverageKey,
    CoverageRecord,
    CoverageRequest,
    EvidenceFile,
)
from pytest_metricbench.definition.experiment import BASELINE, POOL, Case, CoverageEntry, Experiment, Subset, Task
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.digests import digest_value
from pytest_metricbench.messages import without_traceback
from pytest_metricbench.running.request_folders import (
    receipt_holds,
)
from pytest_metricbench.store.files import files_match
from pytest_metricbench.store.layout import Layout

_FAILED: Final = "it failed the last time"
DAMAGED: Final = "files that it left are missing or have changed"
"""Why an answer of an unchanged request does not hold any more."""


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """A request that this run answers, or that the store has answered already."""

    entry: CoverageEntry
    request: CoverageRequest
    """Its evidence files lie in the store; they are copied when it is measured."""
    request_digest: str
    settings_digest: str
    kept: CoverageRecord | None
    """The record to use instead, when the inputs and every file of it are as they were."""
    failed: CoverageRecord | None
    """The record of the last time, when the same request failed then."""
    unmeasurable: str | None
    """Why the score is null without asking the system."""
    why: str
    """In words, why there is no ``kept`` record."""

    @property
    def key(self) -> CoverageKey:
        """Case, system, subset."""
        return (self.request.case.id, self.entry.id, self.request.subset)


@dataclass(slots=True)
class CoveragePlan:
    """What is to be measured, and why the rest is not."""

    requests: list[PlannedRequest] = field(default_factory=list)
    absent: dict[CoverageKey, str] = field(default_factory=dict)


def plan_coverage(
    experiment: Experiment,
    fingerprints: Fingerprints,
    layout: Layout,
    attempts: Mapping[AttemptKey, AttemptRecord],
    stored: Mapping[CoverageKey, CoverageRecord],
    *,
    outside: Collection[AttemptKey] = (),
    missing: Collection[AttemptKey] = (),
    systems: Collection[str] | None = None,
) -> CoveragePlan:
    """Plan a request for every case, coverage system and subset, the pool among them.

    Args:
        experiment: what to measure.
        fingerprints: of that experiment.
        layout: the store with the evidence.
        attempts: the attempts that count.
        stored: the coverage records of the store.
        outside: attempts that are neither part of this run nor in the store; requests that need one are not made.
        missing: attempts that are part of this run and have no outcome; likewise.
        systems: ids of the systems to measure; the others are only taken from the store. None: all.
    """
    plan = CoveragePlan()
    for case in experiment.cases:
        lacking = _lacking(case, outside, "is outside this part and not in the store")
        lacking |= _lacking(case, missing, "has no outcome in this run")
        evidence = {task.id: _evidence(layout, case, task, attempts) for task in case.tasks}
        for entry, subset in product(experiment.coverage, (*case.subsets, pool_of(case))):
            key = (case.id, entry.id, subset.id)
            without = next((task for task in subset.tasks if task in lacking), None)
            if without is not None:
                plan.absent[key] = f"the baseline of task {without} {lacking[without]}"
                continue
            settings = fingerprints.coverage_settings(entry)
            planned = _plan_one(case, entry, subset, settings, evidence, layout, stored.get(key))
            if isinstance(planned, str):
                plan.absent[key] = planned
            elif systems is None or entry.id in systems or planned.kept is not None:
                plan.requests.append(planned)
            else:
                plan.absent[key] = "not measured in this run (--metricbench-coverage)"
    return plan


def _lacking(case: Case, keys: Collection[AttemptKey], why: str) -> dict[str, str]:
    """The tasks of the case whose baseline has one of these attempts -> why it is lacking."""
    return {task: why for case_id, variant, task, _ in keys if case_id == case.id and variant == BASELINE}


def pool_of(case: Case) -> Subset:
    """The whole pool of tasks as a subset."""
    return Subset(POOL, tuple(task.id for task in case.tasks))


def _evidence(
    layout: Layout, case: Case, task: Task, attempts: Mapping[AttemptKey, AttemptRecord]
) -> tuple[EvidenceFile, ...] | None:
    """The files that the baseline left at a task; None when no attempt of it was scored or died."""
    files = []
    measured = False
    for slot in case.slots(BASELINE, task):
        record = attempts.get((case.id, BASELINE, task.id, slot))
        if record is None or record.outcome not in ("scored", "died"):
            continue
        measured = True
        folder = layout.left_by(record)
        files += [
            EvidenceFile(folder / name, record.trial_id, name, digest, record.outcome)
            for name, digest in sorted(record.files.items())
            if name not in RESERVED_FILES
        ]
    return tuple(files) if measured else None


def _plan_one(
    case: Case,
    entry: CoverageEntry,
    subset: Subset,
    settings_digest: str,
    evidence: Mapping[str, tuple[EvidenceFile, ...] | None],
    layout: Layout,
    stored: CoverageRecord | None,
) -> PlannedRequest | str:
    """The request, or why it cannot be made."""
    try:
        request = CoverageRequest(
            CaseRef(case.id, case.description),
            subset.id,
            subset.tasks,
            entry.id,
            entry.system.request_settings,
            {task: evidence[task] or () for task in subset.tasks},
        )
        request_digest = digest_value(request.to_json())
    except Exception as error:  # a system of somebody else's whose settings are no JSON
        return f"the request of {entry.id} cannot be made: {without_traceback(error)}"
    unmeasured = [task for task in subset.tasks if evidence[task] is None]
    reason = f"task {unmeasured[0]} has no scored or died baseline attempt" if unmeasured else None
    kept = failed = None
    why = _why_not_kept(stored, request_digest, settings_digest, layout)
    if not why:
        kept = stored
    elif stored is not None and stored.outcome == "failed" and why == _FAILED:
        failed = stored
    return PlannedRequest(entry, request, request_digest, settings_digest, kept, failed, reason, why)


def _why_not_kept(record: CoverageRecord | None, request_digest: str, settings_digest: str, layout: Layout) -> str:
    """In words why a stored answer does not hold any more; empty when it does."""
    if record is None:
        return "it is not in the store"
    if record.request_digest != request_digest:
        return "its evidence or another part of its request has changed"
    if record.settings_digest != settings_digest:
        return "the settings of its system have changed"
    if record.outcome == "failed":
        return _FAILED
    folder = layout.coverage_folder(*record.key)
    if not files_match(folder, record.files) or not receipt_holds(folder, record):
        return DAMAGED
    return ""
