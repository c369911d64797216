"""Attempts on a Helix server that several threads wait for: one connection, one list of jobs."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pytest_metricbench.contracts import Outcome
from pytest_metricbench.process_groups import STOPPING, StoppedError
from pytest_metricbench.runners.helix.runner import HelixRunner
from tests.helix.helix_lab import Ask, Make
from tests.helix.helix_server import HelixServer

TOGETHER = "while [ $(ls {folder} | wc -l) -lt 6 ]; do touch {folder}/$$; sleep 0.02; done; "
SCORES = 'echo \'{"scores": {"reward": 1}}\' > response.json'


def run_all(runner: HelixRunner, ask: Ask, number: int) -> list[Outcome]:
    requests = [ask(slot=slot) for slot in range(1, number + 1)]
    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(lambda request: runner.run(request, request.workspace), requests))


def test_jobs_run_at_a_time_and_each_attempt_gets_its_own(
    make: Make, ask: Ask, server: HelixServer, tmp_path: Path
) -> None:
    """Six jobs that all wait until the last has begun, of eight attempts with room for six."""
    folder = tmp_path / "together"
    folder.mkdir()
    runner = make(TOGETHER.format(folder=folder) + SCORES, max_in_flight=6)
    outcomes = run_all(runner, ask, 8)
    assert [outcome.kind for outcome in outcomes] == ["scored"] * 8
    assert len({outcome.trial_name for outcome in outcomes}) == 8
    assert server.busiest == 6
    assert len(server.deleted) == 8


def test_one_that_is_refused_is_told_and_no_other(make: Make, ask: Ask, server: HelixServer) -> None:
    """Whoever comes upon it first: it is submitted for each of those who wait for room."""
    runner = make("exit 3", max_in_flight=1)
    assert [outcome.kind for outcome in run_all(runner, ask, 5)] == ["died"] * 5
    assert server.busiest == 1


def test_who_waits_heeds_that_the_run_ends(make: Make, ask: Ask, server: HelixServer) -> None:
    """The jobs would run for five minutes; they are cancelled on the server."""
    runner = make("sleep 300", timeout=600, max_in_flight=2)
    stop = threading.Event()
    answers: list[Outcome | StoppedError] = []

    def one(slot: int) -> None:
        STOPPING.set(stop)
        request = ask(slot=slot)
        try:
            answers.append(runner.run(request, request.workspace))
        except StoppedError as error:
            answers.append(error)

    threads = [threading.Thread(target=one, args=(slot,)) for slot in (1, 2, 3)]
    for thread in threads:
        thread.start()
    server.wait_until(lambda: sum(job.status == "active" for job in list(server.jobs.values())) == 2, 20)
    stop.set()
    for thread in threads:
        thread.join(20)
    assert [type(answer) for answer in answers] == [StoppedError] * 3
    until(lambda: not any(job.status == "active" for job in list(server.jobs.values())))


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
