"""Pearson's r, Spearman's rho and Kendall's tau-b of thousands of lists of pairs at once.

The kernels behind permutations and redraws. A *column* is one list of pairs; everything has the shape (pairs,
columns). Values are integers from 0 ("levels", equal values have equal levels, need not be dense), or numbers for
Pearson. Ranks and pairs are counted, never compared one by one, and a column without a coefficient gives NaN here
(callers count those; none reaches a summary). They agree with :mod:`.correlation` to rounding.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_metricbench.analysis.arrays import FloatArray, IntArray
from pytest_metricbench.analysis.correlation import NEARLY_CONSTANT

METHODS: Final = ("pearson", "spearman", "kendall")
_FEW_PAIRS: Final = 250
"""Up to here Kendall compares all pairs of pairs, in 16 bits: quadratic, and still the fastest."""
_FEW_SHARED: Final = 80
"""The same where all columns share one side: with more pairs, blocks of pairs are compared with those before them."""
_BLOCK: Final = 48
_TABLE_PER_PAIR: Final = 4
"""With more, it counts in a contingency table where that has at most so many cells a pair, else by inversions."""


def pearson_many(x: npt.NDArray[np.generic], y: npt.NDArray[np.generic]) -> FloatArray:
    """Pearson's r of every column.

    Args:
        x: shape (pairs, columns).
        y: the same, or (pairs, 1) for one list that all columns share.
    """
    dx, x_square, x_flat = _centred(x)
    dy, y_square, y_flat = _centred(y)
    products = dy[:, 0] @ dx if dy.shape[1] == 1 else np.einsum("ij,ij->j", dx, dy)
    return _ratio(products, x_square * y_square, x_flat | y_flat)


def _centred(values: npt.NDArray[np.generic]) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Deviations from the mean, scaled to at most 1; their sums of squares; and which columns are (nearly) constant."""
    numbers = values.astype(np.float64)
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    flat = high - low <= NEARLY_CONSTANT * np.maximum(np.abs(low), np.abs(high))
    numbers -= numbers.mean(axis=0)
    numbers /= np.where(flat, 1.0, high - low)
    return numbers, np.einsum("ij,ij->j", numbers, numbers), flat


def spearman_many(x: IntArray, y: IntArray) -> FloatArray:
    """Spearman's rho of every column of levels; shapes as in :func:`pearson_many`."""
    dx, x_square = _centred_ranks(x)
    dy, y_square = _centred_ranks(y)
    products = dy[:, 0] @ dx if dy.shape[1] == 1 else np.einsum("ij,ij->j", dx, dy)
    square = x_square * y_square
    return _ratio(products, square, square == 0)


def _centred_ranks(level: IntArray) -> tuple[FloatArray, FloatArray]:
    """Twice the mid-rank minus twice the mean rank, from counts of the levels, and its sum of squares."""
    pairs, columns = level.shape
    lowest = int(level.min())
    width = int(level.max()) + 1 - lowest
    at = level + (np.arange(columns) * width - lowest)
    counts = np.bincount(at.ravel(), minlength=columns * width).reshape(columns, width)
    doubled = (2 * np.cumsum(counts, axis=1) - counts - pairs).astype(np.float64)
    return doubled.ravel()[at], np.einsum("ij,ij,ij->i", doubled, doubled, counts)


def kendall_many(x: IntArray, y: IntArray) -> FloatArray:
    """Kendall's tau-b of every column of levels; shapes as in :func:`pearson_many`."""
    pairs = len(x)
    x, y = x - x.min(), y - y.min()
    x_width, y_width = int(x.max()) + 1, int(y.max()) + 1
    if y.shape[1] == 1 and pairs > _FEW_SHARED:
        difference, tied_x, tied_y = _against_shared(x, y[:, 0], x_width)
    elif pairs <= _FEW_PAIRS and max(x_width, y_width) < 2**15:
        difference, tied_x, tied_y = _from_signs(x.astype(np.int16), y.astype(np.int16))
    elif x_width * y_width <= _TABLE_PER_PAIR * pairs:
        difference, tied_x, tied_y = _from_tables(x, y, x_width, y_width)
    else:
        difference, tied_x, tied_y = _from_inversions(x, np.broadcast_to(y, x.shape), x_width, y_width)
    every = pairs * (pairs - 1) // 2
    square = (every - tied_x).astype(np.float64) * (every - tied_y)
    return _ratio(difference.astype(np.float64), square, square == 0)


