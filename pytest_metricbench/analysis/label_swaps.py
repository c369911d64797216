"""Is one coverage system's correlation better than another's? Swap their labels, task by task.

If the systems were alike, it would not matter which of the two a task's goals come from. Each relabelling swaps the two
systems' goals at some of the tasks; coverage of a subset by the mixed system is the share of the one's universe that
its unswapped tasks cover plus the share of the other's that its swapped tasks cover. The p value is the share of
relabellings with a difference at least as far from 0, (b + 1) / (B + 1), or over all 2^T where T is at most 12.

It is exact where a system's goals are drawn task by task. Real systems have goals that many tasks share; a mixture has
not, and the p is then at most .05 in up to a fifth of experiments without a difference (docs/validity). It is therefore
given beside the p of relabelled tasks (:mod:`.inference`) and never decides alone.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_metricbench.analysis.arrays import BoolArray, FloatArray, IntArray
from pytest_metricbench.analysis.draws import Rng, stream
from pytest_metricbench.analysis.goal_sets import GoalSets
from pytest_metricbench.analysis.many_coefficients import dense_levels
from pytest_metricbench.analysis.strata import Side, Strata, coefficients_many
from pytest_metricbench.analysis.task_labels import MOST_UNDEFINED
from pytest_metricbench.analysis.unions import Design

EXACT_TASKS: Final = 12
_CELLS: Final = 400_000
_TOLERANCE: Final = 1e-12


class LabelSwaps:
    """Differences of two systems' coefficients, the first minus the second, with labels swapped at some tasks."""

    def __init__(
        self,
        first: GoalSets,
        second: GoalSets,
        design: Design,
        strata: Strata,
        score: Side,
        draws: int,
        seed: int,
        purpose: str,
    ) -> None:
        """Swap the labels.

        Args:
            first: goals of the first system.
            second: goals of the second, of the same tasks.
            design: the subsets over those tasks.
            strata: rows of the design, by stratum.
            score: the mutation score of those subsets, which stays as it is.
            draws: relabellings, where not all are counted.
            seed: of the relabellings.
            purpose: what the stream of random numbers is for.
        """
        self._sides = (first, second)
        self._design, self._strata, self._score = design, strata, score
        tasks = len(first.tasks)
        self.exact = tasks <= EXACT_TASKS
        self.observed = self._differences(np.zeros((tasks, 1), dtype=np.bool_))
        step = max(1, _CELLS // max(1, len(design.members)))
        parts = [self._differences(masks) for masks in _masks(tasks, draws, step, stream(seed, "swaps", purpose))]
        self.null = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    def _differences(self, swapped: BoolArray) -> dict[tuple[str, str], FloatArray]:
        """Stratum, method -> differences under masks of shape (tasks, draws)."""
        first, second = self._sides
        kept = [self._covered(goals, ~swapped) for goals in self._sides]
        moved = [self._covered(goals, swapped) for goals in self._sides]
        # Over the product of both universes, so that equal coverage is an equal integer.
        mixed_first = kept[0] * second.universe + moved[1] * first.universe
        mixed_second = moved[0] * second.universe + kept[1] * first.universe
        sides = [Side(mixed, dense_levels(mixed)) for mixed in (mixed_first, mixed_second)]
        found = {}
        for stratum, rows in self._strata.items():
            y = self._score.rows(rows)
            ones, others = (coefficients_many(side.rows(rows), y) for side in sides)
            found.update({(stratum, method): ones[method] - others[method] for method in ones})
        return found

    def _covered(self, goals: GoalSets, tasks: BoolArray) -> IntArray:
        nothing = np.uint64(0)
        return self._design.union_sizes(np.where(tasks, word[:, None], nothing) for word in goals.words)

    def p(self, stratum: str, method: str) -> float | str:
        """The two-sided p of one difference, or why there is none."""
        observed, null = float(self.observed[stratum, method][0]), self.null[stratum, method]
        defined = null[~np.isnan(null)]
        if np.isnan(observed):
            return "one of the two coefficients is undefined"
        if len(null) - len(defined) > MOST_UNDEFINED * len(null):
            return f"{len(null) - len(defined)} of {len(null)} relabellings have no coefficient, more than 5 %"
        added = 0 if self.exact else 1
        far = int(np.count_nonzero(np.abs(defined) >= abs(observed) - _TOLERANCE))
        return (far + added) / (len(defined) + added)


def _masks(tasks: int, draws: int, step: int, rng: Rng) -> Iterator[BoolArray]:
    """Which tasks are swapped, shape (tasks, some): all masks, or random ones."""
    if tasks <= EXACT_TASKS:
        every = np.arange(2**tasks)
        for start in range(0, len(every), step):
            yield (every[None, start : start + step] >> np.arange(tasks)[:, None]) & 1 == 1
        return
    for start in range(0, draws, step):
        bits: npt.NDArray[np.int64] = rng.integers(0, 2, (min(step, draws - start), tasks))
        yield bits.T == 1
