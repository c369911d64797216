"""The kernels behind permutations and redraws, against scipy and against each other."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_metricbench.analysis import many_coefficients, unions
from pytest_metricbench.analysis.correlation import coefficients, inversions, levels, why_undefined
from pytest_metricbench.analysis.independent_pairs import (
    KERNELS,
    bca_interval,
    fisher_z_interval,
    jackknife_pairs,
    redrawn_pairs,
)
from pytest_metricbench.analysis.many_coefficients import (
    METHODS,
    compact,
    dense_levels,
    inversions_many,
    kendall_many,
    pearson_many,
    spearman_many,
)
from pytest_metricbench.analysis.strata import Side, coefficients_many, coefficients_with_gaps, strata_of
from pytest_metricbench.analysis.unions import Design, design_on, packed

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


@st.composite
def columns(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Lists of pairs with many ties or few, and one y for all or one each."""
    pairs, number = draw(st.integers(3, 40)), draw(st.integers(1, 6))
    x_most, y_most = draw(st.sampled_from([1, 3, 40, 10_000])), draw(st.sampled_from([1, 3, 40, 10_000]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shared = draw(st.booleans())
    return rng.integers(0, x_most + 1, (pairs, number)), rng.integers(0, y_most + 1, (pairs, 1 if shared else number))


def check(x: np.ndarray, y: np.ndarray, found: dict[str, np.ndarray]) -> None:
    for index in range(x.shape[1]):
        ours, others = x[:, index].astype(float), np.broadcast_to(y, x.shape)[:, index].astype(float)
        if why_undefined(ours, others) is not None:
            assert all(np.isnan(found[method][index]) for method in METHODS)
            continue
        for method in METHODS:
            assert found[method][index] == pytest.approx(SCIPY[method](ours, others)[0], abs=1e-12, rel=0), method
            assert found[method][index] == pytest.approx(getattr(coefficients(ours, others), method), abs=1e-12, rel=0)


@given(columns())
@settings(max_examples=80)
def test_all_columns_at_once_are_what_scipy_says_one_by_one(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = drawn
    check(x, y, coefficients_many(Side(x, compact(x)), Side(y, compact(y))))


@pytest.mark.parametrize("pairs", [60, 90, 300, 600])
@pytest.mark.parametrize("levels_of_x", [2, 30, 5000])
@pytest.mark.parametrize("levels_of_y", [2, 25, 5000])
@pytest.mark.parametrize("shared", [True, False], ids=["one y", "y each"])
def test_every_way_to_count_gives_the_same(pairs: int, levels_of_x: int, levels_of_y: int, shared: bool) -> None:
    """Sizes and levels on both sides of each choice of a kernel."""
    rng = np.random.default_rng([pairs, levels_of_x, levels_of_y])
    x, y = rng.integers(0, levels_of_x, (pairs, 4)), rng.integers(0, levels_of_y, (pairs, 1 if shared else 4))
    check(x, y, {"pearson": pearson_many(x, y), "spearman": spearman_many(x, y), "kendall": kendall_many(x, y)})


def test_the_ways_to_count_kendall_agree() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 9, (70, 50)), rng.integers(0, 7, (70, 1))
    shared = many_coefficients._against_shared(x, y[:, 0], 9)
    each = np.broadcast_to(y, x.shape)
    for found in (
        many_coefficients._from_tables(x, y, 9, 7),
        many_coefficients._from_inversions(x, each, 9, 7),
        many_coefficients._from_signs(x.astype(np.int16), each.astype(np.int16)),
    ):
        for ours, theirs in zip(shared, found, strict=True):
            assert (np.broadcast_to(ours, (50,)) == theirs).all()


@pytest.mark.parametrize("shared", [True, False], ids=["one y", "y each"])
def test_levels_too_far_apart_for_16_bits(shared: bool) -> None:
    """Few pairs, and differences that would change their sign in the small integers that few pairs are counted with."""
    x = np.array([[0, 40_000], [20_000, 0], [40_000, 1], [60_000, 70_000]])
    y = np.array([[0], [1], [2], [50_000]]) if shared else x[::-1]
    check(x, y, {"pearson": pearson_many(x, y), "spearman": spearman_many(x, y), "kendall": kendall_many(x, y)})


def test_a_block_ends_before_a_long_run_of_equal_y() -> None:
    """So that the pairs of a block, which are compared one by one, stay few however long the run."""
    block = many_coefficients._BLOCK
    assert list(many_coefficients._block_ends([3, 10, 10 + block])) == [10, 10 + block]
    assert list(many_coefficients._block_ends([3, 10, 9 + block])) == [9 + block]
    assert list(many_coefficients._block_ends([3, 10])) == []


@pytest.mark.parametrize("blocks", [[200], [1] * 200, [60, 1, 1, 60, 3, 75], [47, 48, 49, 56]])
def test_blocks_end_where_y_changes(blocks: list[int]) -> None:
    """Runs of equal y of every length: pairs tied in y must never meet in different blocks."""
    y = np.repeat(np.arange(len(blocks)), blocks)[:, None]
    x = np.random.default_rng(1).integers(0, 12, (len(y), 3))
    check(x, y, {m: coefficients_many(Side(x, x), Side(y, y))[m] for m in METHODS})


@given(st.lists(st.lists(st.integers(0, 9), min_size=5, max_size=5), min_size=1, max_size=6))
def test_inversions_row_by_row(rows: list[list[int]]) -> None:
    found = inversions_many(np.array(rows, dtype=np.int64))
    assert found.tolist() == [inversions(np.array(row, dtype=np.int64)) for row in rows]
    assert found.tolist() == [sum(a > b for a, b in itertools.combinations(row, 2)) for row in rows]


@given(st.integers(1, 30), st.integers(1, 5), st.integers(0, 2**32), st.booleans())
def test_dense_levels_are_levels(pairs: int, number: int, seed: int, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(-5, 5, (pairs, number))
    given_values = values if whole else values / 4
    found = dense_levels(given_values)
    for index in range(number):
        assert (found[:, index] == levels(given_values[:, index].astype(float))).all()


def test_no_values_have_no_levels() -> None:
    assert dense_levels(np.zeros((0, 3), dtype=np.int64)).shape == (0, 3)


def test_wide_levels_are_made_dense() -> None:
    wide = np.array([[0], [10_000_000], [5]])
    assert compact(wide).tolist() == [[0], [2], [1]]
    narrow = np.array([[0], [60], [5]])
    assert compact(narrow) is narrow


def test_gaps_are_left_out_of_their_draw_only() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.random((12, 4)), rng.random((12, 4))
    y[3, 1] = np.nan
    y[:10, 2] = np.nan
    y[:, 3] = 0.5
    found = coefficients_with_gaps(Side(x, dense_levels(x)), Side(y, dense_levels(y)))
    kept = np.arange(12) != 3
    for method in METHODS:
        assert found[method][0] == pytest.approx(getattr(coefficients(x[:, 0], y[:, 0]), method))
        assert found[method][1] == getattr(coefficients(x[kept, 1], y[kept, 1]), method)
        assert np.isnan(found[method][2:]).all(), "two pairs left, and a constant side"


def test_no_pairs_have_no_coefficient() -> None:
    nothing = np.zeros((0, 3), dtype=np.int64)
    assert all(
        np.isnan(found).all() for found in coefficients_many(Side(nothing, nothing), Side(nothing, nothing)).values()
    )


def test_strata_are_all_and_each_size() -> None:
    found = strata_of([3, 10, 3, 10, 2], [True, True, True, False, False])
    assert {name: rows.tolist() for name, rows in found.items()} == {
        "overall": [0, 1, 2],
        "2": [],
        "3": [0, 2],
        "10": [1],
    }


# ---------------------------------------------------------------- sets as bits


@given(st.integers(1, 8), st.integers(1, 140), st.integers(1, 6), st.integers(0, 2**32))
@settings(max_examples=60)
def test_unions_are_counted(tasks: int, members: int, sets: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    flags = rng.random((tasks, members)) < 0.3
    chosen = rng.random((sets, tasks)) < 0.5
    chosen[:, 0] = True
    words = packed(flags).T
    fillings = rng.integers(0, tasks, (tasks, 300))
    found = Design.of(chosen).union_sizes(word[fillings] for word in words)
    for row, column in itertools.product(range(sets), (0, 255, 256, 299)):
        assert found[row, column] == flags[fillings[chosen[row], column]].any(axis=0).sum()


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9))
def test_bits_are_counted_without_numpy_2_as_well(words: list[int]) -> None:
    array = np.array(words, dtype=np.uint64)
    assert unions._counted_by_bytes(array).tolist() == [word.bit_count() for word in words]
    assert unions.count_bits(array).tolist() == [word.bit_count() for word in words]


def test_a_design_knows_its_limits() -> None:
    with pytest.raises(ValueError, match="no task"):
        Design.of(np.zeros((1, 3), dtype=np.bool_))
    with pytest.raises(ValueError, match="no union"):
        Design.of(np.ones((1, 3), dtype=np.bool_)).union_sizes([])
    members = np.array([[True, True, False], [True, False, True], [False, False, True]])
    design, row = design_on(members, [0, 1])
    assert design.members.tolist() == [[True, True]]
    assert row.tolist() == [0, -1, -1]


# ---------------------------------------------------------------- redrawn pairs


@st.composite
def pair_lists(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    pairs = draw(st.integers(3, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if draw(st.booleans()):
        return rng.integers(0, 4, pairs) / 3, rng.integers(0, 3, pairs) / 7
    return rng.random(pairs), rng.normal(0, 1e3, pairs)


@example((np.array([0.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0])))
@given(pair_lists())
@settings(max_examples=60)
def test_redrawn_pairs_are_what_scipy_says_one_by_one(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = drawn
    index = np.random.default_rng(7).integers(0, len(x), (12, len(x)))
    for kernel in KERNELS.values():
        found: dict[str, Any] = kernel(x, y).coefficients(index)
        for row, chosen in enumerate(index):
            if why_undefined(x[chosen], y[chosen]) is not None:
                assert all(np.isnan(found[method][row]) for method in METHODS)
                continue
            for method in METHODS:
                assert found[method][row] == pytest.approx(SCIPY[method](x[chosen], y[chosen])[0], abs=1e-12, rel=0)


def test_draws_do_not_depend_on_how_many_are_made_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.random(30), rng.random(30)
    whole = redrawn_pairs(x, y, 50, 9)
    monkeypatch.setattr("pytest_metricbench.analysis.independent_pairs._NUMBERS", 100)
    parts = redrawn_pairs(x, y, 50, 9)
    assert all(whole[method] == pytest.approx(parts[method], abs=1e-12) for method in METHODS)


def test_intervals_that_cannot_be_made_say_so() -> None:
    assert bca_interval(0.5, np.array([0.6, 0.7]), np.array([0.5, 0.4])) is None, "every draw is above"
    assert bca_interval(0.8, np.array([0.6, 0.7]), np.array([0.5, 0.4])) is None, "every draw is below"
    assert bca_interval(0.65, np.array([0.6, 0.7]), np.array([0.5, 0.5])) is None, "the jackknife is degenerate"
    assert len(jackknife_pairs(np.arange(5.0), np.array([1.0, 3, 2, 5, 4]), "kendall")) == 5
    for r, pairs in ((0.5, 3), (1.0, 30)):
        with pytest.raises(ValueError, match="no interval"):
            fisher_z_interval(r, pairs)
