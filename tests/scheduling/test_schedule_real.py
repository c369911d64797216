"""Sessions with real workers: an experiment whose runner writes down when each of its attempts starts and ends."""

import json
from dataclasses import dataclass

import pytest
import yaml

pytestmark = pytest.mark.slow

CONFTEST = '''\
"""A runner that writes down what it does."""

import json
import os
import time
from pathlib import Path
from typing import ClassVar, Literal

from pytest_metricbench import Outcome, Runner

HERE = Path(__file__).parent


def note(request, what):
    line = [time.time(), os.environ["PYTEST_XDIST_WORKER"], what, request.variant.id, request.task.id, request.attempt]
    with open(HERE / "notes.jsonl", "a") as notes:
        notes.write(json.dumps(line) + "\\n")


class NotingRunner(Runner):
    kind: Literal["noting"] = "noting"
    seconds: float = 0.02
    share: bool = False
    crash: str | None = None
    baseline_first: ClassVar[bool] = BASELINE_FIRST

    def run(self, request, workspace):
        note(request, "start")
        time.sleep(request.task.params.get("seconds", self.seconds))
        if self.crash == f"{request.variant.id}::{request.task.id}[{request.attempt}]":
            os._exit(3)
        note(request, "end")
        return Outcome.scored({"reward": 1.0})

    def affinity(self, case, variant, task):
        return variant if self.share else None


def pytest_metricbench_runners():
    return [NotingRunner]
'''


@dataclass(frozen=True)
class Note:
    time: float
    worker: str
    what: str
    variant: str
    task: str
    attempt: int

    @property
    def name(self) -> str:
        return f"{self.variant}::{self.task}[{self.attempt}]"


class Bench:
    """A folder with an experiment that is run with ``-n``."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester

    def make(
        self, *, tasks: list[object], mutants: int, attempts: int = 1, gates: bool = False, **runner: object
    ) -> None:
        self.pytester.makeconftest(CONFTEST.replace("BASELINE_FIRST", str(gates)))
        experiment = {
            "metricbench": 1,
            "name": "noting",
            "attempts": attempts,
            "runner": {"kind": "noting", **runner},
            "cases": [
                {
                    "id": "c",
                    "tasks": [task if isinstance(task, dict) else {"id": task} for task in tasks],
                    "mutants": [{"id": f"m{number}"} for number in range(mutants)],
                }
            ],
        }
        (self.pytester.path / "experiment.yml").write_text(yaml.safe_dump(experiment))

    def run(self, *args: str) -> tuple[pytest.RunResult, list[Note]]:
        notes = self.pytester.path / "notes.jsonl"
        notes.unlink(missing_ok=True)
        off = [part for name in ("randomly", "sugar", "rerunfailures") for part in ("-p", f"no:{name}")]
        result = self.pytester.runpytest_subprocess(*off, *args, timeout=90)
        return result, sorted(
            (Note(*json.loads(line)) for line in notes.read_text().splitlines()), key=lambda n: n.time
        )

    def summary(self) -> dict[str, int]:
        counts: dict[str, int] = json.loads((self.pytester.path / ".metricbench/noting/summary.json").read_text())[
            "counts"
        ]
        return counts


@pytest.fixture
def bench(pytester: pytest.Pytester) -> Bench:
    return Bench(pytester)


def named(notes: list[Note], what: str) -> list[str]:
    return [note.name for note in notes if note.what == what]


def started_by(worker: str, notes: list[Note]) -> list[Note]:
    return [note for note in notes if note.what == "start" and note.worker == worker]


def assert_baselines_ended_first(notes: list[Note], *, crashed: str | None = None) -> None:
    """No mutant's attempt started before every attempt of the baseline on its task had ended."""
    tasks = {note.task for note in notes}
    for task in tasks:
        baseline = [note for note in notes if note.task == task and note.variant == "baseline"]
        ended = max(note.time for note in baseline if note.what == "end" or note.name == crashed)
        mutants = [
            note.time for note in notes if note.task == task and note.variant != "baseline" and note.what == "start"
        ]
        assert mutants
        assert ended <= min(mutants)


def test_every_attempt_runs_once_and_baselines_come_first(bench: Bench) -> None:
    bench.make(tasks=["t1", "t2", "t3", "t4"], mutants=3, attempts=2)
    result, notes = bench.run("experiment.yml", "-n2", "-v")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["scheduling tests via ExperimentScheduling"])
    started = named(notes, "start")
    assert len(started) == len(set(started)) == 32
    assert sorted(named(notes, "end")) == sorted(started)
    for worker in ("gw0", "gw1"):
        is_mutant = [note.variant != "baseline" for note in started_by(worker, notes)]
        assert is_mutant == sorted(is_mutant)
        assert not all(is_mutant)


