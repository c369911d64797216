"""What the summary says of kills, mutation scores, coverage, correlations, and of what is not there."""

from dataclasses import replace
from typing import Any

import pytest

from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import CaseSummary, Summary
from pytest_metricbench.analysis.unavailable import briefly, outside_reason, subsets_outside_reason
from pytest_metricbench.definition.experiment import KillRule
from tests.analysis.results_builder import MISSING, OUTSIDE, UNMEASURED, CaseTable, build

GOOD, BAD = [1, 1, 1], [0, 0, 0]
SOLVED = {"a": GOOD, "b": GOOD, "d": GOOD}
"""Three tasks that the baseline solves."""


def case_of(table: CaseTable, **settings: Any) -> CaseSummary:
    return summarize(build(table, **settings)).cases["c"]


# ---------------------------------------------------------------- means over tasks


def test_a_mean_says_what_it_rests_on() -> None:
    rows: dict[str, list[Any]] = {"a": GOOD, "b": [1, UNMEASURED, MISSING], "d": [UNMEASURED] * 3}
    variant = case_of(CaseTable({"baseline": rows}), ks=[1, 3, 5]).variants["baseline"]
    one, three, five = (variant.pass_at_k["reward"][k] for k in ("1", "3", "5"))
    assert (one.value, one.count, one.nan_count, one.attempts_unmeasured) == (1.0, 2, 1, 5)
    assert (three.value, three.count, three.nan_count) == (1.0, 1, 2)
    assert (five.value, five.count, five.nan_count) == (None, 0, 3)
    assert five.reason == "no task has 5 or more entries"
    assert variant.verdicts.model_dump() == {
        "solved": 2,
        "flaky": 0,
        "failed": 0,
        "not_run": 0,
        "unmeasured": 1,
        "outside": 0,
    }


def test_a_mean_of_one_task_or_without_spread_has_no_interval() -> None:
    one = case_of(CaseTable({"baseline": {"a": [1, 0], "b": [UNMEASURED] * 2}}))
    figure = one.variants["baseline"].pass_at_k["reward"]["1"]
    assert (figure.value, figure.interval) == (0.5, None)
    assert figure.interval_reason == "redrawing 1 task shows no spread"
    same = case_of(CaseTable({"baseline": SOLVED})).variants["baseline"].pass_at_k["reward"]["1"]
    assert (same.value, same.interval) == (1.0, None)
    assert same.interval_reason == "all 3 tasks have the same value: redrawing them shows no spread"


def test_a_mean_with_spread_has_an_interval_around_it() -> None:
    rows = {"a": [1, 1], "b": [1, 0], "d": [0, 0], "e": [1, 1]}
    figure = case_of(CaseTable({"baseline": rows})).variants["baseline"].pass_at_k["reward"]["1"]
    assert figure.value is not None
    assert figure.interval is not None
    assert figure.interval[0] < figure.value < figure.interval[1]
    assert figure.interval_reason is None


# ---------------------------------------------------------------- groups of mutants


def grouped() -> CaseTable:
    return CaseTable(
        {
            "baseline": SOLVED,
            "caught": {**SOLVED, "a": BAD},
            "unseen": {**SOLVED, "b": [UNMEASURED] * 3},
            "dead": {task: [None] * 3 for task in SOLVED},
            "unknown": {task: [UNMEASURED] * 3 for task in SOLVED},
            "same": {**SOLVED, "d": BAD},
            "copy": {**SOLVED, "b": BAD},
            "dead-copy": {task: [None] * 3 for task in SOLVED},
        },
        controls=["copy", "dead-copy"],
        equivalent={"same": "only slower"},
        descriptions={"unseen": "Never checks the date."},
    )


def test_every_mutant_is_in_one_group() -> None:
    case = case_of(grouped())
    assert case.mutants.model_dump() == {
        "detected": ("caught",),
        "undetected": ("unseen",),
        "unmeasured": ("unknown",),
        "outside": (),
        "invalid": ("dead",),
        "equivalent": ("same",),
        "controls": ("copy", "dead-copy"),
        "invalid_controls": ("dead-copy",),
    }
    assert [variant for variant, found in case.variants.items() if not found.valid] == ["dead", "dead-copy"]
    assert [survivor.model_dump() for survivor in case.survivors] == [
        {"mutant": "unseen", "description": "Never checks the date.", "cells": 2, "missing_cells": 1}
    ]
    assert case.kill_nothing == ("b", "d"), "what is killed there is a control and an equivalent mutant"


