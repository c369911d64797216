"""Sessions that are compared with an earlier one, and what they write for CI."""

import json
import re
import shutil

import pytest
import scipy.special  # noqa: F401  (a session in this process forgets it, and it cannot be imported twice)

from tests.plugin.plugin_lab import Lab

WORSE = {"baseline::refund": "pm", "no-pay::refund": "md", "quiet::refund": "pm"}
"""``no-pay`` is killed by nothing any more."""
GATES = ["no new survivors", "significant baseline pass@1 drop <= 0"]


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def main(lab: Lab) -> Lab:
    """The store of an earlier run, kept aside; the experiment has changed since."""
    lab.make()
    assert lab.run("experiment.yml").ret == 0
    shutil.copytree(lab.store(), lab.path / "main" / "shop")
    lab.make(outcomes=WORSE, gates=GATES, agent=agent_of(lab) + "\n# changed\n")
    lab.calls()
    return lab


def agent_of(lab: Lab) -> str:
    return (lab.path / "agent.py").read_text()


def test_against_the_store_of_an_earlier_run(main: Lab, workers: list[str]) -> None:
    result = main.run("experiment.yml", "--metricbench-compare", "main", *workers, apart="-n2" in workers)
    assert result.ret == 1, "a gate does not hold"
    result.stdout.fnmatch_lines(
        ["compared with   main", "*new survivors   no-pay: killed before by pay; p = *", "*FAIL  no new survivors*"]
    )
    comparison = main.summary()["comparison"]
    assert comparison["source"] == "main"
    assert [change["mutant"] for change in comparison["cases"]["shop"]["new_survivors"]] == ["no-pay"]
    assert [gate["holds"] for gate in main.summary()["gates"]] == [False, True]


def test_against_itself(lab: Lab) -> None:
    """The store that is written may be the one that is compared with: it is read before."""
    lab.make(gates=GATES)
    first = lab.run("experiment.yml")
    assert first.ret == 0
    assert [gate["holds"] for gate in lab.summary()["gates"]] == [None, None]
    result = lab.run("experiment.yml", "--metricbench-compare", ".metricbench/shop/summary.json")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["compared with   .metricbench/shop/summary.json (18 of 18 attempts are the same)"])
    assert [gate["holds"] for gate in lab.summary()["gates"]] == [True, True]
    fresh = lab.run("experiment.yml", "--metricbench-compare", ".metricbench", "--metricbench-fresh")
    assert fresh.ret == 0
    fresh.stdout.fnmatch_lines(["compared with   .metricbench", "*nothing changed in what both runs have"])


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("gone", "{root}/gone: there is no such file or folder"),
        ("experiment.yml", "{root}/experiment.yml: the summary is no JSON: Expecting value: line 1 "),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_told_before_anything_runs(lab: Lab, named: str, said: str) -> None:
    lab.make()
    result = lab.run("experiment.yml", "--metricbench-compare", named)
    assert result.ret == 4
    assert f"ERROR: metricbench: --metricbench-compare: {said.format(root=lab.path)}" in result.stderr.str()
    assert lab.calls() == []


def test_another_kill_rule_is_told_before_anything_runs(main: Lab) -> None:
    main.make(analysis={"kill": {"rule": "fisher", "alpha": 0.2}})
    result = main.run("experiment.yml", "--metricbench-compare", "main")
    assert result.ret == 4
    assert "its kill rule is flip, this run's is fisher with alpha 0.2" in result.stderr.str()
    assert main.calls() == []


def test_markdown_code_quality_and_annotations(main: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    step = main.path / "step.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = main.run(
        "experiment.yml",
        *("--metricbench-compare", "main/shop", "--metricbench-markdown", "out.md"),
        *("--metricbench-codequality", "gl.json"),
    )
    assert result.ret == 1
    text = (main.path / "out.md").read_text()
    assert text == step.read_text()
    assert "❌ **1 of 2 gates does not hold, 1 new survivor**" in text
    entries = json.loads((main.path / "gl.json").read_text())
    assert [entry["check_name"] for entry in entries] == ["metricbench-gate", *["metricbench-survivor"] * 2]
    commands = [line for line in result.outlines if line.startswith("::")]
    lines = (main.path / "experiment.yml").read_text().splitlines()
    assert len(commands) == 3
    for command, at in zip(commands, ["no new survivors", "no-pay", "quiet"], strict=True):
        found = re.match(r"::(error|warning) file=experiment\.yml,line=(\d+),title=", command)
        assert found is not None
        assert at in lines[int(found[2]) - 1]


def test_a_part_leaves_gates_against_an_earlier_run_open(main: Lab) -> None:
    result = main.run("experiment.yml", "-k", "baseline", "--metricbench-compare", "main")
    gates = main.summary(partial=True)["gates"]
    assert [gate["holds"] for gate in gates] == [None, True]
    assert "attempts are outside this part now: no-pay" in gates[0]["reason"]
    assert result.ret == 0


def test_a_primary_score_that_turns_out_another_is_told_and_the_answer_is_kept(main: Lab) -> None:
    """Which score counts is known only when there are some, where the experiment does not say."""
    verdict = '{"reward": 1.0 if output == "p" else 0.25, "tone": "dry"}'
    main.make(agent=agent_of(main).replace(verdict, '{"quality": 1.0 if output == "p" else 0.25}'))
    result = main.run("experiment.yml", "--metricbench-compare", "main")
    assert result.ret == 1
    (said,) = [line for line in result.outlines if line.startswith("metricbench: --metricbench-compare: ")]
    assert "'reward'" in said
    assert "'quality'" in said
    assert main.summary()["complete"] is True
    assert main.summary()["settings"]["primary"] == "quality"
