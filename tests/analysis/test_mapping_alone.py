"""``summary.json``'s ordered attempts are all that its figures need: they are rebuilt here from the mapping alone.

Nothing of the package is asked but to write the file: pass@k and pass^k are counted by going through every choice of k
entries, verdicts and counts by looking at each entry.
"""

import json
import math
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary_json import SummaryError, summary_from_json, summary_to_json
from pytest_metricbench.analysis.variant_models import AttemptValue
from pytest_metricbench.definition.experiment import ScorePolicy
from tests.analysis.results_builder import UNMEASURED, CaseTable, build

OUTPUTS: Any = {"m.s": "continuous", "n.b": "boolean", "o.l": "label", "p.x": "measurement", "q.i": "discrete"}
KS = (1, 2, 3)


def passed(entry: dict[str, Any], threshold: float) -> bool:
    value = entry["value"]
    if entry["value_type"] != "number" or value in ("NaN", "-Infinity"):
        return False
    return value if isinstance(value, bool) else value == "Infinity" or value >= threshold


def share(wins: list[bool], k: int, enough: Any) -> float | None:
    chosen = [enough(choice) for choice in combinations(wins, k)]
    return sum(chosen) / len(chosen) if chosen else None


def rebuilt(variant: dict[str, Any], score: str, threshold: float) -> dict[str, Any]:
    """pass@k, pass^k with count and nan_count, over the tasks of the mapping."""
    rows = [[passed(entry, threshold) for entry in task[score]] for task in variant["attempts"].values()]
    found: dict[str, Any] = {"pass_at_k": {}, "pass_hat_k": {}}
    for figure, enough in (("pass_at_k", any), ("pass_hat_k", all)):
        for k in KS:
            values = [value for row in rows if (value := share(row, k, enough)) is not None]
            mean = sum(values) / len(values) if values else None
            found[figure][str(k)] = (mean, len(values), len(rows) - len(values))
    return found


def verdict(wins: list[bool]) -> str:
    if not wins:
        return "unmeasured"
    return "solved" if all(wins) else "flaky" if any(wins) else "failed"


NUMBERS = st.one_of(st.sampled_from([0, 1, 0.5, 1.0, 2, math.nan, math.inf, -math.inf]), st.floats(), st.none())
SCORES = st.fixed_dictionaries(
    {},
    optional={
        "m.s": NUMBERS,
        "n.b": st.booleans() | st.none(),
        "o.l": st.sampled_from(["ok", "NaN", ""]),
        "p.x": st.integers(0, 9),
        "q.i": st.integers(-2, 2),
    },
)
ATTEMPTS = st.lists(SCORES.filter(bool) | st.just(None) | st.just(UNMEASURED), min_size=1, max_size=4)
ROWS = st.fixed_dictionaries({"a": ATTEMPTS, "b": ATTEMPTS, "c": ATTEMPTS})


@given(ROWS, st.sampled_from([1.0, 0.5, -1.0]))
def test_every_figure_follows_from_the_mapping(rows: dict[str, list[Any]], threshold: float) -> None:
    policy = ScorePolicy("m.s", threshold, OUTPUTS)
    built = build(CaseTable({"baseline": rows}), score=policy, ks=KS, bootstrap=1)
    content = json.loads(summary_to_json(summarize(built)))
    variant = content["cases"]["c"]["variants"]["baseline"]
    for score in ("m.s", "n.b", "q.i"):
        expected = rebuilt(variant, score, threshold)
        for figure in ("pass_at_k", "pass_hat_k"):
            for k, (mean, count, nan_count) in expected[figure].items():
                said = variant[figure][score][k]
                assert (said["count"], said["nan_count"]) == (count, nan_count)
                assert said["value"] == (None if mean is None else pytest.approx(mean))
    assert not {"o.l", "p.x"} & variant["pass_at_k"].keys()
    wins = {
        task: [passed(entry, threshold) for entry in entries["m.s"]] for task, entries in variant["attempts"].items()
    }
    assert {task: result["verdict"] for task, result in variant["tasks"].items()} == {
        task: verdict(row) for task, row in wins.items()
    }
    words = [verdict(row) for row in wins.values()]
    assert {word: variant["verdicts"][word] for word in ("solved", "flaky", "failed", "unmeasured")} == {
        word: words.count(word) for word in ("solved", "flaky", "failed", "unmeasured")
    }
    entries = [entry for task in variant["attempts"].values() for entry in task["m.s"]]
    counts = variant["counts"]
    assert counts["died"] == sum(entry["value_type"] == "missing" for entry in entries)
    assert counts["passed"] == sum(map(sum, wins.values()))
    assert counts["missed"] == len(entries) - counts["passed"] - counts["died"]
    assert counts["unmeasured"] == sum(map(len, rows.values())) - len(entries)


