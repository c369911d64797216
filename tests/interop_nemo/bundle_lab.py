"""Bundles as the evaluator SDK writes them, made from small tables; written independently of what is tested."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_metricbench.interop.nemo.bundles import read
from pytest_metricbench.interop.recordings import ReadOptions, Recording, Recordings

SAMPLES = Path(__file__).parent / "samples"
MISSING = "missing"
"""A metric that gave nothing of an output."""


class MetricFailedError(Exception):
    """A metric that raised."""


@dataclass
class Trial:
    """One trial. ``scores``: full name -> value; a :class:`MetricFailedError` fails the whole metric."""

    task: str
    id: str
    scores: Mapping[str, Any] = field(default_factory=dict)
    status: str = "completed"
    error: tuple[str, str] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    measurements: Mapping[str, Any] | None = field(default_factory=dict)
    evidence: Mapping[str, Any] | None = None
    diagnostics: Sequence[Mapping[str, Any]] = ()


@dataclass
class Lab:
    """Makes bundles below a folder."""

    folder: Path

    def bundle(
        self,
        name: str,
        trials: Sequence[Trial],
        schemas: Mapping[str, str] | Mapping[str, Mapping[str, str]] = {"m.s": "ContinuousScore"},
        *,
        labels: Mapping[str, str] | None = None,
        target: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        shape: str = "task_metric_values",
        errors: bool = True,
        tasks: Sequence[str] = (),
    ) -> Path:
        """Write a bundle; ``schemas``: output -> value_schema, or task -> such a mapping."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        names = [*dict.fromkeys([*tasks, *(trial.task for trial in trials)])]
        of_each = isinstance(next(iter(schemas.values())), Mapping)
        by_task: dict[str, Any] = {task: schemas[task] if of_each else schemas for task in names}
        run = run_id or f"run-{name}"
        rows, values = scored(trials, by_task, run)
        summary: dict[str, Any] = {
            "scores": {"scores": []},
            "metric_coverage": {},
            shape: values if shape == "task_metric_values" else untyped(values),
            "task_count": len(names),
            "trial_count": len(trials),
            "score_count": len(rows),
        }
        if errors:
            listed: dict[str, list[str]] = {}
            for trial in trials:
                if trial.error:
                    listed.setdefault(trial.error[0], []).append(trial.id)
            summary |= {"error_trial_ids": listed, "error_count": sum(map(len, listed.values()))}
        write_rows(folder / "tasks.jsonl", [task_row(task, by_task[task]) for task in names])
        write_rows(folder / "trials.jsonl", [trial_row(trial, errors=errors) for trial in trials])
        write_rows(folder / "scores.jsonl", rows)
        write_json(folder / "summary.json", summary)
        write_json(folder / "metadata.json", {"labels": dict(labels or {}), "target": target})
        write_json(folder / "run.json", {"run_id": run, "output_dir": str(folder), "dashboard_path": None})
        return folder

    def read(self, *names: str, **options: Any) -> Recordings:
        """Read bundles by name; all of them without one."""
        paths = {name: self.folder / name for name in names} or {"runs": self.folder}
        return read(paths, ReadOptions(options.pop("case", "c"), **options))


