"""``budget``: a run that stops cleanly when it has spent what it may, and the next one that goes on."""

import json
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.plugin_lab import AGENT, USUAL, Lab, words

BUDGET_REACHED = 6
PRICED = AGENT.replace('"tone": "dry"}', '"tone": "dry", "cost_usd": 0.25}')


def said(result: pytest.RunResult) -> str:
    """The line on the budget, one space between words."""
    lines = [line for line in result.outlines if line.startswith("metricbench: the budget of ")]
    assert len(lines) == 1, result.outlines
    return lines[0].removeprefix("metricbench: ")


def left(limit: str, attempts: str) -> str:
    return (
        f"the budget of {limit} was reached; {attempts} left for the next run: run the same command again to go on "
        "(exit status 6 where nothing failed)"
    )


# ---------------------------------------------------------------- attempts


def test_no_more_attempts_than_the_budget_has(lab: Lab, workers: list[str]) -> None:
    """And JUnit says that the others were skipped, and why."""
    lab.make(budget={"attempts": 7})
    result = lab.run("experiment.yml", "--junit-xml=junit.xml", *workers)
    assert result.ret == BUDGET_REACHED
    assert len(lab.calls()) == len(lab.journal()) == 7
    assert said(result) == left("7 attempts", "11 attempts are")
    outcomes = result.parseoutcomes()
    assert outcomes["left"] == 11
    assert sum(outcomes.values()) == 18  # coverage is left too
    assert not (lab.store() / "budget").exists()
    suite = ET.parse(lab.path / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.attrib["skipped"], suite.attrib["failures"]) == ("11", "0")
    skipped = [case for case in suite.iter("testcase") if case.find("skipped") is not None]
    reasons = {mark.get("message") for mark in suite.iter("skipped")}
    assert reasons == {"the budget of 7 attempts was reached: left for the next run"}
    assert {
        entry.attrib["value"]
        for case in skipped
        for entry in case.iter("property")
        if entry.attrib["name"] == "outcome"
    } == {"left"}


def test_run_after_run_until_everything_is_there(lab: Lab, workers: list[str]) -> None:
    lab.make(budget={"attempts": 10})
    plain = Lab(lab.pytester)
    statuses, made = [], []
    for _ in range(3):
        statuses.append(lab.run("experiment.yml", *workers).ret)
        made.append(len(lab.calls()))
    assert statuses == [BUDGET_REACHED, 0, 0]
    assert made == [10, 8, 0]
    assert len({(line["variant"], line["task"], line["attempt"]) for line in lab.journal()}) == 18
    whole = plain.summary()
    assert whole["complete"]
    assert whole["part"] is None
    assert whole["cases"]["shop"]["mutants"]["undetected"] == ["quiet"]


def test_a_budget_that_is_just_enough_is_not_reached(lab: Lab) -> None:
    lab.make(budget={"attempts": 18})
    result = lab.run("experiment.yml")
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 16, "missed": 5, "died": 1}
    assert "the budget of" not in result.stdout.str()


def test_what_is_reused_takes_nothing(lab: Lab, workers: list[str]) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.make(budget={"attempts": 1}, case={"baseline": {"params": {"x": 1}}})
    lab.calls()
    result = lab.run("experiment.yml", *workers)
    assert result.ret == BUDGET_REACHED
    assert [name.partition("::")[0] for name in lab.calls()] == ["baseline"]
    assert result.parseoutcomes()["reused"] >= 12
    assert said(result) == left("1 attempt", "5 attempts are")


