"""A run that is killed goes on where it was: every attempt once, and the answer of a run that nobody disturbed."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.durability.durability_lab import Lab, no_fault

pytestmark = pytest.mark.slow

ATTEMPTS = 24
REQUESTS = 4
END = ATTEMPTS + REQUESTS


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The answer of a run that nobody disturbed."""
    lab = Lab(tmp_path_factory.mktemp("undisturbed"))
    lab.make()
    ended = lab.run("-n2")
    assert ended.status == 0, ended
    assert lab.count() == ATTEMPTS
    return lab.answer()


def written(lab: Lab) -> int:
    return lab.count() + lab.count("coverage.jsonl")


def kill_at(lab: Lab, point: int, workers: int, kill: Callable[[int], object]) -> None:
    """Start a run and kill it when so many records are there."""
    lab.make()
    lab.write("slow", "0.01")
    process = lab.start(f"-n{workers}")
    lab.kill_when(process, lambda: written(lab) >= point, kill)


def works_in(folder: Path) -> list[str]:
    """The processes that have their place in a folder or below it; dead ones have none."""
    places = {}
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):  # ended, or somebody else's
            places[link.parent.name] = link.readlink()
    return [pid for pid, place in places.items() if place.is_relative_to(folder)]


def settle(lab: Lab) -> None:
    """Wait until no worker and no agent of a killed run is left that could still note an execution."""
    deadline = time.monotonic() + 60
    while left := works_in(lab.path):
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.02)


def goes_on(lab: Lab, undisturbed: Any, workers: int) -> None:
    """The same command ends with one record for each attempt, and no finished one ran twice."""
    settle(lab)
    finished, set_aside = lab.attempts(), lab.left("interrupted")
    ended = lab.run(f"-n{workers}")
    assert ended.status == 0, ended
    no_fault(ended.out)
    assert lab.count() == len(lab.attempts()) == ATTEMPTS
    assert finished.items() <= lab.attempts().items()
    counted = {record["trial_id"] for record in lab.lines()}
    executed = lab.noted()
    assert set(executed.values()) == {1}
    in_flight = set(executed) - counted
    assert counted <= set(executed)
    assert in_flight <= lab.left("interrupted")
    assert lab.left("attempts") == counted
    if lab.left("interrupted") > set_aside:  # a run before, killed as well, may have done so and not said it
        assert "in flight when a run ended" in ended.out
        assert str(lab.store / "interrupted") in ended.out.replace("\n", "")
    assert lab.answer() == undisturbed


@pytest.mark.parametrize(
    ("point", "workers"),
    [(0, 0), (8, 0), (ATTEMPTS - 1, 0), (END - 1, 0), (12, 2)],
)
def test_a_killed_controller(lab: Lab, undisturbed: Any, point: int, workers: int) -> None:
    kill_at(lab, point, workers, lambda pid: os.kill(pid, signal.SIGKILL))
    goes_on(lab, undisturbed, workers)


@pytest.mark.benchmark
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("hundredth", range(50))
def test_a_controller_killed_at_a_hundred_points(lab: Lab, undisturbed: Any, hundredth: int, workers: int) -> None:
    began = time.monotonic()
    wait = 0.3 + hundredth * (0.03 if workers == 0 else 0.04)  # by time, so that it falls between records too
    lab.make()
    lab.write("slow", "0.01")
    process = lab.start(f"-n{workers}")
    lab.kill_when(process, lambda: time.monotonic() - began > wait, lambda pid: os.kill(pid, signal.SIGKILL))
    goes_on(lab, undisturbed, workers)


def test_all_processes_killed_at_once(lab: Lab, undisturbed: Any) -> None:
    kill_at(lab, 9, 2, lambda pid: os.killpg(pid, signal.SIGKILL))
    goes_on(lab, undisturbed, 2)


@pytest.mark.parametrize(
    ("number", "workers"),
    [pytest.param(signal.SIGINT, 2, marks=pytest.mark.benchmark), (signal.SIGTERM, 0)],
    ids=["ctrl-c", "sigterm"],
)
def test_an_orderly_stop(lab: Lab, undisturbed: Any, number: signal.Signals, workers: int) -> None:
    kill_at(lab, 9, workers, lambda pid: os.kill(pid, number))
    goes_on(lab, undisturbed, workers)


@pytest.mark.benchmark
def test_killed_again_and_again(lab: Lab, undisturbed: Any) -> None:
    """Whatever the number of stops, finished work is never paid for twice."""
    lab.make()
    lab.write("slow", "0.01")
    for workers in (0, 2, 0):
        before = written(lab)

        def has_gone_on(before: int = before) -> bool:
            return written(lab) >= before + 4

        process = lab.start(f"-n{workers}")
        lab.kill_when(process, has_gone_on, lambda pid: os.kill(pid, signal.SIGKILL))
        settle(lab)
    goes_on(lab, undisturbed, 0)


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def test_a_killed_worker(lab: Lab, undisturbed: Any) -> None:
    """The run ends with the other one, says what is missing, and the next run makes it."""
    lab.make()
    lab.write("slow", "0.05")
    process = lab.start("-n2")
    lab.kill_when(process, lambda: written(lab) >= 6, lambda pid: os.kill(children(pid)[-1], signal.SIGKILL))
    ended = lab.end(process)
    assert ended.status == 1, ended
    no_fault(ended.out)
    crashed = [record for record in lab.lines() if record["outcome"] == "unmeasured"]
    assert [record["error"]["type"] for record in crashed] == ["WorkerCrashed"]
    measured = {record["trial_id"] for record in lab.lines()} - {crashed[0]["trial_id"]}
    settle(lab)
    ended = lab.run("-n2")
    assert ended.status == 0, ended
    assert {record["outcome"] for record in lab.attempts().values()} == {"scored", "died"}
    assert set(lab.noted().values()) == {1}
    assert measured <= set(lab.noted())
    assert ATTEMPTS <= lab.noted().total() <= ATTEMPTS + 1  # its agent may have been started and killed
    assert lab.answer() == undisturbed
