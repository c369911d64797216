"""Gates on a summary: what they look at, and when they hold."""

from typing import Any

import pytest

from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import GateResult
from pytest_metricbench.definition.experiment import Gate
from tests.analysis.results_builder import OUTSIDE, CaseTable, build

BASE = {"a": [1, 1, 1], "b": [1, 1, 0]}
TABLE = CaseTable(
    {"baseline": BASE, "m1": {"a": [0, 0, 0], "b": [1, 1, 0]}, "m2": BASE, "m3": BASE},
    {"s1": ["a"], "s2": ["b"], "s3": ["a", "b"]},
    {"x": {"s1": 0.2, "s2": 0.1, "s3": 0.4, "pool": 0.6}, "y": {"s1": 0.1, "s2": 0.3, "s3": 0.1, "pool": 0.4}},
)


def gate(
    figure: Any, op: Any, number: float, *, case: str | None = None, subject: str | None = None, k: int | None = None
) -> Gate:
    return Gate(f"{figure} {op} {number}", case, subject, figure, k, op, number)


def checked(wanted: Gate, tables: dict[str, CaseTable] | CaseTable = TABLE, **settings: Any) -> GateResult:
    (result,) = summarize(build(tables, gates=[wanted], **settings)).gates
    assert result.text == wanted.text
    return result


@pytest.mark.parametrize(
    ("wanted", "value", "holds"),
    [
        (gate("pass@k", ">=", 0.8, k=1), 5 / 6, True),
        (gate("pass@k", ">", 0.9, k=1), 5 / 6, False),
        (gate("pass@k", "==", 1.0, k=2), 1.0, True),
        (gate("pass^k", "<=", 0.5, k=3), 0.5, True),
        (gate("pass@k", "<", 0.4, k=1, subject="m1"), 1 / 3, True),
        (gate("mutation_score", ">=", 0.333333333333, case="c"), 1 / 3, True),
        (gate("mutation_score", "!=", 0.333333333333), 1 / 3, False),
        (gate("mean_drop", ">", 0.1), 1 / 6, True),
        (gate("coverage", ">=", 0.5, subject="x"), 0.6, True),
        (gate("spearman", ">=", 0.5, subject="x"), 0.5**0.5 * 3**0.5 / 2**0.5, True),
    ],
)  # fmt: skip
def test_a_gate_looks_at_its_figure(wanted: Gate, value: float, holds: bool) -> None:
    result = checked(wanted)
    assert result.value == pytest.approx(value, abs=1e-12)
    assert result.holds is holds
    assert (result.reason is None) is holds


def test_mutation_score_is_the_one_of_the_analysis() -> None:
    assert checked(gate("mutation_score", ">", 0), mutation_score="mean_drop").value == pytest.approx(1 / 6)


def test_equal_fractions_are_equal() -> None:
    """0.1 + 0.2 is not 0.3 in floats; a gate does not see that."""
    rows = {"a": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0], "b": [1, 0, 0, 0, 0], "d": [1, 1, 1, 0, 0]}
    result = checked(gate("pass@k", ">=", 0.3, k=1), CaseTable({"baseline": rows}))
    assert result.holds is True


def test_without_a_system_every_system_must_hold() -> None:
    result = checked(gate("coverage", ">=", 0.5))
    assert (result.value, result.holds, result.reason) == (0.4, False, "y: 0.4 is not >= 0.5")
    assert [(check.subject, check.value, check.holds) for check in result.checks] == [
        ("x", 0.6, True),
        ("y", 0.4, False),
    ]


def test_without_a_case_every_case_must_hold() -> None:
    tables = {"one": TABLE, "two": CaseTable({"baseline": {"a": [1, 0, 0]}})}
    result = checked(gate("pass@k", ">=", 0.5, k=1), tables)
    assert result.holds is False
    assert result.value == pytest.approx(1 / 3)
    assert result.reason == "two baseline: 0.333333 is not >= 0.5"
    assert checked(gate("pass@k", ">=", 0.5, k=1, case="one"), tables).holds is True
    assert checked(gate("pass@k", "<=", 0.9, k=1), tables).value == pytest.approx(5 / 6), "the one that comes nearest"


def test_an_unavailable_figure_fails_its_gate_and_says_why() -> None:
    table = CaseTable({"baseline": BASE}, {"s1": ["a"]}, {"x": {"s1": 0.5, "pool": 0.5}})
    result = checked(gate("mutation_score", ">=", 0.0), table)
    assert (result.value, result.holds, result.reason) == (None, False, "the case has no mutants")
    assert checked(gate("kendall", ">=", -1.0), table).holds is False
    nothing = checked(gate("coverage", ">=", 0.0), CaseTable({"baseline": BASE}))
    assert (nothing.value, nothing.holds, nothing.checks) == (None, False, ())
    assert nothing.reason == "nothing in this experiment has the figure coverage"


def test_a_gate_on_what_is_outside_this_part_is_not_checked() -> None:
    table = CaseTable({"baseline": BASE, "m": {"a": [0, 0, OUTSIDE], "b": [0, 0, 0]}})
    result = checked(gate("mutation_score", ">=", 0.5), table, part="-k b")
    assert (result.value, result.holds) == (None, None)
    assert result.reason == "1 of 12 attempts is outside this part and not in the store"
    assert checked(gate("pass@k", ">=", 0.9, k=1), table, part="-k b").holds is False, "all of the baseline is there"


def test_what_breaks_outweighs_what_is_not_checked() -> None:
    tables = {"one": CaseTable({"baseline": {"a": [1, OUTSIDE]}}), "two": CaseTable({"baseline": {"a": [0, 0]}})}
    result = checked(gate("pass@k", ">=", 0.5, k=1), tables, part="-k x")
    assert (result.holds, result.value) == (False, 0.0)


def test_the_k_of_a_gate_is_computed_though_analysis_did_not_ask_for_it() -> None:
    summary = summarize(build(TABLE, ks=[1], gates=[gate("pass@k", ">", 0.0, k=2)]))
    assert list(summary.cases["c"].variants["baseline"].pass_at_k["reward"]) == ["1", "2"]
    assert summary.settings.pass_at_k == (1,)
