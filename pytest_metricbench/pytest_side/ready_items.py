"""Items that may be sent to workers, by rank, and what keeps those that share a costly set-up on one worker.

It knows nothing of pytest-xdist: a worker is whatever can be told from another.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Slot:
    """How one collected id is scheduled."""

    rank: tuple[Any, ...]
    """The smaller is sent first. Its first part is the phase: no affinity keeps a worker from an earlier phase."""
    affinity: str | None = None
    """Items with one key go to one worker while it costs nothing."""
    opens: str | None = None
    """The gate that this item, with all others of that gate, opens when it ends."""
    gate: str | None = None
    """The gate that must be open before this item may start."""


_Key: TypeAlias = tuple[Any, str | None]
"""Phase and affinity."""


class ReadyItems:
    """Items that may be sent, by rank; a worker keeps its own affinity while its phase has items of it.

    Attributes:
        order: place -> item, by rank; equal ranks as collected.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        """Nothing is ready yet; items are indices into ``slots``."""
        self.order: Final = sorted(range(len(slots)), key=lambda index: slots[index].rank)
        self._keys: Final[list[_Key]] = [(slot.rank[0], slot.affinity) for slot in slots]
        self._places: Final = [0] * len(slots)
        for place, index in enumerate(self.order):
            self._places[index] = place
        self._queues: Final[dict[_Key, list[int]]] = {}
        """Heaps of places, none of them empty."""
        self._phases: Final[Counter[Any]] = Counter()
        self._firsts: Final[list[tuple[int, _Key]]] = []
        """A heap with the first place of every key that no worker owns, and of some that have changed since."""
        self._owners: Final[Counter[_Key]] = Counter()
        """How many workers each key has; no key without any."""
        self._own: Final[dict[Hashable, _Key]] = {}

    def __len__(self) -> int:
        """How many are ready."""
        return self._phases.total()

    @property
    def phases(self) -> list[Any]:
        """The phases of which items are ready, in order."""
        return sorted(self._phases)

    def add(self, index: int) -> None:
        """Make an item ready."""
        key, place = self._keys[index], self._places[index]
        queue = self._queues.setdefault(key, [])
        heappush(queue, place)
        self._phases[key[0]] += 1
        if queue[0] == place:
            self._offer(key)

    def take(self, node: Hashable) -> int:
        """The next item for a worker; there must be one."""
        key = self._choose(node)
        queue = self._queues[key]
        place = heappop(queue)
        if not queue:
            del self._queues[key]
        self._phases[key[0]] -= 1
        if not self._phases[key[0]]:
            del self._phases[key[0]]
        self._offer(key)
        return self.order[place]

    def forget(self, node: Hashable) -> None:
        """A worker is gone, or turns to something else: its affinity is free for another."""
        key = self._own.pop(node, None)
        if key is None:
            return
        self._owners[key] -= 1
        if not self._owners[key]:
            del self._owners[key]
            self._offer(key)

    def clear(self) -> None:
        """Nothing is ready any more."""
        self._queues.clear()
        self._phases.clear()

    def _offer(self, key: _Key) -> None:
        if key in self._queues and key not in self._owners:
            heappush(self._firsts, (self._queues[key][0], key))

    def _choose(self, node: Hashable) -> _Key:
        phase = min(self._phases)
        own = self._own.get(node)
        if own is not None and own[0] == phase and own in self._queues:
            return own
        chosen = self._first_free()
        if chosen is None or chosen[0] != phase:  # help where most is left
            owned = [key for key in self._owners if key[0] == phase and key in self._queues]
            chosen = max(owned, key=lambda key: len(self._queues[key]))
        self.forget(node)
        if chosen[1] is not None:
            self._own[node] = chosen
            self._owners[chosen] += 1
        return chosen

    def _first_free(self) -> _Key | None:
        """The key that no worker owns and whose first item ranks lowest."""
        while self._firsts:
            place, key = self._firsts[0]
            if key not in self._owners and key in self._queues and self._queues[key][0] == place:
                return key
            heappop(self._firsts)
        return None