def test_scores_leave_out_invalid_equivalent_and_control_mutants() -> None:
    share = case_of(grouped()).pool.kill_share
    assert (share.value, share.killed, share.mutants) == (0.5, 1, 2)
    assert (share.without_cell, share.missing_cells) == (1, 1)
    assert share.interval is not None
    assert (share.over_detected.value, share.over_detected.mutants) == (1.0, 1)
    assert (share.with_equivalents.value, share.with_equivalents.killed) == pytest.approx((2 / 3, 2))


def test_kills_list_every_cell_of_every_mutant() -> None:
    kills = case_of(grouped()).kills
    assert kills["dead"] == {"a": "killed", "b": "killed", "d": "killed"}
    assert kills["copy"] == {"a": "survived", "b": "killed", "d": "survived"}
    assert kills["unknown"] == dict.fromkeys("abd", "missing")


def test_false_kills_are_those_of_valid_controls() -> None:
    false = case_of(grouped()).false_kills
    assert (false.cells, false.killed_cells, false.cell_rate.value) == pytest.approx((3, 1, 1 / 3))
    assert (false.controls, false.killed_controls, false.control_rate.value) == (1, 1, 1.0)
    assert [(kill.mutant, kill.task) for kill in false.kills] == [("copy", "b")]
    none = case_of(CaseTable({"baseline": SOLVED})).false_kills
    assert none.cell_rate.reason == "there is no control"


def test_mean_drop_is_not_clipped_and_leaves_missing_cells_out() -> None:
    base = {"a": [1, 1, 0, 0], "b": [1, 1, 1, 1]}
    mutants: dict[str, dict[str, list[Any]]] = {
        "better": {"a": [1, 1, 1, 1], "b": [UNMEASURED] * 4},
        "worse": {"a": [0] * 4, "b": [1, 1, 1, 0]},
    }
    drop = case_of(CaseTable({"baseline": base, **mutants})).pool.mean_drop
    assert drop.value == pytest.approx((-0.5 + (0.5 + 0.25) / 2) / 2, abs=1e-15)
    assert (drop.mutants, drop.cells, drop.missing_cells) == (2, 3, 1)


def test_kills_that_rest_on_died_attempts_are_counted_apart() -> None:
    crash: dict[str, list[Any]] = {**SOLVED, "a": [None, None, 1]}
    mutants = {"crash": crash, "both": {**crash, "b": BAD}}
    died = case_of(CaseTable({"baseline": SOLVED, **mutants})).died_kills
    assert [(kill.mutant, kill.task) for kill in died.kills] == [("crash", "a"), ("both", "a")]
    assert (died.total, died.mutants) == (3, ("crash",))


@pytest.mark.parametrize(
    ("outcomes", "controls", "equivalent", "reason"),
    [
        ({}, [], {}, "the case has no mutants"),
        ({"copy": SOLVED}, ["copy"], {}, "the case has no mutants but controls"),
        ({"m": {t: [None] * 3 for t in SOLVED}}, [], {}, "all mutants are invalid: every attempt of theirs died"),
        ({"m": SOLVED}, [], {"m": "same"}, "every valid mutant was found equivalent to the baseline"),
        ({"m": {t: [UNMEASURED] * 3 for t in SOLVED}}, [], {}, "no cell of a valid mutant is measured here"),
    ],
)
def test_a_score_over_nothing_says_why(
    outcomes: dict[str, dict[str, list[object]]], controls: list[str], equivalent: dict[str, str], reason: str
) -> None:
    pool = case_of(CaseTable({"baseline": SOLVED, **outcomes}, controls=controls, equivalent=equivalent)).pool
    assert (pool.kill_share.value, pool.kill_share.reason) == (None, reason)
    assert (pool.mean_drop.value, pool.mean_drop.reason) == (None, reason)
    assert pool.kill_share.interval is None


# ---------------------------------------------------------------- fisher


def test_fisher_says_what_it_can_show() -> None:
    table = CaseTable({"baseline": {"a": GOOD, "b": [1, 1]}, "m": {"a": BAD, "b": [0, 0]}})
    summary = summarize(build(table, rule=KillRule("fisher", 0.05)))
    case = summary.cases["c"]
    assert case.kills["m"] == {"a": "killed", "b": "survived"}
    assert case.detection.threshold.value == 0.05
    assert case.detection.smallest_p.value == 0.05
    assert case.detection.out_of_reach == 1
    assert summary.warnings == (
        "c: {rule: fisher, alpha: 0.05} cannot kill in 1 of 2 cells: 2 against 2 attempts cannot have a p below 0.17",
    )


