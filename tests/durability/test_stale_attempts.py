"""What is changed makes exactly the attempts stale that depend on it, and what they left stays readable."""

import json
from typing import Any

import pytest

from tests.durability.durability_lab import AGENT, TASKS, Lab, key

CASE: dict[str, Any] = {
    "inputs": ["policy.md"],
    "tasks": [{"id": task, "params": {"x": 1}, "tags": ["usual"]} for task in TASKS],
    "baseline": {"params": {"y": 1}},
    "mutants": [{"id": "m1", "params": {"y": 2}}, {"id": "m2", "description": "Another one."}],
}
RUNNER: dict[str, Any] = {"agent": ["/bin/sh", "agent.sh", "prompt.txt"], "env": {"MODE": "fast"}, "timeout": 60}
ALL = "everything"


def entries(which: str, id_: str, **changed: Any) -> dict[str, Any]:
    """The case with one of its tasks or mutants changed."""
    return {"case": {**CASE, which: [{**entry, **changed} if entry["id"] == id_ else entry for entry in CASE[which]]}}


STALE: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "params of a task": (entries("tasks", "t2", params={"x": 2}), {}, "::t2["),
    "params of a mutant": (entries("mutants", "m1", params={"y": 3}), {}, "m1::"),
    "params of the baseline": ({"case": {**CASE, "baseline": {"params": {"y": 3}}}}, {}, "baseline::"),
    "seed": ({"seed": 3}, {}, ALL),
    "content of an input": ({}, {"policy.md": "Be terse.\n"}, ALL),
    "one input more": ({"case": {**CASE, "inputs": ["policy.md", "prompt.txt"]}}, {}, ALL),
    "the agent's script": ({}, {"agent.sh": "# another word\n" + AGENT}, ALL),
    "a file in the agent's argv": ({}, {"prompt.txt": "Hurry.\n"}, ALL),
    "an argument of the agent": ({"runner": {**RUNNER, "agent": ["/bin/sh", "agent.sh", "-v", "prompt.txt"]}}, {}, ALL),
    "a value in env": ({"runner": {**RUNNER, "env": {"MODE": "slow"}}}, {}, ALL),
}
FRESH: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "tags": (entries("tasks", "t2", tags=["other", "more"]), {}),
    "description of a mutant": (entries("mutants", "m2", description="Said otherwise."), {}),
    "description of a case": ({"case": {**CASE, "description": "Said otherwise."}}, {}),
    "a longer time-out": ({"runner": {**RUNNER, "timeout": 90}}, {}),
    "retries": ({"retries": 3}, {}),
    "score": ({"score": {"primary": "reward", "pass_at_least": 0.5}}, {}),
    "coverage": ({"coverage": []}, {}),
    "the coverage's script": ({}, {"cover.sh": "echo '{\"value\": 0.25}' > response.json\n"}),
    "analysis": ({"analysis": {"pass_at_k": [2], "mutation_score": "mean_drop"}}, {}),
    "gates": ({"gates": ["baseline pass@1 >= 0.5"]}, {}),
    "subsets": ({"case": {**CASE, "subsets": [{"id": "other", "tasks": ["t1", "t4"]}]}}, {}),
    "order of tasks": ({"case": {**CASE, "tasks": CASE["tasks"][::-1]}}, {}),
    "a file that nobody names": ({}, {"notes.txt": "other notes\n"}),
}


@pytest.fixture
def measured(lab: Lab) -> Lab:
    lab.write("policy.md", "Be polite.\n")
    lab.write("prompt.txt", "Take your time.\n")
    lab.write("notes.txt", "notes\n")
    lab.make(case=CASE, runner=RUNNER)
    assert lab.run_here().status == 0
    lab.forget()
    return lab


def change(lab: Lab, keys: dict[str, Any], files: dict[str, str]) -> None:
    lab.define(**json.loads(json.dumps({"case": CASE, "runner": RUNNER, **keys})))
    for name, text in files.items():
        lab.write(name, text)


@pytest.mark.parametrize("what", STALE)
def test_exactly_what_depends_on_it_runs_again(measured: Lab, what: str) -> None:
    lab, (keys, files, touched) = measured, STALE[what]
    before = lab.attempts()
    stale = {name for name in before if touched == ALL or touched in name or name.startswith(touched)}
    assert 0 < len(stale) <= len(before)
    change(lab, keys, files)
    ended = lab.run_here()
    assert ended.status == 0, ended
    new = lab.lines()[len(before) :]
    assert {key(record) for record in new} == stale
    assert len(new) == len(stale)
    assert set(lab.noted()) == {record["trial_id"] for record in new}
    assert all(record["supersedes"] == before[key(record)]["trial_id"] for record in new)
    assert lab.left("stale") == {before[name]["trial_id"] for name in stale}
    assert len(list((lab.store / "stale").rglob("trace.txt"))) == len(stale)
    assert lab.summary()["counts"]["reused"] == len(before) - len(stale)
    lab.forget()
    assert lab.run_here().status == 0
    assert lab.noted().total() == 0


@pytest.mark.parametrize("what", FRESH)
def test_nothing_runs_again(measured: Lab, what: str) -> None:
    lab, (keys, files) = measured, FRESH[what]
    journal = (lab.store / "attempts.jsonl").read_bytes()
    change(lab, keys, files)
    ended = lab.run_here()
    assert ended.status == 0, ended
    assert (lab.noted() + lab.noted("verified.txt")).total() == 0
    assert (lab.store / "attempts.jsonl").read_bytes() == journal
    assert lab.left("stale") == set()


def test_a_run_that_ended_before_it_came_to_move_what_is_stale(measured: Lab) -> None:
    """Killed after the new record and before the old folder was moved: it is stale and was not in flight."""
    lab = measured
    change(lab, {"seed": 3}, {})
    assert lab.run_here().status == 0
    superseded = lab.left("stale")
    for folder in (lab.store / "stale").glob("*/*/*/*"):
        folder.rename(lab.store / "attempts" / folder.relative_to(lab.store / "stale"))
    ended = lab.run_here()
    assert ended.status == 0, ended
    assert "in flight" not in ended.out
    assert lab.left("stale") == superseded
    assert lab.left("interrupted") == set()
    assert lab.summary()["counts"]["reused"] == 24


def test_what_was_stale_and_is_as_before_runs_again(measured: Lab) -> None:
    """The store keeps one result of each attempt, and does not go back to one that was superseded."""
    lab = measured
    change(lab, {"seed": 3}, {})
    assert lab.run_here().status == 0
    lab.forget()
    change(lab, {}, {})
    assert lab.run_here().status == 0
    assert lab.noted().total() == 24
    assert len(lab.left("stale")) == 48


def test_a_time_out_that_is_longer_now(lab: Lab) -> None:
    lab.make(runner={"timeout": 0.3}, coverage=[])
    lab.write("agent.sh", AGENT.replace("exit 3", "[ -f /nowhere ] || sleep 9"))
    assert lab.run_here("-k", "m2 and t3").status == 0
    assert [record["time_limit"] for record in lab.attempts().values()] == [0.3, 0.3]
    lab.forget()
    assert lab.run_here("-k", "m2 and t3").status == 0
    lab.define(runner={"timeout": 0.2}, coverage=[])
    assert lab.run_here("-k", "m2 and t3").status == 0
    assert lab.noted().total() == 0
    lab.define(runner={"timeout": 0.4}, coverage=[])
    assert lab.run_here("-k", "m2 and t3").status == 0
    assert lab.noted().total() == 2
    assert [record["time_limit"] for record in lab.attempts().values()] == [0.4, 0.4]
