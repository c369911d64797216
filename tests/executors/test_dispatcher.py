"""The dispatcher: what items are told, what is kept and when, whatever the executor does and in whichever order."""

import random
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.contracts import AttemptKey, AttemptRecord, CoverageRecord
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.executors.base import Completed, Executor, ExecutorError
from pytest_metricbench.executors.dispatcher import AT_ONCE, Dispatcher
from pytest_metricbench.runners import BUILTIN
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.attempts import Performed
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.coverage_plan import PlannedRequest


class Shuffling(Executor):
    """Makes attempts in this thread when it is asked what has ended: some of those submitted, in any order."""

    def __init__(self, seed: int = 0, *, breaks_after: int | None = None, twice: bool = False) -> None:
        self.random, self.breaks_after, self.twice = random.Random(seed), breaks_after, twice
        self.waiting: list[tuple[Bench, Planned]] = []
        self.submitted: list[AttemptKey] = []
        self.ended: list[AttemptKey] = []
        self.is_stopped = self.is_closed = False

    def accept(self, bench: Bench) -> None:
        if bench.experiment.name == "unloved":
            raise ExecutorError("not this one")

    def submit(self, bench: Bench, planned: Sequence[Planned]) -> None:
        self.submitted += [one.key for one in planned]
        self.waiting += [(bench, one) for one in planned]

    def completed(self, seconds: float) -> Sequence[Completed]:
        if self.breaks_after is not None and len(self.ended) >= self.breaks_after:
            raise ExecutorError("the cluster is gone")
        if self.is_stopped:
            return []
        found = []
        for _ in range(min(len(self.waiting), self.random.randrange(4))):
            bench, planned = self.waiting.pop(self.random.randrange(len(self.waiting)))
            self.ended.append(planned.key)
            try:
                found.append(Completed(bench, planned.key, bench.make(planned)))
            except ValueError as error:
                found.append(Completed(bench, planned.key, None, error))
        return found * 2 if self.twice else found

    def measure(
        self, bench: Bench, requests: Sequence[PlannedRequest], waiting: Callable[[int], None]
    ) -> Generator[tuple[PlannedRequest, CoverageRecord]]:
        yield from ()

    def stop(self) -> None:
        self.is_stopped = True

    def close(self) -> None:
        self.is_closed = True


class Session:
    """A bench, what was kept of it, and what its items were told."""

    def __init__(self, folder: Path, executor: Executor, attempts: int = 3) -> None:
        (folder / "dispatched.py").write_text("def run(request):\n    return 1\n")
        content = {
            "metricbench": 1,
            "name": "x",
            "attempts": attempts,
            "runner": {"kind": "python", "agent": "dispatched:run"},
            "cases": [{"id": "c", "tasks": [{"id": "a"}, {"id": "b"}], "mutants": [{"id": "m"}]}],
        }
        path = folder / "experiment.yml"
        path.write_text(yaml.safe_dump(content))
        self.bench = Bench(load_experiment(path, runners=BUILTIN, systems={}), folder / "store")
        self.kept: list[AttemptKey] = []
        self.stored: dict[AttemptKey, AttemptRecord] = {}
        self.bench.stored = self.stored
        self.bench.deliver = self._keep
        self.ended: str | None = None
        self.dispatcher = Dispatcher(executor, lambda: self.ended)
        self.dispatcher.accept(self.bench)
        self.dispatcher.serve(self.bench)
        self.planned = [Planned(*attempt) for attempt in self.bench.experiment.attempts()]
        self.dispatcher.expect((self.bench, one) for one in self.planned)

    def _keep(self, key: AttemptKey, performed: Performed, outcome: str) -> str:
        self.kept.append(key)
        self.stored[key] = performed.record
        return outcome if performed.new else "reused"

    def ask(self, planned: Planned) -> str:
        """What an item does."""
        performed = self.bench.perform(planned)
        assert performed.record.key == planned.key
        assert self.bench.deliver is not None
        return self.bench.deliver(planned.key, performed, "passed")


@pytest.fixture(autouse=True)
def _no_module_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither the agent's nor the folder that it was found in."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    sys.modules.pop("dispatched", None)
    yield
    sys.modules.pop("dispatched", None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@given(seed=st.integers(0, 10_000), order=st.permutations(range(12)), twice=st.booleans())
def test_every_item_is_told_its_own_and_everything_is_kept_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, order: list[int], twice: bool
) -> None:
    executor = Shuffling(seed, twice=twice)
    session = Session(tmp_path_factory.getbasetemp(), executor)
    assert [session.ask(session.planned[index]) for index in order] == ["passed"] * 12
    assert sorted(session.kept) == sorted(one.key for one in session.planned)
    assert session.kept == executor.ended
    assert executor.submitted == [one.key for one in session.planned]
    session.dispatcher.end()
    assert executor.is_closed


