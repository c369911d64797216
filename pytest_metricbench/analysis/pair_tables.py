"""The pairs of one correlation: which subsets have both values, and their mutation scores as ranks take them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray, FloatArray, IntArray
from pytest_metricbench.analysis.correlation import levels
from pytest_metricbench.analysis.figures import DECIMALS, CoverageFigure, Figure
from pytest_metricbench.analysis.strata import Side, Strata, strata_of
from pytest_metricbench.analysis.summary import SubsetScores
from pytest_metricbench.analysis.unavailable import subsets_outside_reason
from pytest_metricbench.definition.experiment import MutationScore


@dataclass(frozen=True, slots=True)
class Pair:
    """One subset as a point of a correlation."""

    subset: str
    size: int
    coverage: CoverageFigure
    score: Figure

    @property
    def complete(self) -> bool:
        """Both values are there."""
        return self.coverage.value is not None and self.score.value is not None


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """Every subset with its coverage by one system and one mutation score, in the order of their ids."""

    system: str
    score: MutationScore
    pairs: tuple[Pair, ...]
    coverage: FloatArray
    """Rounded to 12 decimals, so that equal is equal; 0 where there is no pair."""
    scores: FloatArray
    strata: Strata

    @property
    def side(self) -> Side:
        """The mutation scores as one list that all draws share."""
        return Side(self.scores[:, None], levels(self.scores)[:, None])

    @property
    def away(self) -> Figure | None:
        """Stands for a figure of all pairs where some are outside this part of the experiment."""
        return away_of(self.pairs)

    def rows(self, stratum: str) -> IntArray:
        """Rows of the subsets that make pairs in a stratum."""
        return self.strata[stratum]


def away_of(pairs: Sequence[Pair]) -> Figure | None:
    """What stands for a figure of these pairs where some need what is outside this part of the experiment.

    Its reason counts the subsets: how many attempts one of them lacks says nothing of the figure.
    """
    lacking = sum(1 for pair in pairs if pair.score.outside)
    if lacking:
        return Figure(value=None, reason=subsets_outside_reason(lacking, len(pairs)), outside=True)
    return next((pair.coverage for pair in pairs if pair.coverage.outside), None)


def pair_table(subsets: Mapping[str, SubsetScores], system: str, score: MutationScore) -> PairTable:
    """The pairs of one system and one mutation score."""
    pairs = tuple(
        Pair(
            subset_id,
            len(subset.tasks),
            subset.coverage[system],
            subset.kill_share if score == "kill_share" else subset.mean_drop,
        )
        for subset_id, subset in subsets.items()
    )
    kept = [pair.complete for pair in pairs]
    return PairTable(
        system,
        score,
        pairs,
        _rounded([pair.coverage for pair in pairs], kept),
        _rounded([pair.score for pair in pairs], kept),
        strata_of([pair.size for pair in pairs], kept),
    )


def member_matrix(subsets: Mapping[str, SubsetScores], tasks: tuple[str, ...]) -> BoolArray:
    """Which tasks each subset holds, shape (subsets, tasks)."""
    position = {task: index for index, task in enumerate(tasks)}
    members = np.zeros((len(subsets), len(tasks)), dtype=np.bool_)
    for row, subset in enumerate(subsets.values()):
        members[row, [position[task] for task in subset.tasks]] = True
    return members


def _rounded(figures: list[Figure] | list[CoverageFigure], kept: list[bool]) -> FloatArray:
    values = (figure.value if keep else 0.0 for figure, keep in zip(figures, kept, strict=True))
    return np.array([round(value or 0.0, DECIMALS) for value in values], dtype=np.float64)
