"""``--metricbench-show plan``: what a run would do, how long it would take and what it would cost."""

from dataclasses import replace
from typing import Any

import pytest

from pytest_metricbench.store.records import attempt_from_line, attempt_to_json, seal, to_line, unsealed
from tests.plugin.plugin_lab import AGENT, TASKS, Lab
from tests.plugin.show_lab import PRICED, shown


def block(lines: list[str], label: str) -> str:
    """What stands beside a label, as one text."""
    start = next(number for number, line in enumerate(lines) if line.startswith(label))
    rest = lines[start:]
    end = next((number for number, line in enumerate(rest) if number and not line.startswith(" " * 16)), len(rest))
    return " ".join(line[16:].strip() for line in rest[:end])


def rows(lines: list[str]) -> dict[str, list[str]]:
    """The table of variants: its cells by variant."""
    start = next(number for number, line in enumerate(lines) if line.startswith("variant"))
    return {line.split()[0]: line.split()[1:] for line in lines[start + 1 :] if line}


def record_durations(lab: Lab, seconds: dict[str, float]) -> None:
    """Have the store say that attempts took so long, whatever the machine was doing beside them."""
    journal = lab.store() / "attempts.jsonl"
    records = [attempt_from_line(unsealed(line)) for line in journal.read_bytes().splitlines(keepends=True)]
    told = [replace(record, duration=seconds[record.task]) for record in records]
    journal.write_text("".join(seal(to_line(attempt_to_json(record))) + "\n" for record in told), encoding="ascii")


def test_of_an_empty_store(lab: Lab, workers: list[str]) -> None:
    lab.make()
    lines = shown(lab, "plan", *workers)
    assert block(lines, "attempts") == "18 attempts: 18 to run"
    assert block(lines, "why") == "18 not in the store"
    assert block(lines, "time") == "unknown: the store has no duration of an attempt"
    assert block(lines, "cost").startswith(
        "unknown: no attempt in the store says what it cost, as a score cost_usd or cost"
    )
    assert block(lines, "coverage") == "4 requests to measure, 0 in the store"
    assert rows(lines) == {"baseline": ["6", "0"], "no-pay": ["6", "0"], "quiet": ["6", "0"]}
    assert not any(line.startswith(("stale", "budget")) for line in lines)


def test_of_a_whole_store(lab: Lab) -> None:
    lab.make(agent=PRICED)
    lab.run("experiment.yml")
    lines = shown(lab, "plan")
    assert block(lines, "attempts") == "18 attempts: all are reused, and no attempt runs"
    assert block(lines, "time") == block(lines, "cost") == "none for attempts"
    assert block(lines, "coverage") == "0 requests to measure, 4 in the store"
    assert rows(lines) == {name: ["0", "6"] for name in ("baseline", "no-pay", "quiet")}


def test_it_says_what_a_run_then_does(lab: Lab) -> None:
    """The plan's numbers are those of the run that follows, for every kind of attempt there is."""
    lab.make(outcomes={"baseline::pay": "pu", "no-pay::find": "d"})
    lab.run("experiment.yml", "-k", "not quiet")
    lab.make(outcomes={}, case={"mutants": [{"id": "no-pay", "params": {"x": 1}}, {"id": "quiet"}]})
    lines = shown(lab, "plan")
    lab.calls()
    lab.run("experiment.yml")
    assert block(lines, "attempts") == "18 attempts: 12 to run, 1 to score again, 5 reused"
    assert len(lab.calls()) == 13  # of one the agent had left nothing that could be scored
    assert lab.summary()["counts"]["reused"] == 5
    assert block(lines, "why") == (
        "6 in the store, but what the result depends on has changed 6 not in the store "
        "1 could not be measured the last time"
    )
    assert block(lines, "stale").startswith("6 saved attempts no longer fit the experiment (changed: shop::no-pay)")
    assert rows(lines)["baseline"][:3] == ["0", "1", "5"]


