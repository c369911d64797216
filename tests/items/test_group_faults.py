"""Items of several attempts whose workers die, whose process is killed, or whose messages cannot be read."""

import pytest

from pytest_metricbench import load_experiment
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.crashes import crash_to_wire
from pytest_metricbench.running.wire import from_wire, group_from_wire
from pytest_metricbench.store.reading import read_store
from tests.faults.session_lab import Lab, no_fault

pytestmark = pytest.mark.slow

AT_ONCE = "import pytest_metricbench.pytest_side.groups\n\npytest_metricbench.pytest_side.groups.SEND_EVERY = 0.0\n"
"""In a conftest.py: workers send every attempt as it ends, and not once in a second."""
CRASHING = """
import os
from pathlib import Path

def act(request):
    crashes = {("m1", "t3"), ("m2", "t1")}
    if (request.variant.id, request.task.id) in crashes and not Path(__file__).with_name("mended").exists():
        os._exit(3)
    return 1.0
"""
TASKS = ["t1", "t2", "t3", "t4"]


def test_a_crash_loses_what_was_not_sent_and_no_more(sessions: Lab) -> None:
    lab = sessions
    lab.write("conftest.py", AT_ONCE)
    lab.make(CRASHING, tasks=TASKS, mutants=["m1", "m2"], items="variant")
    ended = lab.run_apart("experiment.yml", "-n2")
    assert ended.status == 1, ended
    no_fault(ended.out)
    assert "2 failed, 1 solved (variants)" in ended.last_line
    kept = lab.attempts()
    assert [kept[f"m1::{task}[1]"]["outcome"] for task in TASKS] == ["scored", "scored", "unmeasured", "unmeasured"]
    assert [kept[f"m2::{task}[1]"]["error"]["type"] for task in TASKS] == ["WorkerCrashed"] * 4
    assert lab.counts() == {"declared": 12, "passed": 6, "unmeasured": 6}

    lab.write("mended", "")
    lab.path.joinpath("conftest.py").unlink()
    assert lab.run("experiment.yml").ret == 0
    assert lab.attempts()["m1::t2[1]"] == kept["m1::t2[1]"]
    assert lab.counts() == {"declared": 12, "passed": 12, "reused": 6}


def test_a_crash_takes_nothing_from_the_store(sessions: Lab) -> None:
    """Of an item's attempts those that the store has are not the ones that crashed."""
    lab = sessions
    lab.write("mended", "")
    lab.make(CRASHING, tasks=TASKS)
    assert lab.run("experiment.yml::c::m1::t1").ret == 0
    lab.make(CRASHING, tasks=TASKS, items="variant")
    bench = Bench(load_experiment(lab.path / "experiment.yml"), lab.store)
    (keys,) = [keys for name, keys in bench.names.groups.items() if name == ("c", "m1")]
    bench.stored = read_store(lab.store).attempts
    message = group_from_wire(crash_to_wire(bench, keys, "worker crashed"))
    assert [(part.task, part.status, len(part.records)) for part in message.attempts] == [
        ("t1", "passed", 0),
        *((task, "unmeasured", 1) for task in TASKS[1:]),
    ]
    lab.make(CRASHING, tasks=TASKS)
    bench = Bench(load_experiment(lab.path / "experiment.yml"), lab.store)
    bench.stored = read_store(lab.store).attempts
    for task, status, count in (("t1", "passed", 0), ("t2", "unmeasured", 1)):
        alone = from_wire(crash_to_wire(bench, [("c", "m1", task, 1)], "worker crashed"))
        assert (alone.status, len(alone.records)) == (status, count)


STUCK = """
import time
from pathlib import Path

def act(request):
    if request.task.id == "t3" and not Path(__file__).with_name("mended").exists():
        time.sleep(90)
    return 1.0
"""


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.benchmark)])
def test_a_kill_in_the_middle_loses_nothing_that_was_done(sessions: Lab, workers: int) -> None:
    lab = sessions
    lab.write("conftest.py", AT_ONCE)
    lab.make(STUCK, tasks=TASKS, items="variant")
    session = lab.start("experiment.yml", f"-n{workers}")
    session.await_that(lambda: len(lab.journal()) == 2, "two attempts are kept")
    session.kill()
    assert set(lab.attempts()) == {"baseline::t1[1]", "baseline::t2[1]"}
    lab.write("mended", "")
    assert lab.run("experiment.yml").ret == 0
    assert lab.counts() == {"declared": 8, "passed": 8, "reused": 2}


# ---------------------------------------------------------------- what cannot be read

