"""Coverage requests: planned from the baseline's attempts, measured several at a time, kept with receipts.

A request sees copies of the baseline's evidence in a temporary folder and nothing of any mutant. Whatever goes wrong
takes one path: the folder is kept as ``failed-...``, there is no receipt, and the record names every problem.
"""

import tempfile
import traceback
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from time import perf_counter, sleep
from typing import Final

from pytest_metricbench.answers import as_coverage_value
from pytest_metricbench.bases import CoverageSystem
from pytest_metricbench.contracts import (
    RESERVED_FILES,
    AttemptKey,
    AttemptRecord,
    CaseRef,
    ContractError,
    CoverageError,
    CoverageKey,
    CoverageRecord,
    CoverageRequest,
    EvidenceFile,
    Score,
)
from pytest_metricbench.definition.experiment import BASELINE, POOL, Case, CoverageEntry, Experiment, Subset, Task
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.digests import digest_value
from pytest_metricbench.origins import whose
from pytest_metricbench.processes import kill_running
from pytest_metricbench.request_folders import (
    copy_evidence,
    discard,
    evidence_problems,
    keep,
    keep_failed,
    receipt_holds,
    what_is_left,
    write_request,
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
        for entry in experiment.coverage:
            settings = fingerprints.coverage_settings(entry)
            for subset in (*case.subsets, pool_of(case)):
                key = (case.id, entry.id, subset.id)
                without = [task for task in subset.tasks if task in lacking]
                if without:
                    plan.absent[key] = f"the baseline of task {without[0]} {lacking[without[0]]}"
                    continue
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
        raised = "".join(traceback.format_exception_only(error)).strip()
        return f"the request of {entry.id} cannot be made: {raised}"
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


# ---------------------------------------------------------------- measuring


def measure_requests(
    requests: Sequence[PlannedRequest],
    layout: Layout,
    *,
    workers: int,
    waiting: Callable[[int], None] = lambda done: None,
) -> Generator[tuple[PlannedRequest, CoverageRecord]]:
    """Measure requests, several at a time where their systems allow it, and yield each record in the given order.

    Closing the iterator early (or an interrupt) kills what is running and starts nothing more.

    Args:
        requests: what to measure; those with a ``kept`` record yield it.
        layout: the store that keeps what a request leaves.
        workers: how many requests are measured at a time.
        waiting: called with the number of requests done about five times a second while one is awaited.

    Raises:
        StoreError: the store cannot be written.
        OSError: the folder for temporary files cannot be written.
    """
    abandoned = Event()
    pool = ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="metricbench-coverage")
    futures: dict[int, Future[CoverageRecord]] = {}
    try:
        for index, planned in enumerate(requests):
            if planned.kept is None and planned.entry.system.concurrent and planned.unmeasurable is None:
                futures[index] = pool.submit(measure_request, planned, layout, abandoned.is_set)
        for index, planned in enumerate(requests):
            if planned.kept is not None:
                yield planned, planned.kept
            elif index in futures:
                yield planned, _await(futures[index], index, waiting)
            else:
                waiting(index)
                yield planned, measure_request(planned, layout, abandoned.is_set)
    except BaseException:
        abandoned.set()
        pool.shutdown(wait=False, cancel_futures=True)
        while not all(future.done() for future in futures.values()):
            kill_running()  # again and again: a thread may be about to start its command
            sleep(0.02)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def cached_answers(requests: Sequence[PlannedRequest]) -> Generator[tuple[PlannedRequest, CoverageRecord]]:
    """What the store answers, and a failure for each request that it does not; nothing is measured or kept."""
    for planned in requests:
        if planned.kept is not None:
            yield planned, planned.kept
        else:
            problem = f"{planned.why}, and with --metricbench-cached-only nothing is measured"
            yield planned, failed_record(planned, problem)


def _await(future: Future[CoverageRecord], done: int, waiting: Callable[[int], None]) -> CoverageRecord:
    while True:
        try:
            return future.result(timeout=0.2)
        except TimeoutError:
            if future.done():
                return future.result()
            waiting(done)


