"""When a task kills a mutant: it tells the mutant's attempts from the baseline's.

Both rules compare passes of the baseline with passes of the mutant at one task. Fisher's test is kept in exact
fractions, so that a p that equals the threshold is found equal (three attempts against three reach .05 and no less).
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray, IntArray
from pytest_metricbench.definition.experiment import KillRule


@dataclass(frozen=True, slots=True, eq=False)
class Tallies:
    """Passes and entries of the baseline, shape (tasks,), and of the mutants, shape (mutants, tasks).

    A cell counts where both sides have an entry.
    """

    base_passed: IntArray
    base_n: IntArray
    mutant_passed: IntArray
    mutant_n: IntArray

    @property
    def present(self) -> BoolArray:
        """Cells that are not missing, shape (mutants, tasks)."""
        return (self.mutant_n > 0) & (self.base_n > 0)


def flip_kills(tallies: Tallies) -> BoolArray:
    """Cells where more than half of the baseline's entries pass and not more than half of the mutant's."""
    solved = 2 * tallies.base_passed > tallies.base_n
    return tallies.present & solved & ~(2 * tallies.mutant_passed > tallies.mutant_n)


@lru_cache(maxsize=65536)
def fisher_p(base_passed: int, base_n: int, mutant_passed: int, mutant_n: int) -> Fraction:
    """One-sided p of Fisher's exact test that the baseline passes no more often than the mutant.

    The upper tail of the hypergeometric distribution of the baseline's passes, given both totals (Fisher 1935).

    Raises:
        ValueError: passes that are not in 0..n.
    """
    if not (0 <= base_passed <= base_n and 0 <= mutant_passed <= mutant_n):
        raise ValueError(f"{base_passed}/{base_n} against {mutant_passed}/{mutant_n}")
    passed, failed = base_passed + mutant_passed, base_n + mutant_n - base_passed - mutant_passed
    upper = sum(
        math.comb(passed, x) * math.comb(failed, base_n - x) for x in range(base_passed, min(base_n, passed) + 1)
    )
    return Fraction(upper, math.comb(base_n + mutant_n, base_n))


def exact(number: float) -> Fraction:
    """A number from a file as the decimal fraction it was written as: 0.05 is 1/20."""
    return Fraction(repr(number))


def discovery_threshold(counts: Mapping[Fraction, int], q: Fraction) -> Fraction | None:
    """The largest p that Benjamini and Hochberg (1995) reject at false discovery rate ``q``; None: they reject none.

    Args:
        counts: p -> how many tests of the family have it.
        q: the false discovery rate.
    """
    tests, rank, threshold = sum(counts.values()), 0, None
    for p in sorted(counts):
        rank += counts[p]
        if p * tests <= q * rank:
            threshold = p
    return threshold


@dataclass(frozen=True, slots=True, eq=False)
class Kills:
    """Which cells are killed, and by what threshold on p (None: by ``flip``, or no cell reaches it)."""

    killed: BoolArray
    threshold: Fraction | None


def kills(rule: KillRule, tallies: Tallies, family: BoolArray) -> Kills:
    """The killed cells under ``rule``, with one threshold for all of them.

    Args:
        rule: ``flip``, ``fisher`` with alpha, or ``fisher`` with q.
        tallies: attempts of both sides.
        family: mutants whose cells make the threshold of ``q``, shape (mutants,): valid ones, controls left out.

    Raises:
        ValueError: a ``fisher`` rule with neither alpha nor q.
    """
    if rule.rule == "flip":
        return Kills(flip_kills(tallies), None)
    if rule.alpha is not None:
        threshold: Fraction | None = exact(rule.alpha)
    elif rule.q is not None:
        distinct, which = _distinct_p(tallies, tallies.present & family[:, None])
        times = np.bincount(which, minlength=len(distinct)).tolist()
        counts: Counter[Fraction] = Counter()
        for p, number in zip(distinct, times, strict=True):
            counts[p] += number
        threshold = discovery_threshold(counts, exact(rule.q))
    else:
        raise ValueError("a fisher rule needs alpha or q")
    return Kills(kills_at(threshold, tallies), threshold)


def kills_at(threshold: Fraction | None, tallies: Tallies) -> BoolArray:
    """Cells whose p is at most ``threshold``; none where there is no threshold."""
    killed = np.zeros(tallies.mutant_n.shape, dtype=np.bool_)
    if threshold is not None:
        present = tallies.present
        distinct, which = _distinct_p(tallies, present)
        killed[present] = np.array([p <= threshold for p in distinct], dtype=np.bool_)[which]
    return killed


def stand_without_died(
    rule: KillRule, made: Kills, tallies: Tallies, base_died: IntArray, mutant_died: IntArray
) -> BoolArray:
    """Killed cells that stay killed, by the same threshold, when attempts that died are left out on both sides."""
    rest = Tallies(
        tallies.base_passed, tallies.base_n - base_died, tallies.mutant_passed, tallies.mutant_n - mutant_died
    )
    again = flip_kills(rest) if rule.rule == "flip" else kills_at(made.threshold, rest)
    return made.killed & again


def _distinct_p(tallies: Tallies, cells: BoolArray) -> tuple[list[Fraction], IntArray]:
    """The p of every distinct table among ``cells``, and which of them each cell has, in row order."""
    shape = tallies.mutant_n.shape
    tables = np.stack(
        [
            np.broadcast_to(tallies.base_passed, shape)[cells],
            np.broadcast_to(tallies.base_n, shape)[cells],
            tallies.mutant_passed[cells],
            tallies.mutant_n[cells],
        ],
        axis=1,
    )
    distinct, which = np.unique(tables, axis=0, return_inverse=True)
    return [fisher_p(*table) for table in distinct.tolist()], which.reshape(-1)