def test_flip_has_no_p() -> None:
    found = case_of(CaseTable({"baseline": SOLVED, "m": SOLVED})).detection
    assert (found.threshold.value, found.smallest_p.value, found.out_of_reach) == (None, None, 0)


def test_fisher_q_without_a_discovery_kills_nothing() -> None:
    table = CaseTable({"baseline": SOLVED, "m": {**SOLVED, "a": [0, 1, 1]}})
    case = case_of(table, rule=KillRule("fisher", None, 0.05))
    assert case.detection.threshold.reason == "no p of the case is small enough for q"
    assert case.mutants.undetected == ("m",)


# ---------------------------------------------------------------- coverage and correlation

SUBSETS = {"s1": ["a"], "s2": ["b"], "s3": ["a", "b"], "s4": ["a", "b", "d"]}
MUTANTS = {"m1": {**SOLVED, "a": BAD}, "m2": {**SOLVED, "b": BAD, "d": BAD}, "m3": {**SOLVED, "d": BAD}}


def covered(values: dict[str, float | str | None]) -> CaseTable:
    return CaseTable({"baseline": SOLVED, **MUTANTS}, SUBSETS, {"sys": {"pool": 1.0, **values}})


def test_a_subset_without_coverage_is_dropped_with_its_reason() -> None:
    case = case_of(covered({"s1": 0.25, "s2": 0.5, "s3": 0.5, "s4": "the task a left no trace"}))
    overall = case.correlation["sys"]["kill_share"].overall
    assert overall.dropped == {"the task a left no trace": ("s4",)}
    assert (overall.pairs, overall.distinct_coverage, overall.distinct_scores) == (3, 2, 2)
    assert (overall.ties.coverage, overall.ties.score) == (2, 2)
    assert overall.kendall.value == pytest.approx(0.5)
    by_size = case.correlation["sys"]["kill_share"].by_size
    assert list(by_size) == ["1", "2", "3"]
    assert by_size["3"].kendall.reason == "there is no pair; at least 3 are needed"


def test_a_subset_that_lacks_both_sides_is_dropped_once() -> None:
    rows: dict[str, dict[str, list[Any]]] = {"m": {**SOLVED, "a": [UNMEASURED] * 3, "b": BAD}}
    table = CaseTable(
        {"baseline": SOLVED, **rows}, SUBSETS, {"sys": {"s1": "no trace", "s2": 0.5, "s3": 0.75, "s4": 1.0}}
    )
    case = case_of(table)
    assert case.subsets["s1"].kill_share.reason == "no cell of a valid mutant is measured here"
    assert case.correlation["sys"]["kill_share"].overall.dropped == {"no trace": ("s1",)}


def test_a_constant_side_makes_the_correlation_unavailable() -> None:
    case = case_of(covered(dict.fromkeys(SUBSETS, 0.5)))
    found = case.correlation["sys"]["mean_drop"].overall
    assert {found.pearson.reason, found.spearman.reason, found.kendall.reason} == {"the coverage is 0.5 in every pair"}


def test_a_failed_request_keeps_the_run_from_being_complete() -> None:
    summary = summarize(build(covered({"s1": 0.1, "s2": None, "s3": 0.2})))
    case = summary.cases["c"]
    assert case.subsets["s2"].coverage["sys"].state == "failed"
    assert case.subsets["s2"].coverage["sys"].reason == "the coverage request failed: exit status 3"
    assert case.subsets["s4"].coverage["sys"].state == "absent"
    assert [(failure.subset, failure.error) for failure in case.coverage_failures] == [
        ("s2", "exit status 3\nits stderr"),
        ("s4", "no result of this coverage request arrived"),
    ]
    assert not summary.complete
    assert summary.problems == ("c: 2 coverage requests of sys without a result (s2, s4): exit status 3",)


def test_a_request_that_nobody_made_says_why() -> None:
    given = build(covered({"s1": 0.1, "s2": 0.2, "s3": 0.3}))
    absent = {("c", "sys", "s4"): "the run was stopped before it"}
    case = summarize(replace(given, coverage_absent=absent)).cases["c"]
    figure = case.subsets["s4"].coverage["sys"]
    assert (figure.reason, figure.outside, figure.state) == ("the run was stopped before it", None, "absent")
    assert [(failure.subset, failure.error) for failure in case.coverage_failures] == [
        ("s4", "the run was stopped before it")
    ]


def test_sizes_average_over_their_subsets() -> None:
    size = case_of(covered({"s1": 0.25, "s2": "none", "s3": 0.5, "s4": 1.0})).sizes["1"]
    assert (size.subsets, size.kill_share.count) == (2, 2)
    assert size.kill_share.value == pytest.approx(1 / 3)
    assert (size.kill_share.low, size.kill_share.high) == pytest.approx((1 / 3, 1 / 3))
    assert (size.coverage["sys"].value, size.coverage["sys"].nan_count) == (0.25, 1)


