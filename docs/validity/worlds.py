"""Simulated cases whose truth is known: the stage on which the statistics have to show that they hold."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_metricbench.analysis.detection import Tallies
from pytest_metricbench.analysis.goal_sets import GoalSets
from pytest_metricbench.analysis.strata import Side
from pytest_metricbench.analysis.unions import Design, packed


@dataclass(frozen=True)
class World:
    """What some tasks cover and kill; tasks of shape (tasks, ...)."""

    goals: np.ndarray
    kills: np.ndarray


def unrelated(rng: np.random.Generator, tasks: int, goals: int = 60, mutants: int = 40) -> World:
    """Goals and kills that know nothing of each other. Tasks, goals and mutants differ in how much they take part."""
    return World(random_sets(rng, tasks, goals, 0.15), random_sets(rng, tasks, mutants, 0.12))


def related(rng: np.random.Generator, tasks: int, goals: int = 60, mutants: int = 40) -> World:
    """Tasks that cover more kill more: both depend on how deep a task goes."""
    depth = rng.normal(0, 1, tasks)
    return World(random_sets(rng, tasks, goals, 0.15, depth), random_sets(rng, tasks, mutants, 0.12, depth))


def random_sets(
    rng: np.random.Generator, tasks: int, members: int, rate: float, depth: np.ndarray | None = None
) -> np.ndarray:
    """Random sets: each member joins a task with a chance that depends on both (a logistic model)."""
    by_task = rng.normal(0, 0.8, tasks) if depth is None else 0.9 * depth + rng.normal(0, 0.4, tasks)
    by_member = rng.normal(0, 1.0, members)
    logit = np.log(rate / (1 - rate)) + by_task[:, None] + by_member[None, :]
    chances: np.ndarray = 1 / (1 + np.exp(-logit))
    return rng.random((tasks, members)) < chances


def overlapping_subsets(rng: np.random.Generator, tasks: int, sizes: Sequence[int], count: int) -> np.ndarray:
    """Random subsets, sizes in turn; shape (count, tasks)."""
    members = np.zeros((count, tasks), dtype=np.bool_)
    for row in range(count):
        members[row, rng.choice(tasks, sizes[row % len(sizes)], replace=False)] = True
    return members


def goal_sets_of(goals: np.ndarray) -> GoalSets:
    """Flags of shape (tasks, goals) as the analysis takes them."""
    return GoalSets(tuple(range(len(goals))), np.ascontiguousarray(packed(goals).T), goals.shape[1])


def killed_mutants(members: np.ndarray, kills: np.ndarray) -> Side:
    """How many mutants each subset kills, as one list that all draws share."""
    killed = ((members.astype(float) @ kills.astype(float)) > 0).sum(axis=1).astype(np.int64)
    return Side(killed[:, None], killed[:, None])


def coverage_of(members: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """How many goals each subset covers."""
    words = packed(goals).T
    return Design.of(members).union_sizes(np.ascontiguousarray(word)[:, None] for word in words)[:, 0]


def steady_tallies(kills: np.ndarray, attempts: int) -> Tallies:
    """A baseline that always passes, and mutants that fail where they are killed; kills of shape (tasks, mutants)."""
    tasks = len(kills)
    full = np.full(tasks, attempts, dtype=np.int64)
    return Tallies(full, full, np.where(kills.T, 0, attempts), np.full(kills.T.shape, attempts, dtype=np.int64))
