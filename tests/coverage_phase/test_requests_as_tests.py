"""Coverage requests are tests of their own: in the terminal, in JUnit, in the counts and in the exit status."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from tests.faults.session_lab import Lab, no_fault, words

AGENT = "def act(request):\n    return 1.0 if request.variant.id == 'baseline' else 0.0\n"
COVER = """
def share(request):
    return len(request.tasks) / 3

def fails(request):
    return {"value": 2} if request.subset == "s2" else {"value": None, "reason": "not applicable"}
"""
TASKS = ["t1", "t2", "t3"]
SUBSETS = [{"id": "s1", "tasks": ["t1"]}, {"id": "s2", "tasks": ["t1", "t2"]}]
SHARE = {"id": "share", "kind": "python", "measure": "cover:share"}
FAILS = {"id": "fails", "kind": "python", "measure": "cover:fails"}


def make(lab: Lab, *systems: dict[str, Any]) -> None:
    lab.write("cover.py", COVER)
    lab.make(AGENT, tasks=TASKS, subsets=SUBSETS, coverage=list(systems))


def test_requests_that_succeed(lab: Lab) -> None:
    make(lab, SHARE)
    ended = lab.run_apart("experiment.yml", "-v", "--junit-xml=junit.xml")
    assert ended.status == 0, ended
    no_fault(ended.out)
    assert ended.last_line.startswith("6 passed, 3 missed in "), ended
    shown = words(ended.out)
    assert list(shown)[6:] == ["coverage::share[s1]", "coverage::share[s2]", "coverage::share[pool]"]
    assert list(shown.values())[6:] == ["PASSED"] * 3

    suite = ElementTree.parse(lab.path / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("9", "0", "0")
    requests = {
        case.get("name"): case for case in suite.iter("testcase") if case.get("classname", "").endswith(".coverage")
    }
    assert set(requests) == {"share[s1]", "share[s2]", "share[pool]"}
    assert {case.get("classname") for case in requests.values()} == {"experiment.yml.c.coverage"}
    properties = {p.get("name"): p.get("value") for p in requests["share[s2]"].iter("property")}
    assert properties == {"outcome": "measured", "value": str(2 / 3)}


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])
def test_requests_that_fail_and_one_that_has_a_reason(lab: Lab, workers: list[str]) -> None:
    make(lab, FAILS, SHARE)
    ended = lab.run_apart("experiment.yml", "-v", "--junit-xml=junit.xml", *workers)
    assert ended.status == 1, ended
    no_fault(ended.out)
    assert ended.last_line.startswith("1 failed, 8 passed, 3 missed in "), ended
    assert words(ended.out)["coverage::fails[s2]"] == "FAILED"
    assert words(ended.out)["coverage::fails[s1]"] == "PASSED"  # null with its reason is a result
    assert "coverage c fails s2: the function's answer: value is" in ended.out

    suite = ElementTree.parse(lab.path / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("12", "1", "0")
    failed = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failed == ["fails[s2]"]
    nulls = next(case for case in suite.iter("testcase") if case.get("name") == "fails[s1]")
    assert {p.get("name"): p.get("value") for p in nulls.iter("property")} == {
        "outcome": "measured",
        "reason": "not applicable",
    }
    subsets = lab.summary()["cases"]["c"]["subsets"]
    assert subsets["s1"]["coverage"]["fails"]["reason"] == "not applicable"
    assert subsets["s1"]["coverage"]["share"]["value"] == 1 / 3  # one system's failure is not another's
    assert lab.summary()["complete"] is False


def test_selected_attempts_do_not_select_requests(lab: Lab) -> None:
    make(lab, SHARE, FAILS)
    lab.run("experiment.yml")
    result = lab.run("experiment.yml", "-v", "-k", "m1 and t3", "--metricbench-coverage=share")
    assert words(result.stdout.str()) == {
        "m1::t3[1]": "REUSED",
        "coverage::share[s1]": "REUSED",
        "coverage::share[s2]": "REUSED",
        "coverage::share[pool]": "REUSED",
        "coverage::fails[s1]": "REUSED",
        "coverage::fails[pool]": "REUSED",
    }


def test_only_requests_whose_baseline_is_there(lab: Lab) -> None:
    make(lab, SHARE)
    result = lab.run("experiment.yml", "-v", "-k", "t1")
    assert words(result.stdout.str()) == {
        "baseline::t1[1]": "PASSED",
        "m1::t1[1]": "MISSED",
        "coverage::share[s1]": "PASSED",
    }
    assert result.ret == 0
    absent = lab.summary(partial=True)["cases"]["c"]["subsets"]["s2"]["coverage"]["share"]
    assert absent["value"] is None
    assert "the baseline of task t2" in absent["reason"]


def test_baselines_that_died_or_that_nobody_measured(lab: Lab) -> None:
    """A died attempt counts as an attempt, and its evidence too; a task without any makes the score null."""
    lab.write(
        "cover.py",
        "def share(request):\n    return {'value': 1.0, 'reason': None} if all(request.evidence.values()) else 0.0\n",
    )
    agent = """
    from pathlib import Path

    def act(request):
        (request.workspace / "trace.txt").write_text(request.task.id)
        if request.task.id == "t1":
            raise RuntimeError("out of cheese")
        return "no score" if request.task.id == "t3" else 1.0
    """
    lab.make(
        "\n".join(line[4:] for line in agent.splitlines()),
        tasks=TASKS,
        attempts=2,
        mutants=[],
        subsets=[*SUBSETS, {"id": "s3", "tasks": ["t3"]}, {"id": "s4", "tasks": ["t2", "t3"]}],
        coverage=[SHARE],
    )
    result = lab.run("experiment.yml", "-v")
    assert result.ret == 1  # t3 is unmeasured
    requests = lab.requests()
    assert requests["share[s1]"]["value"] == requests["share[s2]"]["value"] == 1.0
    for subset in ("s3", "s4", "pool"):
        record = requests[f"share[{subset}]"]
        assert (record["outcome"], record["value"]) == ("measured", None)
        assert record["reason"] == "task t3 has no scored or died baseline attempt"
        assert words(result.stdout.str())[f"coverage::share[{subset}]"] == "PASSED"
        assert (lab.store / "coverage" / "c" / "share" / subset / "receipt.json").is_file()
