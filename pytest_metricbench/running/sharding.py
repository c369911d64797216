"""Which items a CI shard runs: a function of the ids (and of one durations file), the same on every machine."""

import hashlib
import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_metricbench.contracts import AttemptKey, AttemptRecord
from pytest_metricbench.running.naming import ItemName
from pytest_metricbench.running.ordering import Order
from pytest_metricbench.store.journal import StoreError, read_lines
from pytest_metricbench.store.records import RecordError, attempt_from_line, unsealed


@dataclass(frozen=True, slots=True)
class Shard:
    """The ``number``-th of ``count`` parts, from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read ``2/5``.

        Raises:
            ValueError: the text is of another form, or the number is not one of the count.
        """
        number, slash, count = text.partition("/")
        if not slash or not number.isdecimal() or not count.isdecimal() or not 1 <= int(number) <= int(count):
            raise ValueError(f"{text!r} is no shard; write the number of the part and of all parts, as in 2/5")
        return cls(int(number), int(count))


def shards(
    units: Mapping[ItemName, Sequence[AttemptKey]], count: int, known: Mapping[AttemptKey, AttemptRecord]
) -> dict[ItemName, int]:
    """Item -> the number of its shard, from 1. An item of several attempts goes to one shard whole.

    Without durations, items are dealt in the order of a digest of their ids, so that every shard gets its share of
    each variant and task. With them, the longest go first, each to the shard with the least to do (LPT; Graham 1969).

    Args:
        units: every item of the experiment, with its attempts.
        count: how many shards there are.
        known: records with durations; must be the same on every machine.
    """
    ordered = sorted(units, key=lambda name: hashlib.sha256("::".join(map(str, name)).encode()).digest())
    if not known:
        return {name: index % count + 1 for index, name in enumerate(ordered)}
    order = Order(known)
    typical = sum(record.duration for record in known.values()) / len(known)
    seconds = {name: sum(_finite(order.duration(key), typical) for key in units[name]) for name in ordered}
    loads = [(0.0, number) for number in range(1, count + 1)]
    dealt = {}
    for name in sorted(ordered, key=lambda name: -seconds[name]):
        load, number = heapq.heappop(loads)
        dealt[name] = number
        heapq.heappush(loads, (load + seconds[name], number))
    return dealt


def _finite(duration: float, typical: float) -> float:
    return duration if duration != float("inf") else typical


def read_durations(path: Path) -> dict[AttemptKey, AttemptRecord]:
    """The records of an ``attempts.jsonl`` of an earlier run.

    Raises:
        StoreError: the file cannot be read or is none.
    """
    if not path.is_file():
        raise StoreError(f"{path}: there is no such file; name the attempts.jsonl of an earlier run")
    records = {}
    for number, line in read_lines(path):
        try:
            record = attempt_from_line(unsealed(line))
        except RecordError as error:
            raise StoreError(f"{path}:{number}: {error}; name the attempts.jsonl of an earlier run") from None
        records[record.key] = record
    return records