def test_a_null_result_is_a_result() -> None:
    values: dict[str, float | str | None] = {"s1": 0.1, "s2": 0.2, "s3": "nothing to count", "s4": 0.4}
    assert summarize(build(covered(values))).complete


# ---------------------------------------------------------------- the whole


def test_a_baseline_that_never_passes_is_a_problem() -> None:
    summary = summarize(build(CaseTable({"baseline": {"a": [0, UNMEASURED]}, "m": {"a": [0, 0]}})))
    assert summary.cases["c"].baseline_check.holds is False
    assert summary.problems[-1] == (
        "c: none of 2 attempts of the baseline passes, 1 of them unmeasured: nothing can be learned from its mutants"
    )


def test_missing_attempts_are_a_problem_of_their_own() -> None:
    summary = summarize(build(CaseTable({"baseline": {"a": [1, MISSING]}})))
    assert summary.counts.missing == 1
    assert summary.problems == (
        "c: 1 of 2 attempts is missing: nothing is known of what became of them (baseline::a 1)",
    )
    assert not summary.complete


def test_a_complete_run_has_no_problems() -> None:
    summary = summarize(build(covered(dict.fromkeys(SUBSETS, 0.5)), warnings=["two subsets are equal"]))
    assert summary.complete
    assert summary.problems == ()
    assert summary.warnings == ("two subsets are equal",)


# ---------------------------------------------------------------- reasons in words


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("", "no message"),
        (" \n", "no message"),
        ("cannot start", "cannot start"),
        ("cannot start\nno such file", "cannot start"),
        ("exit status 3; the end of its stderr:\nTraceback\n  KeyError: 'x'\n\n", "exit status 3: KeyError: 'x'"),
        ("exit status 3; the end of its stderr:\nKeyError: 'x'\nkept in failed-s1-1", "exit status 3: KeyError: 'x'"),
        ("exit status 3; the end of its stderr:\nkept in failed-s1-1\nKeyError: 'x'", "exit status 3: KeyError: 'x'"),
        ("exit status 3; the end of its stderr:\nkept in failed-s1-1", "exit status 3"),
        ("exit status 3; the end of its stderr:", "exit status 3"),
    ],
)
def test_an_error_in_a_line(message: str, said: str) -> None:
    assert briefly(message) == said


def test_one_and_several_are_said_as_people_do() -> None:
    outside = "outside this part and not in the store"
    assert [outside_reason(needed, 2) for needed in (0, 1, 2)] == [
        f"0 of 2 attempts are {outside}", f"1 of 2 attempts is {outside}", f"2 of 2 attempts are {outside}",
    ]  # fmt: skip
    assert [subsets_outside_reason(needed, 2) for needed in (0, 1, 2)] == [
        f"0 of 2 subsets need attempts that are {outside}",
        f"1 of 2 subsets needs attempts that are {outside}",
        f"2 of 2 subsets need attempts that are {outside}",
    ]


# ---------------------------------------------------------------- a part of an experiment


def part_of(table: CaseTable, **settings: Any) -> Summary:
    return summarize(build(table, part="-k a", **settings))


def test_figures_that_need_what_is_outside_are_unavailable() -> None:
    outcomes: dict[str, dict[str, list[Any]]] = {
        "baseline": SOLVED,
        "m1": {**SOLVED, "a": BAD},
        "m2": {**SOLVED, "b": [0, OUTSIDE, OUTSIDE]},
    }
    summary = part_of(CaseTable(outcomes, SUBSETS, {"sys": dict.fromkeys([*SUBSETS, "pool"], 0.5)}))
    case = summary.cases["c"]
    reason = "2 of 27 attempts are outside this part and not in the store"
    assert (case.pool.kill_share.reason, case.pool.kill_share.outside) == (reason, True)
    assert case.pool.mean_drop.outside
    assert case.subsets["s1"].kill_share.value == 0.5, "it needs nothing that is outside"
    assert case.subsets["s1"].kill_share.over_detected.outside, "which mutants the pool kills is not known"
    assert case.subsets["s2"].kill_share.reason == "2 of 9 attempts are outside this part and not in the store"
    assert case.sizes["1"].kill_share.outside
    tau = case.correlation["sys"]["kill_share"].overall.kendall
    lacking = [name for name in SUBSETS if case.subsets[name].kill_share.outside]
    assert 1 < len(lacking) < len(SUBSETS)
    reason = f"{len(lacking)} of {len(SUBSETS)} subsets need attempts that are outside this part and not in the store"
    assert (tau.reason, tau.outside) == (reason, True)
    assert case.kills["m2"]["b"] == "missing"
    assert (case.mutants.detected, case.mutants.outside, case.survivors) == (("m1",), ("m2",), ())
    assert case.kill_nothing == ("d",), "b may kill m2"
    assert case.variants["m2"].pass_at_k["reward"]["1"].outside
    assert case.variants["m2"].verdicts.outside == 1
    assert case.variants["baseline"].pass_at_k["reward"]["1"].value == 1.0
    assert summary.problems == ()
    assert not summary.complete


