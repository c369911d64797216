"""The parts of ``examples/support_agent``, each run as the experiment runs it; the whole stands at the end."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_metricbench.atif.trace import parse_trace
from pytest_metricbench.coverage.audit.document import Audit, read_audit
from pytest_metricbench.coverage.audit.judgments import JudgedItem, read_judgments
from pytest_metricbench.coverage.audit.measurement import Subject, measure_trace
from pytest_metricbench.definition.problems import ProblemList

EXAMPLE = Path(__file__).parents[2] / "examples" / "support_agent"
CASE: dict[str, Any] = yaml.safe_load((EXAMPLE / "experiment.yml").read_text("utf-8"))["cases"][0]
TASKS = {task["id"]: task for task in CASE["tasks"]}
MUTANTS = {mutant["id"]: mutant for mutant in CASE["mutants"]}


def run_script(workspace: Path, script: str, *files: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(EXAMPLE / script), *(str(EXAMPLE / file) for file in files)]
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(argv, cwd=workspace, env=environment, capture_output=True, text=True, timeout=30, check=False)


def run_agent(workspace: Path, task: str, mutant: str | None = None, seed: int = 1) -> subprocess.CompletedProcess[str]:
    workspace.mkdir(parents=True, exist_ok=True)
    request = {
        "variant": {"id": mutant or "baseline", "params": MUTANTS[mutant]["params"] if mutant else {}},
        "task": {"id": task, "params": TASKS[task]["params"]},
        "attempt": 1,
        "seed": seed,
    }
    (workspace / "request.json").write_text(json.dumps(request), "utf-8")
    return run_script(workspace, "agent.py", "shop.json")


def verify(workspace: Path) -> dict[str, Any]:
    ended = run_script(workspace, "verify.py", "shop.json", "expectations.json", "rubric.json")
    assert ended.returncode == 0, ended.stderr
    scores: dict[str, Any] = json.loads((workspace / "response.json").read_text("utf-8"))["scores"]
    return scores


def scores_of(workspace: Path, task: str, mutant: str | None = None, seed: int = 1) -> dict[str, Any]:
    ended = run_agent(workspace, task, mutant, seed)
    assert ended.returncode == 0, ended.stderr
    return verify(workspace)


# ---------------------------------------------------------------- agent


def test_an_attempt_with_the_same_seed_leaves_the_same_bytes(tmp_path: Path) -> None:
    for name in ("first", "second"):
        assert run_agent(tmp_path / name, "before-ordering", seed=5).returncode == 0
    for left in ("reply.json", "shop_after.json", "trajectory.json"):
        assert (tmp_path / "first" / left).read_bytes() == (tmp_path / "second" / left).read_bytes()


def test_chance_decides_only_where_the_words_fit_several_wishes(tmp_path: Path) -> None:
    replies: dict[str, set[bytes]] = {"before-ordering": set(), "refund-in-time": set()}
    for task, seen in replies.items():
        for seed in range(12):
            run_agent(tmp_path / f"{task}-{seed}", task, seed=seed)
            seen.add((tmp_path / f"{task}-{seed}" / "reply.json").read_bytes())
    assert len(replies["before-ordering"]) > 1
    assert len(replies["refund-in-time"]) == 1


@pytest.mark.parametrize("task", TASKS)
def test_traces_are_valid_atif(tmp_path: Path, task: str) -> None:
    run_agent(tmp_path, task)
    trace = json.loads((tmp_path / "trajectory.json").read_text("utf-8"))
    assert trace["schema_version"] == "ATIF-v1.7"
    declared = [definition["function"]["name"] for definition in trace["agent"]["tool_definitions"]]
    assert len(declared) == len(set(declared)) == 10
    assert [step["step_id"] for step in trace["steps"]] == list(range(1, len(trace["steps"]) + 1))
    for step in trace["steps"]:
        assert step.keys() <= {"step_id", "source", "message", "tool_calls", "observation", "extra"}
        calls = {call["tool_call_id"]: call["function_name"] for call in step.get("tool_calls", [])}
        assert step["source"] == "agent" or not calls
        assert set(calls.values()) <= set(declared)
        answered = [result["source_call_id"] for result in step.get("observation", {"results": []})["results"]]
        assert answered == list(calls)


@pytest.mark.parametrize("task", TASKS)
def test_the_agent_is_told_nothing_of_what_is_expected(task: str) -> None:
    assert TASKS[task]["params"].keys() == {"from", "name", "message"}
    assert "expectations.json" not in CASE["inputs"]


# ---------------------------------------------------------------- mutants


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_names_parts_that_exist(tmp_path: Path, mutant: str) -> None:
    """A misspelt part would make the agent crash at every task, which is not the damage described."""
    assert run_agent(tmp_path, "opening-hours", mutant).returncode == 0


@pytest.mark.parametrize(
    ("mutant", "task"),
    [
        ("no-tracking", "lost-parcel"),
        ("refunds-whole-order", "refund-one-of-two"),
        ("ignores-return-window", "refund-too-late"),
        ("ignores-identity", "someone-elses-order"),
        ("cancels-shipped-orders", "cancel-too-late"),
        ("ignores-loss-period", "where-is-it"),
        ("leaves-no-note", "cancel-in-time"),
        ("shows-cents", "refund-in-time"),
    ],
)
def test_the_task_made_for_a_damage_sees_it(tmp_path: Path, mutant: str, task: str) -> None:
    assert scores_of(tmp_path / "baseline", task)["reward"] == 1.0
    assert scores_of(tmp_path / "mutant", task, mutant)["reward"] == 0.0


def test_one_mutant_crashes_on_one_customer(tmp_path: Path) -> None:
    ended = run_agent(tmp_path / "zoe", "new-address", "ascii-names-only")
    assert ended.returncode != 0
    assert "UnicodeEncodeError" in ended.stderr
    assert scores_of(tmp_path / "ada", "refund-in-time", "ascii-names-only")["reward"] == 1.0


@pytest.mark.parametrize("task", TASKS)
def test_looking_twice_changes_nothing_but_the_number_of_calls(tmp_path: Path, task: str) -> None:
    """The experiment says that this mutant is equivalent; this is the evidence."""
    once = scores_of(tmp_path / "once", task)
    twice = scores_of(tmp_path / "twice", task, "looks-twice")
    for left in ("reply.json", "shop_after.json"):
        assert (tmp_path / "once" / left).read_bytes() == (tmp_path / "twice" / left).read_bytes()
    assert once["tool_calls"] <= twice["tool_calls"] <= once["tool_calls"] + 1


def test_a_leak_goes_unseen_because_no_verifier_looks(tmp_path: Path) -> None:
    """The survivor that no coverage metric points at: a stranger is told an address, and the task is solved."""
    assert scores_of(tmp_path, "someone-elses-order", "tells-address")["reward"] == 1.0
    assert "40 High Street" in json.loads((tmp_path / "reply.json").read_text("utf-8"))["message"]


# ---------------------------------------------------------------- verifier


def test_every_task_has_an_expectation() -> None:
    assert json.loads((EXAMPLE / "expectations.json").read_text("utf-8")).keys() == TASKS.keys()


def test_an_order_that_should_have_been_left_alone_counts(tmp_path: Path) -> None:
    run_agent(tmp_path, "cancel-in-time")
    shop = json.loads((tmp_path / "shop_after.json").read_text("utf-8"))
    shop["orders"]["1001"]["refunded"] = 1
    (tmp_path / "shop_after.json").write_text(json.dumps(shop), "utf-8")
    assert verify(tmp_path) == {"reward": 0.0, "state": False, "reply": True, "tool_calls": 3}


def test_an_agent_that_leaves_nothing_missed_the_task(tmp_path: Path) -> None:
    run_agent(tmp_path, "cancel-in-time")
    for left in ("reply.json", "shop_after.json", "trajectory.json"):
        (tmp_path / left).unlink()
    assert verify(tmp_path) == {"reward": 0.0, "state": False, "reply": False, "tool_calls": 0}


# ---------------------------------------------------------------- audit

AUDIT = EXAMPLE / "audit.md"
RUBRIC: dict[str, list[dict[str, Any]]] = json.loads((EXAMPLE / "rubric.json").read_text("utf-8"))


def audit() -> Audit:
    problems = ProblemList()
    found = read_audit(AUDIT, "audit.md", problems)
    assert found is not None, problems.found
    return found


def test_the_audit_names_every_tool_and_rule_of_the_agent(tmp_path: Path) -> None:
    run_agent(tmp_path, "opening-hours")
    agent = json.loads((tmp_path / "trajectory.json").read_text("utf-8"))["agent"]
    declared = [definition["function"]["name"] for definition in agent["tool_definitions"]]
    assert [item.name for item in audit().of_kind("tool")] == declared
    rules = [question["rule"] for question in RUBRIC["failure_case"]]
    assert rules == agent["extra"]["rules"]


def test_the_rubric_asks_what_the_audit_leaves_to_a_judge() -> None:
    asked = {
        (kind, question["item"], question["evidence_index"], question["kind"], question["description"])
        for kind, questions in RUBRIC.items()
        for question in questions
    }
    left = {
        (item.kind, item.name, index, evidence.kind, evidence.description)
        for item in audit().of_kind("capability", "failure_case")
        for index, evidence in enumerate(item.evidence)
        if evidence.tool is None
    }
    assert asked == left


@pytest.mark.parametrize(
    ("task", "covered"),
    [
        ("refund-in-time", {"refunding"}),
        ("refund-too-late", {"goods-kept-too-long"}),
        ("where-is-it", {"tracking", "parcel-may-still-arrive"}),
        ("lost-parcel", {"replacing"}),
        ("cancel-too-late", {"cancelled-too-late"}),
        ("someone-elses-order", {"order-of-somebody-else"}),
        ("new-address", {"redirecting"}),
        ("opening-hours", {"informing"}),
        ("sarcasm", {"not-understood"}),
    ],
)
def test_what_the_audit_finds_in_an_attempt(tmp_path: Path, task: str, covered: set[str]) -> None:
    run_agent(tmp_path, task)
    verify(tmp_path)
    trace = parse_trace((tmp_path / "trajectory.json").read_bytes())
    found: set[str] = set()
    kinds: tuple[JudgedItem, ...] = ("capability", "failure_case")
    for kind in kinds:
        name = f"{kind.replace('_', '-')}-judgments.json"
        judgments = read_judgments(tmp_path / name, name, audit(), kind)
        measured = measure_trace(kind, audit(), trace, Subject(task, "run", "trajectory.json"), judgments)
        assert measured.unjudged == ()
        found |= set(measured.covered)
    assert found == covered


# ---------------------------------------------------------------- policy coverage


def test_policy_coverage_counts_branches(tmp_path: Path) -> None:
    evidence = {}
    for task in ("refund-in-time", "refund-too-late"):
        run_agent(tmp_path / "evidence" / task / "a", task)
        evidence[task] = [{"path": f"evidence/{task}/a/trajectory.json", "name": "trajectory.json"}]
    (tmp_path / "request.json").write_text(json.dumps({"evidence": evidence}), "utf-8")
    assert run_script(tmp_path, "policy_coverage.py").returncode == 0
    goals = json.loads((tmp_path / "goals.json").read_text("utf-8"))
    assert len(goals["universe"]) == 12
    assert goals["by_task"] == {
        "refund-in-time": ["identity:allows", "refund-limit:allows", "return-window:allows"],
        "refund-too-late": ["identity:allows", "return-window:forbids"],
    }
    assert json.loads((tmp_path / "response.json").read_text("utf-8")) == {"value": 4 / 12}


def test_policy_coverage_of_a_task_without_a_trace_is_null(tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text(json.dumps({"evidence": {"sarcasm": []}}), "utf-8")
    assert run_script(tmp_path, "policy_coverage.py").returncode == 0
    answer = json.loads((tmp_path / "response.json").read_text("utf-8"))
    assert answer == {"value": None, "reason": "task sarcasm left no trajectory.json"}


# ---------------------------------------------------------------- the whole

KILLERS = {
    "no-tracking": {"lost-parcel", "where-is-it"},
    "refunds-whole-order": {"refund-one-of-two"},
    "ignores-return-window": {"refund-too-late"},
    "ignores-identity": {"someone-elses-order"},
    "cancels-shipped-orders": {"cancel-too-late"},
    "ignores-loss-period": {"where-is-it"},
    "leaves-no-note": {
        "broken-vase",
        "cancel-in-time",
        "lost-parcel",
        "new-address",
        "refund-in-time",
        "refund-one-of-two",
    },
    "shows-cents": {"refund-in-time", "refund-one-of-two"},
    "ascii-names-only": {"new-address"},
}
"""Mutant -> the tasks that kill it; whoever is not named survives."""


def run_whole(folder: Path) -> dict[str, Any]:
    """The summary of the whole experiment, run in a copy of the folder as the README says."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".metricbench", "__pycache__", ".pytest_cache"))
    argv = [sys.executable, "-m", "pytest", "-p", "metricbench", "experiment.yml", "-n", "2"]
    ended = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lock = "experiment.lock.yml"
    assert (folder / lock).read_bytes() == (EXAMPLE / lock).read_bytes()
    content: dict[str, Any] = json.loads(
        (folder / ".metricbench" / "support-agent" / "summary.json").read_text("utf-8")
    )
    return content


