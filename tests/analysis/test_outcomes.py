"""What each attempt counts as, and which entries it leaves."""

import math
from typing import Any

import pytest

from pytest_metricbench.analysis.figures import whole_text
from pytest_metricbench.analysis.outcomes import case_outcomes, natural_key, passes, primary_score
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import CaseSummary, Summary
from pytest_metricbench.definition.experiment import ScorePolicy
from tests.analysis.results_builder import (
    MISSING,
    NOT_NEEDED,
    NOT_REACHED,
    NOT_RECORDED,
    OUTSIDE,
    TIMED_OUT,
    UNMEASURED,
    CaseTable,
    build,
)


def of_one_task(row: list[Any], *, policy: ScorePolicy | None = None, others: list[Any] | None = None) -> CaseSummary:
    return of_tasks({"t": row}, policy=policy, others={"t": others} if others is not None else None).cases["c"]


def of_tasks(
    rows: dict[str, list[Any]], *, policy: ScorePolicy | None = None, others: dict[str, list[Any]] | None = None
) -> Summary:
    outcomes = {"baseline": rows} | ({"m": others} if others is not None else {})
    return summarize(build(CaseTable(outcomes), score=policy, ks=[1]))


def entries(case: CaseSummary, score: str, task: str = "t", variant: str = "baseline") -> list[tuple[str, Any]]:
    return [(entry.value_type, entry.value) for entry in case.variants[variant].attempts[task][score]]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, True), (0.999999, False), (2, True), (True, True), (False, False), (math.nan, False),
        (math.inf, True), (-math.inf, False), (None, False), ("1.0", False), (10**400, True),
    ],
)  # fmt: skip
def test_passes(value: Any, expected: bool) -> None:
    assert passes(value, 1.0) is expected


def test_every_kind_of_attempt_counts_as_what_it_is() -> None:
    row = [1, 0.5, math.nan, {"reward": None}, None, UNMEASURED, {"other": 1}, {"reward": "1"}, MISSING]
    case = of_one_task(row)
    counts = case.variants["baseline"].counts
    assert (counts.passed, counts.missed, counts.died, counts.unmeasured, counts.missing) == (1, 2, 2, 3, 1)
    assert (
        counts.declared
        == len(row)
        == sum((counts.passed, counts.missed, counts.died, counts.unmeasured, counts.missing, counts.outside))
    )
    result = case.variants["baseline"].tasks["t"]
    assert (result.n, result.passed, result.died, result.unmeasured) == (5, 1, 2, 4)
    assert result.pass_rate.value == 0.2
    assert result.verdict == "flaky"
    assert entries(case, "reward") == [
        ("number", 1), ("number", 0.5), ("number", "NaN"), ("missing", None), ("missing", None),
    ]  # fmt: skip


def test_what_an_attempt_counts_as_depends_on_none_before_it() -> None:
    row = [NOT_REACHED, UNMEASURED, {"reward": "1"}, NOT_NEEDED, NOT_RECORDED, 1, TIMED_OUT, None, 0]
    for attempts in (row, row[::-1], [*row[3:], *row[:3]]):
        case = of_tasks({"t": [1] * len(row)}, others={"t": attempts}).cases["c"]
        counts = case.variants["m"].counts
        assert (counts.passed, counts.missed, counts.died) == (1, 1, 2)
        assert (counts.not_reached, counts.not_needed, counts.unmeasured, counts.missing) == (1, 1, 2, 1)
        assert len(entries(case, "reward", variant="m")) == 4


def test_deaths_are_told_by_their_kind_the_most_frequent_first() -> None:
    """Of equally many the first met: the baseline's before the mutants', tasks by id, attempts by slot."""
    rows: dict[str, list[Any]] = {"a": [1, {"reward": None}, 0], "b": [UNMEASURED, 1, None]}
    others: dict[str, list[Any]] = {"a": [TIMED_OUT, 1, TIMED_OUT], "b": [1, TIMED_OUT, {"reward": None}]}
    case = of_tasks(rows, others=others).cases["c"]
    assert [death.model_dump() for death in case.deaths] == [
        {"type": "TimeOut", "attempts": 3, "variants": ("m",), "first": "m::a[1]", "message": "no"},
        {
            "type": "NullScore",
            "attempts": 2,
            "variants": ("baseline", "m"),
            "first": "baseline::a[2]",
            "message": "the primary score is null",
        },
        {"type": "Error", "attempts": 1, "variants": ("baseline",), "first": "baseline::b[3]", "message": "no"},
    ]
    assert of_one_task([1, 0, UNMEASURED]).deaths == ()


