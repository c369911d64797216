"""Experiments whose attempts are rollouts of NeMo Gym, through the whole plugin."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.interop_gym.gym_lab import GymLab, Row, failure, planned, result
from tests.plugin.plugin_lab import Lab

SAMPLES = Path(__file__).parent / "samples"
LETTERS = {
    "baseline": ["ppp", "ppm", "ppj"],
    "no-tools": ["mmm", "pmr", "kkk"],
    "no-memory": ["ppp", "ttp", "ppp"],
}
"""Version -> for each task a letter a rollout: p passes, m misses (a negative reward), r died of an agent_run_error and
t of an agent_timeout, j is a judge that failed, k was killed and left no row.

Worked by hand: no-tools is killed by task 0 (0 of 3) and by task 1 (1 of 3, with one death), of task 2 nothing is
known; no-memory is killed by task 1 (1 of 3), where two died."""
CLASSES = {"r": "agent_run_error", "t": "agent_timeout", "j": "judge_failed"}


@pytest.fixture
def lab(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return Lab(pytester)


def write_runs(folder: Path) -> None:
    for version, tasks in LETTERS.items():
        results: list[Row] = []
        failures: list[Row] = []
        for task, letters in enumerate(tasks):
            for rollout, letter in enumerate(letters):
                if letter in "pm":
                    results.append(result(task, rollout, 1.0 if letter == "p" else -1.0))
                elif letter in CLASSES:
                    failures.append(failure(task, rollout, CLASSES[letter]))
        GymLab(folder).write(
            results[::-1], failures, planned(3, 3, id=lambda task: f"q{task}"), f"runs/{version}/rollouts.jsonl"
        )


def write_experiment(folder: Path, runner: dict[str, Any], **keys: Any) -> None:
    experiment = {
        "metricbench": 1,
        "name": "shop",
        "runner": {"kind": "recorded", "form": "gym", **runner},
        "cases": [{"id": "questions"}],
        "analysis": {"resamples": 50},
        **keys,
    }
    (folder / "experiment.yml").write_text(yaml.safe_dump(experiment, sort_keys=False))


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])
def test_runs_of_three_versions(lab: Lab, workers: list[str]) -> None:
    write_runs(lab.path)
    runner = {"read": ["runs/*"], "variants": "folder", "baseline": "baseline", "columns": {"task": "id"}}
    write_experiment(lab.path, runner)
    ended = lab.run("experiment.yml", *workers)
    assert ended.ret == 1
    assert ended.parseoutcomes() == {"passed": 15, "missed": 5, "died": 3, "failed": 4}
    summary = lab.summary()
    case = summary["cases"]["questions"]
    assert case["kills"] == {
        "no-tools": {"q0": "killed", "q1": "killed", "q2": "missing"},
        "no-memory": {"q0": "survived", "q1": "killed", "q2": "survived"},
    }
    assert summary["counts"]["missing"] == 3
    assert summary["counts"]["unmeasured"] == 1
    baseline = case["variants"]["baseline"]
    assert baseline["pass_at_k"]["reward"]["1"]["value"] == pytest.approx((1 + 2 / 3 + 1) / 3)
    assert [entry["trial_id"] for entry in baseline["attempts"]["q2"]["reward"]] == ["2:0", "2:1"]
    assert [entry["value"] for entry in case["variants"]["no-tools"]["attempts"]["q1"]["reward"]] == [1.0, -1.0, None]
    text = " ".join(ended.stdout.str().split())
    assert "3 planned rollouts without a row: counted as missing" in text
    assert "2 rollouts with agent_timeout (the agent ran out of time): counted as died" in text
    assert "1 rollout with judge_failed (the judge failed; a reward in the row is a placeholder)" in text


def test_what_a_failure_counts_as_may_be_said(lab: Lab) -> None:
    write_runs(lab.path)
    runner = {
        "read": ["runs/*"],
        "variants": "folder",
        "baseline": "baseline",
        "outcomes": {"agent_timeout": "unmeasured", "judge_failed": "died"},
    }
    write_experiment(lab.path, runner)
    ended = lab.run("experiment.yml")
    kills = lab.summary()["cases"]["questions"]["kills"]
    assert kills["no-memory"] == {"task-0": "survived", "task-1": "survived", "task-2": "survived"}
    assert ended.parseoutcomes() == {"passed": 15, "missed": 5, "died": 2, "failed": 5}


def test_negative_rewards_and_a_threshold(lab: Lab) -> None:
    for file in SAMPLES.glob("*.jsonl"):
        shutil.copy(file, lab.path)
    write_experiment(lab.path, {"read": ["example_rollouts.jsonl"]})
    ended = lab.run("experiment.yml")
    assert ended.ret == 0
    assert ended.parseoutcomes() == {"passed": 3, "missed": 2}
    variant = lab.summary()["cases"]["questions"]["variants"]["baseline"]
    assert variant["pass_at_k"]["reward"]["1"]["value"] == pytest.approx(0.6)
    assert variant["pass_at_k"]["reward"]["3"]["value"] == pytest.approx(1.0)
    assert set(variant["pass_at_k"]) == {"reward"}
    tokens = [entry["value"] for entry in variant["attempts"]["task-0"]["input_tokens"]]
    assert tokens == [244, 95, 93, 244, 93]
    write_experiment(lab.path, {"read": ["example_rollouts.jsonl"]}, score={"pass_at_least": -1})
    again = lab.run("experiment.yml")
    assert again.parseoutcomes() == {"reused": 5}
    variant = lab.summary()["cases"]["questions"]["variants"]["baseline"]
    assert variant["pass_at_k"]["reward"]["1"]["value"] == 1.0


def test_a_run_that_went_on_is_told(lab: Lab) -> None:
    write_runs(lab.path)
    write_experiment(lab.path, {"read": ["runs/*"], "variants": "folder", "baseline": "baseline"})
    lab.run("experiment.yml")
    with (lab.path / "runs/no-tools/rollouts.jsonl").open("a") as file:
        file.write('{"_ng_task_index": 2, "_ng_rollout_index": 0, "reward": 1.0, "agent_ref": {"name": "solver"}}\n')
    ended = lab.run("experiment.yml")
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines(["*the file runs/no-tools/rollouts.jsonl changed; renew it with --metricbench-lock*"])
    assert lab.run("experiment.yml", "--metricbench-lock").ret == 0
    ended = lab.run("experiment.yml")
    assert ended.parseoutcomes()["failed"] == 3
    assert lab.summary()["counts"]["missing"] == 2


def test_a_damaged_run_is_told_where_it_is_asked_for(lab: Lab) -> None:
    write_runs(lab.path)
    write_experiment(lab.path, {"read": ["runs/*"], "variants": "folder", "baseline": "baseline"})
    path = lab.path / "runs/baseline/rollouts.jsonl"
    path.write_text(path.read_text() * 2)
    ended = lab.run("experiment.yml")
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines(
        ["*cases?0?: runs/baseline/rollouts.jsonl:9: task 2, rollout 1 stands in line 1 too; a rollout has one*"]
    )
