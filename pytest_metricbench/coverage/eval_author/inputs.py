"""What one ``eval-author`` request gives the scripts, all in its folder: runs with their traces, audit, judgments."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_metricbench.answers import named, read_json_file
from pytest_metricbench.contracts import (
    EVIDENCE_FOLDER,
    REQUEST_FILE,
    ContractError,
    CoverageError,
    CoverageRequest,
    EvidenceFile,
)
from pytest_metricbench.coverage.eval_author.keys import AUDIT, RESERVED, FixedAudit, Method
from pytest_metricbench.coverage.traces import is_trace
from pytest_metricbench.digests import digest_bytes, digest_stream
from pytest_metricbench.named_files import NamedFile
from pytest_metricbench.plain_files import open_regular

JUDGMENTS: Final = "judgments"
"""Folder of the judgment files, below the request's: ``judgments/<run id>/<method>.json``."""
JUDGED: Final[Mapping[str, Method]] = {
    "nemo.eval_author.audit_capability_judgments.v1": "capabilities",
    "nemo.eval_author.audit_failure_case_judgments.v1": "failure_cases",
}
"""``schema`` of a judgment file -> the method it is for."""
LEFT: Final[Mapping[str, Method]] = {
    "capability-judgments.json": "capabilities",
    "failure-case-judgments.json": "failure_cases",
}
"""What judgment files are called that an attempt left among its evidence -> the method they are for."""
_LIMIT: Final = 16 << 20
"""Bytes that an audit, a source or a judgment file may have."""
LOGS: Final = "logs"
"""Folder of the steps' outputs, below the request's."""
_GIVEN: Final = frozenset({EVIDENCE_FOLDER, REQUEST_FILE, JUDGMENTS, LOGS})
"""Of the reserved names, those that are there before the author command runs."""


@dataclass(frozen=True, slots=True)
class Run:
    """One trace to measure. Its run id is the trial id; of several traces of one trial the later have ``~2``, ``~3``.

    No trial id has a ``~``, so no two runs of a request have one id: upstream overwrites equal ones without a word.
    """

    task: str
    trial: str
    id: str
    trace: str
    """Path below the request's folder."""
    sha256: str
    died: bool
    """Whether its attempt died and may have left half a trace."""

    @property
    def words(self) -> str:
        """How messages name it."""
        return f"task {self.task}, trial {self.id}"

    def judgments(self, method: Method) -> str:
        """Where its judgment file for a method is, below the request's folder."""
        return f"{JUDGMENTS}/{self.id}/{method}.json"


def runs_of(request: CoverageRequest) -> dict[str, list[Run]]:
    """Task id -> a run for every ``trajectory.json`` that its baseline attempts left, in the order of the request."""
    runs: dict[str, list[Run]] = {}
    for task, files in request.files.items():
        found = runs.setdefault(task, [])
        count: dict[str, int] = {}
        for file in files:
            if is_trace(file):
                number = count[file.trial_id] = count.get(file.trial_id, 0) + 1
                identity = file.trial_id if number == 1 else f"{file.trial_id}~{number}"
                died = file.outcome == "died"
                found.append(Run(task, file.trial_id, identity, file.below_evidence(task), file.sha256, died))
    return runs


# ---------------------------------------------------------------- given by the experiment


def place_audit(audit: FixedAudit, workspace: Path) -> dict[str, str]:
    """Copy a fixed audit and its sources into the request's folder; gives path -> digest of each copy.

    Raises:
        CoverageError: one of them cannot be read.
    """
    return {name: _place(workspace, name, _read(path)) for name, path in audit.copies}


def place_judgments(given: Sequence[NamedFile], runs: Sequence[Run], workspace: Path) -> dict[str, str]:
    """Copy each fixed judgment file to the runs whose trace it judges; gives path -> digest of each copy.

    A file for a trace of another subset has no place here.

    Raises:
        CoverageError: a file is none of judgments, or two of them judge the same trace.
    """
    owners: dict[str, str] = {}
    placed: dict[str, str] = {}
    for file in given:
        method, trace = _judged(file.written, file.path)
        content = _read(file.path)
        for run in runs:
            if run.sha256 == trace:
                name = run.judgments(method)
                if owners.setdefault(name, file.written) != file.written:
                    raise _judged_twice(file.written, owners[name], method, trace)
                placed[name] = _place(workspace, name, content)
    return placed


def place_left_judgments(
    request: CoverageRequest,
    runs: Sequence[Run],
    methods: Collection[Method],
    workspace: Path,
    placed: Collection[str],
) -> None:
    """Copy each judgment file that an attempt left beside its traces to the run whose trace it judges.

    Args:
        request: with the evidence.
        runs: of the request.
        methods: those whose judgments matter; files for others are not looked at.
        workspace: the request's folder.
        placed: what fixed judgments took already.

    Raises:
        CoverageError: a file is none of judgments, or about no trace of its attempt, or its trace is judged already.
            What an attempt that died left half written is passed over.
    """
    for task, file, method in _left(request, methods):
        name = file.below_evidence(task)
        own = [run for run in runs if (run.task, run.trial) == (task, file.trial_id)]
        try:
            trace = _judged(name, file.path, method)[1]
        except CoverageError:
            if file.outcome == "died":
                continue
            raise
        about = [run for run in own if run.sha256 == trace]
        if not about:
            traces = " and ".join(run.sha256 for run in own) or "none"
            raise CoverageError(
                f"the judgments {name} are about the trace {trace}, which this attempt did not leave; its own is "
                f"{traces}"
            )
        for run in about:
            if run.judgments(method) in placed:
                raise _judged_twice(name, "a file under judgments", method, trace)
            _place(workspace, run.judgments(method), _read(file.path))


