"""Sets as bits: how many goals, or mutants, the tasks of a subset have together, for many fillings of the tasks.

A set of up to 64 members is one unsigned word; larger sets take several. The union over a subset's tasks is then an
OR, and its size a count of bits.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_metricbench.analysis.arrays import BoolArray, IntArray, WordArray

_BITS: Final = 64
_FILLINGS: Final = 256
"""Worked on at a time, so that they stay in the cache."""
_BYTE_COUNTS: Final = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)


def packed(flags: BoolArray) -> WordArray:
    """Flags of shape (..., members) as words of shape (..., words)."""
    missing = -flags.shape[-1] % _BITS
    padded = np.pad(flags, [(0, 0)] * (flags.ndim - 1) + [(0, missing)])
    return np.ascontiguousarray(np.packbits(padded, axis=-1, bitorder="little")).view(np.uint64)


def _counted_by_bytes(words: WordArray) -> npt.NDArray[np.uint8]:
    found: npt.NDArray[np.uint8] = _BYTE_COUNTS[words.view(np.uint8).reshape(*words.shape, 8)].sum(axis=-1)
    return found.astype(np.uint8)


_native: Callable[[WordArray], npt.NDArray[np.uint8]] | None = getattr(np, "bitwise_count", None)  # numpy 2 has it
count_bits: Final[Callable[[WordArray], npt.NDArray[np.uint8]]] = _native or _counted_by_bytes
"""How many bits of each word are set."""


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Which tasks each subset holds: a matrix of shape (subsets, tasks), and per size the positions."""

    members: BoolArray
    by_size: tuple[tuple[IntArray, IntArray], ...]
    """Rows of the subsets of one size, and the positions of their tasks, shape (rows, size)."""

    @classmethod
    def of(cls, members: BoolArray) -> "Design":
        """The design of a matrix of members; a subset without a task is refused."""
        sizes = members.sum(axis=1)
        if len(sizes) and sizes.min() < 1:
            raise ValueError("a subset has no task")
        groups = []
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            groups.append((rows, np.nonzero(members[rows])[1].reshape(len(rows), size)))
        return cls(members, tuple(groups))

    def union_sizes(self, words: Iterable[WordArray]) -> IntArray:
        """The size of the union over each subset's tasks.

        Args:
            words: for every word of the sets an array of shape (tasks, fillings).

        Returns:
            Shape (subsets, fillings).
        """
        found: IntArray | None = None
        for word in words:
            if found is None:
                found = np.zeros((len(self.members), word.shape[1]), dtype=np.int64)
            for start in range(0, word.shape[1], _FILLINGS):
                some = np.ascontiguousarray(word[:, start : start + _FILLINGS])
                for rows, positions in self.by_size:
                    union = some[positions[:, 0]]
                    for place in range(1, positions.shape[1]):
                        union |= some[positions[:, place]]
                    found[rows, start : start + _FILLINGS] += count_bits(union)
        if found is None:
            raise ValueError("sets without a word have no union")
        return found


def design_on(members: BoolArray, tasks: Sequence[int]) -> tuple[Design, IntArray]:
    """The subsets that hold only some tasks, as a design over those tasks; and each subset's row in it, -1 for none.

    Args:
        members: shape (subsets, all tasks).
        tasks: positions of the tasks that the design is over.
    """
    inside = members[:, list(tasks)]
    usable = (inside.sum(axis=1) == members.sum(axis=1)) & (inside.sum(axis=1) > 0)
    return Design.of(inside[usable]), np.where(usable, np.cumsum(usable) - 1, -1)
