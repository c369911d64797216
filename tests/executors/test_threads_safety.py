"""What lies beneath attempts that are made at a time: it gives the same as for one, and heeds that a run ends."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from pytest_metricbench import process_groups
from pytest_metricbench.bases import Runner
from pytest_metricbench.budget import Allowance, Budget
from pytest_metricbench.deadlines import DeadlineExceededError, call_within
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.executor_settings import ThreadsSettings
from pytest_metricbench.executors.base import ExecutorError
from pytest_metricbench.executors.threads import ThreadsExecutor
from pytest_metricbench.process_groups import STOPPING, StoppedError
from pytest_metricbench.processes import run_process
from pytest_metricbench.runners import BUILTIN
from pytest_metricbench.runners.recorded import RecordedCase
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.bench import Bench
from tests.executors.executors_lab import lives, wait_until

THREADS = 16
Begin: TypeAlias = Callable[[Callable[[], Any]], tuple[list[Any], threading.Event]]


def together(number: int, call: Callable[[int], Any]) -> list[Any]:
    """What a call gives in so many threads that all begin at once."""
    barrier = threading.Barrier(number)

    def one(index: int) -> Any:
        barrier.wait(20)
        return call(index)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(one, range(number)))


def make_bench(folder: Path, runner: dict[str, Any], tasks: int = 8, attempts: int = 4, **keys: Any) -> Bench:
    case = {"id": "c", "inputs": ["*.sh"], "tasks": [{"id": f"t{number}"} for number in range(tasks)]}
    content = {"metricbench": 1, "name": "x", "attempts": attempts, "runner": runner, "cases": [case], **keys}
    (folder / "agent.sh").write_text('echo \'{"scores": {"reward": 1}}\' > response.json')
    path = folder / "experiment.yml"
    path.write_text(yaml.safe_dump(content))
    return Bench(load_experiment(path, runners=BUILTIN, systems={}), folder / "store")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path, {"kind": "command", "agent": ["/bin/sh", "agent.sh"]})


def planned_of(bench: Bench) -> list[Planned]:
    return [Planned(*attempt) for attempt in bench.experiment.attempts()]


# ---------------------------------------------------------------- runners


@pytest.mark.parametrize(
    ("kind", "keys", "concurrent"),
    [
        ("command", {}, True),
        ("harbor", {}, False),  # in this process: environment, folder and modules are the process's
        ("harbor", {"harbor": "/usr/bin/harbor"}, True),
        ("helix", {}, True),
        ("python", {}, False),
        ("python", {"thread_safe": True}, True),
        ("recorded", {}, True),
    ],
)
def test_which_runners_threads_may_share(
    kind: str, keys: dict[str, Any], concurrent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("METRICBENCH_HARBOR", raising=False)
    runner = BUILTIN[kind].model_construct(**keys)
    assert runner.concurrent is concurrent
    assert concurrent or runner.serial_advice


def test_a_suite_keeps_processes_that_threads_may_not_share() -> None:
    assert BUILTIN["suite"].concurrent is Runner.concurrent
    assert BUILTIN["suite"].serial_advice is Runner.serial_advice


# ---------------------------------------------------------------- attempts


def test_every_attempt_is_made_once_and_as_alone(bench: Bench, tmp_path: Path) -> None:
    """By more threads than there are processors: ids, workspaces, seeds, fingerprints and digests are right."""
    executor = ThreadsExecutor(ThreadsSettings(workers=THREADS))
    executor.accept(bench)
    planned = planned_of(bench)
    executor.submit(bench, planned)
    ended: dict[Any, Any] = {}
    wait_until(lambda: bool(ended.update({one.key: one for one in executor.completed(0.1)})) or len(ended) == 32)
    executor.close()
    assert [one.error for one in ended.values()] == [None] * 32
    made = {key: one.performed.record for key, one in ended.items()}
    assert len({record.trial_id for record in made.values()}) == 32
    alone = Bench(bench.experiment, tmp_path / "alone")
    for one in planned[::7]:
        expected, record = alone.make(one).record, made[one.key]
        for name in ("outcome", "scores", "fingerprint", "verifier", "seed", "supersedes"):
            assert getattr(record, name) == getattr(expected, name)
        assert record.files["response.json"] == expected.files["response.json"]
        assert record.files["request.json"] != expected.files["request.json"]  # it has the trial's id
    assert executor.completed(0) == []


def test_fingerprints_are_the_same_in_every_thread(tmp_path: Path) -> None:
    for _ in range(5):
        bench = make_bench(tmp_path, {"kind": "command", "agent": ["/bin/sh", "agent.sh"]})
        planned = planned_of(bench)

        def asked(_: int, bench: Bench = bench, planned: Sequence[Planned] = planned) -> list[str]:
            return [bench.fingerprints.attempt(one.case, one.variant, one.task) for one in planned]

        found = together(THREADS, asked)
        assert all(one == found[0] for one in found)
        assert found[0] == asked(0)


def test_an_allowance_is_exact_whatever_the_number_of_threads(tmp_path: Path) -> None:
    allowance = Allowance(tmp_path / "budget")
    allowance.open(Budget(attempts=100))
    answers = together(THREADS, lambda index: [allowance.take() for _ in range(10)])
    granted = [answer for some in answers for answer in some if answer is None]
    assert len(granted) == 100
    allowance.close()


def test_recordings_are_read_by_one_thread(tmp_path: Path) -> None:
    rows = "\n".join(f'{{"variant": "b", "task": "t{number}", "reward": 1}}' for number in range(50))
    (tmp_path / "runs.jsonl").write_text(rows)
    runner = {"kind": "recorded", "form": "table", "read": ["runs.jsonl"], "baseline": "b"}
    content = {"metricbench": 1, "name": "x", "runner": runner, "cases": [{"id": "c"}]}
    path = tmp_path / "experiment.yml"
    path.write_text(yaml.safe_dump(content))
    bench = Bench(load_experiment(path, runners=BUILTIN, systems={}), tmp_path / "store")
    planned = planned_of(bench)
    source = bench.experiment.runner.case_source("c", tmp_path)
    assert isinstance(source, RecordedCase)
    found = together(THREADS, lambda index: source.slots(tmp_path))
    assert all(slots is found[0] for slots in found)
    records = together(THREADS, lambda index: bench.make(planned[index]).record)
    assert [record.scores for record in records] == [{"reward": 1}] * THREADS


# ---------------------------------------------------------------- a run that ends


@pytest.fixture
def in_stoppable(
    request: pytest.FixtureRequest,
) -> Iterator[Begin]:
    """Calls something in a thread as an executor's, and gives what it raised or returned in a list, and the stop."""
    stops: list[tuple[threading.Thread, threading.Event]] = []

    def begin(call: Callable[[], Any]) -> tuple[list[Any], threading.Event]:
        stop = threading.Event()
        thread, answer = called_in_thread(call, stop)
        stops.append((thread, stop))
        return answer, stop

    yield begin
    for thread, stop in stops:
        stop.set()
        thread.join(20)


