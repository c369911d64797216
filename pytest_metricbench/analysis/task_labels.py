"""The test of a correlation that stays valid when subsets overlap and differ in size: relabel the tasks.

Which goals belong to which task is shuffled; which subset holds which tasks, and what they kill, stays. Coverage then
knows nothing of the mutants, while overlap and size of the subsets are as they are (a quadratic assignment test: Mantel
1967, Hubert 1987). The mean of the shuffled coefficients is what a coverage of random goals would reach: far above 0
where bigger subsets cover and kill more. p values are (b + 1) / (B + 1), never 0 (Phipson and Smyth 2010); up to
8 tasks all labellings are counted.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray, FloatArray, IntArray
from pytest_metricbench.analysis.draws import Rng, stream
from pytest_metricbench.analysis.goal_sets import GoalSets
from pytest_metricbench.analysis.many_coefficients import METHODS, compact
from pytest_metricbench.analysis.strata import Side, Strata, coefficients_many
from pytest_metricbench.analysis.unions import design_on
from pytest_metricbench.definition.experiment import MutationScore

EXACT_TASKS: Final = 8
MOST_UNDEFINED: Final = 0.05
"""A figure from draws of which a larger share has no coefficient is unavailable."""
_CELLS: Final = 400_000
"""Subsets times relabellings worked on at a time: bounds the memory."""
_TOLERANCE: Final = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """p values of one coefficient, and the middle of its null."""

    greater: float
    less: float
    two_sided: float
    null_mean: float
    null_low: float
    null_high: float
    """The middle 95 % of the null."""
    draws: int
    """Relabellings with a coefficient."""
    undefined: int
    """Relabellings without one."""
    exact: bool


def relabellings(tasks: int, draws: int, rng: Rng) -> tuple[Iterator[IntArray], bool]:
    """Permutations of the tasks, shape (some, tasks) at a time, and whether these are all there are."""
    if tasks <= EXACT_TASKS:
        every = np.array(list(itertools.permutations(range(tasks))), dtype=np.int64).reshape(math.factorial(tasks), -1)
        return iter([every]), True
    blocks = (min(1000, draws - start) for start in range(0, draws, 1000))
    tiled = np.arange(tasks, dtype=np.int64)
    return (rng.permuted(np.broadcast_to(tiled, (size, tasks)), axis=1) for size in blocks), False


class TaskLabelTest:
    """The null coefficients of one coverage system against several mutation scores, in one pass."""

    def __init__(
        self,
        goals: GoalSets,
        members: BoolArray,
        scores: Mapping[MutationScore, tuple[Strata, Side]],
        draws: int,
        seed: int,
        purpose: str,
        methods: Sequence[str] = METHODS,
    ) -> None:
        """Relabel the tasks.

        Args:
            goals: what the tasks cover.
            members: which of all the case's tasks each subset holds, shape (subsets, tasks). Those that make pairs hold
                only tasks whose goals are known.
            scores: mutation score -> its strata and its side, which stay as they are.
            draws: relabellings, where not all are counted.
            seed: of the relabellings.
            purpose: what the stream of random numbers is for.
            methods: which coefficients.
        """
        self._goals = goals
        self._methods = methods
        self._design, self._row = design_on(members, goals.tasks)
        self._scores = scores
        rng = stream(seed, "task labels", purpose)
        blocks, self.exact = relabellings(len(goals.tasks), draws, rng)
        self.observed = self._coefficients(np.arange(len(goals.tasks))[None, :])
        parts = [self._coefficients(chunk) for block in blocks for chunk in self._chunks(block)]
        self.null = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]} if parts else {}

    def _chunks(self, block: IntArray) -> Iterator[IntArray]:
        step = max(1, _CELLS // max(1, len(self._design.members)))
        return (block[start : start + step] for start in range(0, len(block), step))

    def _coefficients(self, labels: IntArray) -> dict[tuple[str, str, str], FloatArray]:
        """Score, stratum, method -> coefficients under some relabellings."""
        filled = np.ascontiguousarray(labels.T)
        covered = self._design.union_sizes(word[filled] for word in self._goals.words)
        found: dict[tuple[str, str, str], FloatArray] = {}
        for score, (strata, side) in self._scores.items():
            for stratum, rows in strata.items():
                x = covered[self._row[rows]]
                for method, values in coefficients_many(Side(x, compact(x)), side.rows(rows), self._methods).items():
                    found[score, stratum, method] = values
        return found

    def tail(self, score: str, stratum: str, method: str) -> Tail | str:
        """What the test says of one coefficient, or why it says nothing."""
        return tail(float(self.observed[score, stratum, method][0]), self.null[score, stratum, method], self.exact)


def tail(observed: float, null: FloatArray, exact: bool) -> Tail | str:
    """The p values of an observed coefficient from its null, both tails around the null itself and not around 0.

    ``exact``: the null holds every labelling, the observed one among them. NaN are labellings without a coefficient.
    """
    defined = null[~np.isnan(null)]
    undefined = len(null) - len(defined)
    if math.isnan(observed):
        return "the coverage that the goals make is constant"
    if undefined > MOST_UNDEFINED * len(null):
        return f"{undefined} of {len(null)} relabellings of the tasks have no coefficient, more than 5 %"
    added = 0 if exact else 1
    total = len(defined) + added
    greater = (int(np.count_nonzero(defined >= observed - _TOLERANCE)) + added) / total
    less = (int(np.count_nonzero(defined <= observed + _TOLERANCE)) + added) / total
    low, high = np.quantile(defined, [0.025, 0.975]).tolist()
    two_sided = min(1.0, 2 * min(greater, less))
    return Tail(greater, less, two_sided, float(defined.mean()), low, high, len(defined), undefined, exact)
