"""Mutation scores of sets of tasks, in exact integers until the end.

Everything works on matrices: ``members`` (sets x tasks) says which tasks a set holds, ``present`` and ``killed``
(mutants x tasks) what is known of each cell. The whole pool is one more row of ``members``.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pytest_metricbench.analysis.arrays import BoolArray, IntArray
from pytest_metricbench.analysis.detection import Tallies

_EXACT: Final = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class SetKills:
    """For every set and mutant, shape (sets, mutants): is it killed, and how many of its cells are there."""

    killed: BoolArray
    cells: IntArray

    def share(self, row: int, mutants: BoolArray) -> tuple[int, int]:
        """Killed mutants and counted mutants of a set: those of ``mutants`` that have a cell in it."""
        counted = mutants & (self.cells[row] > 0)
        return int(np.count_nonzero(self.killed[row] & counted)), int(np.count_nonzero(counted))


def set_kills(members: BoolArray, present: BoolArray, killed: BoolArray) -> SetKills:
    """Which mutants each set kills: those that some task of the set kills (so kills are monotone in the set)."""
    sets = members.astype(np.int64)
    return SetKills((sets @ (killed & present).T.astype(np.int64)) > 0, sets @ present.T.astype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Drops:
    """The drop of the pass rate in every cell as integers over one denominator; 0 where a cell is missing."""

    numerators: npt.NDArray[Any]
    """Shape (mutants, tasks); Python integers where 64 bits would not hold the sums."""
    denominator: int


def drops(tallies: Tallies) -> Drops:
    """Baseline pass rate minus mutant pass rate, not clipped: an improvement is negative."""
    present = tallies.present
    counts = {int(n) for n in np.unique(tallies.base_n)} | {int(n) for n in np.unique(tallies.mutant_n)}
    denominator = math.lcm(*(counts - {0})) if counts - {0} else 1
    exact_in_64_bits = denominator * max(1, present.shape[1]) < _EXACT
    kind: type = np.int64 if exact_in_64_bits else object

    def scaled(passed: IntArray, n: IntArray) -> npt.NDArray[Any]:
        return passed.astype(kind) * (denominator // np.maximum(n, 1).astype(kind))

    difference = scaled(tallies.base_passed, tallies.base_n) - scaled(tallies.mutant_passed, tallies.mutant_n)
    return Drops(np.where(present, difference, 0), denominator)


def mean_drops(members: BoolArray, cells: IntArray, drops: Drops, mutants: BoolArray) -> list[Fraction | None]:
    """For each set the mean, over ``mutants`` with a cell in it, of the mean drop over their cells; None without one.

    Args:
        members: shape (sets, tasks).
        cells: shape (sets, mutants), from :func:`set_kills`.
        drops: the drop of every cell.
        mutants: which mutants count, shape (mutants,).
    """
    sums: npt.NDArray[Any] = members.astype(drops.numerators.dtype) @ drops.numerators[mutants].T
    means: list[Fraction | None] = []
    for totals, numbers in zip(sums.tolist(), cells[:, mutants].tolist(), strict=True):
        by_number: dict[int, int] = {}
        for total, number in zip(totals, numbers, strict=True):
            if number:
                by_number[number] = by_number.get(number, 0) + total
        counted = sum(1 for number in numbers if number)
        total_mean = sum((Fraction(total, number) for number, total in by_number.items()), Fraction(0))
        means.append(total_mean / (counted * drops.denominator) if counted else None)
    return means