def check_the_whole_run_is_complete_and_its_gates_hold(summary: dict[str, Any]) -> None:
    counts = {key: summary["counts"][key] for key in ("passed", "missed", "died", "unmeasured", "missing", "reused")}
    assert counts == {"passed": 754, "missed": 216, "died": 5, "unmeasured": 0, "missing": 0, "reused": 0}
    assert summary["complete"] is True
    assert [gate["holds"] for gate in summary["gates"]] == [True, True, True]


def check_the_baseline_has_all_verdicts(summary: dict[str, Any]) -> None:
    baseline = summary["cases"]["support"]["variants"]["baseline"]
    assert baseline["verdicts"] == {"solved": 10, "flaky": 2, "failed": 1, "unmeasured": 0, "outside": 0, "not_run": 0}
    passes = {task: sum(entry["value"] for entry in scores["reward"]) for task, scores in baseline["attempts"].items()}
    assert {task: count for task, count in passes.items() if count < 5} == {
        "broken-vase": 4,
        "before-ordering": 1,
        "sarcasm": 0,
    }
    assert baseline["pass_at_k"]["reward"]["1"]["value"] == pytest.approx(55 / 65)
    assert baseline["pass_at_k"]["reward"]["5"]["value"] == pytest.approx(12 / 13)


def check_who_kills_whom_and_who_survives(summary: dict[str, Any]) -> None:
    kills = summary["cases"]["support"]["kills"]
    killers = {mutant: {task for task, cell in cells.items() if cell == "killed"} for mutant, cells in kills.items()}
    assert {mutant: tasks for mutant, tasks in killers.items() if tasks} == KILLERS
    assert kills.keys() == MUTANTS.keys() | {"control-1"}
    assert summary["cases"]["support"]["pool"]["kill_share"]["value"] == 0.75


