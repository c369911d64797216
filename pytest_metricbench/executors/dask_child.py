"""The process in which a worker of a Dask cluster has attempts made: one job at a time, in its main thread.

A worker lives longer than a run. Its own process would keep modules of an experiment that has changed since, and what
one agent did to it would reach the next user's. So each run has processes of its own on a worker, which also makes
time-outs of Python agents as exact as they are without a cluster, and whatever runs can be ended.
"""

import importlib
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from pytest_metricbench import coverage, runners
from pytest_metricbench.bases import CoverageSystem, Runner
from pytest_metricbench.contracts import AttemptError, AttemptRecord, CoverageRequest
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.digests import digest_file
from pytest_metricbench.executors.dask_messages import (
    AttemptJob,
    AttemptMade,
    CoverageJob,
    CoverageMeasured,
    Failed,
    Greeting,
    Home,
    Site,
)
from pytest_metricbench.executors.dask_packs import PackError, pack, unpack
from pytest_metricbench.generating.builtin import known_makers
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.attempts import Attempts
from pytest_metricbench.running.coverage_plan import PlannedRequest
from pytest_metricbench.running.measuring import measure_in
from pytest_metricbench.running.request_folders import discard
from pytest_metricbench.store.layout import Layout
from pytest_metricbench.store.records import attempt_from_line, attempt_to_json, coverage_to_json, to_line

IDLE: Final = 600.0
"""Seconds without a job after which the process ends by itself: its run may be gone without a word."""


class UnfitError(Exception):
    """No attempts of the experiment can be made on this machine; the message says why."""


class Desk:
    """An experiment as this machine sees it, checked to be the one that the run has."""

    def __init__(self, site: Site, folder: Path | None, scratch: Path, shares_store: bool) -> None:
        """Load the experiment.

        Args:
            site: what the run says of it.
            folder: where its bundle was unpacked; None where this machine sees its folder.
            scratch: a folder of the process, for what it makes and sends back.
            shares_store: attempts leave what they leave in the run's store.

        Raises:
            UnfitError: it is not here, or not the same.
        """
        self._site: Final = site
        self._scratch: Final = scratch
        self._shares_store: Final = shares_store
        path = Path(site.experiment) if folder is None else folder / site.experiment
        self.experiment: Final = _loaded(site, path)
        self._fingerprints: Final = Fingerprints(self.experiment)
        self._compare()

    def _compare(self) -> None:
        """Hold what this machine has against what the run has."""
        try:
            here = self._fingerprints.summary()
        except OSError as error:
            raise UnfitError(f"a file of the experiment cannot be read there: {error}") from None
        if here != self._site.digests:
            raise UnfitError(f"{_difference(self._site.digests, here)}; a stale copy would answer for another system")

    # ------------------------------------------------------------ attempts

    def make(self, job: AttemptJob) -> AttemptMade:
        """Make an attempt, with its retries.

        Raises:
            PackError: what it left before arrived damaged.
            OSError: this machine cannot write.
        """
        this = Planned.of(self.experiment, job.key)
        root = Path(self._site.store) if self._shares_store else self._scratch / "store"
        layout = Layout(root)
        known = None if job.record is None else attempt_from_line(job.record)
        if known is not None and job.work is not None and not self._shares_store:
            unpack(job.work, layout.left_by(known), known.files, self._site.limit)
        stored = {} if known is None else {known.key: known}
        attempts = Attempts(
            self.experiment, self._fingerprints, layout, lambda: stored, retry_died=self._site.retry_died
        )
        performed = attempts.perform(this.case, this.variant, this.task, this.slot)
        if self._shares_store:
            left: Sequence[bytes | None] = [None] * len(performed.new)
            records: Sequence[AttemptRecord] = performed.new
        else:
            records, left = self._packed(layout, performed.new)
            shutil.rmtree(root, ignore_errors=True)
        lines = tuple(to_line(attempt_to_json(record)) for record in records)
        return AttemptMade(lines, tuple(left), performed.interrupted)

    def _packed(
        self, layout: Layout, records: Sequence[AttemptRecord]
    ) -> tuple[Sequence[AttemptRecord], Sequence[bytes | None]]:
        """Records with what each left; one that left too much is not measured, and leaves nothing."""
        sent, left = [], []
        for record in records:
            folder = layout.left_by(record)
            files = {name: folder / name for name in record.files}
            try:
                left.append(pack(files, self._site.limit, "what the attempt left") if files else None)
                sent.append(record)
            except PackError as error:
                message = f"{error}; write less, raise evidence_limit, or have the workers see the store"
                problem = AttemptError("EvidenceNotSent", message, "setup")
                sent.append(replace(record, outcome="unmeasured", scores={}, error=problem, time_limit=None, files={}))
                left.append(None)
        return sent, left

    # ------------------------------------------------------------ coverage

    def measure(self, job: CoverageJob) -> CoverageMeasured:
        """Measure a coverage request.

        Raises:
            PackError: its evidence arrived damaged, or what it left is too large to be sent.
            OSError: this machine cannot write.
        """
        request = job.request if job.evidence is None else self._with_evidence(job.request, job.evidence)
        entry = next(entry for entry in self.experiment.coverage if entry.id == job.system)
        planned = PlannedRequest(
            entry, request, job.request_digest, job.settings_digest, None, None, job.unmeasurable, ""
        )
        workspace = Path(tempfile.mkdtemp(prefix="metricbench-"))
        try:
            record = measure_in(planned, workspace, lambda: False)
            if record.outcome == "measured" and entry.system.isolated:  # the evidence is in the store
                supplied = {file.below_evidence(task) for task, files in request.files.items() for file in files}
                kept = {name: digest for name, digest in record.files.items() if name not in supplied}
                record = replace(record, files=kept)
            files = {name: workspace / name for name in record.files}
            left = pack(files, self._site.limit, "what the request left")
        finally:
            discard(workspace)
            shutil.rmtree(self._scratch / "evidence", ignore_errors=True)
        return CoverageMeasured(to_line(coverage_to_json(record)), left)

    def _with_evidence(self, request: CoverageRequest, content: bytes) -> CoverageRequest:
        root = self._scratch / "evidence"
        digests = {file.below_evidence(task): file.sha256 for task, files in request.files.items() for file in files}
        unpack(content, root, digests, self._site.limit)
        files = {
            task: tuple(replace(file, path=root / file.below_evidence(task)) for file in files)
            for task, files in request.files.items()
        }
        return replace(request, files=files)


