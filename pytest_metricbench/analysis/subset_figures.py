"""Mutation scores and coverage of the pool and of every subset, and their means over the subsets of one size."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray
from pytest_metricbench.analysis.figures import (
    CoverageFigure,
    Figure,
    KillShareFigure,
    MeanDropFigure,
    ShareFigure,
    SizeFigure,
)
from pytest_metricbench.analysis.kill_matrix import KillMatrix
from pytest_metricbench.analysis.mutation_score import drops, mean_drops, set_kills
from pytest_metricbench.analysis.outcomes import natural_key
from pytest_metricbench.analysis.proportions import wilson
from pytest_metricbench.analysis.redundancy import minimal_mutants
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summary import PoolScores, SizeSummary, SubsetScores
from pytest_metricbench.analysis.unavailable import briefly, missing, outside
from pytest_metricbench.definition.experiment import POOL, Case, Subset

NO_RESULT = "no result of this coverage request arrived"
ONLY_FIRST = "each mutant was left alone after its first kill: only what the pool of all tasks kills is known"


@dataclass(frozen=True, slots=True)
class CaseScores:
    """The scores of a case's pool and of its subsets, subsets by id."""

    pool: PoolScores
    subsets: Mapping[str, SubsetScores] = field(default_factory=dict)


def case_scores(results: Results, case: Case, matrix: KillMatrix) -> CaseScores:
    """Score the pool and every subset of a case."""
    subsets = sorted(case.subsets, key=lambda subset: natural_key(subset.id))
    members = _members(matrix.tasks, subsets)
    scorer = _Scorer(matrix, members)
    pool = PoolScores(**scorer.scores(0), coverage=_coverage(results, case, POOL))
    scored = {
        subset.id: SubsetScores(
            **scorer.scores(row),
            coverage=_coverage(results, case, subset.id),
            tasks=tuple(sorted(subset.tasks, key=natural_key)),
        )
        for row, subset in enumerate(subsets, start=1)
    }
    return CaseScores(pool, scored)


def _members(tasks: Sequence[str], subsets: Sequence[Subset]) -> BoolArray:
    """Which tasks each set holds, shape (1 + subsets, tasks); row 0 is the pool."""
    position = {task: index for index, task in enumerate(tasks)}
    members = np.zeros((1 + len(subsets), len(tasks)), dtype=np.bool_)
    members[0] = True
    for row, subset in enumerate(subsets, start=1):
        members[row, [position[task] for task in subset.tasks]] = True
    return members


class _Scorer:
    """The mutation scores of sets of tasks of one case."""

    def __init__(self, matrix: KillMatrix, members: BoolArray) -> None:
        self.matrix = matrix
        self.sizes = members.sum(axis=1).tolist()
        self.kills = set_kills(members, matrix.judged, matrix.killed)
        self.measured = set_kills(members, matrix.present, matrix.killed)
        cell_drops = drops(matrix.tallies)
        self.mean_drops = mean_drops(members, self.measured.cells, cell_drops, matrix.scored)
        self.mean_drops_reviewed = mean_drops(members, self.measured.cells, cell_drops, matrix.reviewed)
        self.needed = self._needed(members, matrix.scored)
        self.needed_reviewed = self._needed(members, matrix.reviewed)
        self.minimal = minimal_mutants(matrix)
        everything = np.ones((1, members.shape[1]), dtype=np.bool_)
        self.needed_pool = self._needed(everything, matrix.scored)[0]
        self.needed_case = self._needed(everything, matrix.reviewed)[0]

    def _needed(self, members: BoolArray, mutants: BoolArray) -> list[tuple[int, int]]:
        return self.matrix.outside.needed(members, mutants, mutants & self.matrix.validity_unknown)

    def scores(self, row: int) -> dict[str, Any]:
        """The figures of one set."""
        return {"kill_share": self._kill_share(row), "mean_drop": self._mean_drop(row)}

    def _kill_share(self, row: int) -> KillShareFigure:
        matrix, kills = self.matrix, self.kills
        killed, mutants = kills.share(row, matrix.scored)
        needed = self.needed_case if matrix.undecided else self.needed[row]
        if matrix.only_first and row:
            return _unknown_share(mutants)
        counted = matrix.scored & (kills.cells[row] > 0)
        fields = _share(killed, mutants, needed, self._why_none(matrix.scored))
        return KillShareFigure(
            **fields,
            interval=wilson(killed, mutants) if fields["value"] is not None else None,
            without_cell=int(np.count_nonzero(matrix.scored)) - mutants,
            missing_cells=mutants * self.sizes[row] - int(kills.cells[row][counted].sum()),
            over_detected=self._over_detected(row),
            over_minimal=self._over_minimal(row),
            with_equivalents=self._with_equivalents(row),
        )

    def _over_detected(self, row: int) -> ShareFigure:
        killed, mutants = self.kills.share(row, self.matrix.scored & self.matrix.detected)
        needed = self.needed_case if self.matrix.undecided else self.needed_pool
        return ShareFigure(**_share(killed, mutants, needed, "no mutant with a cell here is killed by the pool"))

    def _over_minimal(self, row: int) -> ShareFigure:
        killed, mutants = self.kills.share(row, self.minimal)
        if self.matrix.only_first:
            return ShareFigure(**missing(ONLY_FIRST), killed=0, mutants=0)
        needed = self.needed_case if self.matrix.undecided else self.needed_pool
        return ShareFigure(**_share(killed, mutants, needed, "no mutant of the minimal set has a cell here"))

    def _with_equivalents(self, row: int) -> ShareFigure:
        killed, mutants = self.kills.share(row, self.matrix.reviewed)
        needed = self.needed_case if self.matrix.undecided else self.needed_reviewed[row]
        return ShareFigure(**_share(killed, mutants, needed, self._why_none(self.matrix.reviewed)))

    def _mean_drop(self, row: int) -> MeanDropFigure:
        matrix = self.matrix
        cells = self.measured.cells[row]
        counted = matrix.scored & (cells > 0)
        mutants, measured = int(np.count_nonzero(counted)), int(cells[counted].sum())
        if matrix.only_first:
            none = missing(ONLY_FIRST)
            rest = {"mutants": mutants, "cells": measured, "missing_cells": mutants * self.sizes[row] - measured}
            return MeanDropFigure(**none, **rest, with_equivalents=Figure(**none))
        return MeanDropFigure(
            **_mean(self.mean_drops[row], self.needed[row], self._why_none(matrix.scored)),
            mutants=mutants,
            cells=measured,
            missing_cells=mutants * self.sizes[row] - measured,
            with_equivalents=Figure(
                **_mean(self.mean_drops_reviewed[row], self.needed_reviewed[row], self._why_none(matrix.reviewed))
            ),
        )

    def _why_none(self, mutants: BoolArray) -> str:
        """Why a score over these mutants has nothing in its denominator."""
        matrix = self.matrix
        if mutants.any():
            return "no cell of a valid mutant is measured here"
        damaged = ~matrix.control
        if not damaged.any():
            return "the case has no mutants" + (" but controls" if len(matrix.mutants) else "")
        if not (damaged & matrix.valid).any():
            return "all mutants are invalid: every attempt of theirs died"
        return "every valid mutant was found equivalent to the baseline"


