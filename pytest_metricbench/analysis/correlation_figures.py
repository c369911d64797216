"""Coverage against mutation score over the subsets of one case, system by system and score by score."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_metricbench.analysis.correlation import FloatArray, IntArray, coefficients, levels, why_undefined
from pytest_metricbench.analysis.figures import Correlation, CorrelationBySize, CoverageFigure, Figure, Ties
from pytest_metricbench.analysis.summary import SubsetScores
from pytest_metricbench.definition.experiment import MutationScore

SCORE_NAMES: Final[Mapping[MutationScore, str]] = {"kill_share": "the kill share", "mean_drop": "the mean drop"}
_DECIMALS: Final = 12


@dataclass(frozen=True, slots=True)
class Pair:
    """One subset as a point of a correlation."""

    subset: str
    size: int
    coverage: CoverageFigure
    score: Figure


def correlations(
    subsets: Mapping[str, SubsetScores], systems: Iterable[str]
) -> dict[str, dict[MutationScore, CorrelationBySize]]:
    """System -> mutation score -> correlation over all subsets and within each size."""
    return {
        system: {score: _by_size(pairs_of(subsets, system, score), SCORE_NAMES[score]) for score in SCORE_NAMES}
        for system in systems
    }


def pairs_of(subsets: Mapping[str, SubsetScores], system: str, score: MutationScore) -> list[Pair]:
    """Every subset with its coverage by ``system`` and its mutation score, in the order of their ids."""
    return [
        Pair(
            subset_id,
            len(subset.tasks),
            subset.coverage[system],
            subset.kill_share if score == "kill_share" else subset.mean_drop,
        )
        for subset_id, subset in subsets.items()
    ]


def _by_size(pairs: list[Pair], score_name: str) -> CorrelationBySize:
    sizes = sorted({pair.size for pair in pairs})
    return CorrelationBySize(
        overall=correlate(pairs, score_name),
        by_size={str(size): correlate([p for p in pairs if p.size == size], score_name) for size in sizes},
    )


def correlate(pairs: list[Pair], score_name: str) -> Correlation:
    """The coefficients of the subsets that have both values; both rounded to 12 decimals, so that equal is equal.

    A subset without one of them is dropped with its reason. One whose value is outside this part of the experiment
    makes the coefficients unavailable: a correlation over the others would pass for the whole.
    """
    kept = [pair for pair in pairs if pair.coverage.value is not None and pair.score.value is not None]
    x, y = _rounded([pair.coverage for pair in kept]), _rounded([pair.score for pair in kept])
    x_level, y_level = levels(x), levels(y)
    away = [figure.reason for pair in pairs for figure in (pair.score, pair.coverage) if figure.outside]
    reason = away[0] if away else why_undefined(x, y, "the coverage", score_name)
    found = coefficients(x, y) if reason is None else None
    outside = True if away else None
    return Correlation(
        pairs=len(kept),
        distinct_coverage=int(x_level.max(initial=-1)) + 1,
        distinct_scores=int(y_level.max(initial=-1)) + 1,
        ties=Ties(coverage=_tied(x_level), score=_tied(y_level)),
        dropped=_dropped(pairs),
        pearson=_figure(found.pearson if found else None, reason, outside),
        spearman=_figure(found.spearman if found else None, reason, outside),
        kendall=_figure(found.kendall if found else None, reason, outside),
    )


def _rounded(figures: Sequence[Figure]) -> FloatArray:
    return np.array([round(figure.value or 0.0, _DECIMALS) for figure in figures], dtype=np.float64)


def _figure(value: float | None, reason: str | None, outside: bool | None) -> Figure:
    return Figure(value=value) if reason is None else Figure(value=None, reason=reason, outside=outside)


def _tied(level: IntArray) -> int:
    """How many of the values another one equals."""
    counts = np.bincount(level, minlength=1)
    return int(counts[counts > 1].sum())


def _dropped(pairs: list[Pair]) -> dict[str, tuple[str, ...]]:
    """Reason -> subsets that are in no pair because of it; a subset that lacks both stands under its coverage."""
    by_reason: dict[str, list[str]] = {}
    for pair in pairs:
        for figure in (pair.coverage, pair.score):
            if figure.reason is not None:
                by_reason.setdefault(figure.reason, []).append(pair.subset)
                break
    return {reason: tuple(subsets) for reason, subsets in by_reason.items()}
