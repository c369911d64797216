"""The ``eval-author`` coverage system: NeMo Eval Author's audit, measured by its own scripts.

An author command may write the audit; then ``measure.py`` runs for every trace of the subset and ``report.py`` over
what it wrote. The score is the share of the audit's items, of one kind or of all, that the traces cover.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from pytest_metricbench.argv import Argv
from pytest_metricbench.atif.trace import TRACE_NAME
from pytest_metricbench.bases import CoverageSystem, Role
from pytest_metricbench.contracts import CoverageError, CoverageRequest, Json, Score, Seconds
from pytest_metricbench.coverage.audit.files import expand_names
from pytest_metricbench.coverage.audit.notes import write_warnings
from pytest_metricbench.coverage.eval_author.inputs import (
    Run,
    check_authored,
    digest_in,
    place_audit,
    place_judgments,
    place_left_judgments,
    require_audit,
    runs_of,
)
from pytest_metricbench.coverage.eval_author.keys import (
    AUDIT,
    KIND_OF,
    MEASURE,
    REPORT,
    FixedAudit,
    Interpreter,
    Method,
    Scope,
    Scripts,
    interpreter_path,
)
from pytest_metricbench.coverage.eval_author.memory import Memory
from pytest_metricbench.coverage.eval_author.report import (
    MEASUREMENTS,
    REPORT_FILE,
    Measurement,
    folder_of,
    kinds_of,
    read_measurement,
    read_report,
    score_of,
)
from pytest_metricbench.coverage.eval_author.steps import Output, ScriptError, Steps
from pytest_metricbench.coverage.traces import without_trace
from pytest_metricbench.digests import digest_value
from pytest_metricbench.messages import and_more
from pytest_metricbench.named_files import NamedFile
from pytest_metricbench.processes import MissingVariableError, clean_environment

_FLAGS: Final[dict[Method, str]] = {
    "capabilities": "--capability-judgments",
    "failure_cases": "--failure-case-judgments",
}
"""The method that takes judgments -> the flag of ``measure.py`` for them."""


def _once(methods: list[Method]) -> list[Method]:
    repeated = [method for method in methods if methods.count(method) > 1]
    if repeated:
        raise PydanticCustomError("repeated", "{method} is listed twice", {"method": repeated[0]})
    return methods


class EvalAuthorCoverage(CoverageSystem):
    """Share of an audit's items that the subset's baseline traces cover, as Eval Author's own scripts measure it.

    Every ``trajectory.json`` (ATIF) among the evidence is measured. A task without one makes the score null, and so
    does a missing judgment, a kind that was not measured or a kind without items, each where ``score_scope`` counts it.
    """

    kind: Literal["eval-author"] = "eval-author"
    author: Argv | None = Field(
        None,
        description="A command that writes audit.md, and judgments/<trial id>/<method>.json where needed, into its "
        "working directory, from request.json and evidence/.",
    )
    audit: FixedAudit | None = Field(
        None, description="A fixed audit, beside the experiment or absolute; an author then writes judgments only."
    )
    scripts: Scripts = Field(
        description="The folder of measure.py and report.py (skills/eval-author-audit/scripts/audit_spec in an Eval "
        "Author checkout), absolute or beside the experiment."
    )
    interpreter: Interpreter = Field(
        description="The Python that runs them, absolute or {python}; it has Harbor, jsonschema and PyYAML."
    )
    methods: Annotated[list[Method], Field(min_length=1), AfterValidator(_once)] = Field(
        ["tool_calls", "capabilities", "failure_cases"], description="What measure.py measures."
    )
    score_scope: Scope = Field("overall", description="The items that count.")
    judgments: Annotated[list[NamedFile], BeforeValidator(expand_names)] = Field(
        [], description="Fixed judgment files, or globs; each is used for the traces whose digest it names."
    )
    timeout: Annotated[Seconds, Role.NEITHER] = Field(
        600, description="Seconds that one request may take, its author and all scripts together."
    )
    env: dict[str, str | None] = Field(
        {},
        description="Environment variables of the author and the scripts beside PATH, HOME and LANG. null takes the "
        "value from the environment.",
    )

    concurrent: ClassVar[bool] = True

    _memory: Memory = PrivateAttr(default_factory=Memory)

    @model_validator(mode="after")
    def _has_an_audit(self) -> Self:
        if self.author is None and self.audit is None:
            message = "names no audit"
            remedy = f"audit names an {AUDIT}, author a command that writes one; one of the two is needed"
            raise PydanticCustomError("audit", "{message}; {remedy}", {"message": message, "remedy": remedy})
        return self

    @property
    def request_settings(self) -> Mapping[str, Json]:
        """What the author command finds under ``settings`` of its request."""
        return {"methods": self.methods, "score_scope": self.score_scope}

    def measure(self, request: CoverageRequest, workspace: Path) -> Score:
        """Write the audit, measure every trace, add up, and count."""
        runs = runs_of(request)
        untraced = [task for task, found in runs.items() if not found]
        if untraced:
            return Score(None, without_trace(untraced))
        try:
            environment = clean_environment(self.env)
        except MissingVariableError as error:
            raise CoverageError(str(error)) from None
        steps = Steps(workspace, environment, interpreter_path(self.interpreter), self.timeout)
        work = _Work(self, workspace, steps, [run for found in runs.values() for run in found])
        work.prepare(request)
        measurements = {task: work.measure_all(found) for task, found in runs.items()}
        broken = [task for task, found in measurements.items() if not found]
        if broken:
            why = f"what its attempts left when they died is no whole {TRACE_NAME}{and_more(len(broken) - 1, 'task')}"
            return Score(None, f"task {broken[0]} left no trace that can be measured: {why}")
        return work.add_up(request.tasks, [entry for found in measurements.values() for entry in found])


class _Work:
    """One request: where it stands, and its steps in their order."""

    def __init__(self, system: EvalAuthorCoverage, workspace: Path, steps: Steps, runs: list[Run]) -> None:
        self._system = system
        self._workspace = workspace
        self._steps = steps
        self._runs = runs
        self._audit = AUDIT if system.audit is None else system.audit.place
        self._audit_digests: dict[str, str] = {}
        self._warnings: list[str] = []
        self._inside = [method for method in system.methods if KIND_OF[method] in kinds_of(system.score_scope)]

    def prepare(self, request: CoverageRequest) -> None:
        """Put the fixed audit and the judgments that there are in their places; let the author write the rest."""
        system = self._system
        placed: dict[str, str] = {}
        if system.audit is not None:
            placed |= place_audit(system.audit, self._workspace)
            self._audit_digests = dict(placed)
        placed |= place_judgments(system.judgments, self._runs, self._workspace)
        place_left_judgments(request, self._runs, self._inside, self._workspace, placed)
        if system.author is not None:
            self._steps.author(system.author.resolved)
            check_authored(self._workspace, placed, self._runs)
            self._audit_digests.setdefault(self._audit, require_audit(self._workspace, self._audit))

    def measure_all(self, runs: list[Run]) -> list[Measurement]:
        """Measure the runs of a task. What an attempt left half written when it died is no trace, and left out."""
        found = []
        for run in runs:
            try:
                found += self._measure(run)
            except ScriptError as error:
                if not run.died or error.error_type != "trace":
                    raise
        return found

    def _measure(self, run: Run) -> list[Measurement]:
        """What every method finds in a run.

        The scripts write nothing when one method refuses its input, such as judgments that are not right. Where that
        is a method that the scope does not count, the others are measured without it.
        """
        try:
            return self._measure_with(run, self._system.methods)
        except ScriptError as error:
            if error.error_type != "measurement" or self._inside in ([], self._system.methods):
                raise
            measurements = self._measure_with(run, self._inside)
            self._warnings.append(f"only {', '.join(self._inside)} could be measured: {error}")
            return measurements

    def _measure_with(self, run: Run, methods: list[Method]) -> list[Measurement]:
        arguments = ["--audit", self._audit, "--trace", run.trace, "--task-id", run.task, "--run-id", run.id]
        arguments += ["--measure", ",".join(methods), "--out-dir", MEASUREMENTS]
        judgments = {}
        for method, flag in _FLAGS.items():
            name = run.judgments(method)
            digest = digest_in(self._workspace, name) if method in methods else None
            if digest is not None:
                judgments[name] = digest
                arguments += [flag, name]
        log = f"{MEASURE.removesuffix('.py')}/{run.task}/{run.id}"
        script = self._system.scripts.path(MEASURE)
        memory = self._system._memory
        key = digest_value([arguments, digest_in(self._workspace, run.trace), self._audit_digests, judgments])
        with memory.only_one(key, self._steps.left, lambda: self._steps.late(MEASURE)):
            known = memory.write(key, self._workspace)
            if not known:
                self._steps.script(script, arguments, log, run.words)
            measurements = [read_measurement(self._workspace, run, method) for method in methods]
            if not known:
                memory.keep(key, self._workspace, self._written(run, methods, log))
        return measurements

    def _written(self, run: Run, methods: list[Method], log: str) -> list[str]:
        folders = [folder_of(run, method) for method in methods]
        names = [f"{folder}/{name}.json" for folder in folders for name in ("coverage", "details")]
        output = Output.named(self._workspace, log)
        return names + [str(path.relative_to(self._workspace)) for path in output]

    def add_up(self, tasks: tuple[str, ...], measurements: list[Measurement]) -> Score:
        """Run ``report.py`` over the measurements and count."""
        if self._warnings:
            write_warnings(self._workspace, self._warnings)
        arguments = ["--audit", self._audit, "--coverage-dir", MEASUREMENTS, "--out", REPORT_FILE]
        self._steps.script(self._system.scripts.path(REPORT), arguments, REPORT.removesuffix(".py"), "")
        report = read_report(self._workspace)
        if report.inputs != len(measurements):
            raise CoverageError(
                f"{REPORT_FILE} adds up {report.inputs} measurements, and {len(measurements)} were made"
            )
        return score_of(self._system.score_scope, tasks, report, measurements, judged=self._judged())

    def _judged(self) -> dict[str, bool]:
        """Run id -> whether some judgments were there for it; nothing where the experiment names none."""
        if not self._system.judgments:
            return {}
        return {
            run.id: any(digest_in(self._workspace, run.judgments(method)) for method in _FLAGS) for run in self._runs
        }