def test_a_changed_verifier(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.write("judge.py", "def verify(request, output):\n    return {'reward': 1.0}\n")
    lab.make(runner={"kind": "python", "agent": "agent:run", "verifier": "judge:verify"})
    lines = shown(lab, "plan")
    assert block(lines, "attempts") == "18 attempts: 17 to score again, 1 reused"
    assert block(lines, "why") == "17 in the store, but the verifier has changed"
    assert block(lines, "time") == (
        "none for attempts; scoring again comes to that, and agents run where what they left cannot be scored"
    )
    assert rows(lines)["no-pay"] == ["0", "5", "1"]


def test_time_and_cost_from_records(lab: Lab) -> None:
    lab.make(agent=PRICED, outcomes={}, case={"tasks": [{"id": "find"}, {"id": "pay"}], "subsets": None})
    lab.run("experiment.yml", "-k", "baseline")
    record_durations(lab, {"find": 0.2, "pay": 0.001})
    lines = shown(lab, "plan", "-n4")
    said = block(lines, "time")
    assert said.startswith("about 0.2 s with 4 at a time, 0.8 s one after the other (from 4 recorded durations)"), said
    assert block(lines, "cost") == "about $2.00 (from 4 attempts that said what it cost)"
    assert rows(lines)["quiet"] == ["4", "0", "0.4", "s", "$1.00"]


def test_one_attempt_is_never_faster_than_itself(lab: Lab) -> None:
    case = {"tasks": [{"id": "find"}], "subsets": None, "mutants": [{"id": "m"}]}
    lab.make(attempts=1, outcomes={}, coverage=None, case=case)
    lab.run("experiment.yml", "-k", "baseline")
    record_durations(lab, {"find": 0.3})
    assert block(shown(lab, "plan", "-n8"), "time").startswith("about 0.3 s with 8 at a time")


def test_of_a_selection(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml", "-k", "baseline")
    lines = shown(lab, "plan", "-k", "quiet and pay")
    assert block(lines, "attempts") == "2 attempts of 18 of the experiment: 2 to run"
    lines = shown(lab, "plan", "--metricbench-shard=1/3")
    assert block(lines, "attempts").startswith("6 attempts of 18 of the experiment: ")


def test_fresh_and_retry_died(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    assert block(shown(lab, "plan", "--metricbench-fresh"), "attempts") == "18 attempts: 18 to run"
    lines = shown(lab, "plan", "--metricbench-retry-died")
    assert block(lines, "attempts") == "18 attempts: 1 to run, 17 reused"
    assert block(lines, "why") == "1 died, and died attempts are to run again"
    assert (lab.store() / "summary.json").exists()


def test_files_that_are_gone(lab: Lab) -> None:
    agent = AGENT.replace("    letters =", "    (request.workspace / 'trace.txt').write_text('x')\n    letters =")
    lab.make(agent=agent, outcomes={})
    lab.run("experiment.yml")
    next(lab.store().glob("attempts/shop/baseline/find/*/trace.txt")).unlink()
    lines = shown(lab, "plan")
    assert block(lines, "why") == "1 in the store, but files that it left are gone or changed"
    assert block(lines, "coverage") == "4 requests to measure, 0 in the store"


BUDGETS: list[tuple[dict[str, Any], str]] = [
    ({"attempts": 7}, "7 attempts a run: 2 runs"),
    ({"attempts": 12}, "12 attempts a run: enough for all of it"),
    ({"cost": 1.0}, "$1.00 a run: 3 runs"),
    ({"attempts": 7, "seconds": 3600, "cost": 100}, "7 attempts, 1 h, $100.00 a run: 2 runs"),
    ({"seconds": 0.00001}, "1e-05 s a run: "),
]


@pytest.mark.parametrize(("budget", "said"), BUDGETS)
def test_budgets(lab: Lab, budget: dict[str, float], said: str) -> None:
    lab.make(agent=PRICED, outcomes={}, budget=budget)
    lab.run("experiment.yml", "-k", "baseline", "--metricbench-fresh")
    lab.make(agent=PRICED, outcomes={})
    lab.run("experiment.yml", "-k", "baseline")
    lab.make(agent=PRICED, outcomes={}, budget=budget)
    assert block(shown(lab, "plan"), "budget").startswith(said)


def test_a_budget_of_cost_that_nobody_can_tell(lab: Lab) -> None:
    lab.make(budget={"cost": 3})
    assert block(shown(lab, "plan"), "budget") == "cost 3.00 a run: at least 1 run"


def test_of_many_variants_those_with_something_to_do(lab: Lab) -> None:
    mutants = [{"id": f"m{number}"} for number in range(60)]
    tasks = TASKS[:1]
    lab.make(attempts=1, coverage=None, outcomes={}, case={"mutants": mutants, "tasks": tasks, "subsets": None})
    lab.run("experiment.yml", "-k", "not m59")
    lines = shown(lab, "plan")
    assert rows(lines)["m59"][:2] == ["1", "0"]
    assert lines[-1] == ".. and 21 more variants"


def test_narrow_terminals(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lab.make(agent=PRICED)
    lab.run("experiment.yml", "-k", "baseline")
    assert all(len(line) <= 40 for line in shown(lab, "plan"))


def test_recorded_results_are_planned_like_any(lab: Lab) -> None:
    """What is read, not run, is in no store before it is read."""
    lab.write("results.csv", "variant,task,reward\nbase,a,1\nbase,b,0\nweak,a,0\nweak,b,0\n")
    runner = {"kind": "recorded", "form": "table", "read": ["results.csv"], "baseline": "base"}
    lab.make(runner=runner, attempts=None, coverage=None, case={"tasks": None, "mutants": None, "subsets": None})
    lines = shown(lab, "plan")
    assert block(lines, "attempts") == "4 attempts: 4 to run"
    lab.run("experiment.yml")
    assert block(shown(lab, "plan"), "attempts") == "4 attempts: all are reused, and no attempt runs"
