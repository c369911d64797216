"""Writes runs as NeMo Gym writes them, and reads them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_metricbench.interop.counted_notes import counted_note
from pytest_metricbench.interop.gym import reading as gym
from pytest_metricbench.interop.recordings import ReadOptions, Recordings

Row = dict[str, Any]


def result(task: Any, rollout: Any, reward: Any = 1.0, *, agent: str | None = "solver", **fields: Any) -> Row:
    """A row of the rollouts."""
    row: Row = {"_ng_task_index": task, "_ng_rollout_index": rollout, "reward": reward, **fields}
    if agent is not None:
        row["agent_ref"] = {"type": "responses_api_agents", "name": agent}
    return row


def failure(task: Any, rollout: Any, name: Any, *, agent: str = "solver", **fields: Any) -> Row:
    """A row of the failures' sidecar."""
    return {
        "_ng_task_index": task,
        "_ng_rollout_index": rollout,
        "_ng_failure_class": name,
        "agent_ref": {"name": agent},
        **fields,
    }


def planned(tasks: int, repeats: int, *, agent: str = "solver", **fields: Any) -> list[Row]:
    """The materialized inputs of a run."""
    return [
        {
            "responses_create_params": {"input": [{"role": "user", "content": f"Question {task}"}]},
            "agent_ref": {"name": agent},
            "_ng_task_index": task,
            "_ng_rollout_index": rollout,
            **{name: value(task) if callable(value) else value for name, value in fields.items()},
        }
        for task in range(tasks)
        for rollout in range(repeats)
    ]


def lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


class GymLab:
    """A folder with runs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(
        self,
        results: Iterable[Row] | str,
        failures: Iterable[Row] | str | None = None,
        inputs: Iterable[Row] | str | None = None,
        name: str = "rollouts.jsonl",
    ) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for suffix, rows in (("", results), ("_failures", failures), ("_materialized_inputs", inputs)):
            if rows is not None:
                text = rows if isinstance(rows, str) else lines(rows)
                path.with_name(f"{path.stem}{suffix}.jsonl").write_text(text, encoding="utf-8")
        return path

    def read(self, *names: str, **options: Any) -> Recordings:
        paths = {name: self.folder / name for name in names or ("rollouts.jsonl",)}
        return gym.read(paths, ReadOptions("case", **options))


def kinds(recordings: Recordings) -> dict[str, str]:
    """What each attempt counts as, by task and what it is called (planned ones that left nothing: by their task)."""
    return {f"{found.task} {found.trial}".strip(): found.outcome.kind for found in recordings.attempts}


def notes(recordings: Recordings) -> dict[str, int]:
    return {note.text: note.count for note in recordings.notes}


def said(counts: Mapping[str, int]) -> dict[str, int]:
    """The notes of texts with these counts."""
    return {counted_note(text, count).text: count for text, count in counts.items()}
