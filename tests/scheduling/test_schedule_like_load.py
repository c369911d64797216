"""Without an attempt in the session, scheduling is that of ``--dist load``, call for call."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from xdist.remote import Producer
from xdist.scheduler import LoadScheduling

from pytest_metricbench.pytest_side.scheduling import ExperimentScheduling
from tests.scheduling.mock_nodes import Hooks, MockNode
from tests.scheduling.xdist_simulation import Config, History, Simulation, World

usual = settings(max_examples=200)

SchedulerFactory = Callable[[Any, Any], LoadScheduling]


def ours(config: Any, log: Any) -> ExperimentScheduling:
    return ExperimentScheduling(config, log, lambda ids: None)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    count = draw(st.integers(0, 120))
    rng = random.Random(draw(st.integers(0, 10_000)))
    items = st.integers(0, max(0, count - 1))
    some = st.frozensets(items, max_size=3) if count else st.just(frozenset())
    other = [f"test_other.py::test_{number}" for number in range(count + 1)]
    workers = draw(st.integers(1, 6))
    return World(
        ids=[f"test_x.py::test_{number}" for number in range(count)],
        durations=[rng.lognormvariate(-2, 2) for _ in range(count)],
        workers=workers,
        latency=draw(st.sampled_from([0.0, 0.01])),
        boot=draw(st.sampled_from([0.0, 1.0])),
        crashes=draw(some),
        kills=draw(st.lists(st.tuples(st.integers(0, 8), st.floats(0, 100)), max_size=3)),
        deaf=False,  # --dist load does not survive it
        failures=draw(some),
        maxfail=draw(st.sampled_from([0, 0, 1, 3])),
        max_restart=draw(st.sampled_from([None, 0, 2])),
        maxschedchunk=draw(st.sampled_from([None, 1, 7])),
        other_ids=draw(st.sampled_from([{}, {}, {}, {workers - 1: other}, {workers: other}])),
        rerun=draw(st.booleans()),
    )


def played(world: World, scheduler: SchedulerFactory) -> tuple[History, list[tuple[bool, bool]], str | None]:
    """Everything that can be told from outside, and how the session ended."""
    said: list[tuple[bool, bool]] = []
    simulation = Simulation(world, scheduler, lambda sched, _: said.append((sched.tests_finished, sched.has_pending)))
    try:
        simulation.run()
    except Exception as error:  # a fault of pytest-xdist's is to be the same fault here
        return simulation.history, said, f"{type(error).__name__}: {error}"
    return simulation.history, said, None


@usual
@given(worlds())
def test_a_session_without_attempts_is_played_as_with_dist_load(world: World) -> None:
    history, said, error = played(world, ours)
    expected, expected_said, expected_error = played(world, LoadScheduling)
    assert history.calls == expected.calls
    assert history.starts == expected.starts
    assert history.blamed == expected.blamed
    assert [str(report.longrepr) for report in history.collect_reports] == [
        str(report.longrepr) for report in expected.collect_reports
    ]
    assert said == expected_said
    assert error == expected_error


class Twin:
    """The same calls on both schedulers, each with nodes of its own."""

    def __init__(self, ids: Sequence[str], nodes: int, maxschedchunk: int | None) -> None:
        self.ids = ids
        self.hooks = [Hooks(), Hooks()]
        configs: list[Any] = [Config(World(ids, (), workers=nodes, maxschedchunk=maxschedchunk), h) for h in self.hooks]
        quiet = Producer("test", enabled=False)
        self.schedulers: list[Any] = [ours(configs[0], quiet), LoadScheduling(configs[1], quiet)]
        self.nodes: list[tuple[MockNode, MockNode]] = []

    def call(self, name: str, node: int | None, *arguments: Any) -> None:
        """Call a method on both; they answer, or raise, alike."""
        answers = []
        for side, scheduler in enumerate(self.schedulers):
            nodes = () if node is None else (self.nodes[node][side],)
            try:
                answers.append(repr(getattr(scheduler, name)(*nodes, *arguments)))
            except (KeyError, ValueError, AssertionError, NotImplementedError) as error:
                answers.append(type(error).__name__)
        assert answers[0] == answers[1], name
        self.compare()

    def compare(self) -> None:
        mine, theirs = self.schedulers
        assert [a.batches for a, _ in self.nodes] == [b.batches for _, b in self.nodes]
        assert [a.told_to_end for a, _ in self.nodes] == [b.told_to_end for _, b in self.nodes]
        assert mine.tests_finished is theirs.tests_finished
        assert mine.has_pending is theirs.has_pending
        assert mine.collection_is_completed is theirs.collection_is_completed
        assert mine.collection == theirs.collection
        assert mine.pending == theirs.pending
        assert list(map(repr, mine.nodes)) == list(map(repr, theirs.nodes))
        assert len(self.hooks[0].reports) == len(self.hooks[1].reports)

    def add(self) -> None:
        name = f"gw{len(self.nodes)}"
        self.nodes.append((MockNode(name), MockNode(name)))
        self.call("add_node", len(self.nodes) - 1)

    def queue(self, node: int) -> list[int]:
        mine: list[int] = self.schedulers[0].node2pending.get(self.nodes[node][0], [])
        return mine


@usual
@given(st.integers(0, 60), st.integers(1, 5), st.sampled_from([None, 1, 4]), st.data())
def test_any_calls_have_the_same_effect(count: int, nodes: int, maxschedchunk: int | None, data: Any) -> None:
    """Not only those that ``DSession`` makes: plugins call schedulers too."""
    ids = [f"test_x.py::test_{number}" for number in range(count)]
    twin = Twin(ids, nodes, maxschedchunk)
    for number in range(nodes):
        twin.add()
        twin.call("add_node_collection", number, ids)
    twin.call("schedule", None)
    steps = st.sampled_from(["complete"] * 6 + ["die", "add", "again", "check", "end"])
    for step in data.draw(st.lists(steps, max_size=80)):
        node = data.draw(st.integers(0, len(twin.nodes) - 1))
        if step == "complete" and twin.queue(node):
            twin.call("mark_test_complete", node, twin.queue(node)[0], data.draw(st.sampled_from([0.0, 0.05, 0.2])))
        elif step == "die":
            twin.call("remove_node", node)
        elif step == "add":
            twin.add()
            twin.call("add_node_collection", len(twin.nodes) - 1, ids)
            twin.call("schedule", None)
        elif step == "again" and ids:
            twin.call("mark_test_pending", None, data.draw(st.sampled_from(ids)))
        elif step == "check" and twin.queue(node):
            twin.call("check_schedule", node, 0.1)
        elif step == "end":
            for side in twin.nodes[node]:
                side.shutdown()
    twin.call("remove_pending_tests_from_node", 0, [0])


def test_the_planner_is_asked_once() -> None:
    asked: list[Sequence[str]] = []

    def planner(ids: Sequence[str]) -> None:
        asked.append(ids)

    world = World(["test_x.py::test_0", "test_x.py::test_1"], [1.0, 1.0], crashes=frozenset({0}))
    Simulation(world, lambda config, log: ExperimentScheduling(config, log, planner)).run()
    assert asked == [["test_x.py::test_0", "test_x.py::test_1"]]
