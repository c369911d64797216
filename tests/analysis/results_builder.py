"""Builds results from small tables, so that a test says only what it is about."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pytest_metricbench.analysis.results import Results
from pytest_metricbench.bases import CoverageSystem, Runner
from pytest_metricbench.contracts import (
    AttemptError,
    AttemptRecord,
    AttemptRequest,
    CoverageRecord,
    CoverageRequest,
    Goals,
    Outcome,
    OutcomeKind,
    Score,
)
from pytest_metricbench.definition.experiment import (
    AnalysisSettings,
    Case,
    CoverageEntry,
    Experiment,
    Gate,
    KillRule,
    ScorePolicy,
    Subset,
    Task,
    Variant,
)

UNMEASURED, MISSING, OUTSIDE = "unmeasured", "missing", "outside"
NOT_REACHED, NOT_NEEDED, TIMED_OUT, NOT_RECORDED = "not_reached", "not_needed", "TimeOut", "NotRecorded"


class NoRunner(Runner):
    kind: Literal["none"] = "none"

    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        raise AssertionError("the analysis runs nothing")


class NoSystem(CoverageSystem):
    kind: Literal["none"] = "none"

    def measure(self, request: CoverageRequest, workspace: Path) -> Score:
        raise AssertionError("the analysis measures nothing")


@dataclass
class CaseTable:
    """One case: what each attempt of a variant at a task gave.

    An attempt is a number or boolean (the score ``reward``), a mapping of scores, None (died), or one of the words
    ``unmeasured``, ``missing``, ``outside``, ``not_reached``, ``not_needed``, ``TimeOut`` (died of it) and
    ``NotRecorded`` (planned elsewhere and left no result).
    """

    outcomes: Mapping[str, Mapping[str, Sequence[Any]]]
    subsets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    coverage: Mapping[str, Mapping[str, float | str | None]] = field(default_factory=dict)
    """System -> subset -> value; a text is the reason of a null, None a failed request; what is left out is absent."""
    goals: Mapping[str, Mapping[str, Iterable[str]]] = field(default_factory=dict)
    """System -> task -> goals: coverage of every subset and of the pool, with its goals."""
    controls: Iterable[str] = ()
    equivalent: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)


def build(
    cases: CaseTable | Mapping[str, CaseTable],
    *,
    score: ScorePolicy | None = None,
    rule: KillRule | None = None,
    ks: Sequence[int] = (1,),
    mutation_score: Literal["kill_share", "mean_drop"] = "kill_share",
    bootstrap: int = 200,
    permutation: int = 99,
    seed: int = 5,
    gates: Sequence[Gate] = (),
    warnings: Sequence[str] = (),
    part: str | None = None,
    reused: Iterable[tuple[str, str, str, int]] = (),
) -> Results:
    """Results of an experiment; a single case is called ``c``."""
    tables = {"c": cases} if isinstance(cases, CaseTable) else dict(cases)
    systems = sorted({system for table in tables.values() for system in (*table.coverage, *table.goals)})
    attempts: dict[tuple[str, str, str, int], AttemptRecord] = {}
    outside: set[tuple[str, str, str, int]] = set()
    coverage: dict[tuple[str, str, str], CoverageRecord] = {}
    for name, table in tables.items():
        _add_attempts(name, table, attempts, outside)
        for system, values in table.coverage.items():
            for subset, value in values.items():
                record = coverage_record(name, system, subset, value)
                coverage[record.key] = record
        for record in goal_records(name, table):
            coverage[record.key] = record
    experiment = Experiment(
        path=Path("experiment.yml"),
        name="built",
        seed=0,
        retries=0,
        runner=NoRunner(),
        score=score or ScorePolicy("reward", 1.0, {}),
        cases=tuple(_case(name, table) for name, table in tables.items()),
        coverage=tuple(CoverageEntry(system, NoSystem()) for system in systems),
        analysis=AnalysisSettings(tuple(ks), rule or KillRule(), mutation_score, permutation, bootstrap, seed),
        gates=tuple(gates),
        warnings=tuple(warnings),
    )
    return Results(experiment, attempts, coverage, outside=outside, part=part, reused=frozenset(reused))


def _case(name: str, table: CaseTable) -> Case:
    controls = set(table.controls)
    tasks = next(iter(table.outcomes.values()))
    variants = [
        Variant(
            variant,
            "baseline" if variant == "baseline" else "mutant",
            {},
            description=table.descriptions.get(variant, ""),
            control=variant in controls,
            equivalent=table.equivalent.get(variant),
        )
        for variant in table.outcomes
    ]
    return Case(
        name,
        "A case.",
        (),
        tuple(Task(task, len(row), {}) for task, row in tasks.items()),
        tuple(variants),
        tuple(Subset(subset, tuple(members)) for subset, members in table.subsets.items()),
    )


def _add_attempts(
    name: str,
    table: CaseTable,
    attempts: dict[tuple[str, str, str, int], AttemptRecord],
    outside: set[tuple[str, str, str, int]],
) -> None:
    for variant, by_task in table.outcomes.items():
        for task, row in by_task.items():
            for slot, given in enumerate(row, 1):
                if given == MISSING:
                    continue
                if given == OUTSIDE:
                    outside.add((name, variant, task, slot))
                    continue
                record = attempt_record(name, variant, task, slot, given)
                attempts[record.key] = record


def attempt_record(case: str, variant: str, task: str, slot: int, given: Any) -> AttemptRecord:
    known: dict[object, tuple[OutcomeKind, str]] = {
        UNMEASURED: ("unmeasured", "Error"),
        NOT_REACHED: ("not_reached", "NotReached"),
        NOT_NEEDED: ("not_needed", "NotNeeded"),
        TIMED_OUT: ("died", "TimeOut"),
        NOT_RECORDED: ("unmeasured", "NotRecorded"),
        None: ("died", "Error"),
    }
    outcome, kind = known.get(given if isinstance(given, str | None) else False, ("scored", ""))
    error = AttemptError(kind, "no", "verifier" if given == UNMEASURED else "agent")
    scored = outcome == "scored"
    return AttemptRecord(
        case=case,
        variant=variant,
        task=task,
        attempt=slot,
        trial_id=f"{case}-{variant}-{task}-{slot}",
        outcome=outcome,
        scores={} if not scored else dict(given) if isinstance(given, Mapping) else {"reward": given},
        error=None if scored else error,
        time_limit=None,
        fingerprint="f",
        verifier="v",
        seed=0,
        started="2024-01-01T00:00:00Z",
        duration=0.1,
        files={},
        supersedes=None,
    )


def goal_records(case: str, table: CaseTable) -> Iterator[CoverageRecord]:
    """What a system that counts these goals reports of every subset and of the pool."""
    for system, by_task in table.goals.items():
        universe = tuple(sorted(set().union(*by_task.values())))
        for subset, members in {**table.subsets, "pool": list(by_task)}.items():
            covered = {task: tuple(sorted(by_task[task])) for task in members}
            value = len(set().union(*covered.values())) / len(universe)
            record = coverage_record(case, system, subset, value)
            yield replace(record, goals=Goals(universe, covered))


def coverage_record(case: str, system: str, subset: str, value: float | str | None) -> CoverageRecord:
    return CoverageRecord(
        case=case,
        system=system,
        subset=subset,
        outcome="failed" if value is None else "measured",
        value=value if isinstance(value, float) else None,
        reason=value if isinstance(value, str) else None,
        goals=None,
        error="exit status 3\nits stderr" if value is None else None,
        request_digest="r",
        settings_digest="s",
        started="2024-01-01T00:00:00Z",
        duration=0.1,
        files={},
    )
