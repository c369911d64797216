"""Whole sessions whose attempts are made by threads: what the items, the store and the answer say of them."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

from tests.executors.executors_lab import Lab, comparable

KNOWN_ANSWERS = Path(__file__).parents[1] / "known_answers"


def in_file_order(lab: Lab) -> list[str]:
    tasks = ("find", "pay", "refund")
    return [f"{variant}::{task}[{slot}]" for variant in ("baseline", "m1", "m2") for task in tasks for slot in (1, 2)]


# ---------------------------------------------------------------- the same answer


def test_the_answer_is_that_of_a_local_run(lab: Lab) -> None:
    """The experiment with known answers: deaths, missing judgments, coverage, kills, correlation."""
    for name in ("agent.py", "outcomes.json"):
        shutil.copy(KNOWN_ANSWERS / name, lab.path)
    text = (KNOWN_ANSWERS / "experiment.yml").read_text().replace("resamples: 199", "resamples: 19")
    assert "verifier: 'agent:verify'}" in text
    text = text.replace("verifier: 'agent:verify'}", "verifier: 'agent:verify', thread_safe: true}")
    lab.write("experiment.yml", text)
    store, answers, journals = lab.path / ".metricbench" / "known-answers", [], []
    for executor in ("local", "threads:8"):
        result = lab.run("-q", executor=executor)
        assert result.ret == 1  # judgments are missing
        answers.append(comparable(json.loads((store / "summary.json").read_text())))
        journals.append(sorted(_of_a_run(line) for line in (store / "attempts.jsonl").read_text().splitlines()))
        shutil.rmtree(store)
    assert answers[0] == answers[1]
    assert journals[0] == journals[1]
    assert len(journals[0]) == 9 * 12 * 4


def _of_a_run(line: str) -> str:
    """A line of the journal without what differs between two runs."""
    record = json.loads(line)
    return json.dumps({key: record[key] for key in record if key not in ("trial_id", "started", "duration", "check")})


def test_what_pytest_shows_is_that_of_a_local_run(lab: Lab) -> None:
    lab.make({"baseline::find[2]": "u", "m1::pay": "m", "m2::refund": "d", "m2::find[1]": "e"}, executor="threads:3")
    made = lab.run("-v", "-rA", "--junit-xml=threads.xml")
    shutil.rmtree(lab.store)
    local = lab.run("-v", "-rA", "--junit-xml=local.xml", executor="local")
    for result in (made, local):
        result.assert_outcomes(passed=12, failed=1)
        result.stdout.fnmatch_lines(["*baseline::find[[]2] FAILED*", "*m2::find[[]1] DIED*", "*the judge failed*"])
    assert _cases(lab.path / "threads.xml") == _cases(lab.path / "local.xml")


def _cases(path: Path) -> list[Any]:
    return [
        (case.get("classname"), case.get("name"), [child.tag for child in case])
        for case in ElementTree.parse(path).iter("testcase")
    ]


# ---------------------------------------------------------------- how they are made


def test_attempts_are_made_at_a_time(lab: Lab) -> None:
    """Eighteen that all wait until the last has begun: one after the other they would never end."""
    lab.make({"*": "t"})
    lab.write("together", "18")
    result = lab.run(executor="threads:18")
    assert result.ret == 0, result.stdout.str()
    assert Counter(lab.calls()) == Counter(in_file_order(lab))


def test_no_more_at_a_time_than_asked_for(lab: Lab) -> None:
    lab.make({"baseline::find": "t", "baseline::pay": "t", "baseline::refund[1]": "t"})
    lab.write("together", "5")
    result = lab.run(executor="threads:5")
    assert result.ret == 0, result.stdout.str()
    begun, ended = lab.calls(), lab.noted("ended.txt")
    assert set(begun[:5]) == {*in_file_order(lab)[:5]}
    assert len(ended) == 18


def test_attempts_begin_in_the_order_of_the_run(lab: Lab) -> None:
    lab.make({"*": "p"})
    assert lab.run(executor="threads:1").ret == 0
    assert lab.calls() == in_file_order(lab)


def test_what_ends_is_kept_at_once_whatever_its_turn(lab: Lab) -> None:
    """The first attempt ends only when all others are in the journal."""
    lab.make({"baseline::find[1]": "j"})
    lab.write("journaled", "17")
    result = lab.run()
    assert result.ret == 0, result.stdout.str()
    last = lab.journal()[-1]
    assert (last["variant"], last["task"], last["attempt"]) == ("baseline", "find", 1)


def test_a_group_of_attempts_is_made_at_a_time(lab: Lab) -> None:
    lab.make({"*": "t"}, items="task")
    lab.write("together", "18")
    result = lab.run("-v", executor="threads:18")
    assert result.ret == 0, result.stdout.str()
    assert len(lab.journal()) == 18
    assert "9 " in result.stdout.str().splitlines()[-1]


def test_a_group_that_stops_says_what_had_ended(lab: Lab) -> None:
    """The second attempt ends the run when all the others have ended."""
    lab.make({"baseline::find[1]": "j", "baseline::find[2]": "u"}, items="variant")
    lab.write("journaled", "17")
    result = lab.run("-x", "-rf")
    assert result.ret == 1
    assert "1 of 6 attempts not measured" in result.stdout.str()
    assert "not started" not in result.stdout.str()


def test_a_group_that_stops_waits_for_no_other(lab: Lab) -> None:
    lab.make({"baseline::find[1]": "u", "baseline::find[2]": "w"}, items="task")
    result = lab.run("-x", executor="threads:2")
    assert "[2] not waited for: the run stops at the failure before it" in result.stdout.str()


SKIPPING = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if "m1" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason="costly"))
        elif "m2::find" in item.nodeid:
            item.add_marker(pytest.mark.xfail(run=False, reason="costly"))
        elif "m2::pay" in item.nodeid:
            item.add_marker(pytest.mark.skipif("True", reason="costly"))
        else:
            item.add_marker(pytest.mark.skipif(False, reason="never"))
"""


