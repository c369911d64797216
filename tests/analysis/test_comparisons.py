"""Two coverage systems compared: differences, their p by relabelling and by swapping, their families."""

import itertools
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.analysis import label_swaps
from pytest_metricbench.analysis.correlation import coefficients, levels
from pytest_metricbench.analysis.families import holm
from pytest_metricbench.analysis.goal_sets import GoalSets
from pytest_metricbench.analysis.label_swaps import LabelSwaps
from pytest_metricbench.analysis.strata import Side
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.unions import Design, packed
from tests.analysis.goals_lab import GOALS, OTHER, SUBSETS, TASKS, analysed, big_table, table
from tests.analysis.results_builder import build


def words(goals: list[str]) -> GoalSets:
    universe = sorted(set("".join(goals)))
    flags = np.array([[goal in task for goal in universe] for task in goals])
    return GoalSets(tuple(range(len(goals))), np.ascontiguousarray(packed(flags).T), len(universe))


def test_swapped_labels_by_hand() -> None:
    """Every mask over five tasks, with sets."""
    ones, others = ["ab", "b", "c", "ad", "bcd"], ["x", "xy", "", "yzw", "w"]
    members = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3), (3, 4), (0, 1, 4)]
    y = np.array([3.0, 1.0, 2.0, 0.0, 4.0, 1.0, 5.0, 2.0])
    flags = np.zeros((len(members), 5), dtype=np.bool_)
    for row, tasks in enumerate(members):
        flags[row, list(tasks)] = True
    side = Side(y[:, None], levels(y)[:, None])
    strata = {"overall": np.arange(len(members))}
    test = LabelSwaps(words(ones), words(others), Design.of(flags), strata, side, 50, 1, "x")
    assert test.exact

    def covered(tasks: tuple[int, ...], swapped: tuple[bool, ...], first: bool) -> float:
        from_ones = set().union(*(set(ones[t]) for t in tasks if swapped[t] != first))
        from_others = set().union(*(set(others[t]) for t in tasks if swapped[t] == first))
        return float(Fraction(len(from_ones), 4) + Fraction(len(from_others), 4))

    differences = []
    for swapped in itertools.product((False, True), repeat=5):
        x = [np.array([covered(tasks, swapped, first) for tasks in members]) for first in (True, False)]
        differences.append(coefficients(x[0], y).spearman - coefficients(x[1], y).spearman)
    assert sorted(test.null["overall", "spearman"]) == pytest.approx(sorted(differences))
    far = [abs(d) >= abs(differences[0]) - 1e-12 for d in differences]
    assert test.p("overall", "spearman") == pytest.approx(sum(far) / 32)


def test_masks_swap_each_task_in_half_of_the_draws() -> None:
    parts = list(label_swaps._masks(30, 2000, 700, np.random.default_rng(4)))
    assert [part.shape for part in parts] == [(30, 700), (30, 700), (30, 600)]
    shares = np.concatenate(parts, axis=1).mean(axis=1)
    assert np.abs(shares - 0.5).max() < 0.06, "five standard deviations"
    (every,) = label_swaps._masks(3, 2000, 700, np.random.default_rng(4))
    assert sorted(map(tuple, every.T.tolist())) == list(itertools.product((False, True), repeat=3))


def test_a_system_against_itself_differs_by_nothing() -> None:
    given_table = big_table()
    case = analysed(replace(given_table, goals=dict.fromkeys("ab", given_table.goals["one"])))
    (comparison,) = case.comparisons
    assert comparison.overall.kendall.value == 0
    assert comparison.overall.kendall.p.value == 1
    assert comparison.overall.kendall.interval is None
    assert comparison.overall.kendall.interval_reason == "the redraws show no spread"


