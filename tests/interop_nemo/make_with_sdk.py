"""Makes a bundle with NVIDIA's own SDK, from trials as its Harbor adapter makes them. Run by a Python that has it.

Usage: ``make_with_sdk.py FOLDER``. ``samples/crashes`` is its output, by nemo-helix-plugin 0.8.1.
``make_with_sdk.py FOLDER NUMBER`` makes that many bundles of random trials below the folder.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

from nhx_evals_sdk.agent_eval.evaluator import AgentEvaluator
from nhx_evals_sdk.agent_eval.tasks import AgentEvalRunConfig, AgentEvalTask
from nhx_evals_sdk.agent_eval.trials import AgentEvalTrial, AgentOutput, TrialError, TrialMeasurements
from nhx_evals_sdk.metrics.protocol import MetricInput, MetricOutput, MetricOutputSpec, MetricResult
from nhx_evals_sdk.metrics.runner_rewards import HarborRewardMetric
from nhx_evals_sdk.values.evidence import CandidateEvidence, EvidenceDescriptor
from pydantic import BaseModel

TRACE = {
    "schema_version": "ATIF-v1.2",
    "session_id": "s",
    "agent": {"name": "a", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "refund"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "done",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "search", "arguments": {}}],
        },
    ],
}


class Usage(BaseModel):
    tokens: int


class Checks:
    """Gives what the trial's metadata says, of every schema that there is; may raise."""

    type = "checks"

    def output_spec(self) -> list[MetricOutputSpec]:
        return [
            MetricOutputSpec.continuous_score("ratio", required=False),
            MetricOutputSpec.discrete_score("steps", required=False),
            MetricOutputSpec.boolean("tidy", required=False),
            MetricOutputSpec.label("tone", required=False),
            MetricOutputSpec.model("usage", Usage, required=False),
        ]

    async def compute_scores(self, input: MetricInput) -> MetricResult:  # noqa: A002
        given = input.candidate.metadata["checks"]
        if isinstance(given, str):
            raise TimeoutError(given)
        return MetricResult(outputs=[MetricOutput(name=name, value=value) for name, value in given.items()])


def trial(
    task: str, name: str, reward: float | None, checks: Any, error: str | None = None, **other: Any
) -> AgentEvalTrial:
    return AgentEvalTrial(
        id=name,
        task_id=task,
        status=other.pop("status", "completed" if error is None and reward is not None else "partial"),
        output=AgentOutput(output_text="done"),
        error=None if error is None else TrialError(type=error, message=f"{error} in {name}"),
        measurements=TrialMeasurements(runtime_sec=2.5, prompt_tokens=10, completion_tokens=2),
        metadata={
            "harbor_primary_reward_key": "reward",
            "reward": reward,
            "reward_details": {} if reward is None else {"reward": reward},
            "reward_rejections": {},
            "reward_entry_rejections": [],
            "checks": checks,
        },
        **other,
    )


def trace(path: Path) -> CandidateEvidence:
    return CandidateEvidence(descriptors={"trace": EvidenceDescriptor(kind="trace", format="atif", ref=str(path))})


def main(folder: Path) -> None:
    whole = {"ratio": 0.5, "steps": 3, "tidy": True, "tone": "kind", "usage": {"tokens": 7}}
    left = folder / "evidence" / "harbor" / "refund__aaa" / "agent" / "trajectory.json"
    left.parent.mkdir(parents=True)
    left.write_text(json.dumps(TRACE) + "\n")
    trials = [
        trial("refund", "refund__aaa", 1.0, whole, evidence=trace(left)),
        trial("refund", "refund__bbb", 0.0, {"ratio": float("nan"), "tone": "NaN"}),
        trial("refund", "refund__ccc", None, {"ratio": float("inf")}, "AgentTimeoutError"),
        trial("refund", "refund__ddd", None, {}, "RewardFileNotFoundError"),
        trial("cancel", "cancel__same", 1.0, {"tidy": False}, "RuntimeError"),
        trial("cancel", "cancel__same", 0.0, "the judge timed out"),
        trial("cancel", "cancel__same", None, {"ratio": float("-inf"), "steps": 0}),
        trial("cancel", "cancel__eee", None, {}, "AgentTimeoutError", status="failed"),
    ]
    tasks = [
        AgentEvalTask(id=name, intent=f"{name} an order", inputs={}, metrics=[HarborRewardMetric(), Checks()])
        for name in ("refund", "cancel")
    ]
    labels = {"case": "orders", "variant": "baseline"}
    config = AgentEvalRunConfig(work_dir=folder, run_id="crashes", labels=labels)
    AgentEvaluator().run_sync(tasks=tasks, trials=trials, config=config).persist(folder, write_dashboard=False)


def random_bundle(folder: Path, rng: random.Random) -> None:
    """Some tasks and trials with every kind of value, equal ids, failed trials and failed metrics."""
    trials = []
    for task in ("t1", "t2", "t3"):
        for number in range(rng.randint(1, 5)):
            name = rng.choice([f"{task}__{number}", f"{task}:model"])
            if rng.random() < 0.2:
                trials.append(trial(task, name, None, {}, "AgentFailed", status="failed"))
                continue
            values = {
                "ratio": rng.choice([0.0, 1.0, 1, 0.5, 2, float("nan"), float("inf"), float("-inf"), None, "0.9"]),
                "steps": rng.randint(0, 3),
                "tidy": rng.random() < 0.5,
                "tone": rng.choice(["kind", "NaN", "Infinity"]),
                "usage": {"tokens": 3},
            }
            kept = {key: value for key, value in values.items() if rng.random() < 0.8}
            trials.append(trial(task, name, 1.0, rng.choice([kept, kept, kept, "the judge timed out"])))
    rng.shuffle(trials)
    tasks = [AgentEvalTask(id=name, intent="", inputs={}, metrics=[Checks()]) for name in ("t1", "t2", "t3")]
    config = AgentEvalRunConfig(work_dir=folder, run_id=folder.name)
    AgentEvaluator().run_sync(tasks=tasks, trials=trials, config=config).persist(folder, write_dashboard=False)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        for index in range(int(sys.argv[2])):
            random_bundle(Path(sys.argv[1]) / str(index), random.Random(index))