def test_a_died_attempt_has_a_null_entry_for_every_score_of_its_task() -> None:
    """Declared scores, scores that any variant has at this task, and the primary: not those of other tasks."""
    policy = ScorePolicy("reward", 1.0, {"tokens": "measurement"})
    rows: dict[str, list[Any]] = {"a": [None], "b": [{"reward": 1, "elsewhere": 1}]}
    others: dict[str, list[Any]] = {"a": [{"reward": 0, "tone": "kind", "tidy": True}], "b": [{"reward": 1}]}
    case = of_tasks(rows, policy=policy, others=others).cases["c"]
    attempts = case.variants["baseline"].attempts
    assert {score: len(found) for score, found in attempts["a"].items()} == {
        "reward": 1, "tidy": 1, "tokens": 1, "tone": 1,
    }  # fmt: skip
    assert all(entry.value_type == "missing" and entry.value is None for (entry,) in attempts["a"].values())
    assert entries(case, "tone", "a", "m") == [("label", "kind")]


def test_labels_and_measurements_are_kept_but_stay_out_of_pass_at_k() -> None:
    policy = ScorePolicy("reward", 1.0, {"reward": "continuous", "tokens": "measurement", "tone": "label"})
    case = of_one_task([{"reward": 1, "tokens": 512, "tone": "kind", "tidy": True}], policy=policy)
    assert list(case.variants["baseline"].pass_at_k) == ["reward", "tidy"]
    assert entries(case, "tokens") == [("number", 512)]
    assert entries(case, "tidy") == [("number", True)]


def test_an_exclusion_belongs_to_a_task() -> None:
    """A score that is a label at one task still counts at another, and stands in no denominator where it does not."""
    rows: dict[str, list[Any]] = {
        "a": [{"reward": 1, "grade": 1}],
        "b": [{"reward": 1, "grade": "good"}],
        "d": [{"reward": 1}],
    }
    figure = of_tasks(rows).cases["c"].variants["baseline"].pass_at_k["grade"]["1"]
    assert (figure.value, figure.count, figure.nan_count, figure.excluded) == (1.0, 1, 0, 2)


def test_a_missing_score_is_unmeasured_for_that_score_only() -> None:
    case = of_one_task([{"reward": 1, "style": 1}, {"reward": 1}, {"reward": 0, "style": None}])
    pass_at_k = case.variants["baseline"].pass_at_k
    assert pass_at_k["reward"]["1"].attempts_unmeasured == 0
    style = pass_at_k["style"]["1"]
    assert (style.value, style.attempts_unmeasured) == (0.5, 1), "an explicit null is an attempt that did not pass"


def test_non_primary_scores_pass_at_the_same_threshold_and_booleans_when_true() -> None:
    case = of_one_task([{"reward": 7, "style": 4, "tidy": True}], policy=ScorePolicy("reward", 5.0, {}))
    values = {score: by_k["1"].value for score, by_k in case.variants["baseline"].pass_at_k.items()}
    assert values == {"reward": 1.0, "style": 0.0, "tidy": 1.0}


@pytest.mark.parametrize(
    ("rows", "policy", "expected"),
    [
        ([{"a": 1}, {"a": 0}], None, "a"),
        ([{"a": 1}, {"b": 0}], None, "reward"),
        ([{"a": 1, "reward": 1}], None, "reward"),
        ([None], None, "reward"),
        ([{"a": 1, "b": 1}], "b", "b"),
    ],
)
def test_the_primary_score(rows: list[Any], policy: str | None, expected: str) -> None:
    assert primary_score(build(CaseTable({"baseline": {"t": rows}}), score=ScorePolicy(policy, 1.0, {}))) == expected


def test_without_any_entry_of_the_primary_score_nothing_is_known() -> None:
    summary = of_tasks({"t": [{"a": 1, "b": 1}]}, policy=ScorePolicy(None, 1.0, {}))
    assert summary.counts.unmeasured == 1
    assert not summary.complete
    assert "1 of 1 attempt is unmeasured (baseline::t 1)" in summary.problems[0]


def test_attempts_that_are_no_longer_declared_do_not_count() -> None:
    results = build(CaseTable({"baseline": {"t": [1]}}))
    extra = build(CaseTable({"baseline": {"t": [1, 0, 0]}}))
    outcomes = case_outcomes(
        type(results)(results.experiment, extra.attempts, {}), results.experiment.cases[0], "reward"
    )
    assert outcomes.baseline["t"].n == 1


def test_reused_and_outside_attempts_are_counted() -> None:
    table = CaseTable({"baseline": {"t": [1, 1, OUTSIDE]}})
    counts = summarize(build(table, reused=[("c", "baseline", "t", 2)], part="-k x")).counts
    assert (counts.reused, counts.outside, counts.passed) == (1, 1, 2)


def test_ids_sort_as_people_count() -> None:
    assert sorted(["s10", "s2", "s1", "t", "10", "9", "s2b", "s02"], key=natural_key) == [
        "9", "10", "s1", "s02", "s2", "s2b", "s10", "t",
    ]  # fmt: skip


def test_text_that_utf8_cannot_hold_becomes_its_escape() -> None:
    assert whole_text("a\ud800b") == "a\\ud800b"
    assert whole_text("grün") == "grün"
    case = of_one_task([{"reward": 1, "tone\udfff": "\ud800"}])
    assert entries(case, "tone\\udfff") == [("label", "\\ud800")]
