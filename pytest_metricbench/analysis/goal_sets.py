"""The goals of each task under a coverage system, put together from its requests, or why they cannot be used.

With them the coverage of any set of tasks can be computed, whoever fills its places: what relabelling and redrawing
tasks need.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_metricbench.analysis.arrays import WordArray
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.unions import packed
from pytest_metricbench.contracts import CoverageRecord, Goals
from pytest_metricbench.definition.experiment import POOL, Case

_TOLERANCE: Final = 1e-9
"""How far a reported value may be from the share of goals: systems round."""


@dataclass(frozen=True, slots=True, eq=False)
class GoalSets:
    """What each task covers, as bits."""

    tasks: tuple[int, ...]
    """Positions, among the case's tasks, of those whose goals are known; ascending."""
    words: WordArray
    """Shape (words, known tasks)."""
    universe: int
    """How many goals there are."""


def goal_sets(results: Results, case: Case, system: str, tasks: Sequence[str]) -> GoalSets | str:
    """The goals of a case's tasks under a system; the reason, in words, where there are none to rely on.

    Args:
        results: the coverage records.
        case: the case.
        system: id of the coverage system.
        tasks: the case's tasks in the order of the matrices.
    """
    members = {subset.id: subset.tasks for subset in case.subsets} | {POOL: tuple(tasks)}
    records = {name: record for name in sorted(members) if (record := results.coverage.get((case.id, system, name)))}
    valued = {name: record for name, record in records.items() if record.value is not None}
    if not valued:
        return "no coverage was measured"
    without = [name for name, record in valued.items() if record.goals is None]
    if without:
        return "the system gives no goals" if len(without) == len(valued) else f"no goals were given for {without[0]}"
    reason = next(_problems(valued, members), None)
    if reason is not None:
        return reason
    universe = _goals(next(iter(valued.values()))).universe
    covered = {task: goals for record in valued.values() for task, goals in _goals(record).by_task.items()}
    bit = {goal: index for index, goal in enumerate(universe)}
    known = tuple(index for index, task in enumerate(tasks) if task in covered)
    flags = np.zeros((len(known), len(universe)), dtype=np.bool_)
    for row, index in enumerate(known):
        flags[row, [bit[goal] for goal in covered[tasks[index]] if goal in bit]] = True
    return GoalSets(known, np.ascontiguousarray(packed(flags).T), len(universe))


def _goals(record: CoverageRecord) -> Goals:
    if record.goals is None:
        raise ValueError(f"the record of {record.subset} has no goals")
    return record.goals


def _problems(records: Mapping[str, CoverageRecord], members: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What keeps the goals from being used; names the request and the task."""
    first_name, first = next(iter(records.items()))
    universe = frozenset(_goals(first).universe)
    seen: dict[str, tuple[str, frozenset[str]]] = {}
    for name, record in records.items():
        goals = _goals(record)
        if not goals.universe:
            yield f"the universe of goals is empty in {name}"
            return
        if frozenset(goals.universe) != universe:
            yield f"the universe of goals differs between {first_name} and {name}"
        for task in sorted(set(goals.by_task) - set(members[name])):
            yield f"the goals of {name} name the task {task!r}, which it does not hold"
        for task in sorted(set(members[name]) - set(goals.by_task)):
            yield f"the goals of {name} say nothing of its task {task}"
        for task, given in sorted(goals.by_task.items()):
            where, before = seen.setdefault(task, (name, frozenset(given)))
            if before != frozenset(given):
                yield f"the goals of the task {task} differ between {where} and {name}"
        share = len(universe.intersection(*[set().union(*goals.by_task.values())])) / len(universe)
        if abs(share - (record.value or 0.0)) > _TOLERANCE:
            yield f"the goals of {name} make a coverage of {share:.6g}, and {record.value:.6g} was reported"