def measure_request(planned: PlannedRequest, layout: Layout, abandoned: Callable[[], bool]) -> CoverageRecord:
    """Measure one request in a temporary folder and keep the folder in the store.

    Args:
        planned: the request.
        layout: the store.
        abandoned: says whether nobody waits for the record any more; then nothing is started and nothing kept.

    Raises:
        StoreError: the store cannot be written.
        OSError: the temporary folder cannot be written.
    """
    workspace = Path(tempfile.mkdtemp(prefix="metricbench-"))
    try:
        record = measure_in(planned, workspace, abandoned)
        return record if abandoned() else keep_measured(planned, record, workspace, layout)
    finally:
        discard(workspace)


def measure_in(planned: PlannedRequest, workspace: Path, abandoned: Callable[[], bool]) -> CoverageRecord:
    """Measure one request in an empty folder and keep nothing; ``files`` of the record are what is left in the folder.

    Raises:
        OSError: the folder cannot be written.
    """
    began = perf_counter()
    score, left, problems = _measure_in(planned, workspace, abandoned)
    return _record(planned, score, left, problems, began)


def keep_measured(planned: PlannedRequest, record: CoverageRecord, workspace: Path, layout: Layout) -> CoverageRecord:
    """Move the folder of a request that was measured into the store; gives the record that speaks of it.

    Raises:
        StoreError: the store cannot be written.
        OSError: the folder cannot be written.
    """
    if record.outcome == "failed":
        return keep_failed(record, workspace, layout)
    return keep(record, planned.request, workspace, layout)


def failed_record(planned: PlannedRequest, problem: str) -> CoverageRecord:
    """The record of a request that was not measured, for the reason given; nothing is left of it."""
    return _record(planned, Score(None), {}, [problem], perf_counter())


def _record(
    planned: PlannedRequest, score: Score, left: dict[str, str], problems: Sequence[str], began: float
) -> CoverageRecord:
    duration = perf_counter() - began
    return CoverageRecord(
        case=planned.request.case.id,
        system=planned.entry.id,
        subset=planned.request.subset,
        outcome="failed" if problems else "measured",
        value=None if problems else score.value,
        reason=None if problems else score.reason,
        goals=None if problems else score.goals,
        error="\n".join(problems) or None,
        request_digest=planned.request_digest,
        settings_digest=planned.settings_digest,
        started=(datetime.now(UTC) - timedelta(seconds=duration)).isoformat(timespec="milliseconds"),
        duration=round(duration, 6),
        files=left,
    )


def _measure_in(
    planned: PlannedRequest, workspace: Path, abandoned: Callable[[], bool]
) -> tuple[Score, dict[str, str], list[str]]:
    """The score, the files that are left, and every problem in words; with problems the rest means nothing."""
    system, request = planned.entry.system, planned.request
    write_request(request, workspace)
    if planned.unmeasurable is not None:
        return Score(None, planned.unmeasurable), *what_is_left(workspace)
    if system.isolated:
        request, problems = copy_evidence(request, workspace)
        if problems:
            return Score(None), {}, problems
    if abandoned():
        return Score(None), {}, ["the run ended before it was measured"]
    score, problems = _answer(system, request, workspace)
    left, trouble = what_is_left(workspace)
    if system.isolated and not trouble:
        trouble = evidence_problems(request, left)
    return score, left, problems + trouble


def _answer(system: CoverageSystem, request: CoverageRequest, workspace: Path) -> tuple[Score, list[str]]:
    """What a system answers, or what was wrong with it."""
    try:
        return _checked(system, system.measure(request, workspace)), []
    except CoverageError as error:
        return Score(None), [str(error)]
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, or what pytest.fail raises, fails a request and not the run
        with suppress(OSError):
            (workspace / "system.stderr").write_text(traceback.format_exc(), "utf-8", "backslashreplace")
        raised = "".join(traceback.format_exception_only(error)).strip()
        return Score(None), [f"{_called(system)} raised {raised}"]


def _called(system: CoverageSystem) -> str:
    return f"the coverage system {system.kind!r}{whose(type(system))}"


def _checked(system: CoverageSystem, score: object) -> Score:
    """What a system of somebody else's returned, held to the contract."""
    if not isinstance(score, Score):
        raise CoverageError(f"{_called(system)} returned {type(score).__name__}; a Score is expected")
    if score.value is None:
        if not score.reason:
            raise CoverageError(f"{_called(system)} returned no value and no reason; say why there is no score")
        return score
    try:
        return replace(score, value=as_coverage_value(score.value))
    except ContractError as error:
        raise CoverageError(f"the answer of {_called(system)}: {error}") from None