# ---------------------------------------------------------------- loading


def _loaded(site: Site, path: Path) -> Experiment:
    if not path.is_file():
        raise UnfitError(f"there is no {path} there; mount the folder at the same place, or say files: bundle")
    for name, digest in site.documents.items():
        document = path.parent / name
        try:
            here = digest_file(document)
        except OSError as error:
            raise UnfitError(f"{document} cannot be read there: {error.strerror}") from None
        if here != digest:
            raise UnfitError(f"{document} has another content there; bring it up to date, or say files: bundle")
    try:
        return load_experiment(
            path,
            runners=runners.BUILTIN.also(_classes(site.runners, path.parent, Runner)),
            systems=coverage.BUILTIN.also(_classes(site.systems, path.parent, CoverageSystem)),
            makers=known_makers(),
            targets={},
        )
    except DefinitionError as error:
        raise UnfitError(f"the experiment is not valid there:\n{error}") from None


def _classes(homes: Sequence[Home], folder: Path, base: type[Any]) -> dict[str, type[Any]]:
    found = {}
    for home in homes:
        try:
            module: Any = _module(home, folder)
            for name in home.name.split("."):
                module = getattr(module, name)
        except Exception as error:  # whatever an import raises
            problem = f"{type(error).__name__}: {error}"
            raise UnfitError(f"the kind {home.kind!r} ({home.module}) cannot be imported there: {problem}") from None
        if not isinstance(module, type) or not issubclass(module, base):
            raise UnfitError(f"the kind {home.kind!r} is no {base.__name__} there")
        found[home.kind] = module
    return found


def _module(home: Home, folder: Path) -> object:
    if home.file is None:
        return importlib.import_module(home.module)
    path = folder / home.file
    sys.path.insert(0, str(path.parent))  # as pytest does for a conftest.py
    spec = importlib.util.spec_from_file_location(home.module, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[home.module] = module
    spec.loader.exec_module(module)
    return module


def _difference(theirs: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """In words, the first thing that differs from what the run has."""
    for name in sorted({*theirs["files"], *here["files"]}):
        written = name.rpartition(":")[2]
        if name not in here["files"]:
            return f"{written}, which the experiment names, is not there"
        if name not in theirs["files"]:
            return f"{written} is there, and the run does not have it"
        if theirs["files"][name] != here["files"][name]:
            return f"{written} has another content there"
    parts = [name for name in theirs if theirs[name] != here.get(name)]
    return f"the experiment's {parts[0] if parts else 'content'} reads otherwise there"


# ---------------------------------------------------------------- the process


def serve(channel: Connection) -> None:
    """Answer what the worker asks, until it asks no more."""
    desk: Desk | None = None
    while channel.poll(IDLE):
        try:
            verb, arguments = channel.recv()
        except EOFError:
            return
        try:
            if verb == "open":
                desk = Desk(*arguments)
                answer: object = Greeting()
            elif desk is None:
                answer = Failed("it was never told of the experiment")
            else:
                answer = desk.make(*arguments) if verb == "make" else desk.measure(*arguments)
        except UnfitError as error:
            answer = Greeting(problem=str(error))
        except (PackError, OSError) as error:
            answer = Failed(str(error))
        except Exception:
            answer = Failed(f"the worker failed:\n{traceback.format_exc()}")
        channel.send(answer)


def main(number: str) -> None:
    """Serve over an inherited socket; what agents print goes where the worker's errors go."""
    channel = Connection(int(number))
    os.set_inheritable(int(number), False)
    signal.signal(signal.SIGINT, lambda number, frame: None)  # ignored, it would be so for agents as well
    os.dup2(2, 1)
    try:
        serve(channel)
    except (BrokenPipeError, ConnectionResetError):
        return


if __name__ == "__main__":
    main(sys.argv[1])
