"""The watch over a fork's CPU time: it ends what goes on, and never what has used less than it may."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_metricbench.suite.project import Limits, Project
from pytest_metricbench.suite.waiting import Child, End, Limit
from tests.suite_runner.suite_lab import SuiteLab

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads, the fork uses none


def spin(seconds: float) -> None:
    """Use so many seconds of this process's CPU time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Callable[[Callable[[], None], list[float]], tuple[End, float]]]:
    """Forks a function, with limits of CPU time for the parts whose files it makes; gives its end and what it used."""
    ours, theirs = socket.socketpair()

    def run(function: Callable[[], None], limits: list[float]) -> tuple[End, float]:
        pid = os.fork()
        if not pid:
            try:
                os.setsid()
                function()
            finally:
                os._exit(0)
        child = Child(pid)
        parts = [Limit(60, cpu, str(tmp_path / str(number))) for number, cpu in enumerate(limits)]
        try:
            end = child.wait(parts, ours, [], 1)
        finally:
            _, used = child.end()
        return end, used

    yield run
    ours.close()
    theirs.close()


def test_what_goes_on_is_ended_once_it_has_used_its_time(
    watched: Callable[[Callable[[], None], list[float]], tuple[End, float]],
) -> None:
    end, used = watched(lambda: spin(30), [0.1])
    assert end == "cpu"
    assert 0.09 < used < 10  # rusage counts in ticks


def test_what_ends_within_its_time_is_let(
    watched: Callable[[Callable[[], None], list[float]], tuple[End, float]],
) -> None:
    end, used = watched(lambda: spin(0.25), [1.0])
    assert end == "ended"
    assert used > 0.2


def test_what_waits_uses_nothing(watched: Callable[[Callable[[], None], list[float]], tuple[End, float]]) -> None:
    assert watched(lambda: time.sleep(0.4), [0.1])[0] == "ended"


def test_each_part_has_a_limit_of_its_own(
    watched: Callable[[Callable[[], None], list[float]], tuple[End, float]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spare = Child._spare

    def noted(child: Child, limit: Limit, used: float) -> float:
        Path(f"{limit.done}.begun").touch()
        return spare(child, limit, used)

    def parts() -> None:
        for number in range(3):
            spin(0.15)
            (tmp_path / str(number)).touch()
            while not (tmp_path / f"{number + 1}.begun").exists():  # what is used before counts for the part before
                time.sleep(0.01)

    monkeypatch.setattr(Child, "_spare", noted)
    assert watched(parts, [0.3, 0.3, 0.3, 0.3])[0] == "ended"
    assert watched(lambda: spin(0.4), [0.1, 60.0])[0] == "ended"  # the files are there: only the last limit is left


def test_a_mutant_has_slowdown_times_what_its_baseline_took_and_a_tenth_of_a_second(suite: SuiteLab) -> None:
    suite.shop()
    project: Project = suite.runner(slowdown=10).project
    limits = project.limits(0.02, 0.01)
    assert (limits.seconds, limits.cpu) == pytest.approx((10.2, 0.2))
    assert project.limits(100, 100) == Limits(60, 60)
