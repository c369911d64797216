"""Pearson's r, Spearman's rho and Kendall's tau-b of two lists of numbers, and why there are none.

Ranks and pairs are counted in integers, so that rho and tau-b are exact up to one division and one root. A coefficient
of fewer than three pairs or of a constant is undefined, and said to be: libraries answer NaN, 1 or -1 there.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_metricbench.analysis.arrays import FloatArray, IntArray

NEARLY_CONSTANT: Final = 1e-12
"""Values whose range is at most this share of the largest magnitude differ by rounding only."""
MINIMUM_PAIRS: Final = 3


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The three coefficients of one list of pairs."""

    pearson: float
    spearman: float
    kendall: float


def why_undefined(x: FloatArray, y: FloatArray, x_name: str = "x", y_name: str = "y") -> str | None:
    """Why ``x`` and ``y`` have no correlation, in words that name them; None where they have one.

    Fewer than 3 pairs; one of them constant, or nearly (its range is at most 1e-12 of its largest magnitude).
    """
    if len(x) < MINIMUM_PAIRS:
        return f"{_pairs(len(x))}; at least {MINIMUM_PAIRS} are needed"
    for values, name in ((x, x_name), (y, y_name)):
        low, high = float(np.min(values)) + 0.0, float(np.max(values)) + 0.0  # no -0.0 in words
        if low == high:
            return f"{name} is {low:.12g} in every pair"
        if high - low <= NEARLY_CONSTANT * max(abs(low), abs(high)):
            return f"{name} is nearly constant (about {high:.6g} in every pair)"
    return None


def coefficients(x: FloatArray, y: FloatArray) -> Coefficients:
    """All three coefficients.

    Raises:
        ValueError: they are undefined (:func:`why_undefined`), or the lists differ in length.
    """
    if len(x) != len(y):
        raise ValueError(f"{len(x)} values of x and {len(y)} of y make no pairs")
    reason = why_undefined(x, y)
    if reason is not None:
        raise ValueError(reason)
    x_level, y_level = levels(x), levels(y)
    return Coefficients(pearson(x, y), _spearman(x_level, y_level), _kendall(x_level, y_level))


def pearson(x: FloatArray, y: FloatArray) -> float:
    """Pearson's product-moment correlation of two lists that are not constant."""
    dx, dy = x - x.mean(), y - y.mean()
    dx, dy = dx / np.abs(dx).max(), dy / np.abs(dy).max()
    return _bounded(float(dx @ dy) / math.sqrt(float(dx @ dx) * float(dy @ dy)))


def spearman(x: FloatArray, y: FloatArray) -> float:
    """Spearman's rho of two lists that are not constant: Pearson's r of their mid-ranks."""
    return _spearman(levels(x), levels(y))


def kendall(x: FloatArray, y: FloatArray) -> float:
    """Kendall's tau-b of two lists that are not constant (Kendall 1945), by counting inversions in O(n log n)."""
    return _kendall(levels(x), levels(y))


def levels(values: FloatArray) -> IntArray:
    """The position of each value among the distinct ones, from 0: equal values have equal levels."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def inversions(level: IntArray) -> int:
    """Pairs i < j with ``level[i] > level[j]``; levels are integers from 0.

    Radix counting: at each bit, from the highest down, a pair that shares the bits above is an inversion where a one
    stands before a zero; the stable sort by the bits seen so far keeps the order within groups.
    """
    total, order = 0, level
    if not len(level):
        return 0
    for bit in range(max(int(level.max(initial=0)).bit_length() - 1, 0), -1, -1):
        group, ones = order >> (bit + 1), (order >> bit) & 1
        before = np.cumsum(ones) - ones
        starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
        sizes = np.diff(np.r_[starts, len(group)])
        within = before - np.repeat(before[starts], sizes)
        total += int(within[ones == 0].sum())
        order = order[np.argsort(order >> bit, kind="stable")]
    return total


def _spearman(x_level: IntArray, y_level: IntArray) -> float:
    dx, dy = _centred_ranks(x_level), _centred_ranks(y_level)
    return _bounded(int(dx @ dy) / math.sqrt(int(dx @ dx) * int(dy @ dy)))


def _centred_ranks(level: IntArray) -> IntArray:
    """Twice the mid-rank minus twice the mean rank: integers that sum to 0."""
    counts = np.bincount(level)
    doubled: IntArray = (2 * np.cumsum(counts) - counts - len(level)).astype(np.int64)
    return doubled[level]


def _kendall(x_level: IntArray, y_level: IntArray) -> float:
    n = len(x_level)
    pairs = n * (n - 1) // 2
    joint = x_level * (int(y_level.max()) + 1) + y_level
    tied_x, tied_y, tied_both = (_tied_pairs(level) for level in (x_level, y_level, joint))
    # Sorted by x and, within equal x, by y, so that pairs tied in x are never inversions.
    discordant = inversions(y_level[np.argsort(joint, kind="stable")])
    concordant = pairs - tied_x - tied_y + tied_both - discordant
    return _bounded((concordant - discordant) / math.sqrt((pairs - tied_x) * (pairs - tied_y)))


def _tied_pairs(level: IntArray) -> int:
    counts = np.unique(level, return_counts=True)[1].astype(np.int64)
    return int((counts * (counts - 1) // 2).sum())


def _bounded(coefficient: float) -> float:
    """The coefficient without the rounding that carries it over 1."""
    return max(-1.0, min(1.0, coefficient))


def _pairs(number: int) -> str:
    return (
        "there is no pair"
        if number == 0
        else f"there {'is' if number == 1 else 'are'} only {number} pair" + ("" if number == 1 else "s")
    )
