"""The subsets of a case: listed, or drawn as a pure function of sizes, number, seed and the ids of the tasks."""

import hashlib
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_metricbench.contracts import Json
from pytest_metricbench.definition.documents import Place
from pytest_metricbench.definition.experiment import Subset
from pytest_metricbench.definition.problems import ProblemList, shown_path
from pytest_metricbench.digests import canonical_json
from pytest_metricbench.messages import joined

_WORD: Final = 32
"""Bytes of one SHA-256 digest."""


_MOST_SHOWN: Final = 6
"""Ids that a warning lists."""


def check_subsets(places: Sequence[Place], tasks: Sequence[str], problems: ProblemList, remedy: str) -> None:
    """Note which subsets of a list name a task that the case does not have, or one task twice."""
    known = frozenset(tasks)
    for place in places:
        seen: set[str] = set()
        for entry in place.entries("tasks"):
            task = entry.value
            if not isinstance(task, str):
                continue
            if task in seen:
                problems.add(
                    entry.problem(f"the task {task!r} stands twice in this subset", joined("name it once", remedy))
                )
            elif task not in known:
                hint = problems.hint(task, known)
                problems.add(entry.problem(f"the case has no task {task!r}", joined(hint, remedy)))
            seen.add(task)


def subsets_from(entries: Sequence[Json]) -> tuple[Subset, ...]:
    """Subsets of a list that was checked."""
    return tuple(Subset(entry["id"], tuple(entry["tasks"])) for entry in entries)


def equal_subsets(subsets: Sequence[Subset]) -> list[list[str]]:
    """Ids of subsets that hold the same tasks, a list for each such set of tasks."""
    holders: dict[frozenset[str], list[str]] = {}
    for subset in subsets:
        holders.setdefault(frozenset(subset.tasks), []).append(subset.id)
    return [ids for ids in holders.values() if len(ids) > 1]


def draw(tasks: Sequence[str], sizes: Sequence[int], per_size: int, seed: int) -> list[dict[str, Json]]:
    """Draw subsets without replacement from all subsets of each size, each equally likely.

    The draw depends on the ids of the tasks and not on their order. Every subset of a size that has ``per_size`` or
    fewer is taken. A longer draw of a size begins with the shorter one, up to half of what there is.

    Returns:
        Entries as the file would list them, ``{"id": "n3-01", "tasks": [...]}``, tasks in the order of their ids.

    Raises:
        ValueError: a size is above the number of tasks, or below 1.
    """
    ordered = sorted(tasks)
    drawn: list[dict[str, Json]] = []
    for size in sizes:
        if not 1 <= size <= len(ordered):
            raise ValueError(f"no subset of {len(ordered)} tasks has {size} of them")
        width = max(2, len(str(per_size)))
        ranks = _ranks(math.comb(len(ordered), size), per_size, [seed, size, ordered])
        for number, rank in enumerate(ranks, start=1):
            chosen = [ordered[position] for position in _combination(rank, len(ordered), size)]
            drawn.append({"id": f"n{size}-{number:0{width}d}", "tasks": chosen})
    return drawn


def short_sizes(task_count: int, sizes: Sequence[int], per_size: int) -> list[tuple[int, int]]:
    """(size, how many there are) of the sizes that have fewer subsets than asked for."""
    counts = [(size, math.comb(task_count, size)) for size in sizes]
    return [(size, count) for size, count in counts if count < per_size]


def duplicates_warning(place: Place, ids: Sequence[str]) -> str:
    """That subsets hold the same tasks."""
    where = f"{shown_path(place.document.path)}:{place.line}"
    shown = ids if len(ids) <= _MOST_SHOWN else [*ids[: _MOST_SHOWN - 1], f"{len(ids) - _MOST_SHOWN + 1} more"]
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}"
    weight = "double" if len(ids) == 2 else f"{len(ids)}-fold"
    return f"{where}: the subsets {listed} hold the same tasks; they weigh {weight} in every correlation"


def _ranks(count: int, wanted: int, key: Json) -> list[int]:
    """Distinct numbers below ``count``: all of them in order, or as many as wanted in the order they are drawn."""
    if wanted >= count:
        return list(range(count))
    stream = _uniform(count, key)
    if wanted <= count // 2:
        return _distinct(stream, wanted)
    left_out = set(_distinct(stream, count - wanted))
    return [rank for rank in range(count) if rank not in left_out]


def _distinct(stream: Iterator[int], wanted: int) -> list[int]:
    found: dict[int, None] = {}
    while len(found) < wanted:
        found[next(stream)] = None
    return list(found)


def _uniform(count: int, key: Json) -> Iterator[int]:
    """Numbers below ``count``, each equally likely, from the SHA-256 digests of a key and a counter.

    Of the digests' bits as many are taken as ``count`` has, and numbers that are too large are left out; nothing here
    depends on a generator that another version of Python might change.
    """
    bits = max(1, (count - 1).bit_length())
    words = -(-bits // (8 * _WORD))
    begin = hashlib.sha256(canonical_json(key).encode("ascii")).digest()
    for position in itertools.count():
        text = b"".join(
            hashlib.sha256(begin + position.to_bytes(8, "big") + word.to_bytes(4, "big")).digest()
            for word in range(words)
        )
        number = int.from_bytes(text, "big") >> (8 * _WORD * words - bits)
        if number < count:
            yield number


def _combination(rank: int, total: int, size: int) -> list[int]:
    """The positions of the combination at a rank in lexicographic order."""
    positions: list[int] = []
    with_this = math.comb(total - 1, size - 1)  # combinations that begin with the position looked at
    for position in range(total):
        behind = total - position - 1
        taken = rank < with_this
        if taken:
            positions.append(position)
            size -= 1
            if not size:
                break
        else:
            rank -= with_this
        with_this = with_this * (size if taken else behind - size + 1) // behind
    return positions
