"""What a correlation does not say: which subset coverage would choose, which tasks matter, and which comes next."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from pytest_metricbench.analysis.figures import DECIMALS, ChoiceFigure
from pytest_metricbench.analysis.kill_matrix import KillMatrix
from pytest_metricbench.analysis.kill_models import GreedyStep
from pytest_metricbench.analysis.summary import SubsetScores
from pytest_metricbench.analysis.unavailable import missing
from pytest_metricbench.definition.experiment import MutationScore


def choices(
    subsets: Mapping[str, SubsetScores], systems: Iterable[str]
) -> dict[str, dict[MutationScore, dict[str, ChoiceFigure]]]:
    """System -> mutation score -> size -> the regret of choosing the subset with the highest coverage."""
    if not subsets:
        return {}
    sizes = sorted({len(subset.tasks) for subset in subsets.values()})
    of_size = {size: {name: s for name, s in subsets.items() if len(s.tasks) == size} for size in sizes}
    scores: tuple[MutationScore, ...] = ("kill_share", "mean_drop")
    return {
        system: {score: {str(size): _choice(of_size[size], system, score) for size in sizes} for score in scores}
        for system in systems
    }


def _choice(subsets: Mapping[str, SubsetScores], system: str, score: MutationScore) -> ChoiceFigure:
    pairs = []
    for name, subset in subsets.items():
        coverage, figure = subset.coverage[system], subset.kill_share if score == "kill_share" else subset.mean_drop
        for found in (figure, coverage):
            if found.outside:
                return ChoiceFigure(value=None, reason=found.reason, outside=True, **_NOTHING)
        if coverage.value is not None and figure.value is not None:
            pairs.append((name, round(coverage.value, DECIMALS), figure.value))
    if len(pairs) < 2:
        return ChoiceFigure(**missing("fewer than 2 subsets of this size have both values"), **_NOTHING)
    highest = max(coverage for _, coverage, _ in pairs)
    chosen = [(name, value) for name, coverage, value in pairs if coverage == highest]
    got, best = _mean([value for _, value in chosen]), max(value for _, _, value in pairs)
    at_random = _mean([value for _, _, value in pairs])
    return ChoiceFigure(
        value=max(0.0, round(best - got, DECIMALS)),
        chosen=got,
        best=best,
        random=at_random,
        random_regret=max(0.0, round(best - at_random, DECIMALS)),
        subsets=tuple(name for name, _ in chosen),
        among=len(pairs),
    )


_NOTHING: Final[Mapping[str, Any]] = {
    "chosen": None,
    "best": None,
    "random": None,
    "random_regret": None,
    "subsets": (),
    "among": 0,
}


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def only_killers(matrix: KillMatrix) -> dict[str, tuple[str, ...]]:
    """Task -> the scored mutants that no other task kills."""
    killed = matrix.killed & matrix.scored[:, None] & (not matrix.only_first)
    alone = killed & (killed.sum(axis=1) == 1)[:, None]
    return {
        task: tuple(matrix.mutants[row].id for row in np.flatnonzero(alone[:, index]).tolist())
        for index, task in enumerate(matrix.tasks)
    }


def greedy_order(matrix: KillMatrix) -> tuple[GreedyStep, ...]:
    """Tasks in the order in which each kills most scored mutants that those before it leave; of equal ones by id.

    Ends where no task adds a kill. The denominator is that of the pool's kill share.
    """
    killed = matrix.killed & matrix.scored[:, None] & (not matrix.only_first)
    mutants = int(np.count_nonzero((matrix.judged & matrix.scored[:, None]).any(axis=1)))
    left = killed.any(axis=1)
    total, steps = 0, []
    while left.any():
        gains = killed[left].sum(axis=0)
        best = int(gains.argmax())
        total += int(gains[best])
        left = left & ~killed[:, best]
        steps.append(GreedyStep(task=matrix.tasks[best], killed=total, mutants=mutants, kill_share=total / mutants))
    return tuple(steps)
