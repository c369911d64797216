"""Coverage against mutation score over the subsets of one case, system by system and score by score."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from pytest_metricbench.analysis.arrays import IntArray
from pytest_metricbench.analysis.correlation import Coefficients, coefficients, levels, why_undefined
from pytest_metricbench.analysis.figures import Correlation, CorrelationBySize, Figure, SizeControl, Ties
from pytest_metricbench.analysis.inference import Inference, Tables
from pytest_metricbench.analysis.many_coefficients import METHODS
from pytest_metricbench.analysis.pair_tables import Pair, PairTable, away_of, pair_table
from pytest_metricbench.analysis.size_control import balance, size_control
from pytest_metricbench.analysis.strata import OVERALL
from pytest_metricbench.analysis.summary import SubsetScores
from pytest_metricbench.definition.experiment import MutationScore

SCORE_NAMES: Final[Mapping[MutationScore, str]] = {"kill_share": "the kill share", "mean_drop": "the mean drop"}


def pair_tables(subsets: Mapping[str, SubsetScores], systems: list[str]) -> Tables:
    """The pairs of every system and mutation score."""
    return {(system, score): pair_table(subsets, system, score) for system in systems for score in SCORE_NAMES}


def correlations(tables: Tables, inference: Inference) -> dict[str, dict[MutationScore, CorrelationBySize]]:
    """System -> mutation score -> correlation over all subsets, within each size, and given size."""
    found: dict[str, dict[MutationScore, CorrelationBySize]] = {}
    for (system, score), table in tables.items():
        strata = {name: _correlate(table, name, inference) for name in table.strata}
        found.setdefault(system, {})[score] = CorrelationBySize(
            overall=strata.pop(OVERALL), by_size=strata, size_control=_given_size(table)
        )
    return found


def _correlate(table: PairTable, stratum: str, inference: Inference) -> Correlation:
    """The coefficients of the subsets that have both values; both rounded to 12 decimals, so that equal is equal.

    A subset without one of them is dropped with its reason. One whose value is outside this part of the experiment
    makes the coefficients unavailable: a correlation over the others would pass for the whole.
    """
    rows = table.rows(stratum)
    pairs = [pair for pair in table.pairs if stratum in (OVERALL, str(pair.size))]
    x, y = table.coverage[rows], table.scores[rows]
    x_level, y_level = levels(x), levels(y)
    away = away_of(pairs)
    reason = away.reason if away else why_undefined(x, y, "the coverage", SCORE_NAMES[table.score])
    found = coefficients(x, y) if reason is None else None
    figures = {method: _figure(found, method, reason, True if away else None) for method in METHODS}
    return Correlation(
        pairs=len(rows),
        distinct_coverage=int(x_level.max(initial=-1)) + 1,
        distinct_scores=int(y_level.max(initial=-1)) + 1,
        ties=Ties(coverage=_tied(x_level), score=_tied(y_level)),
        balance=balance(y, is_share=table.score == "kill_share"),
        dropped=_dropped(pairs),
        **{method: inference.coefficient(table, stratum, method, figure) for method, figure in figures.items()},
    )


def _given_size(table: PairTable) -> SizeControl:
    rows = table.rows(OVERALL)
    x, y = table.coverage[rows], table.scores[rows]
    away = table.away
    reason = why_undefined(x, y, "the coverage", SCORE_NAMES[table.score])
    nothing = Figure(value=None, reason=away.reason, outside=True) if away else None
    if nothing is None and reason is not None:
        nothing = Figure(value=None, reason=reason)
    return size_control(x, y, [table.pairs[row].size for row in rows.tolist()], nothing)


def _figure(found: Coefficients | None, method: str, reason: str | None, outside: bool | None) -> Figure:
    if found is None:
        return Figure(value=None, reason=reason, outside=outside)
    return Figure(value=getattr(found, method))


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
