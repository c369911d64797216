"""Order and affinity under pytest-xdist.

Items of experiments are sent in the order of a run, a few at a time, so that the longest start first and nobody
waits behind a queue at the end. Sessions without such items are scheduled exactly as ``--dist load`` does.

A worker starts an item only when it knows the next one (pytest-xdist#339). So the last item of a worker's queue is
*held*: it starts when another one is sent or the worker is told to shut down. Attempts that need the baseline of
their task rely on it: as a look-ahead such an item may be sent before its gate opens, as long as nothing follows it.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pytest
from xdist.scheduler import LoadScheduling
from xdist.workermanage import WorkerController

QUEUE_SECONDS: Final = 0.25
"""How much work a worker's queue should hold, so that short items are sent many at a time."""
LONGEST_QUEUE: Final = 64
SHORTEST_QUEUE: Final = 2


@dataclass(frozen=True, slots=True)
class Slot:
    """How one collected id is scheduled."""

    rank: tuple[Any, ...]
    """The smaller is sent first."""
    affinity: str | None = None
    """Items with one key go to one worker while it costs nothing."""
    opens: str | None = None
    """The gate that this item, with all others of that gate, opens when it ends."""
    gate: str | None = None
    """The gate that must be open before this item may start."""


Planner: TypeAlias = Callable[[Sequence[str]], Sequence[Slot] | None]
"""Gives each collected id its slot; None when none of them is an attempt."""


class ReadyItems:
    """Items that may be sent, by affinity: a worker keeps its own affinity while items of it are left."""

    def __init__(self) -> None:
        """Nothing is ready yet."""
        self._queues: Final[dict[str | None, deque[int]]] = {}
        self._owners: Final[dict[str, WorkerController]] = {}
        self._own: Final[dict[WorkerController, str]] = {}
        self._slots: Sequence[Slot] = ()

    def use(self, slots: Sequence[Slot]) -> None:
        """Index into these slots from now on."""
        self._slots = slots

    def __bool__(self) -> bool:
        """Whether anything is ready."""
        return bool(self._queues)

    def add(self, index: int, *, first: bool = False) -> None:
        """Make an item ready, at the end of its affinity's queue or at its beginning."""
        queue = self._queues.setdefault(self._slots[index].affinity, deque())
        if first:
            queue.appendleft(index)
        else:
            queue.append(index)

    def take(self, node: WorkerController) -> int:
        """The next item for a worker; there must be one."""
        affinity = self._choose(node)
        queue = self._queues[affinity]
        index = queue.popleft()
        if not queue:
            del self._queues[affinity]
        return index

    def forget(self, node: WorkerController) -> None:
        """A worker is gone: its affinity is free for another."""
        affinity = self._own.pop(node, None)
        if affinity is not None:
            self._owners.pop(affinity, None)

    def _choose(self, node: WorkerController) -> str | None:
        own = self._own.get(node)
        if own is not None and own in self._queues:
            return own
        free = [affinity for affinity in self._queues if affinity is None or affinity not in self._owners]
        if not free:  # help the worker that has most left of one affinity
            return max(self._queues, key=lambda affinity: len(self._queues[affinity]))
        chosen = min(free, key=lambda affinity: self._slots[self._queues[affinity][0]].rank)
        self.forget(node)
        if chosen is not None:
            self._own[node] = chosen
            self._owners[chosen] = node
        return chosen


