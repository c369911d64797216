"""The ``audit`` coverage system: which share of an audit's items the baseline's traces exercise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from pytest_metricbench.atif.trace import TRACE_NAME, Trace, TraceError
from pytest_metricbench.bases import CoverageSystem
from pytest_metricbench.contracts import CoverageError, CoverageRequest, EvidenceFile, Goals, Score
from pytest_metricbench.coverage.audit.document import KINDS, Audit, Item
from pytest_metricbench.coverage.audit.files import AuditFile, expand_names
from pytest_metricbench.coverage.audit.forms import ItemKind
from pytest_metricbench.coverage.audit.judging import JudgmentDesk
from pytest_metricbench.coverage.audit.judgments import JudgmentError, Judgments
from pytest_metricbench.coverage.audit.measurement import METHODS, Method, Subject, measure_trace
from pytest_metricbench.coverage.audit.notes import (
    REPORT_FILE,
    UNCOVERED_FILE,
    Finding,
    near_misses,
    report_of,
    uncovered_items,
    unjudged,
    write_json,
    write_warnings,
)
from pytest_metricbench.coverage.traces import Traces, is_trace, without_trace
from pytest_metricbench.definition.experiment import POOL
from pytest_metricbench.messages import and_more
from pytest_metricbench.named_files import NamedFile

Scope: TypeAlias = Literal["overall", "tool", "capability", "failure_case"]


@dataclass(frozen=True, slots=True)
class _Evidence:
    """One trace, and what lies beside it."""

    task: str
    file: EvidenceFile
    trace: Trace
    run: str
    """What reports call it: unique among the traces of a request."""
    beside: Sequence[EvidenceFile]
    """All evidence of its task."""


class AuditCoverage(CoverageSystem):
    """Share of the items of an Eval Author audit that the subset's traces cover; needs no upstream install.

    A trace is every ``trajectory.json`` (ATIF 1.0 to 1.8) among the evidence; all traces of a task count together. The
    score is null where it cannot be known: a task left no trace, evidence of the scope needs a judgment that nobody
    gave, no method measures the scope, or the scope has no items. What is outside ``score_scope`` has no part in it.
    """

    kind: Literal["audit"] = "audit"
    audit: AuditFile = Field(description="The audit: a Markdown file with one marked block.")
    methods: Annotated[list[Method], Field(min_length=1)] = Field(
        ["tool_calls", "capabilities", "failure_cases"], description="What is measured."
    )
    score_scope: Scope = Field("overall", description="Which items the score counts.")
    judgments: Annotated[list[NamedFile], BeforeValidator(expand_names)] = Field(
        [], description="Files of judgments beside the experiment, or globs; each belongs to one trace by its digest."
    )
    strict: bool = Field(True, description="Whether a field or version that ATIF up to 1.8 does not have is an error.")

    isolated: ClassVar[bool] = False  # it reads evidence and never writes it, so nothing needs to be copied for it

    _traces: Traces = PrivateAttr(default_factory=Traces)
    _desk: JudgmentDesk | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _read_judgments(self) -> Self:
        """Read the files of judgments when the experiment is collected."""
        if self.audit.audit is not None:
            try:
                self._desk = JudgmentDesk(self.audit.audit, self.judgments)
            except JudgmentError as error:
                raise PydanticCustomError("judgments", "{problem}", {"problem": str(error)}) from None
        return self

    def measure(self, request: CoverageRequest, workspace: Path) -> Score:
        """Count the items of the scope that the subset's traces cover.

        Leaves ``uncovered.json``, ``warnings.json`` where there is something to warn of, and for the whole pool
        ``report.json`` in the form of Eval Author's.

        Raises:
            CoverageError: a trace or a judgment of the scope is not right, or has changed.
        """
        audit, desk = self.audit.audit, self._desk
        if audit is None or desk is None:
            raise CoverageError(f"the audit {self.audit.written} was absent when the experiment was read")
        kinds = KINDS if self.score_scope == "overall" else (self.score_scope,)
        items = audit.of_kind(*kinds)
        unknowable = self._unknowable(audit, items)
        if unknowable is not None:
            return Score(None, unknowable)
        notes: list[str] = []
        evidence = [found for task, files in request.files.items() for found in self._of_task(task, files, notes)]
        untraced = set(request.files) - {found.task for found in evidence}
        if untraced:
            if notes:
                write_warnings(workspace, notes)
            return Score(None, _without(request, untraced))
        counted = [kind for kind in KINDS if any(item.kind == kind for item in items)]
        findings = [found for kind in counted for found in _findings(kind, audit, desk, evidence)]
        if request.subset == POOL:
            others = [kind for kind in KINDS if METHODS[kind] in self.methods and kind not in counted]
            beside = [found for kind in others for found in _findings(kind, audit, desk, evidence, notes)]
            write_json(workspace / REPORT_FILE, report_of(audit, [*findings, *beside]))
        notes += near_misses(audit, [(found.task, found.file.trial_id, found.trace) for found in evidence])
        if notes:
            write_warnings(workspace, notes)
        write_json(workspace / UNCOVERED_FILE, uncovered_items(items, findings))
        return _score(audit, items, request.tasks, findings)

    def _unknowable(self, audit: Audit, items: Sequence[Item]) -> str | None:
        """Why no trace can give a score of this scope."""
        scope = self.score_scope
        if not items:
            return f"{audit.name} has no item of the kind {scope}: there is nothing to cover"
        lacking = [METHODS[kind] for kind in KINDS if any(item.kind == kind for item in items)]
        lacking = [method for method in lacking if method not in self.methods]
        if lacking:
            return f"score_scope {scope} has items that no method measures; add {', '.join(lacking)} to methods"
        return None

    # ------------------------------------------------------------ evidence

    def _of_task(self, task: str, files: Sequence[EvidenceFile], notes: list[str]) -> Iterator[_Evidence]:
        """The traces of one task. What an attempt left half written when it died is no trace."""
        traces = [file for file in files if is_trace(file)]
        for file in traces:
            alone = sum(other.trial_id == file.trial_id for other in traces) == 1
            inner = file.name.rpartition("/")[0]
            run = file.trial_id if alone or not inner else f"{file.trial_id}/{inner}"
            try:
                yield _Evidence(task, file, self._checked(file, notes), run, files)
            except TraceError as error:
                if file.outcome == "scored":
                    raise CoverageError(f"{file.path}: {error}") from None
                notes.append(f"task {task}, attempt {run}: died, and what it left is no trace: {error}")

    def _checked(self, file: EvidenceFile, notes: list[str]) -> Trace:
        """A trace that is as ATIF has it.

        Raises:
            TraceError: it is not.
            CoverageError: it cannot be read.
        """
        trace = self._traces.of(file)
        if trace.violations:
            raise TraceError(_first_of(trace.violations))
        if trace.unknown and self.strict:
            raise TraceError(f"{_first_of(trace.unknown)}; with strict: false it is a warning")
        notes += [f"attempt {file.trial_id}: {file.name}: {note}" for note in trace.unknown]
        return trace


def _without(request: CoverageRequest, untraced: set[str]) -> str:
    """Why tasks without a trace give no score: they left none, or only what died attempts left half written."""
    empty = sorted(task for task in untraced if not any(is_trace(file) for file in request.files[task]))
    if empty:
        return without_trace(empty)
    task, *others = sorted(untraced)
    why = f"what its attempts left when they died is no whole {TRACE_NAME}"
    return f"task {task} left no trace that can be measured: {why}{and_more(len(others), 'task')}"


def _findings(
    kind: ItemKind, audit: Audit, desk: JudgmentDesk, evidence: Sequence[_Evidence], notes: list[str] | None = None
) -> Iterator[Finding]:
    """What the method of a kind finds in each trace.

    With ``notes``, judgments that are not right are noted there and left out: what is outside the scope changes no
    score.

    Raises:
        CoverageError: judgments are not right, without ``notes``; or cannot be read.
    """
    for found in evidence:
        subject = Subject(found.task, found.run, found.file.below_evidence(found.task))
        judgments: Judgments | None = None
        if kind != "tool":
            try:
                judgments = desk.about(kind, found.file, found.beside)
            except JudgmentError as error:
                if notes is None:
                    raise CoverageError(f"task {found.task}: {error}") from None
                notes.append(f"task {found.task}: {error}")
        measured = measure_trace(kind, audit, found.trace, subject, judgments)
        yield Finding(found.task, found.run, found.file.sha256, replace(measured, details={}))


def _score(audit: Audit, items: Sequence[Item], tasks: Sequence[str], findings: Sequence[Finding]) -> Score:
    reason = unjudged(audit, findings)
    if reason is not None:
        return Score(None, reason)
    by_task: dict[str, set[str]] = {task: set() for task in tasks}
    for found in findings:
        by_task[found.task].update(found.measured.covered)
    covered = set().union(*by_task.values())
    universe = tuple(sorted(item.name for item in items))
    goals = Goals(universe, {task: tuple(sorted(names)) for task, names in by_task.items()})
    return Score(len(covered) / len(items), goals=goals)


def _first_of(notes: Sequence[str]) -> str:
    return notes[0] if len(notes) == 1 else f"{notes[0]} (and {len(notes) - 1} more)"