def test_what_a_mark_skips_is_not_made_beforehand(lab: Lab) -> None:
    lab.make()
    lab.write("conftest.py", SKIPPING)
    result = lab.run()
    result.assert_outcomes(passed=8, skipped=8, xfailed=2)
    made = [name for name in in_file_order(lab) if name.startswith(("baseline", "m2::refund"))]
    assert sorted(lab.calls()) == sorted(made)


def test_retries_are_made_where_the_attempt_is(lab: Lab) -> None:
    lab.make({"m1::pay[1]": "u"}, retries=2)
    assert lab.run().ret == 1
    lines = [line for line in lab.journal() if (line["variant"], line["task"], line["attempt"]) == ("m1", "pay", 1)]
    assert [line["outcome"] for line in lines] == ["unmeasured"] * 3
    assert [line["supersedes"] for line in lines[1:]] == [line["trial_id"] for line in lines[:-1]]


def test_a_report_tells_how_long_its_attempt_took(lab: Lab) -> None:
    """And not how long its item waited, which is nothing for all but the first of them."""
    lab.make({"*": "t"})
    lab.write("together", "18")
    lab.write(
        "conftest.py",
        "def pytest_runtest_logreport(report):\n"
        "    if report.when == 'call':\n"
        "        with open('told.txt', 'a') as file:\n"
        "            print(report.nodeid.partition('::c::')[2], report.duration, file=file)\n",
    )
    assert lab.run(executor="threads:18").ret == 0
    took = {f"{line['variant']}::{line['task']}[{line['attempt']}]": line["duration"] for line in lab.journal()}
    told = dict(line.split() for line in lab.noted("told.txt"))
    assert {name: float(seconds) for name, seconds in told.items()} == took


# ---------------------------------------------------------------- what is not made


def test_deselected_attempts_are_never_made(lab: Lab) -> None:
    lab.make()
    assert lab.run("-k", "pay and not m2").ret == 0
    assert sorted(lab.calls()) == ["baseline::pay[1]", "baseline::pay[2]", "m1::pay[1]", "m1::pay[2]"]


def test_what_the_store_has_is_not_made_again(lab: Lab) -> None:
    lab.make()
    lab.run("-k", "find")
    lab.calls()
    assert lab.run().parseoutcomes() == {"passed": 12, "reused": 6}
    assert len(lab.calls()) == 12
    assert lab.run().parseoutcomes() == {"reused": 18}
    assert lab.calls() == []
    assert lab.run("--metricbench-cached-only").parseoutcomes() == {"reused": 18}


def test_a_session_that_runs_no_item_makes_no_attempt(lab: Lab) -> None:
    lab.make()
    for option in ("--collect-only", "--setup-only", "--metricbench-show=plan"):
        lab.run(option)
    assert lab.calls() == []


def test_the_first_failure_ends_a_run_that_is_to_stop_there(lab: Lab) -> None:
    """What was not begun never is, and what waits is ended: it would wait a minute, and be told as died."""
    lab.make({"baseline::find[1]": "u", "*": "w"})
    result = lab.run("-x")
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    assert set(lab.calls()) <= set(in_file_order(lab)[:5])
    assert [line["outcome"] for line in lab.journal()] == ["unmeasured"]
    assert lab.summary("summary.partial.json")["counts"]["missing"] == 17


def test_a_budget_is_kept_by_all_threads_together(lab: Lab) -> None:
    lab.make({"*": "p"}, budget={"attempts": 5})
    result = lab.run()
    assert result.ret == 6, result.stdout.str()
    assert len(lab.calls()) == 5
    assert len(lab.journal()) == 5
    assert lab.run("-q").ret == 6
    assert len(lab.journal()) == 10


def test_attempts_in_flight_when_the_budget_is_spent_are_finished(lab: Lab) -> None:
    lab.make({"*": "t"}, budget={"attempts": 4})
    lab.write("together", "4")
    assert lab.run().ret == 6
    assert [line["outcome"] for line in lab.journal()] == ["scored"] * 4


# ---------------------------------------------------------------- beside others


def test_an_executor_for_one_experiment_of_two(lab: Lab) -> None:
    """The other has its attempts made by its items, in the same session."""
    lab.make({"*": "t"}, executor={"kind": "threads", "workers": 18})
    lab.write("together", "18")
    other = yaml.safe_load((lab.path / "experiment.yml").read_text())
    del other["executor"]
    other["name"], other["runner"] = "other", {"kind": "python", "agent": "other:run"}
    lab.write("other.yml", yaml.safe_dump(other))
    lab.write("other.py", "def run(request):\n    return 1")
    result = lab.run("other.yml", executor=None)
    assert result.ret == 0, result.stdout.str()
    result.assert_outcomes(passed=36)
    assert len(lab.calls()) == 18
    result.stdout.fnmatch_lines(["*shop: 18 attempts, executor: threads, 18 at a time, store*"])
    result.stdout.fnmatch_lines(["*other: 18 attempts, store*"])