def _left(request: CoverageRequest, methods: Collection[Method]) -> Iterator[tuple[str, EvidenceFile, Method]]:
    """The judgment files of those methods among the evidence, with their task."""
    for task, files in request.files.items():
        for file in files:
            method = LEFT.get(file.name.rpartition("/")[2])
            if method is not None and method in methods:
                yield task, file, method


def _judged_twice(one: str, other: str, method: Method, trace: str) -> CoverageError:
    return CoverageError(
        f"{one} and {other} both have the judgments of {method} for the trace {trace}; put them into one file"
    )


def _judged(name: str, path: Path, wanted: Method | None = None) -> tuple[Method, str]:
    """The method that a judgment file is for, and the digest of the trace that it judges."""
    schemas = [schema for schema, method in JUDGED.items() if wanted in (None, method)]
    try:
        value = read_json_file(path, _LIMIT)
    except ContractError as error:
        raise CoverageError(f"the judgments {name}: {error}") from None
    schema = value.get("schema") if isinstance(value, dict) else None
    trace = value.get("trace_sha256") if isinstance(value, dict) else None
    if not isinstance(schema, str) or schema not in schemas:
        raise CoverageError(f"the judgments {name}: schema is {named(schema)}; {' or '.join(schemas)} is expected")
    if not isinstance(trace, str):
        raise CoverageError(
            f"the judgments {name}: trace_sha256 is {named(trace)}; the digest of the judged trace is expected"
        )
    return JUDGED[schema], trace


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_LIMIT + 1)
    except OSError as error:
        raise CoverageError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > _LIMIT:
        raise CoverageError(f"{path} has more than {_LIMIT >> 20} MiB, which is the limit")
    return content


def _place(workspace: Path, name: str, content: bytes) -> str:
    target = workspace / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return digest_bytes(content)


# ---------------------------------------------------------------- written by the author


def check_authored(workspace: Path, placed: Mapping[str, str], runs: Sequence[Run]) -> None:
    """Look at what the author command left: nothing in place of what comes later, what is fixed as it was.

    Raises:
        CoverageError: it is not so; the message says what is right.
    """
    taken = sorted(name for name in RESERVED - _GIVEN if os.path.lexists(workspace / name))
    if taken:
        raise CoverageError(f"the author command left {taken[0]}; that name is for what comes after it")
    if os.path.islink(workspace / LOGS) or not os.path.isdir(workspace / LOGS):
        raise CoverageError(f"the author command replaced the folder {LOGS}, which keeps what the steps print")
    for name, digest in placed.items():
        if digest_in(workspace, name) != digest:
            key = "judgments" if name.startswith(f"{JUDGMENTS}/") else "audit"
            raise CoverageError(
                f"the author command changed {name}, which the key {key} fixes; leave the key out where the author "
                "is to write it"
            )
    _check_judgment_names(workspace, runs)


def _check_judgment_names(workspace: Path, runs: Sequence[Run]) -> None:
    """Refuse a file that no run would be measured with: a slip in a name would make its judgments missing."""
    folder = workspace / JUDGMENTS
    if not os.path.lexists(folder):
        return
    known = {run.judgments(method) for run in runs for method in JUDGED.values()}
    found = [str(folder)]
    if folder.is_dir() and not folder.is_symlink():
        found = []
        for parent, folders, files in os.walk(folder):
            links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
            found += [os.path.join(parent, name) for name in (*files, *links)]
    strange = sorted({os.path.relpath(path, workspace) for path in found} - known)
    if strange:
        raise CoverageError(
            f"the author command left {strange[0]}, which belongs to no trial of this request; judgments stand in "
            f"{JUDGMENTS}/<trial id>/{' and '.join(f'{method}.json' for method in JUDGED.values())}, "
            f"and the trials are {', '.join(run.id for run in runs)}"
        )


def digest_in(workspace: Path, name: str) -> str | None:
    """Digest of a regular file in the request's folder; None when there is none under that name."""
    try:
        with open_regular(workspace / name) as file:
            return digest_stream(file)
    except OSError:
        return None


def require_audit(workspace: Path, place: str) -> str:
    """The digest of the audit that is there now.

    Raises:
        CoverageError: there is none, or something else than a file.
    """
    digest = digest_in(workspace, place)
    if digest is None:
        there = os.path.lexists(workspace / place)
        problem = f"left something else than a file as {AUDIT}" if there else f"wrote no {AUDIT}"
        raise CoverageError(f"the author command {problem}; it writes it into its working directory")
    return digest
