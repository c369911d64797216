"""How well a mutation score is measured: halves of the mutants compared with each other.

A score from few mutants is noisy, and nothing correlates with noise. The mutants are split at random into halves, the
subsets are scored by each half, and Pearson's r between the halves is stepped up to all mutants (Spearman 1910, Brown
1910: 2r / (1 + r)). The root of the result bounds what any coverage can be expected to reach.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray, FloatArray
from pytest_metricbench.analysis.draws import stream
from pytest_metricbench.analysis.figures import DECIMALS, Figure, ReliabilityBySize, ReliabilityFigure
from pytest_metricbench.analysis.kill_matrix import KillMatrix
from pytest_metricbench.analysis.mutation_score import drops, set_kills
from pytest_metricbench.analysis.strata import OVERALL, Side, coefficients_with_gaps, strata_of
from pytest_metricbench.analysis.task_labels import MOST_UNDEFINED
from pytest_metricbench.analysis.unavailable import missing
from pytest_metricbench.definition.experiment import MutationScore

SPLITS: Final = 200


def stepped_up(half: float) -> float:
    """The reliability of the whole from the correlation of its halves, above 0 and at most 1.

    Raises:
        ValueError: the halves do not agree at all.
    """
    if not 0 < half <= 1:
        raise ValueError(f"halves that correlate at {half} have no reliability")
    return 2 * half / (1 + half)


def reliabilities(
    matrix: KillMatrix,
    members: BoolArray,
    seed: int,
    purpose: str,
    unavailable: Mapping[MutationScore, Figure],
) -> dict[MutationScore, ReliabilityBySize]:
    """The reliability of both mutation scores over all subsets and within each size.

    Args:
        matrix: the kills.
        members: the subsets, shape (subsets, tasks).
        seed: of the splits.
        purpose: what the stream of random numbers is for.
        unavailable: mutation score -> a figure with the reason why it has none.
    """
    if not len(members):
        return {}
    strata = strata_of(members.sum(axis=1).tolist(), [True] * len(members))
    halves = _halves(int(np.count_nonzero(matrix.scored)), seed, purpose)
    found: dict[MutationScore, ReliabilityBySize] = {}
    for score, (values, counted) in _by_mutant(matrix, members).items():
        figures = {}
        for name, rows in strata.items():
            reason = _why_none(matrix, score, unavailable)
            figures[name] = reason or _reliability(values[rows], counted[rows], halves)
        found[score] = ReliabilityBySize(overall=figures.pop(OVERALL), by_size=figures)
    return found


def _halves(mutants: int, seed: int, purpose: str) -> FloatArray:
    """Which mutants are in the first half, shape (mutants, splits)."""
    ranks = stream(seed, "halves", purpose).permuted(np.tile(np.arange(mutants)[:, None], SPLITS), axis=0)
    return (ranks < mutants // 2).astype(np.float64)


def _by_mutant(matrix: KillMatrix, members: BoolArray) -> dict[MutationScore, tuple[FloatArray, FloatArray]]:
    """Each subset's score by each mutant alone, and which of them count, shape (subsets, mutants)."""
    scored = matrix.scored
    sets = set_kills(members, matrix.present, matrix.killed)
    cells = sets.cells[:, scored]
    table = drops(matrix.tallies)
    numbers = table.numerators[scored].astype(np.float64) / table.denominator
    mean = (members.astype(np.float64) @ numbers.T) / np.maximum(cells, 1)
    counted = (cells > 0).astype(np.float64)
    return {"kill_share": (sets.killed[:, scored] * counted, counted), "mean_drop": (mean * counted, counted)}


def _why_none(
    matrix: KillMatrix, score: MutationScore, unavailable: Mapping[MutationScore, Figure]
) -> ReliabilityFigure | None:
    figure = unavailable.get(score)
    if figure is None and np.count_nonzero(matrix.scored) < 2:
        figure = Figure(**missing("fewer than 2 valid mutants make no halves"))
    if figure is None:
        return None
    return ReliabilityFigure(
        value=None, reason=figure.reason, outside=figure.outside, half=None, ceiling=None, splits=0, undefined=0
    )


def _reliability(values: FloatArray, counted: FloatArray, halves: FloatArray) -> ReliabilityFigure:
    sides = []
    for chosen in (halves, 1 - halves):
        mutants = counted @ chosen
        sides.append(np.round((values @ chosen) / np.where(mutants > 0, mutants, np.nan), DECIMALS))
    x, y = (Side(side, np.zeros(side.shape, dtype=np.int64)) for side in sides)
    found = coefficients_with_gaps(x, y, ("pearson",))["pearson"]
    defined = found[~np.isnan(found)]
    rests_on: dict[str, Any] = {"splits": len(defined), "undefined": len(found) - len(defined)}
    half = float(defined.mean()) if len(defined) else None
    if rests_on["undefined"] > MOST_UNDEFINED * len(found) or half is None:
        reason = f"{rests_on['undefined']} of {len(found)} splits of the mutants give halves without a correlation"
        return ReliabilityFigure(**missing(reason), half=half, ceiling=None, **rests_on)
    if half <= 0:
        reason = f"the halves of the mutants do not agree: their mean correlation is {half:.2g}"
        return ReliabilityFigure(**missing(reason), half=half, ceiling=None, **rests_on)
    whole = stepped_up(half)
    return ReliabilityFigure(value=whole, half=half, ceiling=math.sqrt(whole), **rests_on)
