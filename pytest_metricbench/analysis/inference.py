"""How sure the correlations of a case are: their p, their intervals, what random goals reach, and comparisons."""

import itertools
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray, IntArray
from pytest_metricbench.analysis.correlation import why_undefined
from pytest_metricbench.analysis.figures import (
    Coefficient,
    Comparison,
    DifferenceFigure,
    Differences,
    Figure,
    PFigure,
    RandomFigure,
    rounded,
)
from pytest_metricbench.analysis.goal_sets import GoalSets, goal_sets
from pytest_metricbench.analysis.intervals import correlation_interval, difference_interval
from pytest_metricbench.analysis.kill_matrix import KillMatrix
from pytest_metricbench.analysis.label_swaps import LabelSwaps
from pytest_metricbench.analysis.many_coefficients import METHODS
from pytest_metricbench.analysis.pair_tables import PairTable
from pytest_metricbench.analysis.redrawn_coefficients import RedrawnCoefficients
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.strata import OVERALL
from pytest_metricbench.analysis.task_labels import Tail, TaskLabelTest, tail
from pytest_metricbench.analysis.unavailable import missing
from pytest_metricbench.analysis.unions import design_on
from pytest_metricbench.definition.experiment import Case, MutationScore

Tables: TypeAlias = Mapping[tuple[str, MutationScore], PairTable]
MOST_SWAPS: Final = 999
"""Swapped labels say something beside the relabelled p and decide nothing: to .001 is close enough."""