def test_the_order_of_attempts_and_equal_ids_are_kept() -> None:
    rows = {"t": [{"m.s": 0.25}, {"m.s": True}, {"m.s": 3}, {"m.s": 0.5}, None]}
    built = build(CaseTable({"baseline": rows}), score=score_of("m.s"))
    for record in built.attempts.values():
        object.__setattr__(record, "trial_name", "t:model" if record.attempt < 4 else None)
    text = summary_to_json(summarize(built))
    entries = json.loads(text)["cases"]["c"]["variants"]["baseline"]["attempts"]["t"]["m.s"]
    assert [(entry["trial_id"], entry["value"]) for entry in entries] == [
        ("t:model", 0.25), ("t:model", True), ("t:model", 3), ("c-baseline-t-4", 0.5), ("c-baseline-t-5", None),
    ]  # fmt: skip
    assert [type(entry["value"]) for entry in entries] == [float, bool, int, float, type(None)]
    again = summary_from_json(text).cases["c"].variants["baseline"].attempts["t"]["m.s"]
    assert [type(entry.value) for entry in again] == [float, bool, int, float, type(None)]


def score_of(primary: str) -> ScorePolicy:
    return ScorePolicy(primary, 1.0, {})


def test_a_failed_metric_has_no_entry_and_the_others_of_its_attempt_have() -> None:
    rows = {"t": [{"m.s": 1.0, "n.s": 1.0}, {"n.s": 0.5}, {"m.s": 0.0, "n.s": 0.0}]}
    built = build(CaseTable({"baseline": rows}), score=score_of("m.s"), ks=[1, 3])
    variant = summarize(built).cases["c"].variants["baseline"]
    assert [entry.value for entry in variant.attempts["t"]["m.s"]] == [1.0, 0.0]
    assert [entry.value for entry in variant.attempts["t"]["n.s"]] == [1.0, 0.5, 0.0]
    assert (variant.pass_at_k["m.s"]["3"].count, variant.pass_at_k["n.s"]["3"].count) == (0, 1)


ENTRY = TypeAdapter(AttemptValue)


@pytest.mark.parametrize(
    ("value_type", "value"),
    [
        ("number", None), ("label", None), ("missing", 0.0), ("missing", ""), ("missing", False), ("number", "1.0"),
        ("number", "nan"), ("label", 1), ("label", True), ("number", math.nan), ("number", math.inf), ("float", 1.0),
    ],
)  # fmt: skip
def test_a_value_that_is_not_of_its_type_is_refused(value_type: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        ENTRY.validate_python({"trial_id": "x", "value_type": value_type, "value": value})


@pytest.mark.parametrize(
    ("value_type", "value"),
    [("number", "NaN"), ("label", "NaN"), ("number", True), ("number", 3), ("label", ""), ("missing", None)],
)
def test_a_value_of_its_type_is_kept_as_it_is(value_type: str, value: Any) -> None:
    entry = ENTRY.validate_python({"trial_id": "x", "value_type": value_type, "value": value})
    assert (entry.value, type(entry.value)) == (value, type(value))


@pytest.mark.parametrize("left_out", ["trial_id", "value_type", "value"])
def test_no_part_of_an_entry_has_a_default(left_out: str) -> None:
    whole = {"trial_id": "x", "value_type": "missing", "value": None}
    with pytest.raises(ValidationError, match="required"):
        ENTRY.validate_python({key: value for key, value in whole.items() if key != left_out})
    with pytest.raises(ValidationError, match="nexpected"):
        ENTRY.validate_python({**whole, "score": 1})


def test_entries_cannot_be_changed() -> None:
    entry = AttemptValue("x", "number", 1.0)
    with pytest.raises(AttributeError):
        entry.value = 0.0  # type: ignore[misc]


def test_a_summary_with_such_a_value_is_no_summary() -> None:
    text = summary_to_json(summarize(build(CaseTable({"baseline": {"t": [0.5]}}))))
    damaged = text.replace('"value_type": "number", "value": 0.5', '"value_type": "number", "value": null')
    assert damaged != text
    with pytest.raises(SummaryError, match="the value None is no number"):
        summary_from_json(damaged)
