"""Experiments whose attempts are the rows of a table, through the whole plugin."""

import csv
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_metricbench.definition.ids import derive_id
from tests.plugin.plugin_lab import Lab

ROWS = [
    # variant, task -> a letter an attempt: p passes, m misses, d died, u says nothing
    ("agent", "find", "pppp"),
    ("agent", "pay", "pppm"),
    ("agent", "refund", "ppmm"),
    ("no-pay", "find", "pppp"),
    ("no-pay", "pay", "mdmm"),
    ("no-pay", "refund", "pmmm"),
    ("quiet", "find", "ppmu"),
    ("quiet", "pay", "pppp"),
    ("quiet", "refund", "dddd"),
]
"""Worked by hand. The baseline passes refund in half of its attempts, so nothing can be killed there: no-pay is killed
by pay alone, quiet by nothing (find: 2 of 3 pass)."""
CELLS = {"p": "1", "m": "0.25", "d": "died", "u": ""}
RUNNER: dict[str, Any] = {"kind": "recorded", "form": "table", "read": ["results.csv"], "baseline": "agent"}
SUBSETS = [{"id": "s1", "tasks": ["find"]}, {"id": "s2", "tasks": ["find", "pay"]}, {"id": "s3", "tasks": ["refund"]}]
MEASURE = """\
def measure(request):
    return len(request.tasks) / 3
"""


@pytest.fixture
def lab(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return Lab(pytester)


def write_table(path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["variant", "task", "trial_id", "reward"])
        for variant, task, letters in ROWS:
            writer.writerows([variant, task, f"{variant}-{task}-{n}", CELLS[x]] for n, x in enumerate(letters))


def write_experiment(folder: Path, **keys: Any) -> None:
    experiment = {
        "metricbench": 1,
        "name": "shop",
        "runner": RUNNER,
        "cases": [{"id": "shop", "subsets": SUBSETS}],
        "analysis": {"pass_at_k": [1, 2, 4], "resamples": 50},
        **keys,
    }
    (folder / "experiment.yml").write_text(yaml.safe_dump(experiment, sort_keys=False))


def figures(found: dict[str, Any]) -> dict[str, float | None]:
    return {k: figure["value"] for k, figure in found["reward"].items()}


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])
def test_a_table_gives_pass_at_k_kills_and_scores_of_subsets(lab: Lab, workers: list[str]) -> None:
    write_table(lab.path / "results.csv")
    (lab.path / "house.py").write_text(MEASURE)
    coverage = [{"id": "tools", "kind": "tool-calls"}, {"id": "house", "kind": "python", "measure": "house:measure"}]
    write_experiment(lab.path, coverage=coverage)
    ended = lab.run("experiment.yml", "-rf", *workers)
    assert ended.parseoutcomes() == {"passed": 20 + 8, "missed": 10, "died": 5, "failed": 1}
    assert ended.ret == 1
    ended.stdout.fnmatch_lines(
        ["*shop::quiet::find?4?*", "unmeasured (verifier): NoScore: results.csv:29 has no score"]
    )
    summary = lab.summary()
    case = summary["cases"]["shop"]
    # agent: find 4/4, pay 3/4, refund 2/4; C(n-c, k) / C(n, k) is 0 for find, 1/4 and 1/2 for k = 1, 0 and 1/6 for 2.
    baseline = case["variants"]["baseline"]
    assert figures(baseline["pass_at_k"]) == pytest.approx({"1": 0.75, "2": 1 - (1 / 6) / 3, "4": 1.0})
    # pass^k: C(3, 2) / C(4, 2) = 1/2 and C(2, 2) / C(4, 2) = 1/6; for 4 only find.
    assert figures(baseline["pass_hat_k"]) == pytest.approx({"1": 0.75, "2": (1 + 1 / 2 + 1 / 6) / 3, "4": 1 / 3})
    quiet = case["variants"]["quiet"]["pass_at_k"]["reward"]
    assert quiet["4"]["value"] == pytest.approx(0.5)
    assert (quiet["4"]["count"], quiet["4"]["nan_count"]) == (2, 1)
    assert quiet["1"]["value"] == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert case["kills"]["no-pay"] == {"find": "survived", "pay": "killed", "refund": "survived"}
    assert case["kills"]["quiet"] == {"find": "survived", "pay": "survived", "refund": "survived"}
    assert {name: subset["kill_share"]["value"] for name, subset in case["subsets"].items()} == {
        "s1": 0.0,
        "s2": 0.5,
        "s3": 0.0,
    }
    shown = baseline["attempts"]["pay"]["reward"]
    assert shown == [
        {"trial_id": f"agent-pay-{n}", "value_type": "number", "value": value}
        for n, value in enumerate([1, 1, 1, 0.25])
    ]
    assert [entry["value"] for entry in case["variants"]["no-pay"]["attempts"]["pay"]["reward"]] == [
        0.25,
        None,
        0.25,
        0.25,
    ]
    assert case["subsets"]["s1"]["coverage"]["house"]["value"] == pytest.approx(1 / 3)
    tools = case["correlation"]["tools"]["kill_share"]["overall"]
    assert tools["pairs"] == 0
    assert tools["pearson"]["value"] is None
    assert tools["pearson"]["reason"]
    assert "trajectory.json" in case["subsets"]["s1"]["coverage"]["tools"]["reason"]
    house = case["correlation"]["house"]["kill_share"]["overall"]
    assert house["pairs"] == 3
    # coverage 1/3, 2/3, 1/3 against 0, 1/2, 0: a straight line.
    assert house["pearson"]["value"] == pytest.approx(1.0)


