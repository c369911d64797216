"""How often does the 95 % interval hold the value that pools of this kind have?

    python docs/validity/intervals.py [experiments]

Tasks and mutants are drawn from a world in which deeper tasks cover more and kill more. The value to hold is the mean
coefficient (on the atanh scale) over all experiments of a line: what a pool of this size is expected to show. Beside
our interval stands the one from redrawn pairs, which takes overlapping subsets for independent.
"""

import sys
from dataclasses import dataclass

import numpy as np
import worlds

from pytest_metricbench.analysis.detection import Tallies
from pytest_metricbench.analysis.independent_pairs import percentile_interval, redrawn_pairs
from pytest_metricbench.analysis.intervals import correlation_interval
from pytest_metricbench.analysis.redraws import CaseRedraws, Judge
from pytest_metricbench.analysis.strata import Side, coefficients_many
from pytest_metricbench.analysis.unions import Design
from pytest_metricbench.definition.experiment import KillRule

METHODS = ("pearson", "spearman", "kendall")


@dataclass(frozen=True)
class Setting:
    """One kind of experiment; ``noisy``: every attempt of a killing cell still passes one time in five."""

    tasks: int
    sizes: tuple[int, ...]
    subsets: int = 100
    mutants: int = 40
    noisy: bool = False


SETTINGS = (
    Setting(20, (5,)),
    Setting(40, (5,)),
    Setting(40, (3, 10, 20)),
    Setting(40, (5,), noisy=True),
    Setting(40, (5,), mutants=15),
)
ATTEMPTS = 5


@dataclass(frozen=True)
class Found:
    """What one experiment says: coefficients, our intervals, and those of redrawn pairs."""

    value: dict[str, float]
    ours: dict[str, tuple[float, float] | None]
    pairs: dict[str, tuple[float, float]]


def experiment(setting: Setting, seed: int, draws: int = 400) -> Found:
    """One experiment with a relation."""
    rng = np.random.default_rng([seed, setting.tasks, *setting.sizes, setting.mutants, setting.noisy])
    world = worlds.related(rng, setting.tasks, mutants=setting.mutants)
    members = worlds.overlapping_subsets(rng, setting.tasks, setting.sizes, setting.subsets)
    tallies = _tallies(setting, world, rng)
    goals, design = worlds.goal_sets_of(world.goals), Design.of(members)
    rule = KillRule()
    judge = Judge(rule, None, tallies.base_n, tallies.mutant_n)
    killed = judge.kills(tallies.base_passed[None], tallies.mutant_passed[None])[0]
    side = worlds.killed_mutants(members, killed.T)
    covered = worlds.coverage_of(members, world.goals)[:, None]
    value = {name: float(r[0]) for name, r in coefficients_many(Side(covered, covered), side).items()}
    parts = []
    for redrawn in CaseRedraws(tallies, judge, design, goals.tasks).draw(draws, rng):
        x = design.union_sizes(word[redrawn.tasks] for word in goals.words)
        parts.append(coefficients_many(Side(x, x), redrawn.scores["kill_share"]))
    all_draws = {name: np.concatenate([part[name] for part in parts]) for name in METHODS}
    ours = {name: correlation_interval(value[name], all_draws[name]).interval for name in METHODS}
    pairs = redrawn_pairs(covered[:, 0].astype(float), side.values[:, 0].astype(float), draws, seed)
    return Found(value, ours, {name: percentile_interval(pairs[name]) for name in METHODS})


def _tallies(setting: Setting, world: worlds.World, rng: np.random.Generator) -> Tallies:
    steady = worlds.steady_tallies(world.kills, ATTEMPTS)
    if not setting.noisy:
        return steady
    passed = np.where(world.kills.T, rng.binomial(ATTEMPTS, 0.2, world.kills.T.shape), ATTEMPTS)
    base = rng.binomial(ATTEMPTS, 0.9, len(world.kills))
    return Tallies(base, steady.base_n, passed, steady.mutant_n)


def held(setting: Setting, experiments: int) -> dict[str, tuple[float, float, float]]:
    """Method -> expected coefficient, share of our intervals that hold it, share of those from redrawn pairs."""
    found = [experiment(setting, seed) for seed in range(experiments)]
    shares = {}
    for method in METHODS:
        expected = float(np.tanh(np.mean([np.arctanh(min(f.value[method], 0.999)) for f in found])))
        ours = [f.ours[method] for f in found]
        kept = [interval for interval in ours if interval is not None]
        shares[method] = (
            expected,
            sum(low <= expected <= high for low, high in kept) / experiments,
            sum(f.pairs[method][0] <= expected <= f.pairs[method][1] for f in found) / experiments,
        )
    return shares


def main() -> None:
    """Print the table."""
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{experiments} experiments a line; share of 95 % intervals that hold the expected coefficient\n")
    print("| tasks | subsets | sizes | mutants | attempts | method | expected | tasks, mutants, attempts | pairs |")
    print("|---|---|---|---|---|---|---|---|---|")
    for setting in SETTINGS:
        for method, (expected, ours, pairs) in held(setting, experiments).items():
            sizes = ", ".join(map(str, setting.sizes))
            kind = "noisy" if setting.noisy else "steady"
            start = f"| {setting.tasks} | {setting.subsets} | {sizes} | {setting.mutants} | {kind} | {method}"
            print(f"{start} | {expected:.2f} | {ours:.3f} | {pairs:.3f} |", flush=True)


if __name__ == "__main__":
    main()
