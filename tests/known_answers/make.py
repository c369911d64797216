"""Makes an experiment with known answers and computes every figure of its summary without the product.

``make.py [SEED [FOLDER]]`` writes ``outcomes.json``, ``expected.json`` and ``experiment.yml``; the ones that are kept
here are of seed 11. Nothing in this file may import the product: it is the second opinion.
"""

import json
import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from scipy import stats

Row = list[Any]
"""Attempts of a variant on a task: each a score, None where it died, or ``unmeasured``."""
Outcomes = dict[str, dict[str, Row]]
Goals = dict[str, list[int]]
Subsets = dict[str, list[str]]
Estimate = Callable[[int, int, int], Fraction]
"""Of ``n`` attempts of which ``c`` passed, for ``k``."""

ATTEMPTS = 4
TASKS = [f"t{number:02d}" for number in range(1, 13)]
MUTANTS = [f"m{number:02d}" for number in range(1, 9)]
KS = (1, 2, 4)
UNMEASURED = "unmeasured"
SPECIAL: dict[str, Row] = {
    "t04": [1, 0, 1, 0],  # flaky, and no majority passes
    "t08": [1, 1, 0, 1],  # flaky, and a majority passes
    "t10": [0, 0, 0, 0],  # never solved by the baseline
    "t11": [1, None, 1, 1],  # one attempt died
    "t12": [UNMEASURED, 1, 1, UNMEASURED],
}
DAMAGED: list[Row] = [[0, 0, 0, 0], [0, 0, 1, 0], [None, 0, 0, 0], [0, 1, 0, 0]]


def tables(seed: int) -> tuple[Outcomes, Goals, Subsets]:
    """Outcomes by variant and task, goals by task, subsets; m07 equals the baseline and m08 always dies."""
    draw = random.Random(seed)
    baseline = {task: list(SPECIAL.get(task, [1] * ATTEMPTS)) for task in TASKS}
    outcomes = {"baseline": baseline}
    for j, mutant in enumerate(MUTANTS):
        outcomes[mutant] = {}
        for i, task in enumerate(TASKS):
            row = list(baseline[task])
            if mutant == "m08":
                row = [None] * ATTEMPTS
            elif mutant != "m07" and (i * 3 + j * 2) % 5 < 1:
                row = list(draw.choice(DAMAGED))
            elif mutant != "m07" and (i + j) % 11 == 0:
                row = [1, 1, 0, 1]
            outcomes[mutant][task] = row
    outcomes["m02"]["t05"] = [UNMEASURED] * ATTEMPTS
    goals = {task: sorted(draw.sample(range(20), draw.randint(1, 5))) for task in TASKS}
    sizes = [3] * 8 + [5] * 8
    subsets = {f"s{number:02d}": sorted(draw.sample(TASKS, size)) for number, size in enumerate(sizes, 1)}
    return outcomes, goals, subsets


def entries(row: Row) -> list[float | None]:
    return [value for value in row if value != UNMEASURED]


def passes(row: Row) -> int:
    return sum(1 for value in entries(row) if value is not None and value >= 1)


def mean_over_tasks(by_task: Mapping[str, Row], k: int, estimate: Estimate) -> dict[str, Any]:
    values = [estimate(len(entries(row)), passes(row), k) for row in by_task.values() if len(entries(row)) >= k]
    value = float(sum(values) / len(values)) if values else None
    return {"value": value, "count": len(values), "nan_count": len(by_task) - len(values)}


def any_of_k(n: int, c: int, k: int) -> Fraction:
    return Fraction(1) - Fraction(math.comb(n - c, k), math.comb(n, k))


def all_of_k(n: int, c: int, k: int) -> Fraction:
    return Fraction(math.comb(c, k), math.comb(n, k))


def verdict(row: Row) -> str:
    n, c = len(entries(row)), passes(row)
    return "unmeasured" if not n else "solved" if c == n else "failed" if c == 0 else "flaky"


def rates(baseline: Row, mutant: Row) -> tuple[Fraction, Fraction] | None:
    """Both pass rates; None where a side has no entry."""
    if not entries(baseline) or not entries(mutant):
        return None
    return Fraction(passes(baseline), len(entries(baseline))), Fraction(passes(mutant), len(entries(mutant)))


def state(baseline: Row, mutant: Row) -> str:
    both = rates(baseline, mutant)
    if both is None:
        return "missing"
    return "killed" if both[0] > Fraction(1, 2) and not both[1] > Fraction(1, 2) else "survived"


def kill_share(kills: Mapping[str, Mapping[str, str]], valid: Sequence[str], tasks: Sequence[str]) -> float | None:
    counted = [m for m in valid if any(kills[m][task] != "missing" for task in tasks)]
    killed = [m for m in counted if any(kills[m][task] == "killed" for task in tasks)]
    return len(killed) / len(counted) if counted else None


