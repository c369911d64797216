"""Workers that only remember what they were sent, in the manner of pytest-xdist's own tests."""

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from pytest_metricbench.pytest_side.ready_items import Slot
from pytest_metricbench.pytest_side.scheduling import ExperimentScheduling
from tests.scheduling.xdist_simulation import Config, World


class MockNode:
    """A worker that does nothing.

    Attributes:
        sent: every index it was sent, in order.
        batches: the same, as it was sent.
        told_to_end: whether it was told to shut down.
        gone: whether it died; sending to it then fails, as on a broken pipe.
    """

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.batches: list[tuple[int, ...]] = []
        self.told_to_end = False
        self.gone = False
        self._shutdown_sent = False

    def __repr__(self) -> str:
        return f"<{self.gateway.id}>"

    @property
    def sent(self) -> list[int]:
        return [index for batch in self.batches for index in batch]

    @property
    def shutting_down(self) -> bool:
        return self.told_to_end

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        assert not self.told_to_end, "sent to a worker that will not run it"
        if self.gone:
            raise OSError("cannot send (already closed?)")
        self.batches.append(tuple(indices))

    def shutdown(self) -> None:
        self.told_to_end = self._shutdown_sent = True


class Hooks:
    """Remembers reports of collections that differ."""

    def __init__(self) -> None:
        self.reports: list[Any] = []

    def pytest_collectreport(self, report: Any) -> None:
        self.reports.append(report)


class Board:
    """A scheduler with its nodes, named after the items they are sent.

    Args:
        slots: id -> slot.
        nodes: how many.
        maxschedchunk: as the option.
    """

    def __init__(self, slots: dict[str, Slot], nodes: int = 2, maxschedchunk: int | None = None) -> None:
        self.ids = list(slots)
        self.hooks = Hooks()
        config: Any = Config(World(self.ids, (), workers=nodes, maxschedchunk=maxschedchunk), self.hooks)
        self.scheduler = ExperimentScheduling(config, None, lambda ids: [slots[nodeid] for nodeid in ids])
        self.nodes = [self.add(f"gw{number}") for number in range(nodes)]

    def add(self, name: str) -> MockNode:
        """A worker is ready."""
        node = MockNode(name)
        worker: Any = node
        self.scheduler.add_node(worker)
        return node

    def collect(self, *nodes: MockNode, ids: Sequence[str] | None = None) -> None:
        """Workers, or all of them, have collected; scheduling goes on when it can, as ``DSession`` has it."""
        for node in nodes or self.nodes:
            self.scheduler.add_node_collection(node, self.ids if ids is None else ids)
            if self.scheduler.collection_is_completed:
                self.scheduler.schedule()

    def complete(self, node: MockNode, nodeid: str, duration: float = 1.0) -> None:
        """An item ended; every other one is still where it was, or somewhere else."""
        before = self.unfinished
        self.scheduler.mark_test_complete(node, self.ids.index(nodeid), duration)
        assert self.unfinished == before - 1

    def die(self, node: MockNode) -> str | None:
        """A worker died, was it told to end or not."""
        node.told_to_end = True  # pytest-xdist calls every worker that is gone shutting down
        before = self.unfinished
        running = self.scheduler.remove_node(node)
        assert self.unfinished == before - (running is not None)
        return running

    @property
    def unfinished(self) -> int:
        """How many items have not ended: those in the places where the scheduler keeps them, each counted once."""
        queues = [*self.scheduler.blocked.values(), *self.scheduler.node2pending.values()]
        return len(self.scheduler.ready) + sum(map(len, queues))

    def sent(self, node: MockNode) -> list[str]:
        """The ids a worker was sent, in order."""
        return [self.ids[index] for index in node.sent]

    def all_sent(self) -> list[list[str]]:
        """The same of all nodes."""
        return [self.sent(node) for node in self.nodes]


def plain(names: Iterable[str]) -> dict[str, Slot]:
    """Slots that rank in the order of the names."""
    return {name: Slot((1, place)) for place, name in enumerate(names)}


def gated(tasks: int, mutants: int, attempts: int = 1) -> dict[str, Slot]:
    """``b<task>`` opens the gate that ``m<mutant><task>`` wait for; ``b<task>.<attempt>`` when there are several."""
    slots = {}
    for task in range(tasks):
        for attempt in range(attempts):
            name = f"b{task}" if attempts == 1 else f"b{task}.{attempt}"
            slots[name] = Slot((0, task), opens=f"t{task}")
    for mutant in "xyz"[:mutants]:
        for task in range(tasks):
            slots[f"{mutant}{task}"] = Slot((1, task), gate=f"t{task}")
    return slots


def shared(**counts: int) -> dict[str, Slot]:
    """``<affinity><number>``, ranked in turns: without affinity each worker would get some of each."""
    turns = [(number, name) for name, count in counts.items() for number in range(count)]
    return {f"{name}{number}": Slot((1, number), affinity=name) for number, name in sorted(turns)}


def run_all(board: Board) -> list[list[str]]:
    """Let the workers take turns until everything has ended."""
    progress = True
    while progress:
        progress = False
        for node in board.nodes:
            queue = board.scheduler.node2pending[node]
            if len(queue) > 1 or (queue and node.told_to_end):
                board.complete(node, board.ids[queue[0]])
                progress = True
    assert not board.scheduler.has_pending
    assert board.unfinished == 0
    return board.all_sent()