def test_differences_are_of_the_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    case = analysed(big_table(), permutation=199, bootstrap=100)
    (comparison,) = case.comparisons
    assert (comparison.first, comparison.second) == ("one", "two")
    assert comparison.overall.pairs == 20
    for stratum, differences in (("overall", comparison.overall), *comparison.by_size.items()):
        for method in ("pearson", "spearman", "kendall"):
            values = []
            for system in ("one", "two"):
                found = case.correlation[system]["kill_share"]
                correlation = found.overall if stratum == "overall" else found.by_size[stratum]
                values.append(getattr(correlation, method).value)
            figure = getattr(differences, method)
            assert figure.value == pytest.approx(values[0] - values[1], abs=1e-9)
            assert 0 < figure.p.value <= 1
            assert figure.p.value <= figure.holm
    monkeypatch.setattr(label_swaps, "EXACT_TASKS", 20)
    exact = analysed(big_table(), permutation=9, bootstrap=20).comparisons[0].overall.kendall.p_swapped
    monkeypatch.setattr(label_swaps, "EXACT_TASKS", 2)
    drawn = analysed(big_table(), permutation=3999, bootstrap=20).comparisons[0].overall.kendall.p_swapped
    assert drawn.value == pytest.approx(exact.value, abs=0.05)


def test_three_systems_make_three_comparisons() -> None:
    goals = {name: {t: random.Random(f"{name}{t}").sample("abcdefgh", 2) for t in TASKS} for name in "xyz"}
    case = analysed(table(goals=goals))
    assert [(c.first, c.second) for c in case.comparisons] == [("x", "y"), ("x", "z"), ("y", "z")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"goals": {"one": GOALS}, "coverage": {"two": {s: n / 9 for n, s in enumerate(SUBSETS)}}},
            "by two: the system",
        ),
        ({"goals": {"one": GOALS}, "coverage": {"two": dict.fromkeys(SUBSETS, 0.5)}}, "two has no coefficient"),
    ],
)
def test_systems_that_cannot_be_compared_say_why(changes: dict[str, Any], words: str) -> None:
    figure = analysed(table(**changes)).comparisons[0].overall.kendall
    assert figure.value is None
    assert words in (figure.reason or "")
    assert figure.p.reason == figure.reason


def test_systems_are_compared_on_the_subsets_of_both() -> None:
    given_results = build(big_table(), permutation=49, bootstrap=50)
    coverage = {key: record for key, record in given_results.coverage.items() if key[1:] != ("two", "s4")}
    case = summarize(replace(given_results, coverage=coverage)).cases["c"]
    assert case.comparisons[0].overall.pairs == 19
    figure = case.comparisons[0].overall.kendall
    assert figure.interval is not None
    assert figure.p.value is not None
    assert figure.p_swapped.value is not None


def test_differences_are_relabelled_together() -> None:
    """Every labelling of six tasks, both systems' goals moving along; one subset has coverage by one system only."""
    given_results = build(table(), bootstrap=20)
    coverage = {key: record for key, record in given_results.coverage.items() if key[1:] != ("two", "s4")}
    case = summarize(replace(given_results, coverage=coverage)).cases["c"]
    kept = {name: subset for name, subset in case.subsets.items() if name != "s4"}
    y = np.array([subset.kill_share.value for subset in kept.values()])
    null = []
    for order in itertools.permutations(TASKS):
        moved = dict(zip(TASKS, order, strict=True))
        sides = [
            np.array([float(len(set().union(*(goals[moved[task]] for task in s.tasks)))) for s in kept.values()])
            for goals in (GOALS, OTHER)
        ]
        if all(len(set(side)) > 1 for side in sides):
            null.append(coefficients(sides[0], y).spearman - coefficients(sides[1], y).spearman)
    figure = case.comparisons[0].overall.spearman
    assert figure.value == pytest.approx(null[0])
    greater = np.mean([d >= null[0] - 1e-12 for d in null])
    less = np.mean([d <= null[0] + 1e-12 for d in null])
    assert figure.p.value == pytest.approx(min(1, 2 * min(greater, less)))


@given(st.dictionaries(st.tuples(st.text(max_size=3)), st.floats(0.0001, 1), min_size=1, max_size=8))
def test_holm_is_what_the_textbook_says(p_values: dict[tuple[str, ...], float]) -> None:
    found = holm(p_values)
    ordered = sorted(p_values, key=lambda key: p_values[key])
    assert all(p_values[key] <= found[key] <= 1 for key in p_values)
    assert [found[key] for key in ordered] == sorted(found.values())
    assert found[ordered[0]] == pytest.approx(min(1, len(p_values) * p_values[ordered[0]]))
