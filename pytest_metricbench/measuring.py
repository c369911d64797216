"""Coverage requests: planned from the baseline's attempts, measured several at a time, kept with receipts.

A request sees copies of the baseline's evidence in a temporary folder and nothing of any mutant. Whatever goes wrong
takes one path: the folder is kept as ``failed-...``, there is no receipt, and the record names every problem.
"""

import json
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Final

from pytest_metricbench.answers import as_coverage_value
from pytest_metricbench.contracts import (
    FORMAT_VERSION,
    GOALS_FILE,
    REQUEST_FILE,
    RESERVED_FILES,
    RESPONSE_FILE,
    AttemptRecord,
    CaseRef,
    ContractError,
    CoverageError,
    CoverageRecord,
    CoverageRequest,
    EvidenceFile,
    Score,
)
from pytest_metricbench.definition.experiment import BASELINE, POOL, Case, CoverageEntry, Experiment, Subset
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.digests import digest_value
from pytest_metricbench.processes import kill_running
from pytest_metricbench.store.files import copy_file, digest_folder, files_match, regular_files
from pytest_metricbench.store.layout import Layout
from pytest_metricbench.store.records import goals_to_json

RECEIPT_FILE: Final = "receipt.json"
EVIDENCE_FOLDER: Final = "evidence"

AttemptKey = tuple[str, str, str, int]
CoverageKey = tuple[str, str, str]


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
        evidence = {task.id: _evidence(layout, case, task.id, task.attempts, attempts) for task in case.tasks}
        for entry in experiment.coverage:
            settings = fingerprints.coverage_settings(entry)
            for subset in (*case.subsets, pool_of(case)):
                key = (case.id, entry.id, subset.id)
                without = [task for task in subset.tasks if task in lacking]
                if without:
                    plan.absent[key] = f"the baseline of task {without[0]} {lacking[without[0]]}"
                    continue
                planned = _plan_one(case, entry, subset, settings, evidence, layout, stored.get(key))
                if systems is None or entry.id in systems or planned.kept is not None:
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
    layout: Layout, case: Case, task: str, slots: int, attempts: Mapping[AttemptKey, AttemptRecord]
) -> tuple[EvidenceFile, ...] | None:
    """The files that the baseline left at a task; None when no attempt of it was scored or died."""
    files = []
    measured = False
    for slot in range(1, slots + 1):
        record = attempts.get((case.id, BASELINE, task, slot))
        if record is None or record.outcome == "unmeasured":
            continue
        measured = True
        folder = layout.workspace(case.id, BASELINE, task, record.trial_id)
        files += [
            EvidenceFile(folder / name, record.trial_id, name, digest)
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
) -> PlannedRequest:
    request = CoverageRequest(
        CaseRef(case.id, case.description),
        subset.id,
        subset.tasks,
        entry.id,
        entry.system.request_settings,
        {task: evidence[task] or () for task in subset.tasks},
    )
    request_digest = digest_value(request.to_json())
    unmeasured = [task for task in subset.tasks if evidence[task] is None]
    reason = f"task {unmeasured[0]} has no scored or died baseline attempt" if unmeasured else None
    same = stored is not None and (stored.request_digest, stored.settings_digest) == (request_digest, settings_digest)
    kept = failed = None
    if stored is not None and same:
        if stored.outcome == "failed":
            failed = stored
        elif files_match(layout.coverage_folder(*stored.key), stored.files):
            kept = stored
    return PlannedRequest(entry, request, request_digest, settings_digest, kept, failed, reason)


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
    """
    pool = ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="metricbench-coverage")
    try:
        futures: dict[int, Future[CoverageRecord]] = {
            index: pool.submit(measure_request, planned, layout)
            for index, planned in enumerate(requests)
            if planned.kept is None and planned.entry.system.concurrent and planned.unmeasurable is None
        }
        for index, planned in enumerate(requests):
            if planned.kept is not None:
                yield planned, planned.kept
            elif index in futures:
                yield planned, _await(futures[index], index, waiting)
            else:
                waiting(index)
                yield planned, measure_request(planned, layout)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        kill_running()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _await(future: Future[CoverageRecord], done: int, waiting: Callable[[int], None]) -> CoverageRecord:
    while True:
        try:
            return future.result(timeout=0.2)
        except TimeoutError:
            if future.done():
                return future.result()
            waiting(done)


def measure_request(planned: PlannedRequest, layout: Layout) -> CoverageRecord:
    """Measure one request in a temporary folder and keep the folder in the store.

    Raises:
        OSError: the store or the temporary folder cannot be written.
    """
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    began = perf_counter()
    workspace = Path(tempfile.mkdtemp(prefix="metricbench-"))
    try:
        score, problems = _measure_in(planned, workspace)
        record = CoverageRecord(
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
            started=started,
            duration=round(perf_counter() - began, 6),
            files={},
        )
        return _keep_failed(record, workspace, layout) if problems else _keep(record, workspace, layout)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def _measure_in(planned: PlannedRequest, workspace: Path) -> tuple[Score, list[str]]:
    """The score, and every problem in words; with problems the score means nothing."""
    _write_json(workspace / REQUEST_FILE, planned.request.to_json())
    if planned.unmeasurable is not None:
        return Score(None, planned.unmeasurable), []
    system = planned.entry.system
    request = planned.request
    problems: list[str] = []
    if system.isolated:
        request, problems = _with_copied_evidence(request, workspace)
        if problems:
            return Score(None), problems
    score = Score(None)
    try:
        score = _checked(system.measure(request, workspace))
    except CoverageError as error:
        problems.append(str(error))
    except Exception as error:
        (workspace / "system.stderr").write_text(traceback.format_exc(), "utf-8", "backslashreplace")
        problems.append(f"the coverage system {system.kind!r} raised {type(error).__name__}: {error}")
    if system.isolated:
        problems += _evidence_problems(request, workspace)
    return score, problems


def _checked(score: object) -> Score:
    """What a system of somebody else's returned, held to the contract."""
    if not isinstance(score, Score):
        raise CoverageError(f"the system returned {type(score).__name__}; a Score is expected")
    if score.value is None:
        if not score.reason:
            raise CoverageError("the system returned no value and no reason; say why there is no score")
        return score
    try:
        return replace(score, value=as_coverage_value(score.value))
    except ContractError as error:
        raise CoverageError(f"the system's answer: {error}") from None