def test_a_mutant_of_which_only_deaths_are_known_may_be_valid_yet() -> None:
    outcomes: dict[str, dict[str, list[Any]]] = {
        "baseline": SOLVED,
        "m": {"a": [None] * 3, "b": [OUTSIDE] * 3, "d": [OUTSIDE] * 3},
    }
    case = part_of(CaseTable(outcomes, {"s1": ["a"]})).cases["c"]
    assert case.variants["m"].valid
    assert case.subsets["s1"].kill_share.reason == "6 of 12 attempts are outside this part and not in the store"
    assert case.mutants.outside == ("m",)


def test_one_threshold_for_the_case_needs_the_whole_case() -> None:
    outcomes: dict[str, dict[str, list[Any]]] = {
        "baseline": SOLVED,
        "m1": {**SOLVED, "a": BAD},
        "m2": {**SOLVED, "b": [OUTSIDE] * 3},
    }
    case = part_of(CaseTable(outcomes, {"s1": ["a"]}), rule=KillRule("fisher", None, 0.9)).cases["c"]
    assert case.subsets["s1"].kill_share.outside
    assert case.subsets["s1"].mean_drop.value == 0.5
    assert case.detection.threshold.outside
    assert case.kills["m1"]["a"] == "missing"
    assert case.mutants.outside == ("m1", "m2")


@pytest.mark.parametrize(("rule", "known"), [(KillRule("fisher", 0.2), True), (KillRule("fisher", None, 0.9), False)])
def test_an_outside_equivalent_mutant_takes_away_what_rests_on_the_threshold(rule: KillRule, known: bool) -> None:
    """It is in no share, but q makes one threshold of all cells of the case."""
    outcomes: dict[str, dict[str, list[Any]]] = {
        "baseline": SOLVED,
        "m": {**SOLVED, "a": BAD},
        "same": {**SOLVED, "b": [OUTSIDE] * 3},
    }
    share = part_of(CaseTable(outcomes, equivalent={"same": "only slower"}), rule=rule).cases["c"].pool.kill_share
    for figure in (share, share.over_detected, share.over_minimal):
        assert (figure.value, figure.outside) == ((1.0, None) if known else (None, True))


def test_an_outside_control_takes_away_only_false_kills() -> None:
    outcomes: dict[str, dict[str, list[Any]]] = {
        "baseline": SOLVED,
        "m": {**SOLVED, "a": BAD},
        "copy": {**SOLVED, "b": [OUTSIDE] * 3},
    }
    case = part_of(CaseTable(outcomes, controls=["copy"]), rule=KillRule("fisher", None, 0.9)).cases["c"]
    assert case.pool.kill_share.value == 1.0
    assert case.false_kills.cell_rate.outside


def test_the_baseline_is_not_judged_by_a_part_of_it() -> None:
    check = part_of(CaseTable({"baseline": {"a": [0, OUTSIDE]}})).cases["c"].baseline_check
    assert check.holds is None
    assert check.reason == "1 of 2 attempts is outside this part and not in the store"
    assert part_of(CaseTable({"baseline": {"a": [1, OUTSIDE]}})).cases["c"].baseline_check.holds is True


def test_coverage_that_a_part_did_not_ask_for_is_no_problem() -> None:
    results = build(covered({"s1": 0.1}), part="-k a")
    reason = "its baseline attempts are outside this part"
    absent = {("c", "sys", subset): reason for subset in ("s2", "s3")}
    summary = summarize(
        type(results)(results.experiment, results.attempts, results.coverage, coverage_absent=absent, part=results.part)
    )
    case = summary.cases["c"]
    assert case.subsets["s2"].coverage["sys"].outside
    assert [failure.subset for failure in case.coverage_failures] == ["s4"], "this one was asked for and has not come"
    overall = case.correlation["sys"]["kill_share"].overall
    assert (overall.kendall.reason, overall.kendall.outside) == (reason, True)