def test_what_is_scored_again_takes_from_it(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.write("judge.py", "def verify(request, output):\n    return {'reward': 1.0}\n")
    lab.make(budget={"attempts": 4}, runner={"kind": "python", "agent": "agent:run", "verifier": "judge:verify"})
    lab.calls()
    assert lab.run("experiment.yml").ret == BUDGET_REACHED
    assert lab.calls() == []  # but for what could not be scored again: the one that died is reused
    again = [line for line in lab.journal() if line["supersedes"] is not None]
    assert len(again) == 4


def test_what_failed_makes_the_status_1(lab: Lab) -> None:
    lab.make(budget={"attempts": 3}, outcomes={"baseline::find": "u"})
    result = lab.run("experiment.yml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert said(result).startswith("the budget of 3 attempts was reached; 15 attempts are left")


def test_retries_belong_to_their_attempt(lab: Lab) -> None:
    lab.make(budget={"attempts": 2}, retries=3, outcomes={"baseline::find": "u"})
    lab.run("experiment.yml")
    assert lab.calls() == ["baseline::find[1]"] * 4 + ["baseline::find[2]"] * 4


def test_a_part_that_fits_is_whole(lab: Lab) -> None:
    lab.make(budget={"attempts": 6})
    result = lab.run("experiment.yml", "-k", "baseline")
    assert result.ret == 0
    assert "left" not in result.parseoutcomes()


# ---------------------------------------------------------------- what is left


def test_what_is_left_is_neither_failed_nor_missing(lab: Lab) -> None:
    lab.make(budget={"attempts": 7})
    result = lab.run("experiment.yml", "-v")
    assert len(words(result)) == 7
    assert len([line for line in result.outlines if " LEFT (the budget of 7 " in line]) == 11
    summary = lab.summary(partial=True)
    assert (summary["counts"]["missing"], summary["counts"]["unmeasured"], summary["counts"]["outside"]) == (0, 0, 11)
    assert summary["problems"] == []
    assert summary["part"] == "18 attempts; the budget of 7 attempts was reached before 11 of them"
    assert not (lab.store() / "summary.json").exists()


def test_gates_that_need_what_is_left_are_open(lab: Lab) -> None:
    lab.make(budget={"attempts": 7}, gates=["mutation_score >= 0.99", "baseline pass@1 >= 0.5"])
    result = lab.run("experiment.yml")
    assert result.ret == BUDGET_REACHED
    assert [gate["holds"] for gate in lab.summary(partial=True)["gates"]] == [None, True]


def test_a_gate_that_does_not_hold_makes_the_status_1(lab: Lab) -> None:
    lab.make(budget={"attempts": 7}, gates=["baseline pass@1 >= 0.99"])
    assert lab.run("experiment.yml").ret == pytest.ExitCode.TESTS_FAILED


def test_a_whole_summary_is_not_overwritten(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    before = (lab.store() / "summary.json").read_bytes()
    lab.make(budget={"attempts": 2}, seed=5)
    lab.run("experiment.yml")
    assert (lab.store() / "summary.json").read_bytes() == before


def test_coverage_is_left_once_the_budget_is_spent(lab: Lab) -> None:
    agent = AGENT + "\n\ndef measured(request):\n    with open(HERE / 'measured.txt', 'a') as file:\n"
    agent += "        file.write(request.subset + ' ')\n    return 0.5\n"
    coverage = [{"id": "goals", "kind": "python", "measure": "agent:measured"}]
    lab.make(budget={"attempts": 7}, agent=agent, coverage=coverage)
    lab.run("experiment.yml")
    assert not (lab.path / "measured.txt").exists()
    lab.make(agent=agent, coverage=coverage)
    assert lab.run("experiment.yml").ret == 0
    assert sorted((lab.path / "measured.txt").read_text().split()) == ["pool", "s1", "s2", "s3"]


def test_coverage_that_the_store_has_is_taken_from_there(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.make(budget={"attempts": 1}, attempts=3)  # the baseline has more to do, so its coverage is not known
    assert lab.run("experiment.yml").ret == BUDGET_REACHED
    lab.make(budget={"attempts": 1}, case={"mutants": [{"id": "new"}]})
    result = lab.run("experiment.yml")
    assert result.ret == BUDGET_REACHED
    assert lab.summary(partial=True)["cases"]["shop"]["pool"]["coverage"]["goals"]["value"] == 1.0


def test_last_failed_does_not_take_what_is_left_for_failed(lab: Lab) -> None:
    lab.make(budget={"attempts": 3}, outcomes={"baseline::find": "pu"})
    lab.run("experiment.yml")
    listed = lab.run("experiment.yml", "--lf", "--collect-only", "-q")
    assert [line for line in listed.outlines if "::" in line] == ["experiment.yml::shop::baseline::find[2]"]


# ---------------------------------------------------------------- seconds


def test_seconds(lab: Lab, workers: list[str]) -> None:
    tasks = [{"id": name, "params": {"seconds": 0.3}} for name in ("find", "pay", "refund")]
    lab.make(budget={"seconds": 1}, case={"tasks": tasks})
    begun = time.monotonic()
    result = lab.run("experiment.yml", *workers)
    assert result.ret == BUDGET_REACHED
    assert 1 <= len(lab.calls()) < 18
    assert said(result).startswith("the budget of 1 second was reached; ")
    assert time.monotonic() - begun < 30


def test_what_is_in_flight_is_finished(lab: Lab) -> None:
    lab.make(budget={"seconds": 0.2}, case={"tasks": [{"id": "find", "params": {"seconds": 0.6}}], "subsets": None})
    assert lab.run("experiment.yml").ret == BUDGET_REACHED
    (line,) = lab.journal()
    assert line["outcome"] == "scored"
    assert line["duration"] > 0.6


# ---------------------------------------------------------------- cost


def test_cost(lab: Lab, workers: list[str]) -> None:
    lab.make(budget={"cost": 1.5}, agent=PRICED, outcomes={})
    result = lab.run("experiment.yml", *workers)
    assert result.ret == BUDGET_REACHED
    spent = [line["scores"]["cost_usd"] for line in lab.journal()]
    in_flight = 2 if workers == ["-n2"] else 0
    assert 6 <= len(spent) <= 6 + in_flight
    assert said(result) == left("cost 1.5", f"{18 - len(spent)} attempts are")


def test_an_attempt_that_died_is_taken_to_cost_what_others_do(lab: Lab) -> None:
    lab.make(budget={"cost": 1.0}, agent=PRICED, outcomes={"baseline::find": "pd", "baseline::pay": "d"})
    assert lab.run("experiment.yml").ret == BUDGET_REACHED
    assert [line["outcome"] for line in lab.journal()] == ["scored", "died", "died", "died"]


def test_named_cost_scores_are_added_up(lab: Lab) -> None:
    agent = AGENT.replace('"tone": "dry"}', '"agent.usd": 0.2, "judge.usd": 0.3, "cost_usd": 99}')
    keys: dict[str, Any] = {"agent": agent, "outcomes": {}, "score": {"primary": "reward"}}
    lab.make(budget={"cost": 1.0, "cost_scores": ["agent.usd", "judge.usd"]}, **keys)
    lab.run("experiment.yml")
    assert len(lab.journal()) == 2


def test_a_budget_of_cost_where_nothing_says_what_it_costs(lab: Lab) -> None:
    lab.make(budget={"cost": 0.01})
    result = lab.run("experiment.yml")
    assert result.ret == 0
    note = "note: no attempt says what it cost (a score cost_usd or cost), so the budget of cost 0.01 limited nothing"
    assert [line for line in result.outlines if "says what it cost" in line] == [note]


def test_what_is_scored_again_is_not_paid_for_twice(lab: Lab) -> None:
    lab.make(agent=PRICED, outcomes={})
    lab.run("experiment.yml")
    lab.write("judge.py", "def verify(request, output):\n    return {'reward': 1.0, 'cost_usd': 0.25}\n")
    runner = {"kind": "python", "agent": "agent:run", "verifier": "judge:verify"}
    lab.make(budget={"cost": 0.5}, agent=PRICED, runner=runner)
    assert lab.run("experiment.yml").ret == 0


# ---------------------------------------------------------------- with the rest


def test_it_is_part_of_no_fingerprint(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.calls()
    lab.make(budget={"attempts": 1, "seconds": 0.001, "cost": 0.001})
    assert lab.run("experiment.yml").ret == 0
    assert lab.calls() == []


def test_each_experiment_has_its_own(lab: Lab) -> None:
    lab.make("a/experiment.yml", module="agent_a", name="one", budget={"attempts": 2})
    lab.make("b/experiment.yml", module="agent_b", name="two")
    result = lab.run("a/experiment.yml", "b/experiment.yml")
    assert result.ret == BUDGET_REACHED
    count = {line["supersedes"] for line in _journal(lab.path / "b/.metricbench/two")}
    assert count == {None}
    assert len(_journal(lab.path / "a/.metricbench/one")) == 2
    assert len(_journal(lab.path / "b/.metricbench/two")) == 18


def _journal(store: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (store / "attempts.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("option", ["--metricbench-cached-only", "--metricbench-cached-attempts"])
def test_where_nothing_runs_nothing_is_left(lab: Lab, option: str) -> None:
    lab.make(budget={"attempts": 1})
    lab.run("experiment.yml")
    result = lab.run("experiment.yml", option)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "left" not in result.parseoutcomes()


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode",
    [
        "worksteal",
        pytest.param("loadscope", marks=pytest.mark.benchmark),
        pytest.param("loadfile", marks=pytest.mark.benchmark),
    ],
)
def test_under_every_mode_of_distribution(lab: Lab, mode: str) -> None:
    lab.make(budget={"attempts": 5})
    assert lab.run("experiment.yml", "-n2", f"--dist={mode}").ret == BUDGET_REACHED
    assert len(lab.calls()) == 5


def test_a_file_that_a_killed_run_left_is_replaced(lab: Lab) -> None:
    lab.make(budget={"attempts": 3})
    lab.run("experiment.yml")
    (lab.store() / "budget").write_text('{"attempts": 3, "left": 0, "seconds": null, "until": null, "over": "x"}')
    lab.calls()
    lab.run("experiment.yml")
    assert len(lab.calls()) == 3


def test_a_link_in_its_place_is_not_followed(lab: Lab) -> None:
    lab.make(budget={"attempts": 3})
    lab.run("experiment.yml")
    victim = lab.write("victim.txt", "dear")
    (lab.store() / "budget").symlink_to(victim)
    assert lab.run("experiment.yml").ret != 0
    assert victim.read_text() == "dear"


def test_an_agent_that_takes_the_file_away(lab: Lab) -> None:
    agent = AGENT.replace(
        "    letters =", "    (HERE / '.metricbench/shop/budget').unlink(missing_ok=True)\n    letters ="
    )
    lab.make(budget={"attempts": 3}, agent=agent, attempts=1)
    result = lab.run("experiment.yml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(lab.calls()) == 1
    result.stdout.fnmatch_lines(["not measured: *budget: the budget of this run cannot be read (*"])


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"attempts": 0}, "budget.attempts: is the number 0; at least 1 is expected"),
        ({"attempts": 1.5}, "budget.attempts: is the number 1.5; a whole number is expected"),
        ({"attempts": True}, "budget.attempts: is the boolean true; a whole number is expected"),
        ({"seconds": 0}, "budget.seconds: is the number 0; a number above 0 is expected"),
        ({"seconds": "1h"}, "budget.seconds: is the text '1h'; a number is expected"),
        ({"cost": -1}, "budget.cost: is the number -1; a number above 0 is expected"),
        ({"cost": float("nan")}, "budget.cost: .nan is no finite number; write a finite one"),
        ({"costs": 1}, "budget.costs: is an unknown key; did you mean 'cost'?"),
        ({"cost_scores": "cost"}, "budget.cost_scores: is the text 'cost'; a list is expected"),
        (5, "budget: is the number 5; a mapping is expected"),
    ],
)
def test_bad_input(lab: Lab, budget: dict[str, Any] | int, message: str) -> None:
    lab.make(budget=budget)
    result = lab.run("experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str(), result.stderr.str()
    assert lab.calls() == []


def test_usual_outcomes_are_untouched(lab: Lab) -> None:
    """What a budget does not stop is exactly what a run without one makes."""
    lab.make(budget={"attempts": 100, "seconds": 3600, "cost": 1000}, outcomes=USUAL)
    limited = lab.run("experiment.yml").parseoutcomes()
    assert limited == {"passed": 16, "missed": 5, "died": 1}