def test_a_program_ends_with_its_whole_group(tmp_path: Path, in_stoppable: Begin) -> None:
    """The shell would wait five minutes for a child of its own."""

    def run() -> object:
        return run_process(
            ["/bin/sh", "-c", f"sleep 300 & echo $! > {tmp_path}/child; wait"],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"]},
            stdout=tmp_path / "out",
            stderr=tmp_path / "err",
            timeout=None,
        )

    answer, stop = in_stoppable(run)
    wait_until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text().endswith("\n"))
    assert not answer
    assert process_groups.any_running(stop)
    assert not process_groups.any_running(threading.Event())
    stop.set()
    wait_until(lambda: bool(answer))
    assert isinstance(answer[0], StoppedError)
    assert not lives(int((tmp_path / "child").read_text()))
    assert isinstance(in_stoppable_at_once(run), StoppedError)


def in_stoppable_at_once(call: Callable[[], Any]) -> Any:
    """What a call raises where the run has ended before it begins."""
    stop = threading.Event()
    stop.set()
    thread, answer = called_in_thread(call, stop)
    thread.join(20)
    return answer[0]


def called_in_thread(call: Callable[[], Any], stop: threading.Event) -> tuple[threading.Thread, list[Any]]:
    """A thread as an executor's, and the list that will hold what the call raised or returned there."""
    answer: list[Any] = []

    def run() -> None:
        STOPPING.set(stop)
        try:
            answer.append(call())
        except BaseException as error:
            answer.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, answer


def test_a_program_that_cleans_up_is_given_the_time(tmp_path: Path, in_stoppable: Begin) -> None:
    """As Harbor is, which removes its containers."""
    cleans = f"trap 'sleep 0.2; echo cleaned > {tmp_path}/cleaned; exit' TERM; touch {tmp_path}/begun; sleep 300 & wait"

    def run() -> object:
        logs = {"stdout": tmp_path / "out", "stderr": tmp_path / "err"}
        command, environment = ["/bin/sh", "-c", cleans], {"PATH": os.environ["PATH"]}
        return run_process(command, cwd=tmp_path, env=environment, **logs, timeout=None, leader_grace=20)

    answer, stop = in_stoppable(run)
    wait_until((tmp_path / "begun").exists)
    stop.set()
    wait_until(lambda: bool(answer))
    assert isinstance(answer[0], StoppedError)
    assert (tmp_path / "cleaned").read_text() == "cleaned\n"


@pytest.mark.parametrize("limit", [None, 300])
def test_a_function_ends_where_it_heeds_exceptions(in_stoppable: Begin, limit: float | None) -> None:
    seen: list[str] = []

    def agent() -> None:
        seen.append("begun")
        try:
            while True:
                time.sleep(0.01)
        finally:
            seen.append("cleaned up")

    answer, stop = in_stoppable(lambda: call_within(limit, agent))
    wait_until(lambda: bool(seen))
    stop.set()
    wait_until(lambda: bool(answer) and len(seen) == 2)
    assert isinstance(answer[0], StoppedError)


def test_a_late_function_is_ended_before_its_attempt_is(in_stoppable: Begin) -> None:
    """So that it writes nothing any more to a workspace that was digested."""
    seen: list[str] = []

    def agent() -> None:
        try:
            while True:
                time.sleep(0.01)
        finally:
            seen.append("cleaned up")

    def call() -> list[str]:
        with pytest.raises(DeadlineExceededError):
            call_within(0.1, agent)
        return list(seen)

    answer, _ = in_stoppable(call)
    wait_until(lambda: bool(answer))
    assert answer == [["cleaned up"]]


def test_waiting_ends_too(in_stoppable: Begin) -> None:
    answer, stop = in_stoppable(lambda: process_groups.pause(300))
    stop.set()
    wait_until(lambda: bool(answer))
    assert isinstance(answer[0], StoppedError)


def test_nothing_is_submitted_to_an_executor_that_was_stopped(bench: Bench) -> None:
    executor = ThreadsExecutor(ThreadsSettings(workers=2))
    executor.stop()
    executor.stop()
    with pytest.raises(ExecutorError, match="no further attempt is started"):
        executor.submit(bench, planned_of(bench))
    assert executor.completed(0) == []
    executor.close()
