"""Mutants against tasks: what is known of each cell of a case, which cells are killed, and which mutants count."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pytest_metricbench.analysis.detection import BoolArray, IntArray, Tallies, kills, stand_without_died
from pytest_metricbench.analysis.outcomes import CaseOutcomes, Cell
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
    base = list(outcomes.baseline.values())
    mutants = [list(outcomes.cells[mutant.id].values()) for mutant in outcomes.case.mutants]
    outside = OutsideAttempts(
        _numbers([base], "outside")[0],
        _numbers(mutants, "outside", len(base)),
        _numbers([base], "declared")[0],
        _numbers(mutants, "declared", len(base)),
    )
    entries, died = _numbers(mutants, "n", len(base)).sum(axis=1), _numbers(mutants, "died", len(base)).sum(axis=1)
    not_run = _numbers(mutants, "not_reached", len(base)) + _numbers(mutants, "not_needed", len(base))
    all_died = (entries == died) & ~not_run.any(axis=1)  # where nothing was run, nothing died
    absent = outside.mutants.any(axis=1)
    valid = ~(all_died & (entries > 0) & ~absent)
    control = np.array([mutant.control for mutant in outcomes.case.mutants], dtype=np.bool_)
    known_base, known = outside.base == 0, outside.mutants == 0
    base_passed, base_n = _numbers([base], "passed")[0] * known_base, _numbers([base], "n")[0] * known_base
    passed, n = _numbers(mutants, "passed", len(base)) * known, _numbers(mutants, "n", len(base)) * known
    not_reached = (n == 0) & known & (_numbers(mutants, "not_reached", len(base)) > 0) & (base_n > 0)
    tallies = Tallies(base_passed, base_n, np.where(not_reached, base_passed, passed), np.where(not_reached, base_n, n))
    made = kills(rule, tallies, valid & ~control)
    undecided = rule.q is not None and bool(outside.base.any() or outside.mutants[~control].any())
    stands, stands_slow = (
        stand_without_died(
            rule, made, tallies, _numbers([base], name)[0] * known_base, _numbers(mutants, name, len(base)) * known
        )
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
        equivalent=np.array([mutant.equivalent is not None for mutant in outcomes.case.mutants], dtype=np.bool_),
        validity_unknown=all_died & absent,
        outside=outside,
        not_reached=not_reached,
        only_first=bool(_numbers(mutants, "not_needed", len(base)).any()),
        undecided=undecided,
    )


def _numbers(rows: list[list[Cell]], name: str, tasks: int = 0) -> IntArray:
    """One number of every cell; shape (0, tasks) without rows."""
    if not rows:
        return np.zeros((0, tasks), dtype=np.int64)
    return np.array([[getattr(cell, name) for cell in row] for row in rows], dtype=np.int64)
