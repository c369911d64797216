"""Changes of what coverage says: of the pool's coverage, and of the correlations over the subsets of both runs."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray, FloatArray
from pytest_metricbench.analysis.comparing_cells import CommonCells, RunCells, common
from pytest_metricbench.analysis.comparing_models import ChangedFigure, CoefficientDifferences
from pytest_metricbench.analysis.correlation import coefficients, why_undefined
from pytest_metricbench.analysis.figures import DECIMALS, rounded
from pytest_metricbench.analysis.many_coefficients import METHODS
from pytest_metricbench.analysis.summary import CaseSummary
from pytest_metricbench.analysis.unavailable import missing
from pytest_metricbench.definition.experiment import MutationScore

_SCORES: Final[tuple[MutationScore, ...]] = ("kill_share", "mean_drop")
_NO_INTERVAL: Final = "needs the goals of each task in both runs, which no summary holds"
_NO_DRAW: Final = "a coverage of the pool is one measurement: it has no spread"
_SIDES: Final = "the earlier run", "this run"


def coverage_changes(then: CaseSummary, now: CaseSummary) -> dict[str, ChangedFigure]:
    """System -> change of the coverage of the pool, where both pools have the same tasks."""
    return {system: _coverage_change(then, now, system) for system in common(then.pool.coverage, now.pool.coverage)}


def _coverage_change(then: CaseSummary, now: CaseSummary, system: str) -> ChangedFigure:
    if set(then.tasks) != set(now.tasks):
        return _nothing("the pool has other tasks in the other run")
    figures = then.pool.coverage[system], now.pool.coverage[system]
    for figure, side in zip(figures, _SIDES, strict=True):
        if figure.value is None:
            return _nothing(f"{side}: {figure.reason}", outside=figure.outside)
    before, after = (figure.value or 0.0 for figure in figures)
    return _changed(before, after, _NO_DRAW)


def coefficient_changes(
    then: CaseSummary, now: CaseSummary, cells: CommonCells
) -> dict[str, dict[MutationScore, CoefficientDifferences]]:
    """System -> mutation score -> changes over the subsets that have the same tasks in both runs.

    The scores are those of the mutants that are scored in both runs, so that an added mutant is no change. No interval:
    redrawn tasks need the coverage of subsets that no run has measured, from goals that no summary holds.
    """
    names = [
        name
        for name in common(then.subsets, now.subsets)
        if set(then.subsets[name].tasks) == set(now.subsets[name].tasks)
    ]
    members = np.array(
        [[task in set(now.subsets[name].tasks) for task in cells.tasks] for name in names], dtype=np.bool_
    )
    members = members.reshape(len(names), len(cells.tasks))
    why = _why_no_scores(then, now, cells)
    return {
        system: {
            score: _differences(then, now, names, system, [_scores(run, members, score) for run in runs], why)
            for score in _SCORES
        }
        for system in common(then.correlation, now.correlation)
        for runs in [(cells.then, cells.now)]
    }


def _why_no_scores(then: CaseSummary, now: CaseSummary, cells: CommonCells) -> ChangedFigure | None:
    for case, side in zip((then, now), _SIDES, strict=True):
        if case.counts.outside:
            return _nothing(f"{side}: attempts are outside its part and not in the store", outside=True)
        if case.counts.not_needed:
            return _nothing(f"{side}: mutants were left alone after their first kill")
    return None if cells.mutants else _nothing("no mutant is scored in both runs")


def _differences(
    then: CaseSummary,
    now: CaseSummary,
    names: Sequence[str],
    system: str,
    scores: Sequence[FloatArray],
    why: ChangedFigure | None,
) -> CoefficientDifferences:
    coverage = [_coverage(case, names, system) for case in (then, now)]
    known = ~np.isnan(np.array([*coverage, *scores])).any(axis=0) if names else np.zeros(0, dtype=np.bool_)
    pairs = [(cover[known], score[known]) for cover, score in zip(coverage, scores, strict=True)]
    reasons = [
        f"{side}: {reason}"
        for side, (cover, score) in zip(_SIDES, pairs, strict=True)
        if (reason := why_undefined(cover, score, "the coverage", "the score"))
    ]
    if why is not None or reasons:
        none = why or _nothing(reasons[0])
        return CoefficientDifferences(subsets=int(known.sum()), pearson=none, spearman=none, kendall=none)
    one, other = (coefficients(cover, score) for cover, score in pairs)
    changes = {method: _changed(getattr(one, method), getattr(other, method), _NO_INTERVAL) for method in METHODS}
    return CoefficientDifferences(subsets=int(known.sum()), **changes)


def _coverage(case: CaseSummary, names: Sequence[str], system: str) -> FloatArray:
    values = [case.subsets[name].coverage[system].value for name in names]
    return np.array([np.nan if value is None else round(value, DECIMALS) for value in values], dtype=np.float64)


def _scores(run: RunCells, members: BoolArray, score: MutationScore) -> FloatArray:
    """The score of each subset over the common mutants with a cell in it; NaN without one. Shape (subsets,)."""
    inside = members.astype(np.int64)
    numbers = inside @ run.present.T.astype(np.int64)
    if score == "kill_share":
        values: FloatArray = ((inside @ run.killed.T.astype(np.int64)) > 0).astype(np.float64)
    else:
        tallies = run.tallies
        rates = tallies.base_passed / np.maximum(tallies.base_n, 1)
        drops = np.where(run.present, rates - tallies.mutant_passed / np.maximum(tallies.mutant_n, 1), 0.0)
        values = (inside @ drops.T) / np.maximum(numbers, 1)
    counted = numbers > 0
    totals = counted.sum(axis=1)
    means = np.where(counted, values, 0.0).sum(axis=1) / np.maximum(totals, 1)
    scores: FloatArray = np.round(np.where(totals > 0, means, np.nan), DECIMALS).astype(np.float64)
    return scores


def _changed(then: float, now: float, why_no_interval: str) -> ChangedFigure:
    return ChangedFigure(value=rounded(now - then), then=then, now=now, interval_reason=why_no_interval)


def _nothing(reason: str, outside: bool | None = None) -> ChangedFigure:
    return ChangedFigure(**missing(reason), outside=outside, then=None, now=None)
