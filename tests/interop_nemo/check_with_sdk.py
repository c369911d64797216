"""Reads bundles with NVIDIA's own SDK and computes their summaries again. Run by an interpreter that has it.

Usage: ``check_with_sdk.py FOLDER...``. Every row must be accepted by the SDK's models, which refuse extra keys, and
``AgentEvalSummary.from_scores`` must give the summary that stands in the bundle, value for value.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def sdk(module: str) -> Any:
    for package in ("nhx_evals_sdk", "nemo_evaluator_sdk"):
        try:
            return import_module(f"{package}.{module}")
        except ModuleNotFoundError as error:
            if error.name != package:
                raise
    raise SystemExit("neither nhx_evals_sdk nor nemo_evaluator_sdk is installed")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def as_task(row: dict[str, Any]) -> Any:
    """A task of the SDK: its metrics, which a bundle only describes, are made to declare what the row says."""
    protocol, pydantic = sdk("metrics.protocol"), import_module("pydantic")

    class Described:
        def __init__(self, metric: dict[str, Any]) -> None:
            self.type = metric["type"]
            self._outputs = metric["outputs"]

        def output_spec(self) -> list[Any]:
            return [
                protocol.MetricOutputSpec(
                    name=output["name"],
                    description=output["description"],
                    value_schema=getattr(protocol, output["value_schema"], None)
                    or pydantic.create_model(output["value_schema"]),
                    required=output.get("required", True),
                )
                for output in self._outputs
            ]

        async def compute_scores(self, input: Any) -> Any:  # noqa: A002
            raise AssertionError("nothing is scored here")

    metrics = [Described(metric) for metric in row["metrics"]]
    return sdk("agent_eval.tasks").AgentEvalTask.model_validate({**row, "metrics": metrics})


def check(folder: Path) -> None:
    results, scores_module = sdk("agent_eval.results"), sdk("agent_eval.scores")
    tasks = [as_task(row) for row in rows(folder / "tasks.jsonl")]
    described = [task.model_dump(mode="json") for task in tasks]
    assert described == rows(folder / "tasks.jsonl"), "tasks.jsonl is not what the SDK writes of these tasks"
    trials = sdk("agent_eval.persistence").read_trials(folder)
    assert len(trials) == len(rows(folder / "trials.jsonl"))
    scores = [scores_module.AgentEvalTaskScore.model_validate(row) for row in rows(folder / "scores.jsonl")]
    stated = json.loads((folder / "summary.json").read_text("utf-8"))
    summary = results.AgentEvalSummary.model_validate(stated)
    metadata = results.RunMetadata.model_validate_json((folder / "metadata.json").read_text("utf-8"))
    run = json.loads((folder / "run.json").read_text("utf-8"))
    assert sorted(run) == ["artifacts", "dashboard_path", "output_dir", "run_id"]
    assert {score.run_id for score in scores} <= {run["run_id"]}
    # an infinite number is null in scores.jsonl, so the SDK itself computes from the summary's values
    values = iter_values(stated)
    for score in scores:
        for output in score.outputs:
            if output.value is None:
                output.value = values[score.task_id, f"{score.metric_type}.{output.name}", score.trial_id].pop(0)
            elif output.value == "NaN" and schema_of(tasks, score, output) != "Label":
                output.value = float("nan")
    again = results.AgentEvalSummary.from_scores(scores, tasks=tasks, trials=trials).model_dump(mode="json")
    for key in sorted(again.keys() | stated.keys()):
        assert again[key] == stated[key], f"{folder}: {key}: the SDK has {again[key]}, the bundle {stated[key]}"
    result = results.AgentEvalResult(
        run_id=run["run_id"], tasks=tasks, trials=trials, scores=scores, summary=summary, metadata=metadata
    )
    assert str(result)
    print(f"{folder}: {len(tasks)} tasks, {len(trials)} trials, {len(summary.scores.scores)} aggregates")


def schema_of(tasks: list[Any], score: Any, output: Any) -> str:
    (task,) = [task for task in tasks if task.id == score.task_id]
    (metric,) = [metric for metric in task.metrics if metric.type == score.metric_type]
    (spec,) = [spec for spec in metric.output_spec() if spec.name == output.name]
    return str(spec.value_schema.__name__)


def iter_values(stated: dict[str, Any]) -> dict[tuple[str, str, str], list[float]]:
    found: dict[tuple[str, str, str], list[float]] = {}
    for task, outputs in stated["task_metric_values"].items():
        for name, entries in outputs.items():
            for entry in entries:
                if entry["value_type"] == "number" and entry["value"] in ("Infinity", "-Infinity"):
                    found.setdefault((task, name, entry["trial_id"]), []).append(float(entry["value"]))
    return found


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        check(Path(argument))
