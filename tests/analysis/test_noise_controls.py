"""What is noise and what can be shown: the baseline against itself, redundant mutants, warnings before a run."""

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.analysis.reach import attempts_needed, smallest_p, unreachable_warning
from pytest_metricbench.analysis.redundancy import needed_mutants
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import CaseSummary
from pytest_metricbench.analysis.summary_json import summary_to_json
from pytest_metricbench.definition.experiment import Experiment, KillRule
from tests.analysis.results_builder import OUTSIDE, UNMEASURED, CaseTable, build

# ---------------------------------------------------------------- the baseline against itself


def case_of(table: CaseTable, **options: Any) -> CaseSummary:
    return summarize(build(table, **options)).cases["c"]


def flaky(passes: int, n: int) -> list[int]:
    return [1] * passes + [0] * (n - passes)


def test_splits_are_what_enumeration_counts() -> None:
    """One task, three of four pass: a half of two is told from the other half in a third of the splits, by flip."""
    base = {"t": flaky(3, 4)}
    found = case_of(CaseTable({"baseline": base, "m": base})).against_itself
    splits = [set(half) for half in itertools.combinations(range(4), 2)]
    kills = sum(2 * sum(i < 3 for i in half) > 2 and 2 * (3 - sum(i < 3 for i in half)) <= 2 for half in splits)
    assert found.splits == 200
    assert found.cells == 1
    assert found.pool.false_kills.value == pytest.approx(kills / len(splits), abs=0.1)
    assert found.pool.kill_share.value == found.pool.false_kills.value
    assert found.pool.mean_drop.value == pytest.approx(0, abs=0.1)
    assert found.pool.mean_drop.middle == (-0.5, 0.5)


def test_the_first_half_is_the_smaller_one() -> None:
    """Three attempts, two pass: floor(3/2) = 1 against 2. The kill needs the one to pass and one of the two to fail."""
    base = {"t": flaky(2, 3)}
    found = case_of(CaseTable({"baseline": base, "m": base})).against_itself.pool
    assert found.kill_share.value == pytest.approx(2 / 3, abs=0.1)


def test_a_steady_baseline_is_never_told_from_itself_and_costs_no_draw() -> None:
    base = {"a": [1, 1, 1], "b": [0, 0, 0]}
    found = case_of(CaseTable({"baseline": base, "m": base}, {"s": ["a"]})).against_itself
    assert found.splits == 0
    assert found.cells == 2
    for kills in (found.pool, found.sizes["1"]):
        assert kills.false_kills.value == kills.kill_share.value == kills.mean_drop.value == 0
        assert kills.mean_drop.middle == (0, 0)


def test_kills_by_luck_grow_with_the_size_of_a_subset() -> None:
    tasks = [f"t{number}" for number in range(12)]
    base = {task: flaky(4, 6) for task in tasks}
    subsets = {f"s{size}-{n}": tasks[n : n + size] for size in (1, 3, 8) for n in range(4)}
    found = case_of(CaseTable({"baseline": base, "m": base}, subsets)).against_itself
    shares = [found.sizes[size].kill_share.value or 0.0 for size in ("1", "3", "8")]
    assert shares == sorted(shares)
    assert shares[0] > 0
    per_task = [(found.sizes[size].false_kills.value or 0.0) / int(size) for size in ("1", "3", "8")]
    assert per_task == pytest.approx([per_task[0]] * 3, abs=0.08)


def test_the_threshold_of_the_case_judges_the_halves() -> None:
    base = {f"t{number}": flaky(6, 12) for number in range(10)}
    mutant = {task: flaky(0, 12) for task in base}
    by_rule = {
        name: case_of(CaseTable({"baseline": base, "m": mutant}), rule=rule).against_itself.pool.false_kills.value
        for name, rule in {"flip": KillRule(), ".2": KillRule("fisher", 0.2), ".001": KillRule("fisher", 0.001)}.items()
    }
    assert (by_rule["flip"] or 0) > 0
    assert (by_rule[".2"] or 0) > (by_rule[".001"] or 0)
    nothing = case_of(CaseTable({"baseline": base, "m": base}), rule=KillRule("fisher", None, 0.001))
    assert nothing.against_itself.pool.false_kills.value == 0, "no p is small enough for q: nothing can be killed"


