"""How often is one coverage system called better than another where neither is?

    python docs/validity/comparing.py [experiments]

Two systems without a relation to the kills, alike or of different density: the share with p at most .05 by swapping
labels task by task, and the share of 95 % intervals of the difference that leave out 0. Over mixed sizes two systems of
different kind do differ: the coverage of the one is complete sooner, which alone makes another correlation.
"""

import sys

import numpy as np
import worlds

from pytest_metricbench.analysis.intervals import difference_interval
from pytest_metricbench.analysis.label_swaps import LabelSwaps
from pytest_metricbench.analysis.redraws import CaseRedraws, Judge
from pytest_metricbench.analysis.strata import Side, coefficients_many
from pytest_metricbench.analysis.unions import Design
from pytest_metricbench.definition.experiment import KillRule

METHODS = ("pearson", "spearman", "kendall")
TASKS, SUBSETS = 30, 80
KINDS = {
    "alike": (60, 60, 0.15, 0.15),
    "60 and 10 goals": (60, 10, 0.15, 0.15),
    "dense and sparse": (60, 60, 0.3, 0.05),
}


def experiment(
    kind: str, sizes: tuple[int, ...], seed: int, swaps: int = 399, draws: int = 300
) -> dict[str, tuple[float, bool]]:
    """Method -> p by swapped labels, and whether the interval leaves out 0."""
    rng = np.random.default_rng([seed, len(kind), *sizes])
    one_goals, other_goals, one_rate, other_rate = KINDS[kind]
    one = worlds.random_sets(rng, TASKS, one_goals, one_rate)
    other = worlds.random_sets(rng, TASKS, other_goals, other_rate)
    kills = worlds.random_sets(rng, TASKS, 40, 0.12)
    members = worlds.overlapping_subsets(rng, TASKS, sizes, SUBSETS)
    design, side = Design.of(members), worlds.killed_mutants(members, kills)
    first, second = worlds.goal_sets_of(one), worlds.goal_sets_of(other)
    strata = {"overall": np.arange(SUBSETS)}
    test = LabelSwaps(first, second, design, strata, side, swaps, seed, "validity")
    tallies = worlds.steady_tallies(kills, 3)
    judge = Judge(KillRule(), None, tallies.base_n, tallies.mutant_n)
    parts: dict[str, list[np.ndarray]] = {method: [] for method in METHODS}
    for redrawn in CaseRedraws(tallies, judge, design, first.tasks).draw(draws, rng):
        found = []
        for system in (first, second):
            x = design.union_sizes(word[redrawn.tasks] for word in system.words)
            found.append(coefficients_many(Side(x, x), redrawn.scores["kill_share"]))
        for method in METHODS:
            parts[method].append(found[0][method] - found[1][method])
    result = {}
    for method in METHODS:
        p = test.p("overall", method)
        value = float(test.observed["overall", method][0])
        interval = difference_interval(value, np.concatenate(parts[method])).interval
        apart = interval is not None and not interval[0] <= 0 <= interval[1]
        result[method] = (1.0 if isinstance(p, str) else p, apart)
    return result


def main() -> None:
    """Print the table."""
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{experiments} experiments a line, {TASKS} tasks, {SUBSETS} subsets, no relation\n")
    print("| systems | sizes | method | p by swapped labels <= .05 | interval without 0 |")
    print("|---|---|---|---|---|")
    for kind in KINDS:
        for sizes in ((5,), (3, 8, 15)):
            found = [experiment(kind, sizes, seed) for seed in range(experiments)]
            for method in METHODS:
                swapped = sum(one[method][0] <= 0.05 for one in found) / experiments
                apart = sum(one[method][1] for one in found) / experiments
                print(f"| {kind} | {', '.join(map(str, sizes))} | {method} | {swapped:.3f} | {apart:.3f} |", flush=True)


if __name__ == "__main__":
    main()
