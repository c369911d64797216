"""Mutants against tasks: what is known of each cell of a case, which cells are killed, and which mutants count."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray, IntArray
from pytest_metricbench.analysis.detection import Tallies, kills, stand_without_died
from pytest_metricbench.analysis.outcomes import CaseOutcomes
from pytest_metricbench.definition.experiment import KillRule, Variant


@dataclass(frozen=True, slots=True, eq=False)
class OutsideAttempts:
    """Attempts outside this part of the experiment, and attempts declared, by cell."""

    base: IntArray
    """Outside, shape (tasks,)."""
    mutants: IntArray
    """Outside, shape (mutants, tasks)."""
    base_declared: IntArray
    mutants_declared: IntArray

    def needed(self, members: BoolArray, mutants: BoolArray, whole: BoolArray) -> list[tuple[int, int]]:
        """For each set of tasks, attempts that its figures need: those outside, and all of them.

        Args:
            members: shape (sets, tasks).
            mutants: whose attempts at the tasks of the set are needed.
            whole: whose attempts at all tasks are needed, since nobody knows yet whether they are valid.
        """
        sets = members.astype(np.int64)
        at_set = mutants & ~whole
        numbers = []
        for base, cells in ((self.base, self.mutants), (self.base_declared, self.mutants_declared)):
            numbers.append((sets @ (base + cells[at_set].sum(axis=0)) + cells[whole].sum()).tolist())
        return list(zip(*numbers, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class KillMatrix:
    """The cells of a case: mutants in the order of the file, tasks by id. A cell is missing where it is not present."""

    rule: KillRule
    mutants: tuple[Variant, ...]
    tasks: tuple[str, ...]
    tallies: Tallies
    """Without cells of which attempts are outside: what is known of those is not the whole."""
    present: BoolArray
    killed: BoolArray
    stands: BoolArray
    """Killed, and would be without the attempts that died."""
    stands_slow: BoolArray
    """Killed, and would be without the attempts that ran out of time."""
    threshold: Fraction | None
    valid: BoolArray
    control: BoolArray
    equivalent: BoolArray
    validity_unknown: BoolArray
    """Every entry so far died, and other attempts are outside."""
    outside: OutsideAttempts
    not_reached: BoolArray
    """Present although nothing was run: the task never reaches what the mutant changed, so its attempts are taken to
    be the baseline's."""
    only_first: bool
    """Mutants were left alone after their first kill: only whether the pool kills them is known."""
    undecided: bool
    """The rule needs every cell of the case, and some are outside: no cell can be judged."""

    @property
    def judged(self) -> BoolArray:
        """Cells that are killed or survived."""
        return np.zeros_like(self.present) if self.undecided else self.present

    @property
    def reviewed(self) -> BoolArray:
        """Mutants that count when those found equivalent do: valid, and no controls."""
        return self.valid & ~self.control

    @property
    def scored(self) -> BoolArray:
        """Mutants that count in a mutation score: valid, not found equivalent, and no controls."""
        return self.reviewed & ~self.equivalent

    @property
    def detected(self) -> BoolArray:
        """Mutants that some task of the pool kills."""
        return some(self.killed)


def some(cells: BoolArray) -> BoolArray:
    """Mutants with a true cell."""
    found: BoolArray = np.any(cells, axis=1)
    return found


def kill_matrix(outcomes: CaseOutcomes, rule: KillRule) -> KillMatrix:
    """Judge every cell of a case under ``rule``."""
    numbers = _CellNumbers(outcomes)
    outside = OutsideAttempts(
        numbers.base("outside"), numbers.mutants("outside"), numbers.base("declared"), numbers.mutants("declared")
    )
    tallies, not_reached = _tallies(numbers, outside)
    all_died, absent = _all_died(numbers), outside.mutants.any(axis=1)
    valid = ~(all_died & (numbers.mutants("n").sum(axis=1) > 0) & ~absent)
    control = _flags([mutant.control for mutant in outcomes.case.mutants])
    made = kills(rule, tallies, valid & ~control)
    undecided = rule.q is not None and bool(outside.base.any() or outside.mutants[~control].any())
    known_base, known = outside.base == 0, outside.mutants == 0
    stands, stands_slow = (
        stand_without_died(rule, made, tallies, numbers.base(name) * known_base, numbers.mutants(name) * known)
        for name in ("died", "timed_out")
    )
    nothing, reached = np.zeros_like(made.killed), ~not_reached
    return KillMatrix(
        rule=rule,
        mutants=outcomes.case.mutants,
        tasks=tuple(task.id for task in outcomes.tasks),
        tallies=tallies,
        present=tallies.present,
        killed=nothing if undecided else made.killed & reached,
        stands=nothing if undecided else stands & reached,
        stands_slow=nothing if undecided else stands_slow & reached,
        threshold=None if undecided else made.threshold,
        valid=valid,
        control=control,
        equivalent=_flags([mutant.equivalent is not None for mutant in outcomes.case.mutants]),
        validity_unknown=all_died & absent,
        outside=outside,
        not_reached=not_reached,
        only_first=bool(numbers.mutants("not_needed").any()),
        undecided=undecided,
    )


def _all_died(numbers: "_CellNumbers") -> BoolArray:
    """Mutants all of whose entries died; where nothing was run, nothing died."""
    not_run = numbers.mutants("not_reached") + numbers.mutants("not_needed")
    same: BoolArray = numbers.mutants("n").sum(axis=1) == numbers.mutants("died").sum(axis=1)
    return same & ~not_run.any(axis=1)


def _tallies(numbers: "_CellNumbers", outside: OutsideAttempts) -> tuple[Tallies, BoolArray]:
    """What is known of the cells, and which of them no attempt reached: those have the tallies of the baseline."""
    known_base, known = outside.base == 0, outside.mutants == 0
    base_passed, base_n = numbers.base("passed") * known_base, numbers.base("n") * known_base
    passed, n = numbers.mutants("passed") * known, numbers.mutants("n") * known
    not_reached: BoolArray = (n == 0) & known & (numbers.mutants("not_reached") > 0) & (base_n > 0)
    whole = Tallies(base_passed, base_n, np.where(not_reached, base_passed, passed), np.where(not_reached, base_n, n))
    return whole, not_reached


class _CellNumbers:
    """One number of every cell of a case at a time, as arrays."""

    def __init__(self, outcomes: CaseOutcomes) -> None:
        self._base = list(outcomes.baseline.values())
        self._mutants = [list(outcomes.cells[mutant.id].values()) for mutant in outcomes.case.mutants]

    def base(self, name: str) -> IntArray:
        """Of the baseline, shape (tasks,)."""
        return np.array([getattr(cell, name) for cell in self._base], dtype=np.int64)

    def mutants(self, name: str) -> IntArray:
        """Of the mutants, shape (mutants, tasks)."""
        rows = [[getattr(cell, name) for cell in row] for row in self._mutants]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self._base))


def _flags(values: list[bool]) -> BoolArray:
    return np.array(values, dtype=np.bool_)