AGENT = "def act(request):\n    return 1.0\n"
SPOIL = """
import json
import pytest

def changed(change):
    def spoil(wire):
        message = json.loads(wire)
        change(message, message["attempts"][0])
        return json.dumps(message)
    return spoil

LEFT = {"task": "t", "slot": 9, "reached": "1 attempt"}
SPOILED = {
    "torn": lambda wire: wire[:40],
    "empty": lambda wire: "{}",
    "number": lambda wire: 5,
    "mapping": lambda wire: json.loads(wire),
    "none": lambda wire: None,
    "text": lambda wire: "task solved",
    "list": lambda wire: "[]",
    "one-attempt": lambda wire: json.dumps({"status": "passed", "records": []}),
    "other-slot": changed(lambda message, part: part.update(slot=7)),
    "other-task": changed(lambda message, part: part.update(task="good")),
    "other-record": changed(lambda message, part: part["records"][0].update(attempt=2)),
    "twice": changed(lambda message, part: message["attempts"].append(part)),
    "left-too": changed(lambda message, part: message["left"].append({**LEFT, "task": "left-too", "slot": 1})),
    "left-other": changed(lambda message, part: message["left"].append(LEFT)),
    "nothing-new": changed(lambda message, part: part.update(records=[])),
    "wrong-status": changed(lambda message, part: part.update(status="splendid")),
    "wrong-word": changed(lambda message, part: message.update(word="splendid")),
    "hostile": lambda wire: wire.replace('"hostile"', '"../../hostile"'),
}

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and item.name in SPOILED:
        report.metricbench = SPOILED[item.name](report.metricbench)
    return report
"""
SPOILED = (
    *("torn", "empty", "number", "mapping", "none", "text", "list", "one-attempt", "other-slot", "other-task"),
    *("other-record", "twice", "left-too", "left-other", "nothing-new", "wrong-status", "wrong-word", "hostile"),
)


def test_what_cannot_be_read_is_missing_whole_and_the_rest_is_kept(sessions: Lab) -> None:
    lab = sessions
    lab.write("conftest.py", SPOIL)
    lab.make(AGENT, tasks=["good", *SPOILED], mutants=[], attempts=2, items="task")
    ended = lab.run_apart("experiment.yml", "-n2")
    assert ended.status == 1, ended
    no_fault(ended.out)
    assert set(lab.attempts()) == {"baseline::good[1]", "baseline::good[2]"}
    assert lab.counts(partial=True) == {"declared": 38, "passed": 2, "missing": 36}
    said = [line for line in ended.out.splitlines() if "what arrived cannot be read (" in line]
    assert len(said) == len(SPOILED) - 3  # of three, nothing came or no message
    assert any("it is about c::baseline::twice[1] 2 times" in line for line in said)


# ---------------------------------------------------------------- beside other plugins

HANGING = """
import time

def act(request):
    time.sleep(60 if request.task.id == "t2" and request.variant.id == "m1" else 0)
    return 1.0
"""


def test_a_timeout_of_the_item_ends_it(sessions: Lab) -> None:
    """The clock of pytest-timeout runs once an item: what follows would run without one."""
    lab = sessions
    lab.make(HANGING, tasks=TASKS, items="variant")
    result = lab.run("experiment.yml", "--timeout=1", "--timeout-method=signal", beside=["timeout"])
    assert result.ret == 1
    text = result.stdout.str()
    assert "3 of 4 attempts not measured" in text
    assert "t2[1] unmeasured (setup): Failed: the attempt was ended by Failed: Timeout" in text
    assert "t3[1] not started: the item was ended before it" in text
    assert lab.counts(partial=True) == {"declared": 8, "passed": 5, "unmeasured": 1, "missing": 2}


HANGING_JUDGE = """
import time
from pathlib import Path

def act(request):
    return 1.0

def check(request, output):
    tried = Path(__file__).with_name("tried")
    with tried.open("a") as log:
        log.write(request.task.id)
    if tried.read_text() == "t1":
        time.sleep(60)
    return 1.0
"""


def test_a_timeout_in_a_verifier_ends_the_item_too(sessions: Lab) -> None:
    """Neither a retry nor the next attempt may follow without a clock; what the agent left is scored next time."""
    lab = sessions
    lab.make(HANGING_JUDGE, tasks=TASKS, mutants=[], items="variant", retries=2, runner={"verifier": "agent:check"})
    result = lab.run("experiment.yml", "--timeout=1", "--timeout-method=signal", beside=["timeout"])
    assert result.ret == 1
    assert (lab.path / "tried").read_text() == "t1"
    assert "t2[1] not started: the item was ended before it" in result.stdout.str()
    assert [(line["error"]["type"], line["error"]["phase"]) for line in lab.journal()] == [("Failed", "verifier")]


FLICKERING = """
from pathlib import Path

def act(request):
    return 1.0

def check(request, output):
    tries = Path(__file__).with_name(f"{request.variant.id}-{request.task.id}")
    with tries.open("a") as log:
        log.write("x")
    if request.task.id == "t2" and len(tries.read_text()) == 1:
        raise ValueError("the judge failed")
    return 1.0
"""


def test_an_item_that_runs_again_makes_only_what_it_lacks(sessions: Lab) -> None:
    lab = sessions
    lab.make(FLICKERING, tasks=TASKS, items="variant", runner={"verifier": "agent:check"})
    result = lab.run("experiment.yml", "--reruns=1", beside=["rerunfailures"])
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["experiment.yml R.R. *", "*2 rerun*"])
    assert lab.counts()["passed"] == 8
    assert len(lab.path.joinpath("m1-t1").read_text()) == 1
    assert len(lab.journal()) == 10
