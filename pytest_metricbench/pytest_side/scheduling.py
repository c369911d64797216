"""Order and affinity under pytest-xdist.

Items of experiments are sent in the order of a run, a few at a time, so that the longest start first and nobody
waits behind a queue at the end. Sessions without such items are scheduled exactly as ``--dist load`` does.

A worker starts an item only when it knows the next one (pytest-xdist#339). So the last item of a worker's queue is
*held*: it starts when another one is sent or the worker is told to shut down. Attempts that need the baseline of
their task rely on it: as a look-ahead such an item may be sent before its gate opens, as long as nothing follows it.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

import pytest
from xdist.report import report_collection_diff
from xdist.scheduler import LoadScheduling
from xdist.workermanage import WorkerController

from pytest_metricbench.private_names import was_told_to_end
from pytest_metricbench.pytest_side.ready_items import ReadyItems, Slot

QUEUE_SECONDS: Final = 0.1
"""How much work a worker's queue should hold, so that short items are sent many at a time."""
LONGEST_QUEUE: Final = 16
"""More saves nothing that can be measured, and no worker should sit on items that turn out to be long."""
SHORTEST_QUEUE: Final = 2
RECENT: Final = 0.1
"""How fast the estimate of what an item takes follows shorter ones; it follows a longer one at once."""


Planner: TypeAlias = Callable[[Sequence[str]], Sequence[Slot] | None]
"""Gives each collected id its slot; None when none of them is an attempt."""


