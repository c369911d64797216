"""The kernels against scipy, against enumeration, and against their own laws."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_metricbench.analysis.correlation import coefficients, inversions, kendall, pearson, spearman, why_undefined
from pytest_metricbench.analysis.detection import (
    Tallies,
    discovery_threshold,
    exact,
    fisher_p,
    flip_kills,
    kills,
    stand_without_died,
)
from pytest_metricbench.analysis.mutation_score import drops, mean_drops, set_kills
from pytest_metricbench.analysis.pass_at_k import mean_over_tasks, pass_at_k, pass_hat_k, task_intervals
from pytest_metricbench.analysis.proportions import wilson
from pytest_metricbench.analysis.reach import smallest_p
from pytest_metricbench.analysis.variant_figures import verdict
from pytest_metricbench.definition.experiment import KillRule

# ---------------------------------------------------------------- pass@k

tallies = st.integers(0, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@given(tallies, st.integers(1, 6))
def test_pass_at_k_is_what_enumeration_counts(tally: tuple[int, int], k: int) -> None:
    n, c = tally
    draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
    if k > n:
        assert pass_at_k(n, c, k) is None
        assert pass_hat_k(n, c, k) is None
        return
    assert pass_at_k(n, c, k) == Fraction(sum(map(any, draws)), len(draws))
    assert pass_hat_k(n, c, k) == Fraction(sum(map(all, draws)), len(draws))


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_product_form(drawn: tuple[int, int, int]) -> None:
    n, c, k = drawn
    product = 1.0 if n - c < k else 1 - math.prod(1 - k / i for i in range(n - c + 1, n + 1))
    value = pass_at_k(n, c, k)
    assert value is not None
    assert float(value) == pytest.approx(product, abs=1e-10)


def test_pass_at_k_of_more_attempts_than_a_float_can_count() -> None:
    value = pass_at_k(5000, 3, 2500)
    assert value is not None
    assert 0.87 < float(value) < 0.88


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_pass_at_k_refuses_impossible_tallies(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match=f"n={n}, c={c}, k={k}"):
        pass_at_k(n, c, k)
    with pytest.raises(ValueError, match=f"n={n}, c={c}, k={k}"):
        pass_hat_k(n, c, k)


@given(st.lists(tallies, max_size=12), st.integers(1, 5))
def test_mean_over_tasks_counts_every_task(rows: list[tuple[int, int]], k: int) -> None:
    mean = mean_over_tasks(pass_at_k, rows, k)
    assert mean.count + mean.nan_count == len(rows)
    values = [value for n, c in rows if (value := pass_at_k(n, c, k)) is not None]
    assert mean.value == (sum(values) / len(values) if values else None)


def test_task_intervals_are_those_of_the_documented_draws() -> None:
    rows = [[0.0, 0.25, 0.5, 1.0, 1.0], [0.2, 0.2, 0.9, 0.1, 0.4], [0.5] * 5]
    found = task_intervals(rows, resamples=300, seed=12)
    index = np.random.default_rng(12).integers(0, 5, (300, 5))
    for row, interval in zip(rows[:2], found, strict=False):
        expected = np.quantile(np.array(row)[index].mean(axis=1), [0.025, 0.975])
        assert interval == pytest.approx(tuple(expected), abs=1e-12)
    assert found[2] is None, "a row without spread has no interval"
    assert task_intervals([[0.3]], resamples=10, seed=0) == [None]
    assert task_intervals([], resamples=10, seed=0) == []


def test_task_intervals_do_not_depend_on_how_many_are_drawn_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[0.0, 0.25, 0.5, 1.0, 1.0]]
    whole = task_intervals(rows, resamples=300, seed=12)
    monkeypatch.setattr("pytest_metricbench.analysis.pass_at_k._CHUNK", 35)
    assert task_intervals(rows, resamples=300, seed=12) == whole


# ---------------------------------------------------------------- proportions and verdicts


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_scipys(drawn: tuple[int, int]) -> None:
    successes, n = drawn
    found = wilson(successes, n)
    expected = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert found == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0 <= found[0] <= successes / n <= found[1] <= 1


@pytest.mark.parametrize(("successes", "n", "confidence"), [(1, 0, 0.95), (3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)])
def test_wilson_refuses_what_is_no_proportion(successes: int, n: int, confidence: float) -> None:
    with pytest.raises(ValueError, match=r"proportion|confidence"):
        wilson(successes, n, confidence)


def test_verdicts() -> None:
    assert [verdict(*t) for t in ((0, 0), (3, 3), (3, 1), (3, 0))] == ["unmeasured", "solved", "flaky", "failed"]
    with pytest.raises(ValueError, match="4 passes in 3"):
        verdict(3, 4)


# ---------------------------------------------------------------- correlation

plain_numbers = st.integers(-1000, 1000).map(lambda number: number / 997)
tied_numbers = st.integers(0, 4).map(lambda number: number / 3)


@st.composite
def paired_lists(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    n = draw(st.integers(3, 40))
    sides = [draw(st.lists(draw(st.sampled_from([plain_numbers, tied_numbers])), min_size=n, max_size=n)) for _ in "xy"]
    return np.array(sides[0]), np.array(sides[1])


@given(paired_lists())
def test_coefficients_are_scipys(sides: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = sides
    assume(why_undefined(x, y) is None)
    found = coefficients(x, y)
    assert found.pearson == pytest.approx(stats.pearsonr(x, y)[0], abs=1e-12)
    assert found.spearman == pytest.approx(stats.spearmanr(x, y)[0], abs=1e-12)
    assert found.kendall == pytest.approx(stats.kendalltau(x, y)[0], abs=1e-12)
    assert (found.pearson, found.spearman, found.kendall) == (pearson(x, y), spearman(x, y), kendall(x, y))


@given(paired_lists())
def test_coefficients_are_antisymmetric_and_bounded(sides: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = sides
    assume(why_undefined(x, y) is None)
    found, mirrored, swapped = coefficients(x, y), coefficients(x, -y), coefficients(y, x)
    for name in ("pearson", "spearman", "kendall"):
        assert abs(getattr(found, name)) <= 1
        assert getattr(mirrored, name) == pytest.approx(-getattr(found, name), abs=1e-12)
        assert getattr(swapped, name) == pytest.approx(getattr(found, name), abs=1e-12)
    assert coefficients(x, x).kendall == pytest.approx(1, abs=1e-12)


@given(st.lists(st.integers(0, 300), max_size=60))
def test_inversions_are_counted_pairs(levels: list[int]) -> None:
    pairs = sum(a > b for a, b in itertools.combinations(levels, 2))
    assert inversions(np.array(levels, dtype=np.int64)) == pairs


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([], [], "there is no pair; at least 3 are needed"),
        ([1.0], [2.0], "there is only 1 pair"),
        ([1.0, 2.0], [1.0, 2.0], "there are only 2 pairs"),
        ([0.5, 0.5, 0.5], [1.0, 2.0, 3.0], "coverage is 0.5 in every pair"),
        ([1.0, 2.0, 3.0], [0.1 + 0.2, 0.3, 0.3], "the score is nearly constant"),
        ([1.0, 2.0, 3.0], [0.0, 0.0, -0.0], "the score is 0 in every pair"),
    ],
)
def test_undefined_says_why(x: list[float], y: list[float], words: str) -> None:
    reason = why_undefined(np.array(x), np.array(y), "coverage", "the score")
    assert reason is not None
    assert words in reason
    with pytest.raises(ValueError, match="pair"):
        coefficients(np.array(x), np.array(y))


def test_coefficients_refuse_lists_of_different_lengths() -> None:
    with pytest.raises(ValueError, match="3 values of x and 2 of y"):
        coefficients(np.arange(3.0), np.arange(2.0))


# ---------------------------------------------------------------- detection

sides = st.tuples(tallies.filter(lambda t: t[0] > 0), tallies.filter(lambda t: t[0] > 0))


@given(sides)
def test_fisher_is_scipys(drawn: tuple[tuple[int, int], tuple[int, int]]) -> None:
    (base_n, base_passed), (mutant_n, mutant_passed) = drawn
    table = [[base_passed, base_n - base_passed], [mutant_passed, mutant_n - mutant_passed]]
    expected = stats.fisher_exact(table, alternative="greater")[1]
    found = fisher_p(base_passed, base_n, mutant_passed, mutant_n)
    assert float(found) == pytest.approx(expected, abs=1e-12)
    assert smallest_p(base_n, mutant_n) <= found <= 1


@pytest.mark.parametrize(("attempts", "p"), [(3, Fraction(1, 20)), (5, Fraction(1, 252)), (6, Fraction(1, 924))])
def test_smallest_p(attempts: int, p: Fraction) -> None:
    assert smallest_p(attempts, attempts) == p == fisher_p(attempts, attempts, 0, attempts)


def test_fisher_refuses_impossible_tallies() -> None:
    with pytest.raises(ValueError, match="4/3 against 0/3"):
        fisher_p(4, 3, 0, 3)


@given(st.lists(st.integers(1, 40).map(lambda number: Fraction(number, 40)), max_size=30), st.sampled_from([0.05, 0.2]))
def test_discovery_threshold_is_benjamini_hochbergs(ps: list[Fraction], q: float) -> None:
    counts = {p: ps.count(p) for p in ps}
    threshold = discovery_threshold(counts, exact(q))
    adjusted = stats.false_discovery_control([float(p) for p in ps]) if ps else []
    rejected = {p for p, value in zip(ps, adjusted, strict=True) if value <= q + 1e-12}
    assert rejected == {p for p in ps if threshold is not None and p <= threshold}


def cells(base: list[tuple[int, int]], mutants: list[list[tuple[int, int]]]) -> Tallies:
    """From (entries, passes) of the baseline by task and of mutants by task."""
    return Tallies(
        np.array([c for _, c in base], dtype=np.int64),
        np.array([n for n, _ in base], dtype=np.int64),
        np.array([[c for _, c in row] for row in mutants], dtype=np.int64).reshape(len(mutants), len(base)),
        np.array([[n for n, _ in row] for row in mutants], dtype=np.int64).reshape(len(mutants), len(base)),
    )


def test_flip_needs_a_majority_before_and_none_after() -> None:
    base = [(4, 3), (4, 2), (4, 4), (0, 0), (1, 1)]
    found = flip_kills(cells(base, [[(4, 2), (4, 0), (4, 3), (4, 0), (0, 0)]]))
    assert found.tolist() == [[True, False, False, False, False]]


def test_a_p_equal_to_alpha_kills() -> None:
    three = cells([(3, 3)], [[(3, 0)], [(3, 1)]])
    everyone = np.array([True, True])
    assert kills(KillRule("fisher", 0.05), three, everyone).killed.tolist() == [[True], [False]]
    assert not kills(KillRule("fisher", 0.0499), three, everyone).killed.any()


def test_controls_are_judged_by_the_threshold_of_the_others() -> None:
    """The control's own p would change the family's threshold; left out of it, it is judged all the same."""
    table = cells([(5, 5)] * 4, [[(5, 0), (5, 5), (5, 5), (5, 5)], [(5, 0), (5, 4), (5, 4), (5, 4)]])
    found = kills(KillRule("fisher", None, 0.05), table, np.array([True, False]))
    assert found.threshold == Fraction(1, 252)
    assert found.killed.tolist() == [[True, False, False, False], [True, False, False, False]]
    nothing = kills(KillRule("fisher", None, 0.01), table, np.array([False, False]))
    assert nothing.threshold is None
    assert not nothing.killed.any()


def test_a_fisher_rule_needs_a_threshold() -> None:
    with pytest.raises(ValueError, match="alpha or q"):
        kills(KillRule("fisher"), cells([(1, 1)], [[(1, 1)]]), np.array([True]))


def test_kills_that_rest_on_died_attempts_do_not_stand() -> None:
    base = [(4, 4), (4, 4), (4, 4)]
    table = cells(base, [[(4, 2), (4, 0), (4, 0)]])
    died = np.array([[1, 1, 4]], dtype=np.int64)
    made = kills(KillRule(), table, np.array([True]))
    assert made.killed.tolist() == [[True, True, True]]
    stands = stand_without_died(KillRule(), made, table, np.zeros(3, dtype=np.int64), died)
    assert stands.tolist() == [[False, True, False]], "2 of 3 passes, 0 of 3, and no entry at all"


# ---------------------------------------------------------------- mutation scores


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Tallies, np.ndarray]:
    tasks, mutants, sets = draw(st.integers(1, 5)), draw(st.integers(0, 5)), draw(st.integers(1, 4))
    base = draw(st.lists(tallies, min_size=tasks, max_size=tasks))
    rows = draw(st.lists(st.lists(tallies, min_size=tasks, max_size=tasks), min_size=mutants, max_size=mutants))
    members = draw(st.lists(st.lists(st.booleans(), min_size=tasks, max_size=tasks), min_size=sets, max_size=sets))
    return cells(base, rows), np.array(members, dtype=np.bool_)


@given(matrices())
def test_scores_are_what_counting_by_hand_gives(drawn: tuple[Tallies, np.ndarray]) -> None:
    table, members = drawn
    killed = flip_kills(table)
    found = set_kills(members, table.present, killed)
    mutants = np.ones(len(table.mutant_n), dtype=np.bool_)
    means = mean_drops(members, found.cells, drops(table), mutants)
    for row, member in enumerate(members):
        counted = [m for m in range(len(mutants)) if (table.present[m] & member).any()]
        dead = [m for m in counted if (killed[m] & member).any()]
        assert found.share(row, mutants) == (len(dead), len(counted))
        by_mutant = []
        for m in counted:
            each = [
                Fraction(int(table.base_passed[t]), int(table.base_n[t]))
                - Fraction(int(table.mutant_passed[m, t]), int(table.mutant_n[m, t]))
                for t in np.flatnonzero(table.present[m] & member)
            ]
            by_mutant.append(sum(each) / len(each))
        assert means[row] == (sum(by_mutant) / len(by_mutant) if by_mutant else None)


@given(matrices())
def test_kills_are_monotone_in_the_set(drawn: tuple[Tallies, np.ndarray]) -> None:
    table, members = drawn
    for rule in (KillRule(), KillRule("fisher", 0.1), KillRule("fisher", None, 0.2)):
        killed = kills(rule, table, np.ones(len(table.mutant_n), dtype=np.bool_)).killed
        united = np.vstack([members, members | members[0]])
        found = set_kills(united, table.present, killed).killed
        assert (found[: len(members)] <= found[len(members) :]).all()


@example(97)
@given(st.integers(60, 110))
@settings(max_examples=5)
def test_drops_stay_exact_where_64_bits_would_not(most: int) -> None:
    """The least common multiple of so many numbers of attempts has forty digits."""
    base = [(n, n) for n in range(1, most)]
    table = cells(base, [[(n, n // 2) for n in range(1, most)]])
    members = np.ones((1, most - 1), dtype=np.bool_)
    counted = set_kills(members, table.present, table.present).cells
    found = mean_drops(members, counted, drops(table), np.array([True]))
    assert found == [sum(1 - Fraction(n // 2, n) for n in range(1, most)) / (most - 1)]