def scored(
    trials: Sequence[Trial], by_task: Mapping[str, Mapping[str, str]], run: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of ``scores.jsonl``, and the values of the summary."""
    rows: list[dict[str, Any]] = []
    kept = ("ContinuousScore", "DiscreteScore", "BooleanValue", "Label")
    values: dict[str, Any] = {
        task: {name: [] for name, schema in schemas.items() if schema in kept} for task, schemas in by_task.items()
    }
    for task, schemas in by_task.items():
        for trial in (trial for trial in trials if trial.task == task):
            for metric in dict.fromkeys(name.partition(".")[0] for name in schemas):
                names = [name for name in schemas if name.partition(".")[0] == metric]
                row: dict[str, Any] = {
                    "id": f"{run}:{task}:{trial.id}:{metric}",
                    "run_id": run,
                    "task_id": task,
                    "trial_id": trial.id,
                    "metric_type": metric,
                    "status": "completed",
                    "outputs": [],
                    "diagnostics": list(trial.diagnostics),
                    "metadata": {},
                }
                raised = next(
                    (trial.scores[n] for n in names if isinstance(trial.scores.get(n), MetricFailedError)), None
                )
                if trial.status == "failed":
                    details = {"trial_status": "failed"}
                    row |= {"status": "failed", "diagnostics": [diagnostic(metric, "trial is failed", details)]}
                elif raised is not None:
                    details = {"exception_type": "TimeoutError"}
                    row |= {"status": "failed", "diagnostics": [diagnostic(metric, str(raised), details)]}
                rows.append(row)
                for name in names:
                    value = None if trial.status == "failed" else trial.scores.get(name, MISSING)
                    if isinstance(raised, MetricFailedError) or value is MISSING:
                        continue
                    if trial.status != "failed":
                        is_infinite = isinstance(value, float) and math.isinf(value)
                        is_nan = isinstance(value, float) and math.isnan(value)
                        shown = None if is_infinite else "NaN" if is_nan else value
                        row["outputs"].append({"name": name.partition(".")[2], "value": shown})
                    if name in values[task] and (
                        trial.status == "failed" or isinstance(value, bool | int | float | str)
                    ):
                        values[task][name].append({"trial_id": trial.id, **typed(value)})
    return rows, values


def typed(value: Any) -> dict[str, Any]:
    if value is None:
        return {"value_type": "missing", "value": None}
    if isinstance(value, str):
        return {"value_type": "label", "value": value}
    if isinstance(value, float) and not math.isfinite(value):
        return {"value_type": "number", "value": "NaN" if math.isnan(value) else ("Infinity", "-Infinity")[value < 0]}
    return {"value_type": "number", "value": value}


def untyped(values: Mapping[str, Any]) -> dict[str, Any]:
    """As before the release: floats without a type, and no labels."""
    return {
        task: {
            name: [
                {"trial_id": entry["trial_id"], "value": float(entry["value"]) if entry["value"] is not None else None}
                for entry in entries
            ]
            for name, entries in outputs.items()
            if not any(entry["value_type"] == "label" for entry in entries)
        }
        for task, outputs in values.items()
    }


def diagnostic(metric: str, message: str, details: Mapping[str, Any]) -> dict[str, Any]:
    return {"severity": "error", "message": message, "source": metric, "details": dict(details)}


def task_row(task: str, schemas: Mapping[str, str]) -> dict[str, Any]:
    metrics: dict[str, list[dict[str, Any]]] = {}
    for name, schema in schemas.items():
        metric, _, output = name.partition(".")
        metrics.setdefault(metric, []).append({"name": output, "description": None, "value_schema": schema})
    return {
        "id": task,
        "intent": f"does {task}",
        "inputs": {},
        "reference": {},
        "metrics": [{"type": metric, "outputs": outputs} for metric, outputs in metrics.items()],
        "views": {},
        "metadata": {},
    }


def trial_row(trial: Trial, *, errors: bool = True) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": trial.id,
        "task_id": trial.task,
        "status": trial.status,
        "output": {"output_text": "x", "response": None, "metadata": {}} if trial.status == "completed" else None,
        "evidence": None if trial.evidence is None else {"descriptors": trial.evidence, "metadata": {}},
        "metadata": dict(trial.metadata),
    }
    if errors:
        error = trial.error
        row["error"] = error and {"type": error[0], "message": error[1], "traceback": None, "occurred_at": None}
    if trial.measurements is not None:
        row["measurements"] = dict(trial.measurements)
    return row


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    path.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in rows))


def edit_json(path: Path, **changes: Any) -> None:
    """Change keys of a JSON file; a value of ``...`` removes one."""
    content = json.loads(path.read_text()) | changes
    write_json(path, {key: value for key, value in content.items() if value is not ...})


def edit_row(path: Path, number: int, **changes: Any) -> None:
    """Change keys of one row, counted from 1."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[number - 1] |= changes
    write_rows(path, [{key: value for key, value in row.items() if value is not ...} for row in rows])


def told(recording: Recording) -> tuple[str, str | None, dict[str, Any]]:
    """What became of an attempt: outcome, type of its error, scores without measurements."""
    outcome = recording.outcome
    scores = {name: value for name, value in outcome.scores.items() if not name.startswith("measurements.")}
    return outcome.kind, None if outcome.error is None else outcome.error.type, scores


def notes(recordings: Recordings) -> dict[str, int]:
    return {note.text: note.count for note in recordings.notes}