def _unknown_share(mutants: int) -> KillShareFigure:
    none = ShareFigure(**missing(ONLY_FIRST), killed=0, mutants=0)
    return KillShareFigure(
        **missing(ONLY_FIRST),
        killed=0,
        mutants=mutants,
        interval=None,
        without_cell=0,
        missing_cells=0,
        over_detected=none,
        over_minimal=none,
        with_equivalents=none,
    )


def _share(killed: int, mutants: int, needed: tuple[int, int], why_none: str) -> dict[str, Any]:
    numbers = {"killed": killed, "mutants": mutants}
    if needed[0]:
        return {**outside(*needed), **numbers}
    if not mutants:
        return {**missing(why_none), **numbers}
    return {"value": killed / mutants, **numbers}


def _mean(mean: Fraction | None, needed: tuple[int, int], why_none: str) -> dict[str, Any]:
    if needed[0]:
        return outside(*needed)
    return missing(why_none) if mean is None else {"value": mean.numerator / mean.denominator}


# ---------------------------------------------------------------- coverage


def _coverage(results: Results, case: Case, subset: str) -> dict[str, CoverageFigure]:
    return {entry.id: _coverage_figure(results, (case.id, entry.id, subset)) for entry in results.experiment.coverage}


def _coverage_figure(results: Results, key: tuple[str, str, str]) -> CoverageFigure:
    record = results.coverage.get(key)
    if record is None:
        reason = results.coverage_absent.get(key, NO_RESULT)
        part = True if results.part is not None and key in results.coverage_absent else None
        return CoverageFigure(value=None, reason=reason, outside=part, state="absent")
    if record.outcome == "failed":
        first = briefly(record.error or "no error was given")
        return CoverageFigure(value=None, reason=f"the coverage request failed: {first}", state="failed")
    if record.value is None:
        return CoverageFigure(value=None, reason=record.reason or "no reason was given", state="measured")
    return CoverageFigure(value=record.value, state="measured")


# ---------------------------------------------------------------- sizes


def size_summaries(subsets: Mapping[str, SubsetScores]) -> dict[str, SizeSummary]:
    """The figures averaged over the subsets of each size, sizes ascending."""
    by_size: dict[int, list[SubsetScores]] = {}
    for subset in subsets.values():
        by_size.setdefault(len(subset.tasks), []).append(subset)
    return {
        str(size): SizeSummary(
            subsets=len(of_size),
            kill_share=_size_figure([subset.kill_share for subset in of_size]),
            mean_drop=_size_figure([subset.mean_drop for subset in of_size]),
            coverage={
                system: _size_figure([subset.coverage[system] for subset in of_size]) for system in of_size[0].coverage
            },
        )
        for size, of_size in sorted(by_size.items())
    }


def _size_figure(figures: Sequence[Figure]) -> SizeFigure:
    """The mean of the figures that have a value; unavailable where one needs what is outside this part."""
    values = [figure.value for figure in figures if figure.value is not None]
    rests_on: dict[str, Any] = {"count": len(values), "nan_count": len(figures) - len(values)}
    away = [figure.reason for figure in figures if figure.outside]
    if away:
        return SizeFigure(value=None, reason=away[0], outside=True, **rests_on, low=None, high=None)
    if not values:
        return SizeFigure(value=None, reason=figures[0].reason, **rests_on, low=None, high=None)
    mean = math.fsum(values) / len(values)
    return SizeFigure(value=mean, **rests_on, low=min(values), high=max(values))