class Inference:
    """Relabels and redraws one case as far as its systems give goals and its pairs have coefficients."""

    def __init__(self, results: Results, case: Case, matrix: KillMatrix, members: BoolArray, tables: Tables) -> None:
        """Relabel and redraw everything that a figure of the case may be asked for.

        Args:
            results: the coverage records and the settings.
            case: the case.
            matrix: its kills.
            members: its subsets, shape (subsets, tasks).
            tables: the pairs of every system and score.
        """
        self._case, self._members, self._tables = case.id, members, tables
        self._settings = results.experiment.analysis
        primary = self._settings.mutation_score
        systems = list(dict.fromkeys(system for system, _ in tables))
        self._goals: dict[str, GoalSets | str] = {
            system: goal_sets(results, case, system, matrix.tasks) if self._has_coefficient(system) else "not needed"
            for system in systems
        }
        known = {system: goals for system, goals in self._goals.items() if isinstance(goals, GoalSets)}
        self._common = {pair: self._common_strata(*pair, primary) for pair in itertools.combinations(systems, 2)}
        self._tests = {system: self._test(system, goals) for system, goals in known.items()}
        self._redrawn = RedrawnCoefficients(matrix, members, known)
        for (system, score), table in tables.items():
            for rows in table.strata.values():
                self._redrawn.want(system, score, rows)
        for pair, strata in self._common.items():
            for system, rows in itertools.product(pair, strata.values()):
                self._redrawn.want(system, primary, rows)
        self._redrawn.draw(self._settings.bootstrap, self._settings.seed, case.id)

    def _has_coefficient(self, system: str) -> bool:
        """Whether some coefficient of a system is defined; nothing is drawn for the others."""
        return any(
            table.away is None and why_undefined(table.coverage[rows], table.scores[rows]) is None
            for (of, _), table in self._tables.items()
            if of == system
            for rows in table.strata.values()
        )

    def _test(self, system: str, goals: GoalSets) -> TaskLabelTest:
        """The test of one system; all systems relabel alike, so that their differences are paired."""
        scores = {
            score: ({**table.strata, **self._compared_strata(system, score)}, table.side)
            for (of, score), table in self._tables.items()
            if of == system
        }
        settings = self._settings
        return TaskLabelTest(goals, self._members, scores, settings.permutation, settings.seed, self._case)

    def _compared_strata(self, system: str, score: MutationScore) -> dict[str, IntArray]:
        """Subsets on which a system is compared with another, where those are not all of its own."""
        if score != self._settings.mutation_score:
            return {}
        own = self._tables[system, score].strata
        return {
            _shared_name(name, pair): rows
            for pair, strata in self._common.items()
            if system in pair
            for name, rows in strata.items()
            if len(rows) != len(own[name])
        }

    # ------------------------------------------------------------ one coefficient

    def coefficient(self, table: PairTable, stratum: str, method: str, observed: Figure) -> Coefficient:
        """A coefficient of a table's stratum with everything that is known of it."""
        if observed.value is None:
            why = {"reason": observed.reason, "outside": observed.outside}
            nothing: dict[str, Any] = {"value": None, **why}
            return Coefficient(**nothing, p=PFigure(**nothing), random=RandomFigure(**nothing))
        goals = self._goals[table.system]
        if isinstance(goals, str):
            needs = f"needs the goals of each task: {goals}"
            unknown: dict[str, Any] = {"p": PFigure(**missing(needs)), "random": RandomFigure(**missing(needs))}
            return Coefficient(value=observed.value, interval_reason=needs, **unknown)
        redrawing = correlation_interval(
            observed.value, self._redrawn.of(table.system, table.score, table.rows(stratum), method)
        )
        p, random = self._p(table, stratum, method)
        return Coefficient(
            value=observed.value,
            interval=redrawing.interval,
            interval_reason=redrawing.reason,
            redraws=redrawing.draws,
            redraws_undefined=redrawing.undefined,
            p=p,
            random=random,
        )

    def _p(self, table: PairTable, stratum: str, method: str) -> tuple[PFigure, RandomFigure]:
        tail = self._tests[table.system].tail(table.score, stratum, method)
        if isinstance(tail, str):
            return PFigure(**missing(tail)), RandomFigure(**missing(tail))
        p = PFigure(
            value=tail.two_sided,
            greater=tail.greater,
            less=tail.less,
            relabellings=tail.draws,
            undefined=tail.undefined,
            exact=tail.exact,
        )
        low, high, mean = map(rounded, (tail.null_low, tail.null_high, tail.null_mean))
        return p, RandomFigure(value=mean, middle=(low, high))

    # ------------------------------------------------------------ two systems

    def comparisons(self) -> tuple[Comparison, ...]:
        """Every two systems against the primary mutation score, on the subsets that have values of both."""
        return tuple(self._comparison(first, second) for first, second in self._common)

    def _common_strata(self, first: str, second: str, score: MutationScore) -> dict[str, IntArray]:
        """Rows of the subsets that both systems have in each stratum."""
        one, other = self._tables[first, score].strata, self._tables[second, score].strata
        return {name: np.intersect1d(rows, other[name]) for name, rows in one.items()}

    def _comparison(self, first: str, second: str) -> Comparison:
        strata = self._common[first, second]
        why = self._why_not_compared(first, second)
        swaps = None if why is not None else self._swaps(first, second, strata)
        found = {name: self._differences(first, second, name, rows, swaps, why) for name, rows in strata.items()}
        return Comparison(first=first, second=second, overall=found.pop(OVERALL), by_size=found)

    def _why_not_compared(self, first: str, second: str) -> Figure | None:
        """A figure with the reason why two systems cannot be compared; None where they can."""
        score = self._settings.mutation_score
        for system in (first, second):
            away = self._tables[system, score].away
            if away is not None:
                return away
            goals = self._goals[system]
            if isinstance(goals, str) and self._has_coefficient(system):
                return Figure(**missing(f"needs the goals of each task by {system}: {goals}"))
            if isinstance(goals, str):
                return Figure(**missing(f"{system} has no coefficient"))
        one, other = self._goals[first], self._goals[second]
        if isinstance(one, GoalSets) and isinstance(other, GoalSets) and one.tasks != other.tasks:
            return Figure(**missing("the two systems give the goals of different tasks"))
        return None

    def _swaps(self, first: str, second: str, strata: Mapping[str, IntArray]) -> LabelSwaps:
        one, other, settings = self._goals[first], self._goals[second], self._settings
        if isinstance(one, str) or isinstance(other, str):
            raise ValueError("two systems without goals cannot be swapped")
        rows = strata[OVERALL]
        design, _ = design_on(self._members[rows], one.tasks)
        inner = {name: np.searchsorted(rows, found) for name, found in strata.items()}
        side = self._tables[first, settings.mutation_score].side.rows(rows)
        purpose = f"{self._case}\0{first}\0{second}"
        draws = min(settings.permutation, MOST_SWAPS)
        return LabelSwaps(one, other, design, inner, side, draws, settings.seed, purpose)

    def _differences(
        self,
        first: str,
        second: str,
        stratum: str,
        rows: IntArray,
        swaps: LabelSwaps | None,
        why: Figure | None,
    ) -> Differences:
        figures = {method: self._difference(first, second, stratum, rows, method, swaps, why) for method in METHODS}
        return Differences(pairs=len(rows), **figures)

    def _difference(
        self,
        first: str,
        second: str,
        stratum: str,
        rows: IntArray,
        method: str,
        swaps: LabelSwaps | None,
        why: Figure | None,
    ) -> DifferenceFigure:
        reason = why or self._undefined(first, second, rows)
        if reason is not None or swaps is None:
            nothing: dict[str, Any] = reason.model_dump(include={"value", "reason", "outside"}) if reason else {}
            return DifferenceFigure(**nothing, p=Figure(**nothing), p_swapped=Figure(**nothing))
        value = float(swaps.observed[stratum, method][0])
        one, other = (
            self._redrawn.of(system, self._settings.mutation_score, rows, method) for system in (first, second)
        )
        redrawing = difference_interval(value, one - other)
        p = self._relabelled((first, second), stratum, rows, method, value)
        swapped = swaps.p(stratum, method)
        return DifferenceFigure(
            value=rounded(value),
            interval=redrawing.interval,
            interval_reason=redrawing.reason,
            p=Figure(**missing(p)) if isinstance(p, str) else Figure(value=p.two_sided),
            p_swapped=Figure(**missing(swapped)) if isinstance(swapped, str) else Figure(value=swapped),
        )

    def _relabelled(self, pair: tuple[str, str], stratum: str, rows: IntArray, method: str, value: float) -> Tail | str:
        """The difference under relabelled tasks, both systems' goals moving together."""
        score = self._settings.mutation_score
        nulls = []
        for system in pair:
            own = len(self._tables[system, score].rows(stratum)) == len(rows)
            name = stratum if own else _shared_name(stratum, pair)
            nulls.append(self._tests[system].null[score, name, method])
        return tail(value, nulls[0] - nulls[1], self._tests[pair[0]].exact)

    def _undefined(self, first: str, second: str, rows: IntArray) -> Figure | None:
        for system in (first, second):
            table = self._tables[system, self._settings.mutation_score]
            reason = why_undefined(table.coverage[rows], table.scores[rows], f"the coverage by {system}", "the score")
            if reason is not None:
                return Figure(**missing(reason))
        return None


def _shared_name(stratum: str, pair: tuple[str, str]) -> str:
    return "\0".join((stratum, *pair))