def test_tasks_with_one_attempt_cannot_be_split() -> None:
    base: dict[str, list[Any]] = {"a": [1], "b": [1, 0], "c": [UNMEASURED, 1]}
    found = case_of(CaseTable({"baseline": base, "m": base}, {"s": ["a"], "both": ["a", "b"]})).against_itself
    assert found.cells == 1
    assert found.sizes["1"].kill_share.reason == "no task here has two attempts of the baseline to compare"
    assert found.sizes["2"].kill_share.value is not None
    drops = (found.sizes["2"].mean_drop, found.pool.mean_drop)
    assert [drop.middle for drop in drops] == [(-1, 1)] * 2, "of the task that is split"
    alone = case_of(CaseTable({"baseline": {"a": [1]}, "m": {"a": [0]}}, {"s": ["a"]})).against_itself
    assert alone.pool.false_kills.reason == "no task has two attempts of the baseline to compare"
    assert alone.sizes["1"].mean_drop.reason == alone.pool.false_kills.reason


def test_a_baseline_outside_this_part_is_not_split() -> None:
    table = CaseTable({"baseline": {"a": [1, OUTSIDE], "b": [1, 1]}, "m": {"a": [0, 0], "b": [0, 0]}})
    figure = case_of(table, part="a").against_itself.pool.false_kills
    assert figure.outside
    assert figure.reason == "1 of 4 attempts is outside this part and not in the store"


# ---------------------------------------------------------------- redundant mutants


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=7))
def test_needed_mutants_are_those_whose_kills_hold_no_others(rows: list[list[bool]]) -> None:
    kills = [{task for task, killed in enumerate(row) if killed} for row in rows]
    expected = [bool(mine) and not any(other and other < mine for other in kills) for mine in kills]
    assert needed_mutants(np.array(rows)).tolist() == expected
    assert needed_mutants(np.array([rows, rows])).tolist() == [expected, expected]


def test_redraws_say_how_stable_the_minimal_set_is() -> None:
    base = {"a": [1] * 5, "b": [1] * 5}
    mutants = {
        "sure": {"a": [0] * 5, "b": [1] * 5},
        "shaky": {"a": [1] * 5, "b": flaky(2, 5)},
        "both": {"a": [0] * 5, "b": [0] * 5},
        "copy": {"a": [0] * 5, "b": [1] * 5},
    }
    found = case_of(CaseTable({"baseline": base, **mutants})).redundancy
    assert found.minimal == ("sure", "shaky")
    assert found.identical == (("sure", "copy"),)
    assert found.redraws == 200
    assert found.stability["sure"] == found.stability["copy"] == 1
    assert found.stability["both"] == 0
    assert 0.5 < found.stability["shaky"] < 0.9, "two of five pass: killed when at most two of five redrawn ones do"
    steady = {name: row for name, row in mutants.items() if name != "shaky"}
    assert case_of(CaseTable({"baseline": base, **steady})).redundancy.redraws == 0


def test_kills_that_are_not_decided_are_not_redrawn() -> None:
    """One threshold for the whole case: with attempts outside this part nobody knows it."""
    base = {"a": [1] * 5, "b": flaky(4, 5)}
    outcomes: dict[str, dict[str, list[Any]]] = {
        "baseline": base, "m": {"a": [0] * 5, "b": flaky(1, 5)}, "n": {"a": [OUTSIDE] * 5, "b": [0] * 5},
    }  # fmt: skip
    found = case_of(CaseTable(outcomes), rule=KillRule("fisher", None, 0.9), part="x").redundancy
    assert (found.minimal, found.redraws, found.stability) == ((), 0, {"m": 0, "n": 0})


def test_controls_and_equivalents_make_nobody_redundant() -> None:
    base = {"a": [1], "b": [1]}
    table = CaseTable(
        {"baseline": base, "big": {"a": [0], "b": [0]}, "control": {"a": [0], "b": [1]}, "same": {"a": [1], "b": [0]}},
        controls=["control"],
        equivalent={"same": "reviewed"},
    )
    found = case_of(table).redundancy
    assert found.minimal == ("big",)
    assert list(found.stability) == ["big"]


def test_no_mutants_make_no_set() -> None:
    found = case_of(CaseTable({"baseline": {"a": [1, 0]}})).redundancy
    assert found.model_dump() == {"minimal": (), "identical": (), "stability": {}, "redraws": 0}


# ---------------------------------------------------------------- before anything runs


