"""How often is one coverage system called better than another where neither is?

    python docs/validity/comparing.py [experiments]

Two systems, both without a relation to the kills or both with the same one, alike or with many and few goals: the
share with p at most .05 by relabelling tasks (both systems' goals moving together) and by swapping labels task by task,
and the share of 95 % intervals of the difference that leave out 0. Systems with many and with few goals do differ: few
goals are all covered sooner, which alone makes another correlation, most of all over mixed sizes.
"""

import sys
from dataclasses import dataclass

import numpy as np
import worlds

from pytest_metricbench.analysis.goal_sets import GoalSets
from pytest_metricbench.analysis.intervals import difference_interval
from pytest_metricbench.analysis.label_swaps import LabelSwaps
from pytest_metricbench.analysis.redraws import CaseRedraws, Judge
from pytest_metricbench.analysis.strata import Side, coefficients_many
from pytest_metricbench.analysis.task_labels import Tail, TaskLabelTest, tail
from pytest_metricbench.analysis.unions import Design
from pytest_metricbench.definition.experiment import KillRule

TASKS, SUBSETS, KILLS = 30, 80, 40
GOALS = {"alike": (60, 60), "60 and 10 goals": (60, 10)}


@dataclass(frozen=True)
class Verdict:
    """Of one experiment, for Spearman: both p, and whether the interval leaves out 0."""

    relabelled: float
    swapped: float
    apart: bool


def experiment(kind: str, sizes: tuple[int, ...], related: bool, seed: int, draws: int = 299) -> Verdict:
    """One experiment."""
    rng = np.random.default_rng([seed, related, *sizes])
    depth = rng.normal(0, 1, TASKS) if related else None
    goals = [worlds.goal_sets_of(worlds.random_sets(rng, TASKS, number, 0.15, depth)) for number in GOALS[kind]]
    kills = worlds.random_sets(rng, TASKS, KILLS, 0.12, depth)
    members = worlds.overlapping_subsets(rng, TASKS, sizes, SUBSETS)
    design, side = Design.of(members), worlds.killed_mutants(members, kills)
    strata = {"overall": np.arange(SUBSETS)}
    tests = [TaskLabelTest(one, members, {"kill_share": (strata, side)}, draws, seed, "validity") for one in goals]
    key = ("kill_share", "overall", "spearman")
    observed = float(tests[0].observed[key][0] - tests[1].observed[key][0])
    found = tail(observed, tests[0].null[key] - tests[1].null[key], exact=False)
    swapped = LabelSwaps(goals[0], goals[1], design, strata, side, draws, seed, "validity").p("overall", "spearman")
    interval = difference_interval(observed, _redrawn(goals, kills, design, draws, rng)).interval
    return Verdict(
        found.two_sided if isinstance(found, Tail) else 1.0,
        1.0 if isinstance(swapped, str) else swapped,
        interval is not None and not interval[0] <= 0 <= interval[1],
    )


def _redrawn(
    goals: list[GoalSets], kills: np.ndarray, design: Design, draws: int, rng: np.random.Generator
) -> np.ndarray:
    tallies = worlds.steady_tallies(kills, 3)
    judge = Judge(KillRule(), None, tallies.base_n, tallies.mutant_n)
    parts = []
    for redrawn in CaseRedraws(tallies, judge, design, goals[0].tasks).draw(draws, rng):
        rhos = []
        for system in goals:
            x = design.union_sizes(word[redrawn.tasks] for word in system.words)
            rhos.append(coefficients_many(Side(x, x), redrawn.scores["kill_share"], ("spearman",))["spearman"])
        parts.append(rhos[0] - rhos[1])
    return np.concatenate(parts)


def main() -> None:
    """Print the table."""
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{experiments} experiments a line, Spearman, {TASKS} tasks, {SUBSETS} subsets\n")
    print("| relation to kills | systems | sizes | relabelled p <= .05 | swapped p <= .05 | interval without 0 |")
    print("|---|---|---|---|---|---|")
    for related in (False, True):
        for kind in GOALS:
            for sizes in ((5,), (3, 8, 15)):
                found = [experiment(kind, sizes, related, seed) for seed in range(experiments)]
                shares = (
                    sum(one.relabelled <= 0.05 for one in found) / experiments,
                    sum(one.swapped <= 0.05 for one in found) / experiments,
                    sum(one.apart for one in found) / experiments,
                )
                start = f"| {'the same' if related else 'none'} | {kind} | {', '.join(map(str, sizes))}"
                print(f"{start} | {' | '.join(f'{share:.3f}' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
