"""A case of six tasks with goals, overlapping subsets and five mutants, and a larger one."""

from typing import Any

import numpy as np

from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import CaseSummary
from tests.analysis.results_builder import UNMEASURED, CaseTable, build

TASKS = [f"t{number}" for number in range(6)]
GOALS = dict(zip(TASKS, ("ab", "bc", "", "cd", "e", "af"), strict=True))
SUBSETS = {f"s{n}": [TASKS[n], TASKS[(n + 1) % 6], TASKS[(n * n + 3) % 6]][: 2 + n % 2] for n in range(6)}


def outcomes() -> dict[str, dict[str, list[Any]]]:
    base: dict[str, list[Any]] = {task: [1, 1, 1] for task in TASKS}
    return {"baseline": base} | {
        f"m{n}": {task: [0, 0, int(n % 2 == 0)] if (n + k) % 4 == 0 else [1, 1, 1] for k, task in enumerate(TASKS)}
        for n in range(5)
    }


OTHER = dict(zip(TASKS, ("pq", "p", "qr", "", "s", "rs"), strict=True))


def table(**changes: Any) -> CaseTable:
    return CaseTable(outcomes(), SUBSETS, **{"goals": {"one": GOALS, "two": OTHER}, **changes})


def analysed(given_table: CaseTable, **options: Any) -> CaseSummary:
    return summarize(build(given_table, **options)).cases["c"]


def big_table(seed: int = 0, tasks: int = 14, subsets: int = 20) -> CaseTable:
    """A case of which not every labelling can be counted, with two sizes, flaky attempts and a missing cell."""
    rng = np.random.default_rng(seed)
    names = [f"t{number}" for number in range(tasks)]
    base = {name: rng.binomial(1, 0.9, 4).tolist() for name in names}
    mutants = {
        f"m{n}": {name: rng.binomial(1, 0.1 if rng.random() < 0.25 else 0.9, 4).tolist() for name in names}
        for n in range(8)
    }
    mutants["m1"]["t3"] = [UNMEASURED] * 4
    chosen = {f"s{n}": sorted(rng.choice(names, 3 if n % 2 else 6, replace=False).tolist()) for n in range(subsets)}
    goals = {
        system: {name: [f"g{g}" for g in np.flatnonzero(rng.random(30) < 0.2)] for name in names}
        for system in ("one", "two")
    }
    return CaseTable({"baseline": base, **mutants}, chosen, goals=goals)
