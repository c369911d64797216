"""What statistics for independent pairs say of a correlation: for contrast only, and in no summary.

Subsets that share tasks are not independent: on them these p values are at most .05 in 26 % to 100 % of data sets
without any relation, and intervals from redrawn pairs hold the true value 48 % to 86 % of the time (docs/validity).
They are right where the pairs are, and here to be compared with.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_metricbench.analysis.arrays import FloatArray, IntArray
from pytest_metricbench.analysis.correlation import coefficients, levels
from pytest_metricbench.analysis.intervals import Z
from pytest_metricbench.analysis.many_coefficients import METHODS

_TABLE_PER_PAIR: Final = 4
_NUMBERS: Final = 200_000
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class NaiveP:
    """Two-sided p values that take the pairs for independent."""

    pearson: float
    spearman: float
    kendall: float
    kendall_asymptotic: float


def naive_p(x: FloatArray, y: FloatArray) -> NaiveP:
    """The p values of scipy: t for Pearson and Spearman; Kendall's exact one where there are few pairs and no ties."""
    from scipy import stats

    return NaiveP(
        float(stats.pearsonr(x, y).pvalue),
        float(stats.spearmanr(x, y).pvalue),
        float(stats.kendalltau(x, y).pvalue),
        float(stats.kendalltau(x, y, method="asymptotic").pvalue),
    )


def fisher_z_interval(r: float, pairs: int) -> tuple[float, float]:
    """Fisher's 95 % interval of a Pearson correlation of independent pairs (Fisher 1921).

    Raises:
        ValueError: fewer than 4 pairs, or a coefficient of 1.
    """
    if pairs < 4 or abs(r) >= 1:
        raise ValueError(f"r = {r} of {pairs} pairs has no interval")
    reach = Z / math.sqrt(pairs - 3)
    return math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)