def experiment(attempts: int, rule: KillRule, tasks: int = 4, mutants: int = 3, **other: int) -> Experiment:
    base = {f"t{n}": [1] * attempts for n in range(tasks)} | {task: [1] * n for task, n in other.items()}
    return build(CaseTable({"baseline": base, **{f"m{n}": base for n in range(mutants)}}), rule=rule).experiment


def test_three_against_three_can_hardly_ever_reach_5_percent() -> None:
    assert unreachable_warning(experiment(3, KillRule("fisher", 0.05))) == (
        "c: {rule: fisher, alpha: 0.05} can hardly ever kill: 3 against 3 attempts cannot have a p below 0.05, so a "
        "mutant is killed only where every attempt of the baseline passes and none of its own; ask for 4 attempts"
    )


def test_too_few_attempts_can_kill_nothing() -> None:
    assert unreachable_warning(experiment(2, KillRule("fisher", 0.05))) == (
        "c: {rule: fisher, alpha: 0.05} can kill nothing: 2 against 2 attempts cannot have a p below 0.17; "
        "ask for 4 attempts"
    )
    some = unreachable_warning(experiment(5, KillRule("fisher", 0.05), few=2))
    assert some is not None
    assert "can kill nothing at 1 of 5 tasks: 2 against 2 attempts at 1 of 5 tasks cannot" in some
    tiny = unreachable_warning(experiment(2, KillRule("fisher", 1e-300)))
    assert tiny is not None
    assert "ask for" in tiny


@pytest.mark.parametrize(
    ("attempts", "rule"),
    [(1, KillRule()), (4, KillRule("fisher", 0.05)), (3, KillRule("fisher", 0.1)), (6, KillRule("fisher", None, 0.05))],
)
def test_enough_attempts_are_no_matter_for_a_warning(attempts: int, rule: KillRule) -> None:
    assert unreachable_warning(experiment(attempts, rule)) is None


def test_a_false_discovery_rate_needs_many_kills_at_once() -> None:
    warning = unreachable_warning(experiment(4, KillRule("fisher", None, 0.02), tasks=10, mutants=4))
    assert warning is not None
    assert "with the smallest p, 0.014, at least 29 of the 40 cells must be told apart completely" in warning
    assert "ask for 5 attempts" in warning
    assert smallest_p(4, 4) * 40 <= Fraction(29) * Fraction("0.02")
    none = unreachable_warning(experiment(3, KillRule("fisher", None, 0.04)))
    assert none is not None
    assert "q: 0.04} can kill nothing" in none


def test_a_case_without_mutants_needs_no_warning() -> None:
    assert unreachable_warning(experiment(1, KillRule("fisher", 0.05), mutants=0)) is None


@given(st.integers(1, 12), st.integers(1, 12))
def test_the_smallest_p_is_fishers(base_n: int, mutant_n: int) -> None:
    from pytest_metricbench.analysis.detection import fisher_p

    tables = itertools.product(range(base_n + 1), range(mutant_n + 1))
    assert smallest_p(base_n, mutant_n) == min(fisher_p(b, base_n, m, mutant_n) for b, m in tables)


def test_attempts_needed_are_the_fewest() -> None:
    assert attempts_needed(Fraction("0.05")) == 4
    assert attempts_needed(Fraction("0.001")) == 7
    assert attempts_needed(Fraction(1, 10**700)) is None


def test_a_rule_without_a_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="alpha or q"):
        unreachable_warning(experiment(2, KillRule("fisher")))


# ---------------------------------------------------------------- what costs nothing


def test_steady_attempts_without_subsets_draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment that has nothing to draw does not even make a generator."""

    def refuse(*purpose: object) -> None:
        raise AssertionError(f"a stream was made for {purpose}")

    for module in ("self_comparison", "redundancy", "reliability", "task_labels", "redrawn_coefficients"):
        monkeypatch.setattr(f"pytest_metricbench.analysis.{module}.stream", refuse)
    base = {"a": [1, 1], "b": [1, 1]}
    given_results = build(CaseTable({"baseline": base, "m": {"a": [0, 0], "b": [1, 1]}}))
    text = summary_to_json(summarize(given_results))
    assert json.loads(text)["cases"]["c"]["comparisons"] == []
    assert replace(given_results) == given_results


def test_the_warning_before_a_run_needs_no_numpy() -> None:
    code = (
        "import sys, pytest_metricbench.analysis.reach\n"
        "print([name for name in ('numpy', 'scipy', 'yaml') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
