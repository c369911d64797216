"""Coverage requests, measured several at a time and kept with receipts.

A request sees copies of the baseline's evidence in a temporary folder and nothing of any mutant. Whatever goes wrong
takes one path: the folder is kept as ``failed-...``, there is no receipt, and the record names every problem.
"""

import tempfile
import traceback
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from time import perf_counter, sleep

from pytest_metricbench.answers import as_coverage_value
from pytest_metricbench.bases import CoverageSystem
from pytest_metricbench.contracts import (
    ContractError,
    CoverageError,
    CoverageRecord,
    CoverageRequest,
    Score,
)
from pytest_metricbench.messages import without_traceback
from pytest_metricbench.origins import whose
from pytest_metricbench.process_groups import kill_running
from pytest_metricbench.running.coverage_plan import PlannedRequest
from pytest_metricbench.running.request_folders import (
    copy_evidence,
    discard,
    evidence_problems,
    keep,
    keep_failed,
    what_is_left,
    write_request,
)
from pytest_metricbench.store.layout import Layout


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
        return Score(None), [f"{_called(system)} raised {without_traceback(error)}"]


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