def _with_copied_evidence(request: CoverageRequest, workspace: Path) -> tuple[CoverageRequest, list[str]]:
    copied: dict[str, tuple[EvidenceFile, ...]] = {}
    for task, files in request.files.items():
        copies = []
        for file in files:
            target = workspace / file.below_evidence(task)
            try:
                copy_file(file.path, target)
            except OSError as error:
                return request, [f"the evidence {file.path} cannot be copied: {error.strerror}"]
            copies.append(replace(file, path=target))
        copied[task] = tuple(copies)
    given = replace(request, files=copied)
    stale = _evidence_problems(given, workspace)
    return given, [f"{problem}, since its attempt ended" for problem in stale]


def _evidence_problems(request: CoverageRequest, workspace: Path) -> list[str]:
    """What became of the supplied evidence; new files are the system's own and fine."""
    there = dict(regular_files(workspace / EVIDENCE_FOLDER))
    found = digest_folder(workspace / EVIDENCE_FOLDER) if there else {}
    problems = []
    for task, files in request.files.items():
        for file in files:
            name = file.below_evidence(task).removeprefix(EVIDENCE_FOLDER + "/")
            if name not in found:
                problems.append(f"the evidence {EVIDENCE_FOLDER}/{name} is gone")
            elif found[name] != file.sha256:
                problems.append(f"the evidence {EVIDENCE_FOLDER}/{name} was changed")
    return problems


def _keep(record: CoverageRecord, workspace: Path, layout: Layout) -> CoverageRecord:
    """Move what the request left into the store, with the receipt that proves it. The evidence is there already."""
    shutil.rmtree(workspace / EVIDENCE_FOLDER, ignore_errors=True)
    if not os.path.lexists(workspace / RESPONSE_FILE):
        answer = {"value": record.value} if record.value is not None else {"value": None, "reason": record.reason}
        _write_json(workspace / RESPONSE_FILE, answer)
        if record.goals is not None:
            _write_json(workspace / GOALS_FILE, goals_to_json(record.goals))
    kept = replace(record, files=digest_folder(workspace))
    receipt = {
        "metricbench": FORMAT_VERSION,
        "request": kept.request_digest,
        "settings": kept.settings_digest,
        "files": kept.files,
    }
    _write_json(workspace / RECEIPT_FILE, receipt)
    _move(workspace, layout.coverage_folder(*record.key))
    return kept


def _keep_failed(record: CoverageRecord, workspace: Path, layout: Layout) -> CoverageRecord:
    folder = layout.failed_coverage_folder(*record.key)
    _move(workspace, folder)
    return replace(record, error=f"{record.error}\nkept in {folder}")


def _move(workspace: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        shutil.rmtree(target)
    shutil.move(workspace, target)


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
