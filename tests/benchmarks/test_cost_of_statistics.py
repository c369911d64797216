"""What the statistics cost, beside what scipy would take for the same in the same run."""

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

pytestmark = pytest.mark.benchmark

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def least(times: int, work: Callable[[], object]) -> float:
    """CPU seconds of the fastest of some runs."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


@pytest.mark.parametrize(("ties", "factor"), [(True, 10), (False, 4)], ids=["ties", "no ties"])
def test_redrawn_pairs(shown: Callable[[str], None], ties: bool, factor: float) -> None:
    """All three coefficients, 10,000 redraws of 1,000 pairs; scipy's time is taken at 500 redraws, times 20."""
    from pytest_metricbench.analysis.independent_pairs import redrawn_pairs

    rng = np.random.default_rng(1)
    x = rng.integers(0, 41, 1000) / 40 if ties else rng.random(1000)
    y = np.round((x + rng.random(1000)) * 10) / 20 if ties else x + rng.random(1000)
    ours = least(3, lambda: redrawn_pairs(x, y, 10_000, 1))

    def theirs() -> None:
        for method in SCIPY.values():
            stats.bootstrap(
                (x, y), lambda a, b, method=method: method(a, b)[0], n_resamples=500, paired=True, vectorized=False,
                method="percentile", random_state=1,
            )  # fmt: skip

    scipy_time = 20 * least(1, theirs)
    tracemalloc.start()
    redrawn_pairs(x, y, 10_000, 1)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    shown(f"\n{'ties' if ties else 'no ties'}: {ours:.2f} s, scipy {scipy_time:.1f} s, ratio {scipy_time / ours:.0f}")
    shown(f"peak {peak:.0f} MB")
    assert scipy_time / ours >= factor
    assert peak < 64


def test_task_label_permutation(shown: Callable[[str], None]) -> None:
    """1,000 subsets of 5 of 40 tasks, 128 goals, B = 9,999; the loop's time is taken at 200 relabellings, times 50."""
    from pytest_metricbench.analysis.goal_sets import GoalSets
    from pytest_metricbench.analysis.strata import Side
    from pytest_metricbench.analysis.task_labels import TaskLabelTest
    from pytest_metricbench.analysis.unions import packed

    rng = np.random.default_rng(2)
    members = np.zeros((1000, 40), dtype=np.bool_)
    for row in range(1000):
        members[row, rng.choice(40, 5, replace=False)] = True
    goals, kills = rng.random((40, 128)) < 0.1, rng.random((40, 50)) < 0.1
    y = ((members.astype(float) @ kills) > 0).sum(axis=1)
    side = Side(y[:, None], y[:, None])
    sets = GoalSets(tuple(range(40)), np.ascontiguousarray(packed(goals).T), 128)
    strata = {"overall": np.arange(1000)}

    def ours(methods: tuple[str, ...]) -> TaskLabelTest:
        return TaskLabelTest(sets, members, {"kill_share": (strata, side)}, 9_999, 1, "benchmark", methods)

    def loop() -> None:
        numbers, matrix = members.astype(np.float64), goals.astype(np.float64)
        for _ in range(200):
            covered = ((numbers @ matrix[rng.permutation(40)]) > 0).mean(axis=1)
            stats.spearmanr(covered, y)

    one, three = least(3, lambda: ours(("spearman",))), least(3, lambda: ours(("pearson", "spearman", "kendall")))
    theirs = 50 * least(3, loop)
    shown(f"\nSpearman {one:.2f} s (all three {three:.2f} s), the loop {theirs:.1f} s, ratio {theirs / one:.0f}")
    assert theirs / one >= 40


def test_a_whole_analysis(shown: Callable[[str], None]) -> None:
    """10 cases x 50 mutants x 100 tasks x 5 attempts x 500 subsets x 3 systems, default resamples: 3 minutes."""
    from pytest_metricbench.analysis.summarizing import summarize
    from tests.analysis.results_builder import CaseTable, build

    rng = np.random.default_rng(0)
    tasks = [f"t{number}" for number in range(100)]
    base = rng.choice([0.6, 0.8, 0.95, 1.0], 100)

    def rows(rates: np.ndarray) -> dict[str, list[int]]:
        return {task: rng.binomial(1, rate, 5).tolist() for task, rate in zip(tasks, rates, strict=True)}

    def case() -> CaseTable:
        damaged = [np.where(rng.random(100) < 0.1, base * 0.2, base) for _ in range(50)]
        subsets = {f"s{n}": rng.choice(tasks, (5, 10, 20)[n % 3], replace=False).tolist() for n in range(500)}
        goals = {
            system: {task: [f"g{g}" for g in np.flatnonzero(rng.random(universe) < 0.08)] for task in tasks}
            for system, universe in (("tools", 60), ("policy", 128), ("lines", 300))
        }
        variants = {"baseline": rows(base), **{f"m{n}": rows(rates) for n, rates in enumerate(damaged)}}
        return CaseTable(variants, subsets, goals=goals)

    results = build({f"case-{n}": case() for n in range(10)}, permutation=9_999, bootstrap=1_000)
    told: list[str] = []
    start, cpu = time.perf_counter(), time.process_time()
    summarize(results, told.append)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    shown(f"\n10 cases, 255,000 attempts, 5,000 subsets, 3 systems: {wall:.0f} s, {cpu:.0f} s CPU")
    assert told[-1] == "analysing case 10 of 10: case-9"
    assert wall < 180
