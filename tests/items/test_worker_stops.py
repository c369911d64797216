"""Workers of pytest-xdist and what they are told late: that the run stops, what it cost, that an item runs again."""

import os
import signal

import pytest

from tests.faults.session_lab import Lab, no_fault

pytestmark = pytest.mark.slow

TASKS = ["t1", "t2", "t3", "t4"]
WAITING = """
import time
from pathlib import Path

HERE = Path(__file__).parent

def act(request):
    with (HERE / "calls.txt").open("a") as log:
        log.write(f"{request.variant.id}::{request.task.id}\\n")
    if request.experiment == "signalled":
        until(HERE / "sent", 60)
        until(HERE / ".metricbench" / "signalled" / "stopped", 4)
    elif request.variant.id != "m1":
        until(HERE / ".metricbench" / "failing" / "stopped", 20)
    return 1.0

def until(path, seconds):
    end = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)

def check(request, output):
    if request.variant.id == "m1":
        raise ValueError("the judge failed")
    return output
"""


def calls(lab: Lab) -> list[str]:
    path = lab.path / "calls.txt"
    return sorted(path.read_text().split()) if path.exists() else []


def test_the_first_failure_stops_inside_the_items_of_other_workers(sessions: Lab) -> None:
    """And those that they were sent already: pytest-xdist lets them run."""
    lab = sessions
    runner = {"verifier": "agent:check"}
    lab.make(WAITING, name="failing", tasks=TASKS, mutants=["m1", "m2"], items="variant", runner=runner)
    ended = lab.run_apart("experiment.yml", "-n2", "-x", "-rs")
    assert ended.status == 2, ended
    no_fault(ended.out)
    assert calls(lab) == ["baseline::t1", "m1::t1"]
    assert "1 failed, 2 skipped" in ended.last_line
    assert "3 of 4 attempts not started: stopping after 1 failures" in ended.out
    assert "4 of 4 attempts not started: stopping after 1 failures" in ended.out
    assert not list(lab.path.glob(".metricbench/failing/stopped"))


@pytest.mark.benchmark
def test_a_signal_to_the_controller_alone_stops_the_workers(sessions: Lab) -> None:
    """What they made after it would be paid for and lost, until pytest-xdist kills them after ten seconds."""
    lab = sessions
    lab.make(WAITING, name="signalled", tasks=TASKS, mutants=["m1"], items="variant")
    session = lab.start("experiment.yml", "-n2")
    session.await_that(lambda: len(calls(lab)) == 2, "two attempts are under way")
    os.kill(session.pid, signal.SIGTERM)
    lab.write("sent", "")
    ended = session.end()
    assert ended.status == 2, ended
    no_fault(ended.out)
    assert calls(lab) == ["baseline::t1", "m1::t1"]
    assert not list(lab.path.glob(".metricbench/signalled/stopped"))


PRICED = """
import time

def act(request):
    time.sleep(0.05)
    return {"reward": 1.0, "cost": 1.0}
"""


@pytest.mark.benchmark
def test_what_a_group_costs_is_heeded_before_it_ends(sessions: Lab) -> None:
    lab = sessions
    outputs = {"reward": "continuous", "cost": "measurement"}
    score = {"primary": "reward", "outputs": outputs}
    lab.make(PRICED, tasks=TASKS, attempts=5, items="variant", budget={"cost": 2.0}, score=score)
    ended = lab.run_apart("experiment.yml", "-n1")
    assert ended.status == 6, ended
    assert 2 <= len(lab.journal()) < 20  # the first group alone has 20


FLICKERING = """
from pathlib import Path

def act(request):
    with Path(__file__).with_name("calls.txt").open("a") as log:
        log.write(f"{request.variant.id}::{request.task.id}\\n")
    return 1.0

def check(request, output):
    tried = Path(__file__).with_name(f"{request.variant.id}-{request.task.id}")
    if request.task.id == "t2" and not tried.exists():
        tried.touch()
        raise ValueError("the judge failed")
    return 1.0
"""


@pytest.mark.parametrize("unit", ["variant", pytest.param("attempt", marks=pytest.mark.benchmark)])
def test_an_item_that_runs_again_in_a_worker_makes_only_what_it_lacks(sessions: Lab, unit: str) -> None:
    """A worker reads the store before its first item; what it made since is not paid for again."""
    lab = sessions
    pytest.importorskip("pytest_rerunfailures")
    lab.make(FLICKERING, tasks=TASKS, items=unit, runner={"verifier": "agent:check"})
    ended = lab.run_apart("experiment.yml", "-n1", "--reruns=1", beside=["rerunfailures"])
    assert ended.status == 0, ended
    assert len(calls(lab)) == 8  # what the agent left is scored again
    assert len(lab.journal()) == 10
    assert lab.counts()["passed"] == 8
    assert {record["outcome"] for record in lab.attempts().values()} == {"scored"}


DYING = """
import os
from pathlib import Path

def pytest_runtest_teardown(item):
    if item.nodeid.endswith("m1::t2[1]"):
        os._exit(3)
"""


@pytest.mark.benchmark
def test_a_worker_that_dies_behind_an_attempt_takes_it_not_along(sessions: Lab) -> None:
    """It was measured, and the controller knows it; of one that was reused, the store does."""
    lab = sessions
    lab.write("conftest.py", DYING)
    lab.make("def act(request):\n    return 1.0\n", tasks=TASKS)
    for reused in (0, 8):
        ended = lab.run_apart("experiment.yml", "-n1")
        assert ended.status == 1, ended
        no_fault(ended.out)
        assert {record["outcome"] for record in lab.attempts().values()} == {"scored"}
        assert len(lab.journal()) == 8
        assert lab.counts().get("reused", 0) == reused
