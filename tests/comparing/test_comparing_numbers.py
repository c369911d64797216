"""The statistics of a comparison against other ways to compute them."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_metricbench.analysis.comparing_cells import CommonCells, RunCells
from pytest_metricbench.analysis.comparing_noise import score_changes, survival_p
from pytest_metricbench.analysis.comparing_passes import clustered_se, paired_difference, student_quantile
from pytest_metricbench.analysis.comparing_tasks import fisher_two_sided
from pytest_metricbench.analysis.detection import Tallies, flip_kills
from pytest_metricbench.analysis.pass_at_k import pass_at_k, pass_hat_k
from pytest_metricbench.analysis.redraws import Judge
from pytest_metricbench.definition.experiment import KillRule
from tests.analysis.results_builder import OUTSIDE
from tests.comparing.comparing_lab import BASE, case, comparison, table

CASES = json.loads((Path(__file__).parents[1] / "analysis" / "statistics_cases.json").read_text())


def known(name: str) -> Any:
    cases = CASES["cases"] if isinstance(CASES, dict) else CASES
    return next(entry for entry in cases if entry["id"] == name)


# ---------------------------------------------------------------- standard errors


def test_the_clustered_standard_error_of_the_known_case() -> None:
    entry = known("cluster-01")
    scores, clusters = entry["input"]["scores"], entry["input"]["cluster"]
    assert clustered_se(scores, clusters) == pytest.approx(entry["expected"]["clustered_se_finite_G"], abs=1e-10)
    groups = len(set(clusters))
    without_factor = math.sqrt((groups - 1) / groups) * (clustered_se(scores, clusters) or 0)
    assert without_factor == pytest.approx(entry["expected"]["clustered_se_paper"], abs=1e-10)
    alone = list(map(str, range(len(scores))))
    assert clustered_se(scores, alone) == pytest.approx(entry["expected"]["naive_se"], abs=1e-10)


def test_one_cluster_has_no_standard_error() -> None:
    assert clustered_se([0.0, 1.0], ["a", "a"]) is None
    assert clustered_se([0.0], ["a"]) is None


def test_every_difference_needs_its_cluster() -> None:
    with pytest.raises(ValueError, match="zip"):
        clustered_se([0.0, 1.0, 0.5], ["a", "b"])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=12))
def test_the_change_of_pass_at_1_is_the_paired_t_of_the_tasks(rows: list[tuple[int, int]]) -> None:
    then = {str(task): (5, passed) for task, (passed, _) in enumerate(rows)}
    now = {str(task): (5, passed) for task, (_, passed) in enumerate(rows)}
    found = paired_difference(then, now, pass_at_k, 1)
    before, after = ([passed / 5 for _, passed in tallies.values()] for tallies in (then, now))
    assert found.value == pytest.approx(np.mean(after) - np.mean(before), abs=1e-12)
    if found.interval is None:
        assert len({round(b - a, 9) for a, b in zip(before, after, strict=True)}) == 1
        return
    reference = stats.ttest_rel(after, before).confidence_interval(0.95)
    assert found.interval == pytest.approx((max(-1.0, reference.low), min(1.0, reference.high)), abs=1e-9)
    assert found.se == pytest.approx(np.std(np.subtract(after, before), ddof=1) / math.sqrt(len(rows)), abs=1e-9)
    assert (found.better, found.worse) == (
        sum(b > a for a, b in zip(before, after, strict=True)),
        sum(b < a for a, b in zip(before, after, strict=True)),
    )


@pytest.mark.parametrize("df", [1, 2, 12, 300])
def test_students_quantile(df: int) -> None:
    assert student_quantile(df) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-9)


def test_a_task_with_too_few_entries_in_one_run_is_left_out() -> None:
    then, now = {"a": (5, 5), "b": (2, 2), "c": (5, 0)}, {"a": (5, 4), "b": (5, 5), "c": (1, 1)}
    found = paired_difference(then, now, pass_hat_k, 3)
    assert (found.tasks, found.left_out, found.value) == pytest.approx((1, 2, 4 / 10 - 1))
    assert found.interval_reason == "1 task: an interval needs two"
    none = paired_difference(then, now, pass_at_k, 6)
    assert (none.value, none.reason) == (None, "no task has 6 entries in both runs")


def test_tasks_that_change_alike_show_no_spread() -> None:
    found = paired_difference({"a": (5, 5), "b": (5, 5)}, {"a": (5, 0), "b": (5, 0)}, pass_at_k, 1)
    assert (found.value, found.interval) == (-1, None)
    assert found.interval_reason == "all 2 tasks changed alike: there is no spread to judge by"


def test_over_several_cases_a_case_is_a_cluster() -> None:
    """Two cases of which one fell as a whole: what looks like four tasks are two clusters."""
    good, bad = {"a": [1] * 5, "b": [1] * 5}, {"a": [0] * 5, "b": [0] * 5}
    found = comparison({"x": table(base=good), "y": table(base=good)}, {"x": table(base=bad), "y": table(base=good)})
    over = found.over_cases["1"]
    assert (over.value, over.tasks, over.clusters, over.se) == pytest.approx((-0.5, 4, 2, 0.5))
    assert over.interval == (-1.0, 1.0), "Student's t with one degree of freedom is wide"
    assert comparison(table(), table()).over_cases == {}


def test_a_case_of_which_attempts_are_outside_leaves_the_change_over_cases_open() -> None:
    part = table(base={**BASE, "a": [1, OUTSIDE, 1, 1, 1]})
    over = comparison({"x": table(), "y": table()}, {"x": table(), "y": part}).over_cases["1"]
    assert (over.value, over.outside) == (None, True)
    assert over.reason == "y: this run: 1 of 15 attempts is outside this part and not in the store"


# ---------------------------------------------------------------- verdicts


@given(st.integers(1, 8), st.integers(1, 8), st.data())
def test_fishers_two_sided_p(n: int, other: int, data: st.DataObject) -> None:
    passed, other_passed = data.draw(st.integers(0, n)), data.draw(st.integers(0, other))
    expected = stats.fisher_exact([[passed, n - passed], [other_passed, other - other_passed]]).pvalue
    assert fisher_two_sided(passed, n, other_passed, other) == pytest.approx(expected, abs=1e-9)


def test_passes_out_of_range() -> None:
    with pytest.raises(ValueError, match="3/2 against 0/1"):
        fisher_two_sided(3, 2, 0, 1)


# ---------------------------------------------------------------- survival


def run(base: list[tuple[int, int]], mutants: list[list[tuple[int, int]]]) -> RunCells:
    """Cells of (passed, n) under ``flip``."""
    numbers = np.array([base, *mutants], dtype=np.int64)
    tallies = Tallies(numbers[0, :, 0], numbers[0, :, 1], numbers[1:, :, 0], numbers[1:, :, 1])
    judge = Judge(KillRule(), None, tallies.base_n, tallies.mutant_n)
    return RunCells(tallies, flip_kills(tallies), tallies.present, np.zeros_like(tallies.present), judge)


def both(then: RunCells, now: RunCells, same: RunCells | None = None) -> CommonCells:
    mutants, tasks = then.killed.shape
    nothing = Tallies(*(np.zeros_like(part) for part in (
        then.tallies.base_n, then.tallies.base_n, then.tallies.mutant_n, then.tallies.mutant_n,
    )))  # fmt: skip
    names = tuple(f"m{row}" for row in range(mutants)), tuple(f"t{column}" for column in range(tasks))
    return CommonCells(*names, then, now, nothing if same is None else same.tallies)


def exact_p(then: list[list[tuple[int, int]]], now: list[list[tuple[int, int]]]) -> float:
    """By counting every exchange; rows are the baseline and the mutant, cells (passed, n)."""
    tasks = range(len(then[0]))

    def drop(rows: Any, task: int) -> Fraction:
        return Fraction(*rows[0][task]) - Fraction(*rows[1][task])

    def statistic(one: Any, other: Any) -> Fraction:
        kills = [t for t in tasks if 2 * one[0][t][0] > one[0][t][1] and 2 * one[1][t][0] <= one[1][t][1]]
        return sum((drop(one, t) - drop(other, t) for t in kills), Fraction(0))

    cells = [(row, task) for row in (0, 1) for task in tasks]
    observed, total, reached = statistic(then, now), 0, 0
    ranges = [range(then[row][task][1] + 1) for row, task in cells]
    for passes in itertools.product(*ranges):
        ways, one, other = 1, [list(row) for row in then], [list(row) for row in now]
        for (row, task), drawn in zip(cells, passes, strict=True):
            n, m = then[row][task][1], now[row][task][1]
            passed = then[row][task][0] + now[row][task][0]
            ways *= math.comb(passed, drawn) * math.comb(n + m - passed, n - drawn) if drawn <= passed else 0
            one[row][task], other[row][task] = (drawn, n), (passed - drawn, m)
        if ways:
            total += ways
            reached += ways * (statistic(one, other) >= observed)
    return reached / total


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ([[(5, 5)], [(0, 5)]], [[(5, 5)], [(5, 5)]]),
        ([[(3, 3), (2, 3)], [(0, 3), (1, 3)]], [[(3, 3), (3, 3)], [(2, 3), (2, 3)]]),
        ([[(3, 3), (2, 2)], [(1, 3), (0, 1)]], [[(1, 3), (2, 2)], [(2, 3), (1, 2)]]),
    ],
)  # fmt: skip
def test_survival_by_chance_against_counting_every_exchange(
    then: list[list[tuple[int, int]]], now: list[list[tuple[int, int]]]
) -> None:
    cells = both(run(then[0], then[1:]), run(now[0], now[1:]))
    p = survival_p(cells, 40_000, np.random.default_rng(7))
    assert p == pytest.approx(exact_p(then, now), abs=0.012)


def test_a_mutant_that_lost_all_its_kills_is_no_chance_with_five_attempts_and_may_be_with_two() -> None:
    sure = survival_p(both(run([(5, 5)], [[(0, 5)]]), run([(5, 5)], [[(5, 5)]])), 9999, np.random.default_rng(1))
    assert sure == pytest.approx(1 / math.comb(10, 5), abs=0.002)
    few = survival_p(both(run([(2, 2)], [[(0, 2)]]), run([(2, 2)], [[(2, 2)]])), 9999, np.random.default_rng(1))
    assert few == pytest.approx(1 / 6, abs=0.02)


def test_attempts_that_are_the_same_in_both_runs_are_not_exchanged() -> None:
    """Four of five baseline attempts are the same: less can be luck."""
    then, now = run([(4, 5)], [[(1, 5)]]), run([(2, 5)], [[(1, 5)]])
    same = run([(2, 3)], [[(1, 5)]])
    free, bound = (survival_p(both(then, now, part), 9999, np.random.default_rng(2)) for part in (None, same))
    assert free is not None
    assert bound is not None
    assert bound == pytest.approx(1 / 6, abs=0.02), "two that pass against two that do not: one exchange in six"
    assert bound < free


def test_nothing_to_exchange_where_no_killing_task_is_in_both_runs() -> None:
    cells = both(run([(5, 5)], [[(0, 5)]]), run([(5, 5)], [[(0, 0)]]))
    assert survival_p(cells, 99, np.random.default_rng(1)) is None


# ---------------------------------------------------------------- mutation scores


def test_changes_of_the_scores_over_the_common_cells() -> None:
    then = run([(4, 4), (4, 4)], [[(0, 4), (4, 4)], [(4, 4), (0, 4)], [(4, 4), (4, 4)]])
    now = run([(4, 4), (4, 4)], [[(4, 4), (4, 4)], [(4, 4), (0, 4)], [(4, 4), (3, 4)]])
    found = score_changes(both(then, now), 400, np.random.default_rng(3))
    assert (found["kill_share"].then, found["kill_share"].now) == pytest.approx((2 / 3, 1 / 3))
    assert found["mean_drop"].then == pytest.approx(1 / 3)
    assert found["mean_drop"].now == pytest.approx((0.5 + 0.125) / 3)
    low, high = found["kill_share"].interval or (0, 0)
    assert low < -1 / 3 < high


def test_a_missing_cell_is_in_no_mean() -> None:
    then = run([(4, 4)] * 3, [[(0, 4), (0, 0), (2, 4)], [(4, 4)] * 3])
    found = score_changes(both(then, then), 50, np.random.default_rng(3))
    assert found["mean_drop"].then == 0.375
    assert found["kill_share"].reason == "no cell changed: there is no spread to judge by"


def test_a_change_has_the_same_size_from_either_side() -> None:
    before = table(
        {"m": {"a": [0] * 5, "b": [1] * 5, "c": [1] * 5}, "n": {"a": [1] * 5, "b": [0, 0, 1, 0, 0], "c": [1] * 5}}
    )
    after = table(
        {"m": {"a": [1] * 5, "b": [1] * 5, "c": [1] * 5}, "n": {"a": [1] * 5, "b": [1, 0, 1, 1, 0], "c": [0] * 5}}
    )
    one, other = case(before, after), case(after, before)
    for name in ("kill_share", "mean_drop"):
        forth, back = getattr(one, name), getattr(other, name)
        assert forth.value == -back.value
        assert forth.interval == pytest.approx((-back.interval[1], -back.interval[0]), abs=1e-9)
    assert one.pass_at_k["m"]["1"].value == -(other.pass_at_k["m"]["1"].value or 0)
    assert [c.mutant for c in one.new_survivors] == [c.mutant for c in other.newly_killed]


# ---------------------------------------------------------------- whether it is right on simulated runs


def simulated(
    attempts: int, mutants: int, rng: np.random.Generator, *, worse: float = 0.0
) -> tuple[CommonCells, float]:
    """Two runs of one agent, its true change of the mean drop; ``worse`` of the mutants are mended in the second."""
    tasks = 12
    base = np.where(rng.random(tasks) < 0.7, 0.97, rng.uniform(0.3, 0.9, tasks))
    damage = np.where(rng.random((mutants, tasks)) < 0.12, rng.choice([0.0, 0.2, 0.5], (mutants, tasks)), 1.0)
    mended = np.where((rng.random(mutants) < worse)[:, None], 1.0, damage)

    def one(rates: np.ndarray[Any, Any]) -> RunCells:
        numbers = rng.binomial(attempts, np.vstack([base, rates]))
        rows = [[(int(passed), attempts) for passed in row] for row in numbers]
        return run(rows[0], rows[1:])

    change = float((base - base * mended).mean() - (base - base * damage).mean())
    return both(one(base * damage), one(base * mended)), change


@pytest.mark.parametrize("attempts", [1, 3, 5])
@pytest.mark.parametrize("worse", [0.0, 0.4])
def test_the_intervals_of_the_scores_hold_the_true_change(attempts: int, worse: float) -> None:
    """At a nominal 95 %; 200 simulated pairs of runs leave an error of 3 points on either side."""
    rng = np.random.default_rng(100 + attempts)
    held = {"kill_share": 0, "mean_drop": 0}
    for _ in range(200):
        cells, change = simulated(attempts, 20, rng, worse=worse)
        for score, found in score_changes(cells, 200, rng).items():
            truth = change if score == "mean_drop" else 0.0
            low, high = found.interval or (found.now - found.then,) * 2
            held[score] += low - 1e-9 <= truth <= high + 1e-9
    assert held["mean_drop"] >= 0.88 * 200
    if not worse:
        assert held["kill_share"] >= 0.9 * 200


@pytest.mark.parametrize("attempts", [3, 5])
def test_chance_is_called_chance(attempts: int) -> None:
    """Of mutants that a run kills and an equal run does not, p at most .05 is rarer than 5 % of all that it kills."""
    rng = np.random.default_rng(attempts)
    killed = false = lost = 0
    for _ in range(60):
        cells, _ = simulated(attempts, 20, rng)
        for row, mutant in enumerate(cells.mutants):
            if cells.then.killed[row].any():
                killed += 1
                if not cells.now.killed[row].any():
                    lost += 1
                    false += (survival_p(cells.of([mutant]), 199, rng) or 1.0) <= 0.05
    assert lost > 40, "the runs differ by chance"
    assert false <= 0.05 * killed


def test_redraws_without_any_cell_are_counted() -> None:
    then = run([(4, 4), (4, 4)], [[(0, 4), (0, 0)], [(0, 0), (0, 4)]])
    found = score_changes(both(then, then), 200, np.random.default_rng(3))
    assert found["kill_share"].interval is None
    assert "of 200 redraws have no cell, more than 5 %" in (found["kill_share"].reason or "")