def test_what_the_store_has_is_told_in_its_turn_and_never_submitted(folder: Path) -> None:
    executor = Shuffling()
    session = Session(folder, executor)
    local = Bench(session.bench.experiment, folder / "store")
    local.stored = {}
    for one in session.planned[:5]:
        session.stored[one.key] = local.make(one).record
    assert [session.ask(one) for one in session.planned] == ["reused"] * 5 + ["passed"] * 7
    assert executor.submitted == [one.key for one in session.planned[5:]]
    assert sorted(session.kept) == sorted(one.key for one in session.planned)


def test_an_item_that_runs_again_has_its_attempt_made_again(folder: Path) -> None:
    """As pytest-rerunfailures does with one that could not be measured."""
    executor = Shuffling()
    session = Session(folder, executor)
    (folder / "dispatched.py").write_text("def run(request):\n    return 'no score'\n")
    first = session.planned[0]
    assert session.ask(first) == session.ask(first) == "unmeasured"
    assert session.kept.count(first.key) == 2
    assert executor.submitted.count(first.key) == 2


def test_nothing_is_submitted_before_an_item_asks(folder: Path) -> None:
    executor = Shuffling()
    session = Session(folder, executor)
    session.dispatcher.end()
    assert executor.submitted == session.kept == []
    assert executor.is_stopped
    with pytest.raises(ExecutorError, match="the run has ended"):
        session.ask(session.planned[0])


def test_an_executor_that_is_lost(folder: Path) -> None:
    """What had ended is told and kept; for the rest nobody waits."""
    executor = Shuffling(breaks_after=4)
    session = Session(folder, executor)
    told = []
    for one in session.planned:
        try:
            told.append(session.ask(one))
        except ExecutorError:
            continue
    assert len(told) == len(session.kept) == len(executor.ended) >= 4
    assert session.dispatcher.broken == "the cluster is gone"
    session.dispatcher.end()
    assert session.dispatcher.broken == "the cluster is gone"


def test_a_run_that_ends_while_an_item_waits(folder: Path) -> None:
    executor = Shuffling()
    session = Session(folder, executor)
    executor.stop()
    session.ended = "the run ends: the disk is full"
    with pytest.raises(ExecutorError, match="the disk is full"):
        session.ask(session.planned[0])


def test_what_making_an_attempt_raises_is_raised_by_its_item(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(folder, Shuffling())
    make, bad = session.bench.make, session.planned[3]

    def fail(planned: Planned) -> Performed:
        if planned.key == bad.key:
            raise ValueError("only this one")
        return make(planned)

    monkeypatch.setattr(session.bench, "make", fail)
    for one in session.planned:
        if one is bad:
            with pytest.raises(ValueError, match="only this one"):
                session.ask(one)
        else:
            assert session.ask(one) == "passed"
    assert bad.key not in session.kept


def test_an_interrupt_while_something_is_kept_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what has ended together, the one that is just being kept is kept in its turn, and the others at once."""
    executor = Shuffling()
    session = Session(folder, executor)
    keep = session._keep
    interrupted: list[AttemptKey] = []

    def interrupt(key: AttemptKey, performed: Performed, outcome: str) -> str:
        if len(session.kept) == 2 and not interrupted:
            interrupted.append(key)
            raise KeyboardInterrupt
        return keep(key, performed, outcome)

    monkeypatch.setitem(session.dispatcher._keeps, session.bench, interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(map(session.ask, session.planned))
    session.dispatcher.take_completed()
    assert set(session.kept) == set(executor.ended) - set(interrupted)
    assert len(interrupted) == 1
    rest = [one for one in session.planned if one.key not in session.kept]
    assert [session.ask(one) for one in rest] == ["passed"] * len(rest)
    assert sorted(session.kept) == sorted(one.key for one in session.planned)


def test_durations_are_those_of_the_attempts(folder: Path) -> None:
    session = Session(folder, Shuffling())
    assert session.dispatcher.take_seconds() is None
    session.ask(session.planned[0])
    assert session.dispatcher.take_seconds() == session.stored[session.planned[0].key].duration
    assert session.dispatcher.take_seconds() is None


def test_many_attempts_are_submitted_some_at_a_time_and_in_order(folder: Path) -> None:
    executor = Shuffling()
    session = Session(folder, executor, attempts=AT_ONCE // 2)
    session.ask(session.planned[0])
    assert executor.submitted == [one.key for one in session.planned]
    assert len(executor.ended) > 1  # some of them ended while others were submitted


def test_an_experiment_that_an_executor_does_not_serve(folder: Path) -> None:
    session = Session(folder, Shuffling())
    text = (folder / "experiment.yml").read_text().replace("name: x", "name: unloved")
    (folder / "other.yml").write_text(text)
    other = Bench(load_experiment(folder / "other.yml", runners=BUILTIN, systems={}), folder / "other")
    with pytest.raises(ExecutorError, match="not this one"):
        session.dispatcher.accept(other)
