"""Attempts that a runner knew it need not run: not reached, not needed; and what was planned and left no result."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.analysis.subset_figures import ONLY_FIRST
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import CaseSummary
from pytest_metricbench.definition.experiment import KillRule
from tests.analysis.results_builder import NOT_NEEDED, NOT_REACHED, NOT_RECORDED, TIMED_OUT, CaseTable, build

SUBSETS = {"s1": ["a"], "s2": ["b"], "s3": ["c"], "s4": ["a", "b"]}


def case_of(table: CaseTable, **options: Any) -> CaseSummary:
    return summarize(build(table, **options)).cases["c"]


def test_a_cell_that_is_not_reached_survives() -> None:
    case = case_of(
        CaseTable(
            {
                "baseline": {"a": [1, 1], "b": [1, 1], "c": [1, 0]},
                "m": {"a": [0, 0], "b": [NOT_REACHED, NOT_REACHED], "c": [NOT_REACHED, NOT_REACHED]},
                "n": {task: [NOT_REACHED, NOT_REACHED] for task in "abc"},
            },
            subsets=SUBSETS,
        )
    )
    assert case.kills == {
        "m": {"a": "killed", "b": "not_reached", "c": "not_reached"},
        "n": {"a": "not_reached", "b": "not_reached", "c": "not_reached"},
    }
    assert case.mutants.detected == ("m",)
    assert case.mutants.undetected == ("n",)
    assert case.survivors[0].cells == 3
    assert case.pool.kill_share.value == 0.5
    assert case.pool.kill_share.missing_cells == 0
    assert case.subsets["s2"].kill_share.value == 0
    assert case.pool.mean_drop.value == pytest.approx((1 / 3 + 0) / 2)
    assert (case.counts.not_reached, case.counts.unmeasured) == (10, 0)
    assert summarize(build(CaseTable({"baseline": {"a": [1]}, "m": {"a": [NOT_REACHED]}}))).complete


def test_it_has_no_entry_and_no_verdict_of_its_own() -> None:
    case = case_of(CaseTable({"baseline": {"a": [1], "b": [1]}, "m": {"a": [0], "b": [NOT_REACHED]}}))
    mutant = case.variants["m"]
    assert mutant.attempts["b"] == {"reward": ()}
    assert (mutant.verdicts.failed, mutant.verdicts.not_run, mutant.verdicts.unmeasured) == (1, 1, 0)
    assert mutant.tasks["b"].pass_rate.reason == "1 attempt and none was run"
    figure = mutant.pass_at_k["reward"]["1"]
    assert (figure.value, figure.count, figure.nan_count) == (0.0, 1, 1)


def test_where_the_baseline_has_no_entry_the_cell_is_missing() -> None:
    case = case_of(CaseTable({"baseline": {"a": [1], "b": ["unmeasured"]}, "m": {"a": [0], "b": [NOT_REACHED]}}))
    assert case.kills["m"] == {"a": "killed", "b": "missing"}


@given(st.data())
def test_running_what_is_not_reached_changes_no_kill(data: st.DataObject) -> None:
    """Of a deterministic suite: attempts that cannot reach the mutant do what the baseline's do."""
    tasks = "abcd"
    base = {task: [data.draw(st.integers(0, 1))] * 3 for task in tasks}
    reached = {task: data.draw(st.booleans()) for task in tasks}
    wrong = {task: [data.draw(st.integers(0, 1))] * 3 for task in tasks}
    lazy = {task: wrong[task] if reached[task] else [NOT_REACHED] * 3 for task in tasks}
    whole = {task: wrong[task] if reached[task] else base[task] for task in tasks}
    rule = data.draw(st.sampled_from([KillRule(), KillRule("fisher", alpha=0.05), KillRule("fisher", q=0.2)]))
    killed, pools = [], []
    for mutant in (lazy, whole):
        case = case_of(CaseTable({"baseline": base, "m": mutant}), rule=rule)
        killed.append({task for task, state in case.kills["m"].items() if state == "killed"})
        pools.append((case.pool.kill_share.value, case.pool.mean_drop.value))
    assert killed[0] == killed[1]
    assert pools[0] == pools[1]


def test_a_mutant_of_which_only_what_reaches_it_died_is_valid() -> None:
    case = case_of(
        CaseTable(
            {
                "baseline": {"a": [1], "b": [1]},
                "m": {"a": [TIMED_OUT], "b": [NOT_REACHED]},
                "n": {"a": [None], "b": [None]},
            }
        )
    )
    assert (case.mutants.detected, case.mutants.invalid) == (("m",), ("n",))


def test_after_its_first_kill_only_the_pool_is_known() -> None:
    case = case_of(
        CaseTable(
            {
                "baseline": {"a": [1], "b": [1], "c": [1]},
                "m": {"a": [0], "b": [NOT_NEEDED], "c": [NOT_NEEDED]},
                "n": {"a": [1], "b": [1], "c": [1]},
            },
            subsets=SUBSETS,
            coverage={"x": {"s1": 0.1, "s2": 0.2, "s3": 0.3, "s4": 0.4, "pool": 1.0}},
        )
    )
    assert case.kills["m"] == {"a": "killed", "b": "missing", "c": "missing"}
    assert (case.pool.kill_share.value, case.pool.kill_share.killed, case.pool.kill_share.mutants) == (0.5, 1, 2)
    assert case.pool.kill_share.over_minimal.reason == ONLY_FIRST
    drop = case.pool.mean_drop
    assert (drop.reason, drop.mutants, drop.cells, drop.missing_cells) == (ONLY_FIRST, 2, 4, 2)
    assert {subset.kill_share.reason for subset in case.subsets.values()} == {ONLY_FIRST}
    assert case.correlation["x"]["kill_share"].overall.kendall.value is None
    assert case.kill_nothing == ()
    assert case.greedy == ()
    assert case.tasks["a"].only_killer_of == ()
    assert case.counts.not_needed == 2
    assert not case.counts.unmeasured


def test_kills_that_rest_on_time_outs_are_counted_apart() -> None:
    case = case_of(
        CaseTable(
            {
                "baseline": {"a": [1], "b": [1], "c": [1]},
                "m": {"a": [TIMED_OUT], "b": [None], "c": [0]},
            }
        )
    )
    assert [kill.task for kill in case.died_kills.kills] == ["a", "b"]
    assert [kill.task for kill in case.died_kills.time_outs] == ["a"]


def test_a_planned_attempt_without_a_result_is_missing() -> None:
    summary = summarize(build(CaseTable({"baseline": {"a": [1, NOT_RECORDED]}})))
    case = summary.cases["c"]
    assert (case.counts.missing, case.counts.unmeasured, case.counts.passed) == (1, 0, 1)
    assert not summary.complete
    assert "1 of 2 attempts is missing" in summary.problems[0]
