"""Coverage requests on a Dask cluster: what a worker is sent of one, and what is kept of its answer.

A request carries the evidence of its own tasks and nothing of any mutant, wherever it is measured. What it left comes
back with the answer; this process keeps it, with its receipt, as it keeps what it measures itself.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

from pytest_metricbench.contracts import CoverageRecord
from pytest_metricbench.executors.base import ExecutorError
from pytest_metricbench.executors.dask_messages import CoverageJob, CoverageMeasured, Failed, Lost
from pytest_metricbench.executors.dask_packs import PackError, pack, unpack
from pytest_metricbench.running.coverage_plan import PlannedRequest
from pytest_metricbench.running.measuring import failed_record, keep_measured
from pytest_metricbench.running.request_folders import discard, write_request
from pytest_metricbench.store.layout import Layout
from pytest_metricbench.store.records import RecordError, coverage_from_line


def job_of(planned: PlannedRequest, limit: int, *, carries: bool) -> CoverageJob:
    """What a worker is sent of a request.

    Args:
        planned: the request.
        limit: bytes of evidence that may travel with it.
        carries: workers do not see the store, and the evidence goes with it.

    Raises:
        PackError: the evidence is larger, or cannot be read.
    """
    request = planned.request
    evidence = None
    if carries:
        files = {file.below_evidence(task): file.path for task, files in request.files.items() for file in files}
        evidence = pack(files, limit, "the evidence of the request")
    return CoverageJob(
        planned.entry.id, request, planned.request_digest, planned.settings_digest, planned.unmeasurable, evidence
    )


def keep_answer(
    planned: PlannedRequest, answer: CoverageMeasured | Failed | Lost, layout: Layout, limit: int
) -> CoverageRecord:
    """Keep what came of a request in the store, and give its record.

    Raises:
        StoreError: the store cannot be written.
        OSError: the folder for temporary files cannot be written.
        ExecutorError: what arrived is no answer to it.
    """
    home = Path(tempfile.mkdtemp(prefix="metricbench-"))
    workspace = home / "request"
    try:
        record = _arrived(planned, answer, workspace, limit)
        return keep_measured(planned, record, workspace, layout)
    finally:
        discard(home)


def _arrived(
    planned: PlannedRequest, answer: CoverageMeasured | Failed | Lost, workspace: Path, limit: int
) -> CoverageRecord:
    """The record of an answer, what it left in its folder; or that of a failure."""
    if isinstance(answer, CoverageMeasured):
        try:
            record = coverage_from_line(answer.record.encode("utf-8"))
            if record.key != planned.key or record.request_digest != planned.request_digest:
                raise ExecutorError(f"what a worker answered is about {' '.join(record.key)}")
            unpack(answer.left, workspace, record.files, limit)
            return record
        except (PackError, RecordError) as error:
            problem = f"what the worker answered cannot be kept: {error}"
    elif isinstance(answer, Lost):
        problem = f"the worker that measured it was lost ({', '.join(answer.begun_on)})"
    else:
        problem = f"it could not be measured: {answer.message}"
    workspace.mkdir()
    write_request(planned.request, workspace)
    return replace(failed_record(planned, problem), files={})
