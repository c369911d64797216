"""Redrawn cases: the tasks, the mutants and the attempts within each cell drawn anew, the design of the subsets kept.

The subsets stay lists of places; each place is filled with a task drawn with replacement, each mutant is drawn with
replacement, and the passes of each cell are drawn anew at its own rate. Coverage and mutation scores of the subsets are
then computed as before. That keeps what makes subsets alike: overlap and size.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_metricbench.analysis.arrays import BoolArray, FloatArray, IntArray, WordArray
from pytest_metricbench.analysis.detection import Tallies, fisher_p
from pytest_metricbench.analysis.draws import Rng
from pytest_metricbench.analysis.figures import DECIMALS
from pytest_metricbench.analysis.many_coefficients import dense_levels
from pytest_metricbench.analysis.strata import Side
from pytest_metricbench.analysis.unions import Design, packed
from pytest_metricbench.definition.experiment import KillRule, MutationScore

_NUMBERS: Final = 2_000_000
"""Numbers held at a time: bounds the memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Decides kills of redrawn attempts by the rule and the threshold that the case has."""

    rule: KillRule
    threshold: Fraction | None
    base_n: IntArray
    """Shape (tasks,)."""
    mutant_n: IntArray
    """Shape (mutants, tasks)."""
    _known: dict[tuple[int, int], npt.NDArray[np.int8]] = field(default_factory=dict)

    def kills(self, base_passed: IntArray, mutant_passed: IntArray) -> BoolArray:
        """Killed cells; passes of shape (draws, tasks) and (draws, mutants, tasks)."""
        present = (self.base_n > 0) & (self.mutant_n > 0)
        base = base_passed[:, None, :]
        if self.rule.rule == "flip":
            found: BoolArray = present & (2 * base > self.base_n) & ~(2 * mutant_passed > self.mutant_n)
            return found
        killed = np.zeros(mutant_passed.shape, dtype=np.bool_)
        if self.threshold is None:
            return killed
        base_n = np.broadcast_to(self.base_n, self.mutant_n.shape)
        for n, m in sorted({*zip(base_n[present].tolist(), self.mutant_n[present].tolist(), strict=True)}):
            cells = present & (base_n == n) & (self.mutant_n == m)
            tables = np.broadcast_to(base, mutant_passed.shape)[:, cells] * (m + 1) + mutant_passed[:, cells]
            killed[:, cells] = self._verdicts(n, m, self.threshold, tables)
        return killed

    def _verdicts(self, n: int, m: int, threshold: Fraction, tables: IntArray) -> BoolArray:
        """Each distinct table is tested once; -1 marks those that never came up."""
        known = self._known.setdefault((n, m), np.full((n + 1) * (m + 1), -1, dtype=np.int8))
        for table in np.unique(tables[known[tables] < 0]).tolist():
            known[table] = fisher_p(table // (m + 1), n, table % (m + 1), m) <= threshold
        found: BoolArray = known[tables] == 1
        return found


class AttemptRedraws:
    """Draws the passes of every cell anew, each at the rate it has. Cells at a rate of 0 or 1 stay as they are."""

    def __init__(self, tallies: Tallies) -> None:
        """Find the cells that a redraw can change."""
        self._tallies = tallies
        self._base_noisy = (tallies.base_passed > 0) & (tallies.base_passed < tallies.base_n)
        self._noisy = (tallies.mutant_passed > 0) & (tallies.mutant_passed < tallies.mutant_n)

    @property
    def any(self) -> bool:
        """Whether a redraw can differ from what is there."""
        return bool(self._base_noisy.any() or self._noisy.any())

    def draw(self, draws: int, rng: Rng) -> tuple[IntArray, IntArray]:
        """Passes of the baseline, shape (draws, tasks), and of the mutants, shape (draws, mutants, tasks)."""
        tallies = self._tallies
        return (
            _redrawn(tallies.base_passed, tallies.base_n, self._base_noisy, draws, rng),
            _redrawn(tallies.mutant_passed, tallies.mutant_n, self._noisy, draws, rng),
        )


def _redrawn(passed: IntArray, n: IntArray, noisy: BoolArray, draws: int, rng: Rng) -> IntArray:
    found = np.broadcast_to(passed, (draws, *passed.shape)).copy()
    found[:, noisy] = rng.binomial(n[noisy], passed[noisy] / n[noisy], (draws, int(np.count_nonzero(noisy))))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Redrawn:
    """Some redrawn cases."""

    tasks: IntArray
    """Which task fills each place, shape (places, draws)."""
    scores: Mapping[MutationScore, Side]
    """Shape (subsets, draws); NaN where a subset has no cell."""


class CaseRedraws:
    """The redrawn mutation scores of a case's subsets."""

    def __init__(self, tallies: Tallies, judge: Judge, design: Design, places: Sequence[int]) -> None:
        """Keep what redraws start from; nothing is drawn yet.

        Args:
            tallies: of the mutants that count, all tasks.
            judge: decides kills; of the same mutants.
            design: the subsets as sets of places; place ``i`` is where the task ``places[i]`` stood.
            places: positions of the tasks that are redrawn.
        """
        self._tallies, self._judge, self._design = tallies, judge, design
        self._places = np.array(places, dtype=np.int64)
        self._attempts = AttemptRedraws(tallies)
        self._present = tallies.present

    def draw(self, draws: int, rng: Rng) -> Iterator[Redrawn]:
        """``draws`` redrawn cases, some at a time."""
        mutants, tasks = self._present.shape
        step = max(1, _NUMBERS // max(1, mutants * tasks, len(self._design.members) * max(4, mutants // 8)))
        for start in range(0, draws, step):
            yield self._some(min(step, draws - start), rng)

    def _some(self, draws: int, rng: Rng) -> Redrawn:
        places, mutants = len(self._places), len(self._present)
        filled = rng.integers(0, places, (draws, places))
        drawn = rng.integers(0, mutants, (draws, mutants))
        base_passed, mutant_passed = self._attempts.draw(draws, rng)
        pick = (np.arange(draws)[:, None, None], drawn[:, :, None], self._places[filled][:, None, :])
        killed = self._judge.kills(base_passed, mutant_passed)[pick]
        present = self._present[drawn[:, :, None], self._places[filled][:, None, :]]
        drop = _drops(self._tallies, base_passed, mutant_passed)[pick]
        scores: dict[MutationScore, Side] = {
            "kill_share": self._kill_share(killed, present),
            "mean_drop": self._mean_drop(drop, present),
        }
        return Redrawn(filled.T, scores)

    def _kill_share(self, killed: BoolArray, present: BoolArray) -> Side:
        dead = self._design.union_sizes(_mutant_words(killed & present))
        if self._present.all():
            return Side(dead, dead)
        counted = self._design.union_sizes(_mutant_words(present))
        with np.errstate(invalid="ignore"):
            shares = np.round(dead / counted, DECIMALS)
        return Side(shares, dense_levels(shares))

    def _mean_drop(self, drop: FloatArray, present: BoolArray) -> Side:
        members = self._design.members.astype(np.float64)
        if self._present.all():
            means = (members @ drop.mean(axis=1).T) / members.sum(axis=1, keepdims=True)
        else:
            means = _means_over_cells(members, np.where(present, drop, 0.0), present)
        rounded = np.round(means, DECIMALS)
        return Side(rounded, dense_levels(rounded))


def _drops(tallies: Tallies, base_passed: IntArray, mutant_passed: IntArray) -> FloatArray:
    base = base_passed / np.maximum(tallies.base_n, 1)
    found: FloatArray = base[:, None, :] - mutant_passed / np.maximum(tallies.mutant_n, 1)
    return found


def _means_over_cells(members: FloatArray, drop: FloatArray, present: BoolArray) -> FloatArray:
    """For each subset and draw, the mean over mutants with a cell of the mean over their cells."""
    found = np.empty((len(members), len(drop)))
    step = max(1, _NUMBERS // (members.shape[0] * drop.shape[1]))
    for start in range(0, len(drop), step):
        part = slice(start, start + step)
        cells = members @ present[part].astype(np.float64).transpose(0, 2, 1)
        sums = members @ drop[part].transpose(0, 2, 1)
        with np.errstate(invalid="ignore"):
            by_mutant = np.where(cells > 0, sums / np.maximum(cells, 1), 0.0).sum(axis=2)
            found[:, part] = (by_mutant / (cells > 0).sum(axis=2)).T
    return found


def _mutant_words(flags: BoolArray) -> list[WordArray]:
    """Flags of shape (draws, mutants, places) as words over the mutants, each of shape (places, draws)."""
    words = packed(flags.transpose(2, 0, 1))
    return [np.ascontiguousarray(words[:, :, index]) for index in range(words.shape[2])]