class ExperimentScheduling(LoadScheduling):  # type: ignore[misc]  # xdist has no type hints to inherit from
    """``--dist load`` that sends attempts in their order and holds those whose gate is closed.

    Workers come with :meth:`add_node`, say what they have collected, and once all of them have, :meth:`schedule` asks
    the planner and sends. From then on every call ends in :meth:`_pump`, which sends what can be sent. Items are
    indices into ``collection``. Each that has not ended is in exactly one place: ``ready``, ``blocked``, or the queue
    of one worker; what a worker that is gone had not begun goes back to one of the first two.

    Attributes:
        collection: the ids, once all workers have collected the same; None before that, and where they never do.
        node2collection: worker -> its ids, from the moment it has collected; only such a worker is sent something.
        node2pending: worker -> its queue: what it was sent and has not ended, in that order. The first is running,
            unless it is the only one and the worker is not told to shut down: then it is held. Only the last may have a
            closed gate.
        slots: how each id of the collection is scheduled; None when the session has no attempts: then all of this is
            as ``LoadScheduling`` has it.
        ready: items that may be sent.
        closed: gate -> the items that still have to end before it opens; never empty, since it is then open.
        blocked: gate -> items that wait for it; no item here has an open gate.
        seconds: phase -> what an item of it takes, rather too long than too short, for the length of the workers'
            queues. A phase starts with its longest, whatever the last one ended with.
    """

    collection: list[str] | None

    def __init__(self, config: pytest.Config, log: Any, planner: Planner) -> None:
        """Schedule what ``planner`` recognises; the rest as ``--dist load`` does."""
        super().__init__(config, log)
        self._planner: Final = planner
        self.slots: Sequence[Slot] | None = None
        self.ready = ReadyItems(())
        self.closed: Final[dict[str, set[int]]] = {}
        self.blocked: Final[dict[str, deque[int]]] = {}
        self.seconds: Final[dict[Any, float]] = {}

    # ------------------------------------------------ what xdist asks

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to send, so that held items may be flushed by a shutdown."""
        if self.slots is None:
            return bool(super().tests_finished)
        if self.ready or self.blocked:
            return False
        return all(len(queue) < 2 and not self._holds_closed(queue) for queue in self.node2pending.values())

    @property
    def has_pending(self) -> bool:
        """Whether the scheduler still has work somewhere."""
        if self.slots is None:
            return bool(super().has_pending)
        return bool(self.ready or any(self.node2pending.values()))  # what is blocked waits for one of these

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """A worker has collected. One that replaces another and has collected something else gets no work."""
        super().add_node_collection(node, collection)
        if self.slots is None or node in self.node2collection:
            return
        node.shutdown()
        self._report_difference(node, collection)
        self._go_on_without_replacement()

    def schedule(self) -> None:
        """Start sending, or go on after a worker was added."""
        if self.collection is None and self._collections_agree():
            collection = next(iter(self.node2collection.values()))
            self.slots = self._planner(collection)
            if self.slots is not None:
                self.collection = collection
                self._enqueue_all(self.slots)
        if self.slots is None:
            super().schedule()
        else:
            self._pump()

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """An item ended on a worker."""
        if self.slots is None:
            super().mark_test_complete(node, item_index, duration)
            return
        self.node2pending[node].remove(item_index)
        phase = self.slots[item_index].rank[0]
        recent = self.seconds.get(phase, duration)
        self.seconds[phase] = max(duration, recent + RECENT * (duration - recent))
        self._settle(item_index)
        self._pump()

    def mark_test_pending(self, item: str) -> None:
        """An item is to run (again)."""
        if self.slots is None:
            super().mark_test_pending(item)
            return
        assert self.collection is not None
        self._enqueue(self.collection.index(item))
        self._pump()

    def remove_node(self, node: WorkerController) -> str | None:
        """A worker is gone; gives the id of the item it was running, if it was.

        Raises:
            KeyError: there is no such worker.
        """
        if self.slots is None:
            crashed: str | None = super().remove_node(node)
            return crashed
        queue = self.node2pending.pop(node)
        self.ready.forget(node)
        running = queue.pop(0) if queue and not _holds_only(node, queue) else None
        for index in queue:
            self._enqueue(index)
        if running is not None:
            self._settle(running)  # a crash is an outcome too: what waits for it would wait for ever
        self._pump()
        assert self.collection is not None
        return None if running is None else self.collection[running]

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Send more where a worker's queue is short."""
        if self.slots is None:
            super().check_schedule(node, duration)
        else:
            self._pump()

    # ------------------------------------------------ collections

    def _collections_agree(self) -> bool:
        """As ``_check_nodes_have_same_collection``, which is left to report that they do not."""
        first, *others = self.node2collection.values()
        return all(other == first for other in others)

    def _report_difference(self, node: WorkerController, collection: Sequence[str]) -> None:
        assert self.collection is not None
        other = next(iter(self.node2collection))
        message = report_collection_diff(self.collection, collection, other.gateway.id, node.gateway.id)
        report = pytest.CollectReport(node.gateway.id, "failed", message, result=[])
        self.config.hook.pytest_collectreport(report=report)

    def _go_on_without_replacement(self) -> None:
        """Wait for nobody: whoever is still to come has most likely collected something else too."""
        queues = [self.node2pending[node] for node in self._takers()]
        if not queues:
            self.ready.clear()
            self.blocked.clear()
        elif self.ready and all(len(queue) == 1 and self._holds_closed(queue) for queue in queues):
            self.closed.clear()  # what opens their gates is ready, and none of them can take it
            for gate in list(self.blocked):
                for index in self.blocked.pop(gate):
                    self.ready.add(index)

    # ------------------------------------------------ gates

    def _open(self, index: int) -> bool:
        assert self.slots is not None
        return self.slots[index].gate not in self.closed

    def _holds_closed(self, queue: Sequence[int]) -> bool:
        """Whether a queue ends with an item that must not start yet; no other of its items can be one."""
        return bool(queue) and not self._open(queue[-1])

    def _enqueue_all(self, slots: Sequence[Slot]) -> None:
        self.ready = ReadyItems(slots)
        for index, slot in enumerate(slots):
            if slot.opens is not None:
                self.closed.setdefault(slot.opens, set()).add(index)
        for index in self.ready.order:
            self._enqueue(index)

    def _enqueue(self, index: int) -> None:
        assert self.slots is not None
        gate = self.slots[index].gate
        if gate is not None and gate in self.closed:
            self.blocked.setdefault(gate, deque()).append(index)
        else:
            self.ready.add(index)

    def _settle(self, index: int) -> None:
        """An item has its outcome: open its gate, if it was the last."""
        assert self.slots is not None
        gate = self.slots[index].opens
        if gate is None or gate not in self.closed:
            return
        self.closed[gate].discard(index)
        if not self.closed[gate]:
            del self.closed[gate]
            for blocked in self.blocked.pop(gate, ()):
                self.ready.add(blocked)

    # ------------------------------------------------ sending

    def _takers(self) -> list[WorkerController]:
        """The workers that can be sent something."""
        return [node for node in self.node2pending if not node.shutting_down and node in self.node2collection]

    def _pump(self) -> None:
        """Fill the workers' queues evenly, then release those that hold an item nothing will follow."""
        nodes = self._takers()
        for phase in self.ready.phases:
            self._fill(nodes, phase)
            if phase in self.ready.phases:
                return
        for node in nodes:
            self._release(node)

    def _fill(self, nodes: Sequence[WorkerController], phase: Any) -> None:
        length = self._queue_length(len(nodes), phase)
        wanting = [node for node in nodes if self._wants_more(self.node2pending[node], length)]
        short = deque(sorted(wanting, key=lambda node: len(self.node2pending[node])))  # who has nothing comes first
        batches: dict[WorkerController, list[int]] = {node: [] for node in short}
        while short and phase in self.ready.phases:
            node = short.popleft()
            batches[node].append(self.ready.take(node))
            if len(self.node2pending[node]) + len(batches[node]) < length:
                short.append(node)
        for node, batch in batches.items():
            if batch:
                self._send(node, batch)

    def _wants_more(self, queue: Sequence[int], length: int) -> bool:
        """Whether a queue is half empty, and its last item, which the next one would release, may start."""
        return len(queue) < max(SHORTEST_QUEUE, length // 2) and not self._holds_closed(queue)

    def _queue_length(self, workers: int, phase: Any) -> int:
        """As long as items are known to be short, and shorter towards the end, so that the workers end together."""
        if not workers or phase not in self.seconds:
            return SHORTEST_QUEUE
        length = min(LONGEST_QUEUE, len(self.ready) // (4 * workers), self.maxschedchunk or LONGEST_QUEUE)
        if self.seconds[phase] > 0:
            length = min(length, int(QUEUE_SECONDS / self.seconds[phase]))
        return max(SHORTEST_QUEUE, length)

    def _release(self, node: WorkerController) -> None:
        """Nothing is ready: let a worker start the item it holds."""
        queue = self.node2pending[node]
        if len(queue) == 1 and self._open(queue[0]):
            if self.blocked:
                self._send(node, [self._look_ahead(queue[0])])
            else:
                node.shutdown()
        elif not queue and not self.blocked and not any(map(self._holds_closed, self.node2pending.values())):
            node.shutdown()

    def _look_ahead(self, held: int) -> int:
        """A blocked item for the worker that holds ``held``, which can take nothing else until that one's gate opens.

        Best is one that waits for ``held`` alone, else one whose gate lacks little.
        """
        assert self.slots is not None
        gate = self.slots[held].opens
        if gate not in self.blocked or len(self.closed[gate]) > 1:
            gate = min(self.blocked, key=lambda gate: len(self.closed[gate]))
        index = self.blocked[gate].popleft()
        if not self.blocked[gate]:
            del self.blocked[gate]
        return index

    def _send(self, node: WorkerController, batch: list[int]) -> None:
        self.node2pending[node].extend(batch)
        with suppress(OSError):  # it has just died; its queue is sent to others when pytest-xdist says so
            node.send_runtest_some(batch)


def _holds_only(node: WorkerController, queue: Sequence[int]) -> bool:
    """Whether a worker that is gone had not started the one item of its queue: it knew none to follow."""
    return len(queue) == 1 and not was_told_to_end(node)