def test_the_same_figures_from_jsonl_and_from_a_second_session(lab: Lab) -> None:
    write_table(lab.path / "results.csv")
    write_experiment(lab.path)
    lab.run("experiment.yml")
    first = lab.summary()["cases"]
    again = lab.run("experiment.yml")
    assert again.parseoutcomes() == {"reused": 35, "failed": 1}
    assert lab.summary()["cases"]["shop"]["kills"] == first["shop"]["kills"]
    with (lab.path / "results.csv").open(newline="") as file, (lab.path / "results.jsonl").open("w") as lines:
        for row in csv.DictReader(file):
            number = row["reward"] if row["reward"] not in ("", "died") else "null"
            reward = "" if row["reward"] == "" else f', "reward": {number}'
            lines.write(
                f'{{"variant": "{row["variant"]}", "task": "{row["task"]}", "trial_id": "{row["trial_id"]}"{reward}}}\n'
            )
    (lab.path / "experiment.lock.yml").unlink()
    write_experiment(lab.path, name="lines", runner={**RUNNER, "read": ["results.jsonl"]})
    lab.run("experiment.yml")
    other = lab.summary("lines")["cases"]
    for variant in first["shop"]["variants"]:
        for key in ("attempts", "pass_at_k", "pass_hat_k", "verdicts"):
            assert other["shop"]["variants"][variant][key] == first["shop"]["variants"][variant][key]


def test_notes_of_the_reading_are_in_the_report(lab: Lab) -> None:
    (lab.path / "results.csv").write_text(
        "variant,task,trial_id,reward,cost\na,t,1,1,0.1\na,t,1,nan,0.2\nb,t,1,0,0.1\n"
    )
    write_experiment(lab.path, runner={**RUNNER, "baseline": "a"}, cases=[{"id": "shop"}], analysis={"resamples": 50})
    ended = lab.run("experiment.yml")
    assert ended.ret == 0
    text = " ".join(ended.stdout.str().split())
    for shown in (
        "1 row with the name of an earlier attempt of the file: counted as further attempts",
        "1 cell with NaN: counted, and never passing; leave empty what is not known",
        "1 column that nothing reads: cost",
    ):
        assert shown in text
    entries = lab.summary()["cases"]["shop"]["variants"]["baseline"]["attempts"]["t"]["reward"]
    assert [entry["value"] for entry in entries] == [1, "NaN"]


def test_a_table_that_changed_is_told_and_a_broken_one_too(lab: Lab) -> None:
    path = lab.path / "results.csv"
    write_table(path)
    write_experiment(lab.path)
    lab.run("experiment.yml")
    text = path.read_text()
    path.write_text(text.replace("0.25", "0.5"))
    ended = lab.run("experiment.yml")
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines(
        ["*experiment.lock.yml disagrees: the file results.csv changed; renew it with --metricbench-lock"]
    )
    path.write_text(text.replace("0.25", "n.a.", 1))
    ended = lab.run("experiment.yml", "--metricbench-lock")
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines(
        ["*cases?0?: results.csv:9, column 'reward': 'n.a.' is not a number, as results.csv:2 has one;*"]
    )


