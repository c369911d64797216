"""The coefficients of redrawn cases, all systems and scores on the same draws."""

from collections.abc import Mapping

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray, FloatArray, IntArray
from pytest_metricbench.analysis.detection import Tallies
from pytest_metricbench.analysis.draws import stream
from pytest_metricbench.analysis.goal_sets import GoalSets
from pytest_metricbench.analysis.kill_matrix import KillMatrix
from pytest_metricbench.analysis.many_coefficients import METHODS, compact
from pytest_metricbench.analysis.redraws import CaseRedraws, Judge, Redrawn
from pytest_metricbench.analysis.strata import Side, coefficients_many, coefficients_with_gaps
from pytest_metricbench.analysis.unions import Design, design_on
from pytest_metricbench.definition.experiment import MutationScore

_Job = tuple[str, MutationScore, bytes]


class RedrawnCoefficients:
    """Asked first for what is wanted, then drawn once.

    Systems whose goals are known for the same tasks share their draws, so that their differences are paired.
    """

    def __init__(self, matrix: KillMatrix, members: BoolArray, goals: Mapping[str, GoalSets]) -> None:
        """Begin with nothing asked for.

        Args:
            matrix: the kills, all of them known.
            members: the subsets, shape (subsets, tasks).
            goals: what the tasks cover, by system.
        """
        self._matrix, self._members, self._goals = matrix, members, goals
        self._wanted: dict[_Job, IntArray] = {}
        self._found: dict[_Job, dict[str, list[FloatArray]]] = {}

    def want(self, system: str, score: MutationScore, rows: IntArray) -> None:
        """Ask for the coefficients of some subsets."""
        if system in self._goals and len(rows):
            self._wanted[system, score, rows.tobytes()] = rows

    def draw(self, draws: int, seed: int, purpose: str) -> None:
        """Draw everything that was asked for."""
        self._found = {job: {method: [] for method in METHODS} for job in self._wanted}
        groups: dict[tuple[int, ...], list[str]] = {}
        for system in dict.fromkeys(job[0] for job in self._wanted):
            groups.setdefault(self._goals[system].tasks, []).append(system)
        scored, given = self._matrix.scored, self._matrix.tallies
        tallies = Tallies(given.base_passed, given.base_n, given.mutant_passed[scored], given.mutant_n[scored])
        judge = Judge(self._matrix.rule, self._matrix.threshold, tallies.base_n, tallies.mutant_n)
        for tasks, systems in groups.items():
            design, row = design_on(self._members, tasks)
            redraws = CaseRedraws(tallies, judge, design, tasks)
            for part in redraws.draw(draws, stream(seed, "redraws", purpose)):
                for system in systems:
                    self._add(system, part, design, row)

    def _add(self, system: str, part: Redrawn, design: Design, row: IntArray) -> None:
        covered = design.union_sizes(word[part.tasks] for word in self._goals[system].words)
        for job, rows in self._wanted.items():
            if job[0] == system:
                x, y = covered[row[rows]], part.scores[job[1]].rows(row[rows])
                gaps = bool(np.isnan(y.values.astype(np.float64)).any())
                found = (coefficients_with_gaps if gaps else coefficients_many)(Side(x, compact(x)), y)
                for method, values in found.items():
                    self._found[job][method].append(values)

    def of(self, system: str, score: MutationScore, rows: IntArray, method: str) -> FloatArray:
        """The coefficients of one method, one a draw; NaN where there is none."""
        return np.concatenate(self._found[system, score, rows.tobytes()][method])