def test_mutants_wait_for_the_baseline_of_their_task(bench: Bench) -> None:
    tasks: list[object] = [{"id": f"t{number}", "params": {"seconds": 0.05 * (number % 3)}} for number in range(5)]
    bench.make(tasks=tasks, mutants=4, attempts=2, gates=True)
    result, notes = bench.run("experiment.yml", "-n3")
    assert result.ret == 0, result.stdout.str()
    assert len(named(notes, "end")) == 50
    assert_baselines_ended_first(notes)


@pytest.mark.benchmark
def test_fewer_attempts_than_workers(bench: Bench) -> None:
    bench.make(tasks=["t1"], mutants=1, gates=True)
    result, notes = bench.run("experiment.yml", "-n3")
    assert result.ret == 0, result.stdout.str()
    assert named(notes, "end") == ["baseline::t1[1]", "m0::t1[1]"]


@pytest.mark.parametrize("crash", ["baseline::t2[1]", pytest.param("m1::t1[2]", marks=pytest.mark.benchmark)])
def test_a_crash_costs_one_attempt_and_holds_up_nobody(bench: Bench, crash: str) -> None:
    bench.make(tasks=["t1", "t2", "t3"], mutants=3, attempts=2, gates=True, crash=crash)
    result, notes = bench.run("experiment.yml", "-n2")
    assert result.ret == 1, result.stdout.str()
    result.assert_outcomes(failed=1, passed=23)
    assert sorted(named(notes, "start")) == sorted([*named(notes, "end"), crash])
    assert len(named(notes, "end")) == 23
    assert bench.summary()["unmeasured"] == 1
    assert_baselines_ended_first(notes, crashed=crash)


@pytest.mark.benchmark  # the rule itself is held by the simulated ones
def test_the_longest_of_the_last_run_starts_first(bench: Bench) -> None:
    lengths = [0.05, 0.3, 0.1, 0.2, 0.15, 0.25]
    tasks: list[object] = [{"id": f"t{number}", "params": {"seconds": length}} for number, length in enumerate(lengths)]
    bench.make(tasks=tasks, mutants=1)
    result, notes = bench.run("experiment.yml", "-n2")
    assert result.ret == 0, result.stdout.str()
    assert {started_by(worker, notes)[0].name for worker in ("gw0", "gw1")} == {"baseline::t0[1]", "baseline::t1[1]"}
    bench.make(tasks=tasks, mutants=1, seconds=0.021)  # a setting: every attempt is stale, and its duration known
    result, notes = bench.run("experiment.yml", "-n2")
    assert result.ret == 0, result.stdout.str()
    assert len(named(notes, "end")) == 12
    assert {started_by(worker, notes)[0].name for worker in ("gw0", "gw1")} == {"baseline::t1[1]", "baseline::t5[1]"}
    for worker in ("gw0", "gw1"):
        for baseline in (True, False):
            own = [note for note in started_by(worker, notes) if (note.variant == "baseline") is baseline]
            seconds = [lengths[int(note.task[1:])] for note in own]
            assert seconds == sorted(seconds, reverse=True)


@pytest.mark.benchmark  # likewise
def test_an_affinity_keeps_a_variant_on_one_worker(bench: Bench) -> None:
    bench.make(tasks=[f"t{number}" for number in range(8)], mutants=6, share=True)
    result, notes = bench.run("experiment.yml", "-n2")
    assert result.ret == 0, result.stdout.str()
    workers = {f"m{number}": {note.worker for note in notes if note.variant == f"m{number}"} for number in range(6)}
    assert set().union(*workers.values()) == {"gw0", "gw1"}
    assert sum(len(found) == 1 for found in workers.values()) >= 4
    assert {note.worker for note in notes if note.variant == "baseline"} == {"gw0", "gw1"}


@pytest.mark.benchmark
def test_attempts_beside_other_tests(bench: Bench) -> None:
    bench.make(tasks=["t1", "t2"], mutants=2, gates=True)
    bench.pytester.makepyfile(
        test_other="import pytest\n@pytest.mark.parametrize('x', range(20))\ndef test_it(x): pass\n"
    )
    result, notes = bench.run("experiment.yml", "test_other.py", "-n2")
    assert result.ret == 0, result.stdout.str()
    result.assert_outcomes(passed=26)
    assert len(named(notes, "end")) == 6
    assert_baselines_ended_first(notes)


def test_a_run_that_is_ended_with_closed_gates(bench: Bench) -> None:
    """What was held is flushed then; nobody waits for ever."""
    bench.make(tasks=["t1", "t2", "t3"], mutants=4, attempts=3, gates=True, crash="baseline::t1[1]")
    result, notes = bench.run("experiment.yml", "-n2", "--max-worker-restart=0")
    assert result.ret == 1, result.stdout.str()
    result.stdout.fnmatch_lines(["*worker restarting disabled*"])
    started = named(notes, "start")
    assert len(started) == len(set(started)) < 45
