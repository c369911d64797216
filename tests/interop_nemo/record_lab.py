"""Experiments and attempt records in memory, for bundles to be written from and read again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import (
    AttemptError,
    AttemptKey,
    AttemptRecord,
    AttemptRequest,
    Outcome,
    OutcomeKind,
    OutputKind,
)
from pytest_metricbench.definition.experiment import (
    AnalysisSettings,
    Case,
    Experiment,
    KillRule,
    ScorePolicy,
    Task,
    Variant,
)

AGENT = AttemptError("AgentFailed", "exit status 3\nTOKEN=hunter2", "agent")
JUDGE = AttemptError("JudgeError", "the judge timed out", "verifier")


class NoRunner(Runner):
    kind: Literal["none"] = "none"

    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        raise AssertionError("nothing runs here")


@dataclass
class Given:
    """What became of one attempt."""

    outcome: OutcomeKind
    scores: Mapping[str, Any] = field(default_factory=dict)
    error: AttemptError | None = None
    name: str | None = None


def scored(error: AttemptError | None = None, name: str | None = None, **scores: Any) -> Given:
    """Scores by keyword; ``__`` stands for the dot."""
    return Given("scored", {key.replace("__", "."): value for key, value in scores.items()}, error, name)


DIED = Given("died", error=AGENT)
UNMEASURED = Given("unmeasured", error=JUDGE)


def experiment_of(
    outcomes: Mapping[str, Mapping[str, Sequence[Given]]],
    outputs: Mapping[str, OutputKind] | None = None,
    *,
    primary: str | None = "reward",
    tasks: Mapping[str, Task] | None = None,
) -> tuple[Experiment, dict[AttemptKey, AttemptRecord]]:
    """An experiment of one case ``c``: variant -> task -> attempts."""
    ids = list(dict.fromkeys(task for row in outcomes.values() for task in row))
    most = {task: max(len(row.get(task, ())) for row in outcomes.values()) for task in ids}
    given = tasks or {}
    case = Case(
        "c",
        "A case.",
        (),
        tuple(replace(given.get(task, Task(task, 1, {})), attempts=most[task]) for task in ids),
        tuple(Variant(name, "baseline" if name == "baseline" else "mutant", {"key": "sk-secret"}) for name in outcomes),
        (),
    )
    experiment = Experiment(
        path=Path("experiment.yml"),
        name="made",
        seed=0,
        retries=0,
        runner=NoRunner(),
        score=ScorePolicy(primary, 1.0, outputs or {}),
        cases=(case,),
        coverage=(),
        analysis=AnalysisSettings((1,), KillRule(), "kill_share", 9, 9, 1),
        gates=(),
    )
    return experiment, {record.key: record for record in _records(outcomes)}


def _records(outcomes: Mapping[str, Mapping[str, Sequence[Given]]]) -> Iterable[AttemptRecord]:
    for variant, row in outcomes.items():
        for task, attempts in row.items():
            for slot, given in enumerate(attempts, 1):
                yield AttemptRecord(
                    case="c",
                    variant=variant,
                    task=task,
                    attempt=slot,
                    trial_id=f"{variant}.{task}.{slot}",
                    outcome=given.outcome,
                    scores=dict(given.scores),
                    error=given.error,
                    time_limit=None,
                    fingerprint="sha256:f",
                    verifier="sha256:v",
                    seed=7,
                    started=f"2026-03-01T10:00:{slot:02}+00:00",
                    duration=1.5,
                    files={"secret.txt": "sha256:x"},
                    supersedes=None,
                    trial_name=given.name,
                )