def mean_drop(outcomes: Outcomes, valid: Sequence[str], tasks: Sequence[str]) -> float | None:
    means = []
    for mutant in valid:
        both = [rates(outcomes["baseline"][task], outcomes[mutant][task]) for task in tasks]
        drops = [base - other for base, other in filter(None, both)]
        if drops:
            means.append(sum(drops) / len(drops))
    return float(sum(means) / len(means)) if means else None


def coefficients(ids: Sequence[str], coverage: Mapping[str, float], score: Mapping[str, Any]) -> dict[str, Any]:
    x, y = [round(coverage[s], 12) for s in ids], [round(score[s], 12) for s in ids]
    defined = len(set(x)) > 1 and len(set(y)) > 1
    functions = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
    return {
        "pairs": len(ids),
        **{name: float(function(x, y)[0]) if defined else None for name, function in functions.items()},
    }


def expected(outcomes: Outcomes, goals: Goals, subsets: Subsets) -> dict[str, Any]:
    valid = [mutant for mutant in MUTANTS if mutant != "m08"]
    baseline = outcomes["baseline"]
    kills = {m: {task: state(baseline[task], outcomes[m][task]) for task in TASKS} for m in MUTANTS}
    coverage = {s: len(set().union(*(goals[task] for task in tasks))) / 20 for s, tasks in subsets.items()}
    scores = {
        "kill_share": {s: kill_share(kills, valid, tasks) for s, tasks in subsets.items()},
        "mean_drop": {s: mean_drop(outcomes, valid, tasks) for s, tasks in subsets.items()},
    }
    words = ("solved", "flaky", "failed", "unmeasured")
    rows = [row for by_task in outcomes.values() for row in by_task.values()]
    return {
        "pass_at_k": _means(outcomes, any_of_k),
        "pass_hat_k": _means(outcomes, all_of_k),
        "verdicts": {
            v: {w: sum(verdict(row) == w for row in by_task.values()) for w in words} for v, by_task in outcomes.items()
        },
        "valid": {mutant: mutant in valid for mutant in MUTANTS},
        "kills": kills,
        "pool": {"kill_share": kill_share(kills, valid, TASKS), "mean_drop": mean_drop(outcomes, valid, TASKS)},
        "subsets": {
            s: {"kill_share": scores["kill_share"][s], "mean_drop": scores["mean_drop"][s], "coverage": coverage[s]}
            for s in subsets
        },
        "correlation": {name: _correlation(subsets, coverage, score) for name, score in scores.items()},
        "attempts": sum(len(row) for row in rows),
        "unmeasured_attempts": sum(value == UNMEASURED for row in rows for value in row),
        "died_attempts": sum(value is None for row in rows for value in row),
    }


def _means(outcomes: Outcomes, estimate: Estimate) -> dict[str, Any]:
    return {v: {str(k): mean_over_tasks(by_task, k, estimate) for k in KS} for v, by_task in outcomes.items()}


def _correlation(subsets: Subsets, coverage: Mapping[str, float], score: Mapping[str, Any]) -> dict[str, Any]:
    by_size = {str(size): [s for s, tasks in subsets.items() if len(tasks) == size] for size in (3, 5)}
    return {
        "overall": coefficients(list(subsets), coverage, score),
        "by_size": {size: coefficients(ids, coverage, score) for size, ids in by_size.items()},
    }


def experiment(subsets: Subsets) -> str:
    lines = [
        "metricbench: 1",
        "name: known-answers",
        f"attempts: {ATTEMPTS}",
        "runner: {kind: python, agent: 'agent:run', verifier: 'agent:verify'}",
        "score: {primary: reward, pass_at_least: 1.0}",
        "cases:",
        "  - id: alpha",
        "    description: A case with known answers.",
        "    inputs: [agent.py, outcomes.json]",
        f"    tasks: [{', '.join(f'{{id: {task}}}' for task in TASKS)}]",
        "    baseline: {params: {who: baseline}}",
        "    mutants:",
        *(f"      - {{id: {m}, description: mutant {m}, params: {{who: {m}}}}}" for m in MUTANTS),
        "    subsets:",
        *(f"      - {{id: {s}, tasks: [{', '.join(tasks)}]}}" for s, tasks in subsets.items()),
        "coverage:",
        "  - {id: goals, kind: python, measure: 'agent:measure'}",
        "analysis: {pass_at_k: [1, 2, 4], kill: {rule: flip}, mutation_score: kill_share, resamples: 199, seed: 3}",
    ]
    return "\n".join(lines) + "\n"


def main(seed: int = 11, folder: Path = Path(__file__).parent) -> None:
    outcomes, goals, subsets = tables(seed)
    (folder / "outcomes.json").write_text(json.dumps({"outcomes": outcomes, "goals": goals}))
    (folder / "expected.json").write_text(json.dumps(expected(outcomes, goals, subsets), indent=1))
    (folder / "experiment.yml").write_text(experiment(subsets))


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else 11, Path(given[1]) if len(given) > 1 else Path(__file__).parent)