class ExperimentScheduling(LoadScheduling):  # type: ignore[misc]  # xdist has no type hints to inherit from
    """``--dist load`` that sends attempts in their order and holds those whose gate is closed.

    Attributes:
        slots: how each id of the collection is scheduled; None when the session has no attempts.
        ready: items that may be sent.
        closed: gate -> the items that still have to end before it opens.
        blocked: gate -> items that wait for it.
        seconds: a moving average of what an item takes, for the length of the workers' queues.
    """

    def __init__(self, config: pytest.Config, log: Any, planner: Planner) -> None:
        """Schedule what ``planner`` recognises; the rest as ``--dist load`` does."""
        super().__init__(config, log)
        self._planner: Final = planner
        self.slots: Sequence[Slot] | None = None
        self.ready: Final = ReadyItems()
        self.closed: Final[dict[str, set[int]]] = {}
        self.blocked: Final[dict[str, deque[int]]] = {}
        self.seconds = 0.0

    # ------------------------------------------------ what xdist asks

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to send, so that held items may be flushed by a shutdown."""
        if self.slots is None:
            return bool(super().tests_finished)
        if self.ready or self.blocked:
            return False
        return all(len(pending) < 2 and all(map(self._open, pending)) for pending in self.node2pending.values())

    @property
    def has_pending(self) -> bool:
        """Whether the scheduler still has work somewhere."""
        if self.slots is None:
            return bool(super().has_pending)
        return bool(self.ready or self.blocked or any(self.node2pending.values()))

    def schedule(self) -> None:
        """Start sending, or go on after a worker was added."""
        if self.collection is None and self._check_nodes_have_same_collection():
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
        self.seconds += 0.2 * (duration - self.seconds)
        self._settle(item_index)
        self._pump()

    def mark_test_pending(self, item: str) -> None:
        """An item is to run (again)."""
        if self.slots is None:
            super().mark_test_pending(item)
            return
        assert self.collection is not None
        self._enqueue(self.collection.index(item), first=True)
        self._pump()

    def remove_node(self, node: WorkerController) -> str | None:
        """A worker is gone; gives the id of the item it was running, if it was."""
        if self.slots is None:
            crashed: str | None = super().remove_node(node)
            return crashed
        pending = self.node2pending.pop(node)
        self.ready.forget(node)
        if not pending:
            return None
        running = pending[0]
        for index in reversed(pending[1:]):
            self._enqueue(index, first=True)
        self._settle(running)  # a crash is an outcome too: what waits for it would wait for ever
        self._pump()
        assert self.collection is not None
        return self.collection[running]

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Send more where a worker's queue is short."""
        if self.slots is None:
            super().check_schedule(node, duration)
        else:
            self._pump()

    # ------------------------------------------------ gates

    def _open(self, index: int) -> bool:
        assert self.slots is not None
        gate = self.slots[index].gate
        return gate is None or gate not in self.closed

    def _enqueue_all(self, slots: Sequence[Slot]) -> None:
        self.ready.use(slots)
        for index, slot in enumerate(slots):
            if slot.opens is not None:
                self.closed.setdefault(slot.opens, set()).add(index)
        for index in sorted(range(len(slots)), key=lambda index: (slots[index].rank, index)):
            self._enqueue(index)

    def _enqueue(self, index: int, *, first: bool = False) -> None:
        assert self.slots is not None
        gate = self.slots[index].gate
        if gate is not None and gate in self.closed:
            self.blocked.setdefault(gate, deque()).append(index)
        else:
            self.ready.add(index, first=first)

    def _settle(self, index: int) -> None:
        assert self.slots is not None
        gate = self.slots[index].opens
        waiting_for = None if gate is None else self.closed.get(gate)
        if gate is None or waiting_for is None:
            return
        waiting_for.discard(index)
        if not waiting_for:
            del self.closed[gate]
            for blocked in self.blocked.pop(gate, ()):
                self.ready.add(blocked)

    # ------------------------------------------------ sending

    def _pump(self) -> None:
        """Fill the workers' queues evenly, then release those that hold an item nothing will follow."""
        nodes = [node for node in self.node2pending if not node.shutting_down and node in self.node2collection]
        length = self._queue_length()
        takers = deque(node for node in nodes if self._wants_more(self.node2pending[node], length))
        batches: dict[WorkerController, list[int]] = {node: [] for node in takers}
        while self.ready and takers:
            node = takers.popleft()
            index = self.ready.take(node)
            self.node2pending[node].append(index)
            batches[node].append(index)
            if len(self.node2pending[node]) < length:
                takers.append(node)
        for node, batch in batches.items():
            if batch:
                node.send_runtest_some(batch)
        if not self.ready:
            for node in nodes:
                self._release(node)

    def _wants_more(self, queue: Sequence[int], length: int) -> bool:
        """Whether a queue is half empty, and its last item, which the next one would release, may start."""
        return len(queue) < max(SHORTEST_QUEUE, length // 2) and (not queue or self._open(queue[-1]))

    def _queue_length(self) -> int:
        if self.seconds <= 0:
            return SHORTEST_QUEUE
        return max(SHORTEST_QUEUE, min(LONGEST_QUEUE, int(QUEUE_SECONDS / self.seconds)))

    def _release(self, node: WorkerController) -> None:
        """Nothing is ready: let a worker start the item it holds."""
        queue = self.node2pending[node]
        if len(queue) == 1 and self._open(queue[0]):
            if self.blocked:  # a look-ahead that cannot start before its gate opens, since nothing follows it
                gate = next(iter(self.blocked))
                index = self.blocked[gate].popleft()
                if not self.blocked[gate]:
                    del self.blocked[gate]
                queue.append(index)
                node.send_runtest_some([index])
            else:
                node.shutdown()
        elif not queue and not self.blocked and not self._anything_held():
            node.shutdown()

    def _anything_held(self) -> bool:
        return any(not self._open(index) for queue in self.node2pending.values() for index in queue)