def redrawn_pairs(x: FloatArray, y: FloatArray, draws: int, seed: int) -> dict[str, FloatArray]:
    """All three coefficients of pairs redrawn with replacement; NaN where a draw has none.

    The pairs of the draws are ``default_rng(seed).integers(0, n, (draws, n))``, as ``scipy.stats.bootstrap`` draws.
    """
    rng, pairs = np.random.default_rng(seed), len(x)
    kernel = _Tables(x, y) if _few_levels(x, y) else _Weights(x, y)
    step = max(1, _NUMBERS // pairs)
    found: dict[str, list[FloatArray]] = {method: [] for method in METHODS}
    for start in range(0, draws, step):
        drawn = rng.integers(0, pairs, (min(step, draws - start), pairs))
        for method, values in kernel.coefficients(drawn).items():
            found[method].append(values)
    return {method: np.concatenate(parts) for method, parts in found.items()}


def percentile_interval(redrawn: FloatArray) -> tuple[float, float]:
    """The middle 95 % of the redrawn values, undefined ones left out."""
    low, high = np.quantile(redrawn[~np.isnan(redrawn)], [0.025, 0.975]).tolist()
    return low, high


@dataclass(frozen=True, slots=True)
class Bca:
    """A bias-corrected and accelerated interval (Efron 1987), and its two corrections."""

    interval: tuple[float, float]
    bias: float
    acceleration: float


def bca_interval(observed: float, redrawn: FloatArray, jackknife: FloatArray) -> Bca | None:
    """The 95 % BCa interval; None where the jackknife is degenerate or every draw is on one side.

    Args:
        observed: the coefficient.
        redrawn: coefficients of the draws; draws equal to ``observed`` count half on either side.
        jackknife: the coefficient without each pair.
    """
    defined = redrawn[~np.isnan(redrawn)]
    deviations = jackknife.mean() - jackknife
    square = float((deviations**2).sum())
    below = (np.count_nonzero(defined < observed) + np.count_nonzero(defined == observed) / 2) / len(defined)
    if not (math.isfinite(square) and square > 0 and 0 < below < 1):
        return None
    bias = _NORMAL.inv_cdf(below)
    acceleration = float((deviations**3).sum()) / (6 * square**1.5)
    ends = []
    for normal in (-Z, Z):
        z = bias + normal
        ends.append(_NORMAL.cdf(bias + z / (1 - acceleration * z)))
    low, high = np.quantile(defined, ends).tolist()
    return Bca((low, high), bias, acceleration)


def jackknife_pairs(x: FloatArray, y: FloatArray, method: str) -> FloatArray:
    """The coefficient without each of the pairs in turn."""
    every = np.arange(len(x))
    return np.array([getattr(coefficients(x[every != i], y[every != i]), method) for i in every])


# ---------------------------------------------------------------- kernels


def _few_levels(x: FloatArray, y: FloatArray) -> bool:
    return len(np.unique(x)) * len(np.unique(y)) <= _TABLE_PER_PAIR * len(x)


class _Tables:
    """One contingency table a draw: everything that the coefficients need, where there are few different values."""

    def __init__(self, x: FloatArray, y: FloatArray) -> None:
        (x_values, x_level), (y_values, y_level) = (np.unique(side, return_inverse=True) for side in (x, y))
        self._x, self._y = x_values - x.mean(), y_values - y.mean()
        self._cell = (x_level * len(y_values) + y_level).astype(np.int64)
        self._pairs = len(x)

    def coefficients(self, drawn: IntArray) -> dict[str, FloatArray]:
        draws, width, height = len(drawn), len(self._x), len(self._y)
        at = self._cell[drawn] + np.arange(draws)[:, None] * (width * height)
        table = np.bincount(at.ravel(), minlength=draws * width * height).reshape(draws, width, height)
        in_x, in_y = table.sum(axis=2), table.sum(axis=1)
        numbers = table.astype(np.float64)
        return {
            "pearson": self._pearson(numbers, in_x, in_y),
            "spearman": self._spearman(numbers, in_x, in_y),
            "kendall": self._kendall(table, in_x, in_y),
        }

    def _pearson(self, table: FloatArray, in_x: IntArray, in_y: IntArray) -> FloatArray:
        dx = self._x - (in_x @ self._x / self._pairs)[:, None]
        dy = self._y - (in_y @ self._y / self._pairs)[:, None]
        products = np.einsum("bi,bij,bj->b", dx, table, dy, optimize=True)
        square = (in_x * dx**2).sum(axis=1) * (in_y * dy**2).sum(axis=1)
        return _ratio(products, square, _single(in_x) | _single(in_y))

    def _spearman(self, table: FloatArray, in_x: IntArray, in_y: IntArray) -> FloatArray:
        rank_x, rank_y = (_ranks(counts, self._pairs) for counts in (in_x, in_y))
        products = np.einsum("bi,bij,bj->b", rank_x, table, rank_y, optimize=True)
        square = (in_x * rank_x**2).sum(axis=1) * (in_y * rank_y**2).sum(axis=1)
        return _ratio(products, square, square == 0)

    def _kendall(self, table: IntArray, in_x: IntArray, in_y: IntArray) -> FloatArray:
        lower = np.zeros((len(table), len(self._y)), dtype=np.int64)
        concordant = np.zeros(len(table), dtype=np.int64)
        for row in range(1, len(self._x)):
            lower += table[:, row - 1]
            concordant += (np.cumsum(lower, axis=1)[:, :-1] * table[:, row, 1:]).sum(axis=1)
        every, tied_x, tied_y = self._pairs * (self._pairs - 1) // 2, _tied(in_x), _tied(in_y)
        untied = every - tied_x - tied_y + _tied(table.reshape(len(table), -1))
        square = (every - tied_x).astype(np.float64) * (every - tied_y)
        return _ratio((2 * concordant - untied).astype(np.float64), square, square == 0)


class _Weights:
    """How often each pair is drawn: ranks from running sums, Kendall from one product with the signs of all pairs."""

    def __init__(self, x: FloatArray, y: FloatArray) -> None:
        self._x, self._y = x - x.mean(), y - y.mean()
        self._sides = tuple(_Ordered(side) for side in (x, y))
        signs = [np.sign(side[:, None] - side[None, :]).astype(np.float32) for side in (x, y)]
        self._signs = signs[0] * signs[1]

    def coefficients(self, drawn: IntArray) -> dict[str, FloatArray]:
        draws, pairs = drawn.shape
        at = drawn + np.arange(draws)[:, None] * pairs
        times = np.bincount(at.ravel(), minlength=draws * pairs).reshape(draws, pairs)
        counts = [side.counts(times) for side in self._sides]
        single = _single(counts[0]) | _single(counts[1])
        return {
            "pearson": self._pearson(times.astype(np.float64), single),
            "spearman": self._spearman(times, counts),
            "kendall": self._kendall(times, counts),
        }

    def _pearson(self, times: FloatArray, single: npt.NDArray[np.bool_]) -> FloatArray:
        pairs = times.shape[1]
        dx = self._x - (times @ self._x / pairs)[:, None]
        dy = self._y - (times @ self._y / pairs)[:, None]
        weighted = times * dx
        products = np.einsum("ij,ij->i", weighted, dy)
        square = np.einsum("ij,ij->i", weighted, dx) * np.einsum("ij,ij,ij->i", times, dy, dy)
        return _ratio(products, square, single)

    def _spearman(self, times: IntArray, counts: list[IntArray]) -> FloatArray:
        pairs = times.shape[1]
        by_level = [_ranks(count, pairs) for count in counts]
        ranks = [rank[:, side.level] for rank, side in zip(by_level, self._sides, strict=True)]
        products = np.einsum("ij,ij,ij->i", times, ranks[0], ranks[1])
        squares = [(count * rank**2).sum(axis=1) for count, rank in zip(counts, by_level, strict=True)]
        return _ratio(products, squares[0] * squares[1], squares[0] * squares[1] == 0)

    def _kendall(self, times: IntArray, counts: list[IntArray]) -> FloatArray:
        pairs = times.shape[1]
        weights = times.astype(np.float32)
        difference = np.einsum("ij,ij->i", (weights @ self._signs).astype(np.float64), times) / 2
        every = pairs * (pairs - 1) // 2
        square = (every - _tied(counts[0])).astype(np.float64) * (every - _tied(counts[1]))
        return _ratio(difference, square, square == 0)


class _Ordered:
    """One side's order, to add up weights level by level."""

    def __init__(self, side: FloatArray) -> None:
        self.level = levels(side)
        self._order = np.argsort(self.level, kind="stable")
        self._starts = np.flatnonzero(np.diff(self.level[self._order], prepend=-1))

    def counts(self, times: IntArray) -> IntArray:
        """How often each level is drawn, shape (draws, levels)."""
        found: IntArray = np.add.reduceat(times[:, self._order], self._starts, axis=1)
        return found


def _ranks(counts: IntArray, pairs: int) -> FloatArray:
    return (2 * np.cumsum(counts, axis=1) - counts - pairs).astype(np.float64)


def _tied(counts: IntArray) -> IntArray:
    found: IntArray = (counts * (counts - 1) // 2).sum(axis=1)
    return found


def _single(counts: IntArray) -> npt.NDArray[np.bool_]:
    """Draws in which one side has one value only."""
    found: npt.NDArray[np.bool_] = np.count_nonzero(counts, axis=1) < 2
    return found


def _ratio(products: FloatArray, square: FloatArray, undefined: npt.NDArray[np.bool_]) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(undefined, np.nan, np.clip(products / np.sqrt(square), -1.0, 1.0))


KERNELS: Final[Mapping[str, type]] = {"tables": _Tables, "weights": _Weights}
"""The two kernels by name: equal where both can be used."""
