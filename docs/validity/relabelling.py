"""How often is a correlation called significant where coverage and kills have nothing to do with each other?

    python docs/validity/relabelling.py [experiments]

prints one line for each kind of experiment: the share with p at most .05, for the naive p of Spearman (which takes
overlapping subsets for independent) and for the task-label permutation. The latter should be .05.
"""

import sys
from dataclasses import dataclass

import numpy as np
import worlds

from pytest_metricbench.analysis.independent_pairs import naive_p
from pytest_metricbench.analysis.strata import strata_of
from pytest_metricbench.analysis.task_labels import Tail, TaskLabelTest

METHODS = ("pearson", "spearman", "kendall")


@dataclass(frozen=True)
class Setting:
    """One kind of experiment."""

    tasks: int
    sizes: tuple[int, ...]
    subsets: int = 100


SETTINGS = (
    Setting(20, (5,)),
    Setting(20, (3, 6, 12)),
    Setting(40, (5,)),
    Setting(40, (3, 10, 20)),
    Setting(40, (5,), 500),
)


def p_values(setting: Setting, seed: int, relabellings: int = 399) -> dict[str, float]:
    """One experiment without a relation: the naive p and the p by task labels, by method."""
    rng = np.random.default_rng([seed, setting.tasks, *setting.sizes, setting.subsets])
    world = worlds.unrelated(rng, setting.tasks)
    members = worlds.overlapping_subsets(rng, setting.tasks, setting.sizes, setting.subsets)
    side = worlds.killed_mutants(members, world.kills)
    strata = {"overall": strata_of(members.sum(axis=1).tolist(), [True] * len(members))["overall"]}
    test = TaskLabelTest(
        worlds.goal_sets_of(world.goals), members, {"kill_share": (strata, side)}, relabellings, seed, "validity"
    )
    covered = worlds.coverage_of(members, world.goals).astype(float)
    found = {"naive": naive_p(covered, side.values[:, 0].astype(float)).spearman}
    for method in METHODS:
        tail = test.tail("kill_share", "overall", method)
        found[method] = tail.two_sided if isinstance(tail, Tail) else 1.0
    return found


def shares(setting: Setting, experiments: int) -> dict[str, float]:
    """The share of experiments with p at most .05."""
    found = [p_values(setting, seed) for seed in range(experiments)]
    return {name: sum(p[name] <= 0.05 for p in found) / experiments for name in found[0]}


def main() -> None:
    """Print the table."""
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{experiments} experiments a line, no relation; share with p <= .05\n")
    print("| tasks | subsets | sizes | naive p (Spearman) | task labels: Pearson | Spearman | Kendall |")
    print("|---|---|---|---|---|---|---|")
    for setting in SETTINGS:
        found = shares(setting, experiments)
        sizes = ", ".join(map(str, setting.sizes))
        cells = " | ".join(f"{found[name]:.3f}" for name in ("naive", *METHODS))
        print(f"| {setting.tasks} | {setting.subsets} | {sizes} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
