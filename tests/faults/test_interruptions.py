"""Sessions that are stopped from outside: what was finished is kept, what ran is ended, the same command goes on."""

import os
import signal
from typing import Any

import pytest

from tests.faults.session_lab import Lab, Running, alive, no_fault, wait_until

pytestmark = pytest.mark.slow

AGENT = """
import json, os, time
from pathlib import Path

request = json.loads(Path("request.json").read_text())
if request["task"]["id"] == "stuck" and not Path(__file__).with_name("mended").exists():
    Path("pid").write_text(str(os.getpid()))
    time.sleep(90)
Path("response.json").write_text('{"scores": {"reward": 1}}')
"""
TASKS = ["t1", "t2", "stuck"]
COVERAGE = [{"id": "share", "kind": "command", "command": ["{python}", "cover.py"]}]
COVER = "import pathlib\n\npathlib.Path('response.json').write_text('{\"value\": 0.5}')\n"
RESUME = ("experiment.yml", "-v")


def make(lab: Lab) -> None:
    lab.write("cover.py", COVER)
    lab.make(AGENT, command=True, tasks=TASKS, mutants=["m1", "m2"], coverage=COVERAGE)


def agents(lab: Lab) -> list[int]:
    return [int(text) for path in lab.store.glob("**/pid") if (text := path.read_text())]


def until_stuck(lab: Lab, *arguments: str, workers: int) -> Running:
    """A session whose workers are all held up by an agent that does not end, after at least two attempts."""
    make(lab)
    session = lab.start("experiment.yml", *arguments)
    session.await_that(lambda: len(agents(lab)) == workers and len(lab.journal()) >= 2, "the agents are stuck")
    return session


def resumed(lab: Lab, finished: dict[str, dict[str, Any]]) -> None:
    """The same command again runs what is missing, and nothing else."""
    lab.write("mended", "")
    result = lab.run(*RESUME)
    assert result.ret == 0, result.stdout.str()
    kept = lab.attempts()
    assert finished.items() <= kept.items()
    assert len(kept) == len(lab.journal()) == 9
    assert lab.counts() == {"declared": 9, "passed": 9, "reused": len(finished)}
    assert lab.requests()["share[pool]"]["value"] == 0.5


@pytest.mark.parametrize(
    ("number", "workers"),
    [
        pytest.param(signal.SIGINT, 0, id="sigint-0"),
        pytest.param(signal.SIGINT, 2, id="sigint-2"),
        pytest.param(signal.SIGTERM, 0, id="sigterm-0"),
        pytest.param(signal.SIGTERM, 2, id="sigterm-2", marks=pytest.mark.benchmark),
    ],
)
def test_an_orderly_stop(lab: Lab, workers: int, number: signal.Signals) -> None:
    session = until_stuck(lab, f"-n{workers}", workers=max(1, workers))
    finished = lab.attempts()
    if number == signal.SIGINT:  # a terminal sends it to the whole group
        os.killpg(session.pid, number)
    else:
        os.kill(session.pid, number)
    ended = session.end()
    assert ended.status == 2, ended
    assert "INTERNALERROR" not in ended.out, ended
    assert not any(alive(pid) for pid in agents(lab))
    assert "= metricbench: lab =" in ended.out
    assert lab.attempts() == finished
    assert lab.counts(partial=True) == {"declared": 9, "passed": len(finished), "missing": 9 - len(finished)}
    assert lab.requests() == {}
    assert not (lab.store / "summary.json").exists()
    resumed(lab, finished)


def test_a_killed_controller(lab: Lab) -> None:
    session = until_stuck(lab, "-n0", workers=1)
    finished = lab.attempts()
    assert session.signal(signal.SIGKILL).status == -signal.SIGKILL
    for pid in agents(lab):
        os.kill(pid, signal.SIGKILL)  # nobody is left to do it, see below for workers
    resumed(lab, finished)


def test_a_killed_controller_leaves_no_worker_and_no_agent(lab: Lab) -> None:
    session = until_stuck(lab, "-n2", workers=2)
    finished = lab.attempts()
    assert session.signal(signal.SIGKILL).status == -signal.SIGKILL
    lab.write("mended", "")
    second = lab.run("experiment.yml")  # at once: the store is free although the workers still end
    assert second.ret == 0
    no_fault(second.stdout.str())
    assert finished.items() <= lab.attempts().items()
    assert lab.counts() == {"declared": 9, "passed": 9, "reused": len(finished)}
    stuck = agents(lab)
    assert len(stuck) == 2
    wait_until(lambda: not any(alive(pid) for pid in stuck), "the agents are gone", seconds=20)


@pytest.mark.benchmark
def test_several_stops_in_a_row_cost_no_finished_attempt(lab: Lab) -> None:
    """Killed after every few attempts, the sessions together make each attempt once."""
    slow = "import time\n\ndef act(request):\n    time.sleep(0.03)\n    return 1.0\n"
    lab.make(slow, tasks=["t1", "t2", "t3"], mutants=["m1", "m2"], attempts=4)
    done = 0
    for _ in range(3):
        session = lab.start("experiment.yml")
        session.await_that(lambda: len(lab.journal()) >= done + 5, "five more attempts")  # noqa: B023
        session.signal(signal.SIGKILL)
        done = len(lab.journal())
    result = lab.run("experiment.yml")
    assert result.ret == 0
    assert len(lab.attempts()) == len(lab.journal()) == 36
    assert lab.counts() == {"declared": 36, "passed": 36, "reused": done}