def test_several_cases_in_one_table(lab: Lab) -> None:
    (lab.path / "results.csv").write_text(
        "suite,model,question,correct\n"
        + "".join(
            f"{suite},{model},q{n},{int(model == 'big')}\n"
            for suite in ("x", "y")
            for model in ("big", "small")
            for n in range(3)
        )
    )
    columns = {"case": "suite", "variant": "model", "task": "question", "scores": ["correct"]}
    cases = [{"id": "x", "mutants": [{"id": "small", "description": "A smaller model."}]}, {"id": "y"}]
    runner = {**RUNNER, "columns": columns, "baseline": "big"}
    write_experiment(lab.path, runner=runner, cases=cases, analysis={"resamples": 50})
    ended = lab.run("experiment.yml")
    assert ended.parseoutcomes() == {"passed": 6, "missed": 6}
    kills = {case: found["kills"] for case, found in lab.summary()["cases"].items()}
    assert kills == {case: {"small": {f"q{n}": "killed" for n in range(3)}} for case in ("x", "y")}


DATA = Path(os.environ.get("METRICBENCH_DATA", Path(__file__).parents[3] / "shared" / "data"))
"""Data sets of others, beside the repository where somebody has them."""
TAU_BENCH = DATA / "taubench_gpt4o_airline" / "attempts.csv"
"""50 tasks with 4 attempts each: ``task_id,trial,reward``."""
TOOL_USE = DATA / "langchain_tool_use" / "outcomes.csv"
"""A row a task, a column an agent, and no names of tasks."""


@pytest.mark.skipif(not TAU_BENCH.is_file(), reason="METRICBENCH_DATA has no taubench_gpt4o_airline")
def test_the_published_figures_of_tau_bench(lab: Lab) -> None:
    """pass^k of gpt-4o on the airline domain, as its authors' repository reports them."""
    (lab.path / "results.csv").write_bytes(TAU_BENCH.read_bytes())
    columns = {"task": "task_id", "trial": "trial"}
    runner = {"kind": "recorded", "form": "table", "read": ["results.csv"], "columns": columns}
    analysis = {"pass_at_k": [1, 2, 3, 4], "resamples": 50}
    write_experiment(lab.path, runner=runner, cases=[{"id": "airline"}], analysis=analysis)
    ended = lab.run("experiment.yml")
    assert ended.ret == 0
    found = figures(lab.summary()["cases"]["airline"]["variants"]["baseline"]["pass_hat_k"])
    assert {k: round(value or 0, 3) for k, value in found.items()} == {"1": 0.42, "2": 0.273, "3": 0.22, "4": 0.2}


@pytest.mark.skipif(not TOOL_USE.is_file(), reason="METRICBENCH_DATA has no langchain_tool_use")
def test_a_published_table_with_a_column_an_agent(lab: Lab) -> None:
    (lab.path / "results.csv").write_bytes(TOOL_USE.read_bytes())
    with TOOL_USE.open(newline="") as file:
        agents, *rows = csv.reader(file)
    columns = {"variant": agents, "scores": ["correct"]}
    runner = {**RUNNER, "baseline": "claude-2.1", "columns": columns}
    write_experiment(lab.path, runner=runner, cases=[{"id": "tools"}], analysis={"resamples": 50})
    assert lab.run("experiment.yml").ret == 0
    case = lab.summary()["cases"]["tools"]
    assert len(rows) == 20
    for position, agent in enumerate(agents):
        variant = "baseline" if agent == "claude-2.1" else derive_id(agent)[0]
        solved = sum(float(row[position]) for row in rows)
        assert case["variants"][variant]["pass_at_k"]["correct"]["1"]["value"] == pytest.approx(solved / 20)
        if variant != "baseline":
            killed = sum(cell == "killed" for cell in case["kills"][variant].values())
            assert killed == sum(float(row[0]) == 1 and float(row[position]) == 0 for row in rows)
