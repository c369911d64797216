"""How often is an unchanged agent killed, by each rule, and does the A/A control say so?

    python docs/validity/false_kills.py [experiments]

A "mutant" that is the baseline itself, at 20 tasks with one pass rate: the share of cells that are killed, the share of
such mutants that the pool kills, and what the A/A control (the baseline's attempts split in two) reports. The control
has half the attempts on each side: under flip it overstates false kills where attempts are few, under fisher, which
needs attempts to reach its threshold, it understates them. Control mutants (`controls:`) do neither, at a price.
"""

import sys
from dataclasses import dataclass

import numpy as np

from pytest_metricbench.analysis.detection import Tallies, kills
from pytest_metricbench.analysis.kill_matrix import KillMatrix, OutsideAttempts
from pytest_metricbench.analysis.self_comparison import self_comparison
from pytest_metricbench.definition.experiment import KillRule, Variant

RULES = {
    "flip": KillRule(),
    "fisher, alpha .05": KillRule("fisher", 0.05),
    "fisher, q .05": KillRule("fisher", None, 0.05),
}
RATES, ATTEMPTS, TASKS, MUTANTS = (0.6, 0.8, 0.95), (3, 5, 10), 20, 10


@dataclass(frozen=True)
class Rates:
    """Shares over the experiments of a line."""

    cells: float
    mutants: float
    control_cells: float
    control_pool: float


def case(rule: KillRule, rate: float, attempts: int, rng: np.random.Generator) -> KillMatrix:
    """A case whose mutants are all the baseline."""
    full = np.full(TASKS, attempts, dtype=np.int64)
    tallies = Tallies(
        rng.binomial(attempts, rate, TASKS),
        full,
        rng.binomial(attempts, rate, (MUTANTS, TASKS)),
        np.full((MUTANTS, TASKS), attempts, dtype=np.int64),
    )
    everyone, nobody = np.ones(MUTANTS, dtype=np.bool_), np.zeros(MUTANTS, dtype=np.bool_)
    made = kills(rule, tallies, everyone)
    nothing = np.zeros((MUTANTS, TASKS), dtype=np.int64)
    return KillMatrix(
        rule=rule,
        mutants=tuple(Variant(f"m{index}", "mutant", {}) for index in range(MUTANTS)),
        tasks=tuple(f"t{index}" for index in range(TASKS)),
        tallies=tallies,
        present=tallies.present,
        killed=made.killed,
        stands=made.killed,
        stands_slow=made.killed,
        threshold=made.threshold,
        valid=everyone,
        control=nobody,
        equivalent=nobody,
        validity_unknown=nobody,
        outside=OutsideAttempts(nothing[0], nothing, full, tallies.mutant_n),
        not_reached=np.zeros_like(made.killed),
        only_first=False,
        undecided=False,
    )


def rates(rule: KillRule, rate: float, attempts: int, experiments: int) -> Rates:
    """Shares of false kills, and what the control says of them."""
    rng = np.random.default_rng([attempts, int(100 * rate)])
    cells, mutants, control_cells, control_pool = [], [], [], []
    nothing = np.zeros((0, TASKS), dtype=np.bool_)
    for seed in range(experiments):
        matrix = case(rule, rate, attempts, rng)
        cells.append(matrix.killed.mean())
        mutants.append(matrix.killed.any(axis=1).mean())
        pool = self_comparison(matrix, nothing, seed, "validity").pool
        control_cells.append((pool.false_kills.value or 0.0) / TASKS)
        control_pool.append(pool.kill_share.value or 0.0)
    return Rates(*(float(np.mean(values)) for values in (cells, mutants, control_cells, control_pool)))


def main() -> None:
    """Print the table."""
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{experiments} experiments a line, {MUTANTS} unchanged mutants, {TASKS} tasks\n")
    print("| rule | pass rate | attempts | cells killed | mutants killed | A/A: cells | A/A: pool |")
    print("|---|---|---|---|---|---|---|")
    for name, rule in RULES.items():
        for rate in RATES:
            for attempts in ATTEMPTS:
                found = rates(rule, rate, attempts, experiments)
                numbers = (found.cells, found.mutants, found.control_cells, found.control_pool)
                cells = " | ".join(f"{number:.4f}" for number in numbers)
                print(f"| {name} | {rate} | {attempts} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
