"""pass@k and pass^k, exactly, and their mean over tasks with an interval from redrawing the tasks.

pass@k is the unbiased estimate of the probability that at least one of k attempts passes (Chen et al. 2021,
"Evaluating Large Language Models Trained on Code", equation 1); pass^k that all of k pass (Yao et al. 2024,
"tau-bench", section 3). Both are ratios of binomial coefficients of integers, so both are kept as fractions.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from pytest_metricbench.analysis.figures import DECIMALS
from pytest_metricbench.analysis.proportions import check_confidence

Estimator: TypeAlias = Callable[[int, int, int], Fraction | None]
"""Entries n, passes c, k -> the estimate; None where it is undefined."""

_CHUNK: Final = 2_000_000
"""Numbers drawn at a time: bounds the memory of a bootstrap."""


def _checked(n: int, c: int, k: int) -> None:
    if k < 1 or not 0 <= c <= n:
        raise ValueError(f"n={n}, c={c}, k={k}: k of at least 1 and 0 <= c <= n are expected")


@lru_cache(maxsize=65536)
def pass_at_k(n: int, c: int, k: int) -> Fraction | None:
    """1 - C(n-c, k) / C(n, k): the chance that k of the n attempts, c of which passed, hold a pass.

    None for k > n, where nothing is known (and never 1, which the usual product form gives).

    Raises:
        ValueError: k below 1, or c not in 0..n.
    """
    _checked(n, c, k)
    return None if k > n else 1 - Fraction(math.comb(n - c, k), math.comb(n, k))


@lru_cache(maxsize=65536)
def pass_hat_k(n: int, c: int, k: int) -> Fraction | None:
    """C(c, k) / C(n, k): the chance that k of the n attempts, c of which passed, all passed. None for k > n.

    Raises:
        ValueError: k below 1, or c not in 0..n.
    """
    _checked(n, c, k)
    return None if k > n else Fraction(math.comb(c, k), math.comb(n, k))


@dataclass(frozen=True, slots=True)
class TaskMean:
    """A mean over tasks: its value, None without a task; the tasks in it, and those with fewer than k entries."""

    value: Fraction | None
    count: int
    nan_count: int


def mean_over_tasks(estimator: Estimator, tallies: Iterable[tuple[int, int]], k: int) -> TaskMean:
    """The mean of ``estimator`` at ``k`` over tasks given as (entries, passes); every task weighs the same."""
    total, count, nan_count = Fraction(0), 0, 0
    for (n, c), tasks in Counter(tallies).items():
        estimate = estimator(n, c, k)
        if estimate is None:
            nan_count += tasks
        else:
            total += estimate * tasks
            count += tasks
    return TaskMean(total / count if count else None, count, nan_count)


def task_intervals(
    rows: Sequence[Sequence[float]], *, resamples: int, seed: int, confidence: float = 0.95
) -> list[tuple[float, float] | None]:
    """Percentile intervals of the means of ``rows``, from redrawing tasks with replacement.

    Every row holds one value a task, in the order of the tasks' ids, and all rows are equally long: they share the
    draws ``default_rng(seed).integers(0, n, (resamples, n))``, so figures of the same tasks stay comparable. A row
    without spread has no interval: all redraws would give the same mean, whatever the uncertainty.

    Raises:
        ValueError: rows of different lengths, fewer than one resample, or a confidence that is not between 0 and 1.
    """
    check_confidence(confidence)
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; 1 or more are expected")
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise ValueError(f"rows of {lengths[0]} and {lengths[-1]} values; all must be of the same tasks")
    spread = [index for index, row in enumerate(rows) if len(row) > 1 and min(row) != max(row)]
    intervals: list[tuple[float, float] | None] = [None] * len(rows)
    if not spread:
        return intervals
    values = np.array([rows[index] for index in spread], dtype=np.float64)
    tail = (1 - confidence) / 2
    bounds = np.quantile(_redrawn_means(values, resamples, seed), [tail, 1 - tail], axis=0)
    for index, low, high in zip(spread, *np.round(bounds, DECIMALS).tolist(), strict=True):
        intervals[index] = (low, high)
    return intervals


def _redrawn_means(values: npt.NDArray[np.float64], resamples: int, seed: int) -> npt.NDArray[np.float64]:
    """Means of rows over redrawn columns, shape (resamples, rows): how often each column is drawn, times its value."""
    tasks = values.shape[1]
    rng = np.random.default_rng(seed)
    means = np.empty((resamples, values.shape[0]))
    step = max(1, _CHUNK // tasks)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = rng.integers(0, tasks, (size, tasks)) + np.arange(size)[:, None] * tasks
        times = np.bincount(drawn.ravel(), minlength=size * tasks).reshape(size, tasks)
        means[start : start + size] = times.astype(np.float64) @ values.T / tasks
    return means