def _from_signs(x: npt.NDArray[np.int16], y: npt.NDArray[np.int16]) -> tuple[IntArray, IntArray, IntArray]:
    """Concordant minus discordant pairs and the tied ones, from the signs of all differences."""
    totals = np.zeros((3, *x.shape), dtype=np.int16)
    for apart in range(1, len(x)):
        one, other = np.sign(x[apart:] - x[:-apart]), np.sign(y[apart:] - y[:-apart])
        totals[0, apart:] += one * other
        totals[1, apart:] += one == 0
        totals[2, apart:] += other == 0
    concordance, tied_x, tied_y = totals.sum(axis=1, dtype=np.int64)
    return concordance, tied_x, tied_y


def _against_shared(x: IntArray, y: IntArray, x_width: int) -> tuple[IntArray, IntArray, IntArray]:
    """The same where all columns share y: in its order, each block of pairs against a count of those before it.

    Blocks end where y changes, so that pairs tied in y never meet in different blocks.
    """
    columns = x.shape[1]
    order = np.argsort(y, kind="stable")
    x, y = x[order], y[order]
    changes = np.flatnonzero(np.diff(y)) + 1
    offset = np.arange(columns) * x_width
    seen = np.zeros((columns, x_width), dtype=np.int64)
    difference = np.zeros(columns, dtype=np.int64)
    start = 0
    for end in (*_block_ends(changes.tolist()), len(x)):
        block, at = x[start:end], x[start:end] + offset
        if start:
            total = np.cumsum(seen, axis=1)
            lower_minus_higher = 2 * total - seen - start
            difference += lower_minus_higher.ravel()[at].sum(axis=0)
        if y[start] != y[end - 1]:
            level = dense_levels(block) if x_width >= 2**15 else block
            difference += _concordance(level.astype(np.int16), (y[start:end, None] - y[start]).astype(np.int16))
        seen += np.bincount(at.ravel(), minlength=seen.size).reshape(seen.shape)
        start = end
    bounds = np.diff(np.r_[0, changes, len(x)])
    return difference, _tied(seen), np.array([(bounds * (bounds - 1) // 2).sum()])


def _block_ends(changes: list[int]) -> Iterator[int]:
    """Some of the places where y changes, about a block apart."""
    last = 0
    for index, change in enumerate(changes):
        following = changes[index + 1] if index + 1 < len(changes) else None
        if change - last >= _BLOCK or (following is not None and following - change >= _BLOCK):
            yield change
            last = change


def _concordance(x: npt.NDArray[np.int16], y: npt.NDArray[np.int16]) -> IntArray:
    """Concordant minus discordant pairs, from the signs of all differences; at most 2^15 pairs."""
    total = np.zeros(x.shape, dtype=np.int16)
    for apart in range(1, len(x)):
        total[apart:] += np.sign(x[apart:] - x[:-apart]) * np.sign(y[apart:] - y[:-apart])
    found: IntArray = total.sum(axis=0, dtype=np.int64)
    return found


def compact(level: IntArray) -> IntArray:
    """The levels as they are, or dense ones where they are spread so wide that counting them would be slow."""
    wide = len(level) > 0 and int(level.max()) - int(level.min()) > _TABLE_PER_PAIR * max(len(level), 16)
    return dense_levels(level) if wide else level


def _from_tables(x: IntArray, y: IntArray, x_width: int, y_width: int) -> tuple[IntArray, IntArray, IntArray]:
    """The same from a contingency table a column."""
    pairs, columns = x.shape
    at = (x + np.arange(columns) * x_width) * y_width + y
    table = np.bincount(at.ravel(), minlength=columns * x_width * y_width).reshape(columns, x_width, y_width)
    below = np.cumsum(np.cumsum(table, axis=1), axis=2)
    concordant = np.einsum("bij,bij->b", table[:, 1:, 1:], below[:, :-1, :-1])
    tied_x, tied_y = _tied(table.sum(axis=2)), _tied(table.sum(axis=1))
    untied = pairs * (pairs - 1) // 2 - tied_x - tied_y + _tied(table.reshape(columns, -1))
    return 2 * concordant - untied, tied_x, tied_y


def _from_inversions(
    x: IntArray, y: npt.NDArray[np.int64], x_width: int, y_width: int
) -> tuple[IntArray, IntArray, IntArray]:
    """The same by counting inversions of x in the order of y, where a table would be mostly empty."""
    pairs = len(x)
    joint = np.sort((y * x_width + x).T, axis=1)
    discordant = inversions_many(joint % x_width)
    tied_x, tied_y, tied_both = _tied_runs(np.sort(x.T, axis=1)), _tied_runs(joint // x_width), _tied_runs(joint)
    untied = pairs * (pairs - 1) // 2 - tied_x - tied_y + tied_both
    return untied - 2 * discordant, tied_x, tied_y


def inversions_many(level: IntArray) -> IntArray:
    """Pairs i < j with ``level[:, i] > level[:, j]``, for every row.

    Radix counting as in :func:`.correlation.inversions`, all rows at once: at each bit, from the highest down, a pair
    that shares the bits above is an inversion where a one stands before a zero; the zeros then go before the ones.
    """
    rows, width = level.shape
    totals = np.zeros(rows, dtype=np.int64)
    flat = level.ravel().astype(np.int32)
    position = np.arange(len(flat), dtype=np.int32)
    starts_group = position % width == 0
    row_starts = np.arange(0, len(flat), width)
    for bit in range(max(int(level.max(initial=0)).bit_length() - 1, 0), -1, -1):
        one = (flat >> bit) & 1
        ones = np.cumsum(one, dtype=np.int32)
        start = np.flatnonzero(starts_group)
        sizes = np.diff(start, append=len(flat))
        before_group = ones[start] - one[start]
        before = ones - one - np.repeat(before_group, sizes)
        totals += np.add.reduceat(np.where(one == 0, before, 0), row_starts, dtype=np.int64)
        if bit:
            ends = ones[start + sizes - 1] - before_group
            first_one = np.repeat((start + sizes - ends).astype(np.int32), sizes)
            moved = np.empty_like(flat)
            moved[np.where(one == 1, first_one + before, position - before)] = flat
            starts_group[(start + sizes - ends)[ends > 0]] = True
            flat = moved
    return totals


def dense_levels(values: npt.NDArray[np.generic]) -> IntArray:
    """The position of each value among the distinct ones of its column, from 0."""
    if values.dtype == np.int64 and values.size:
        return _dense_integers(values.astype(np.int64))
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    rises = np.zeros(values.shape, dtype=np.int64)
    np.cumsum(ordered[1:] != ordered[:-1], axis=0, out=rises[1:])
    found = np.empty(values.shape, dtype=np.int64)
    np.put_along_axis(found, order, rises, axis=0)
    return found


def _dense_integers(values: IntArray) -> IntArray:
    """The same of integers, whose place is sorted along with them in one number."""
    pairs, columns = values.shape
    keys = ((values - values.min()) * pairs + np.arange(pairs)[:, None]).T.copy()
    keys.sort(axis=1)
    ordered, place = np.divmod(keys, pairs)
    rises = np.zeros(keys.shape, dtype=np.int64)
    np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1, out=rises[:, 1:])
    found = np.empty(keys.size, dtype=np.int64)
    found[place + np.arange(columns)[:, None] * pairs] = rises
    return np.ascontiguousarray(found.reshape(columns, pairs).T)


def _tied(counts: IntArray) -> IntArray:
    found: IntArray = (counts * (counts - 1) // 2).sum(axis=1)
    return found


def _tied_runs(ordered: IntArray) -> IntArray:
    """Pairs of equal values in each ordered row."""
    rows, width = ordered.shape
    new = np.ones((rows, width), dtype=np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    start = np.flatnonzero(new)
    sizes = np.diff(start, append=rows * width)
    return np.bincount(start // width, weights=sizes * (sizes - 1) / 2, minlength=rows).astype(np.int64)


def _ratio(products: FloatArray, square: FloatArray, undefined: npt.NDArray[np.bool_]) -> FloatArray:
    """Coefficients within [-1, 1]; NaN where they are undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.clip(products / np.sqrt(square), -1.0, 1.0)
    found[np.broadcast_to(undefined, found.shape)] = np.nan
    return found
