"""The subsets of a correlation, all together and size by size, as rows of the matrices that resampling works on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from pytest_metricbench.analysis.arrays import FloatArray, IntArray
from pytest_metricbench.analysis.correlation import coefficients, why_undefined
from pytest_metricbench.analysis.many_coefficients import METHODS, kendall_many, pearson_many, spearman_many

OVERALL: Final = "overall"
Strata: TypeAlias = Mapping[str, IntArray]
"""``overall`` or a size -> rows of the subsets that make pairs there."""


def strata_of(sizes: Sequence[int], kept: Sequence[bool]) -> dict[str, IntArray]:
    """All kept subsets under ``overall``, then those of each size, sizes ascending."""
    rows = np.flatnonzero(np.asarray(kept, dtype=np.bool_))
    by_row = np.asarray(sizes, dtype=np.int64)[rows]
    return {OVERALL: rows} | {str(size): rows[by_row == size] for size in sorted(set(sizes))}


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One side of many lists of pairs: its numbers for Pearson, its levels for ranks; shape (subsets, draws or 1)."""

    values: npt.NDArray[np.generic]
    levels: IntArray

    def rows(self, rows: IntArray) -> "Side":
        """The side of some subsets only."""
        return Side(self.values[rows], self.levels[rows])


def coefficients_many(x: Side, y: Side, methods: Sequence[str] = METHODS) -> dict[str, FloatArray]:
    """The coefficients of every draw by each method. ``y`` may be one list for all."""
    if len(x.levels) == 0:
        return _nothing(x.levels.shape[1], methods)
    return {
        method: pearson_many(x.values, y.values) if method == "pearson" else _BY_RANK[method](x.levels, y.levels)
        for method in methods
    }


def coefficients_with_gaps(x: Side, y: Side, methods: Sequence[str] = METHODS) -> dict[str, FloatArray]:
    """The same where values may be NaN: such pairs are left out of their draw. Both sides have all draws.

    Draws with fewer than 3 pairs left have no coefficient.
    """
    gaps = np.isnan(x.values.astype(np.float64)) | np.isnan(y.values.astype(np.float64))
    touched = np.flatnonzero(gaps.any(axis=0))
    found = coefficients_many(x, y, methods) if len(touched) < gaps.shape[1] else _nothing(gaps.shape[1], methods)
    for draw in touched.tolist():
        kept = ~gaps[:, draw]
        ones, others = x.values[kept, draw].astype(np.float64), y.values[kept, draw].astype(np.float64)
        result = None if why_undefined(ones, others) is not None else coefficients(ones, others)
        for method in methods:
            found[method][draw] = np.nan if result is None else getattr(result, method)
    return found


def _nothing(draws: int, methods: Sequence[str]) -> dict[str, FloatArray]:
    return {method: np.full(draws, np.nan) for method in methods}


_BY_RANK: Final = {"spearman": spearman_many, "kendall": kendall_many}