def check_the_noisy_survivor_is_worse_over_all_tasks(summary: dict[str, Any]) -> None:
    noisy = summary["cases"]["support"]["variants"]["misreads-numbers"]
    assert noisy["pass_at_k"]["reward"]["1"]["value"] == pytest.approx(50 / 65)


def check_the_crash_is_a_death_with_its_reason(summary: dict[str, Any]) -> None:
    attempts = summary["cases"]["support"]["variants"]["ascii-names-only"]["attempts"]
    dead = {task for task, scores in attempts.items() if all(entry["value"] is None for entry in scores["reward"])}
    assert dead == {"new-address"}


def check_coverage_points_at_one_blind_spot_and_predicts_imperfectly(summary: dict[str, Any]) -> None:
    case = summary["cases"]["support"]
    assert case["pool"]["coverage"]["tools"]["value"] == pytest.approx(9 / 10)
    assert case["pool"]["coverage"]["audit"]["value"] == pytest.approx(20 / 23)
    assert case["pool"]["coverage"]["policy"]["value"] == pytest.approx(10 / 12)
    tools, audit, policy = (case["correlation"][system]["kill_share"] for system in ("tools", "audit", "policy"))
    assert tools["overall"]["pairs"] == policy["overall"]["pairs"] == 60
    assert tools["overall"]["kendall"]["value"] == pytest.approx(0.54, abs=0.005)
    assert audit["overall"]["kendall"]["value"] == pytest.approx(0.67, abs=0.005)
    assert policy["overall"]["kendall"]["value"] == pytest.approx(0.78, abs=0.005)
    by_size = {size: [one["by_size"][size] for one in (tools, audit, policy)] for size in ("3", "6", "9")}
    within = {size: tuple(round(one["kendall"]["value"], 2) for one in three) for size, three in by_size.items()}
    assert within == {"3": (0.00, 0.06, 0.32), "6": (-0.31, -0.13, 0.63), "9": (-0.03, 0.25, 0.40)}


@pytest.mark.benchmark
def test_the_whole_run_shows_what_the_readme_says(tmp_path: Path) -> None:
    """One test, so that xdist does not run the experiment on every worker."""
    summary = run_whole(tmp_path / "support_agent")
    check_the_whole_run_is_complete_and_its_gates_hold(summary)
    check_the_baseline_has_all_verdicts(summary)
    check_who_kills_whom_and_who_survives(summary)
    check_the_noisy_survivor_is_worse_over_all_tasks(summary)
    check_the_crash_is_a_death_with_its_reason(summary)
    check_coverage_points_at_one_blind_spot_and_predicts_imperfectly(summary)
