"""Which score decides, what an attempt became by it, and which kinds scores are of."""

import math
from dataclasses import replace
from typing import Any

import pytest

from pytest_metricbench.contracts import AttemptRecord, OutputKind
from pytest_metricbench.definition.experiment import ScorePolicy, Task
from pytest_metricbench.definition.scoring import (
    fits_kind,
    kind_problem,
    output_kinds,
    policy_at,
    primary_problem,
    primary_score,
    status,
)

RECORD = AttemptRecord(
    "c", "baseline", "t", 1, "a1", "scored", {}, None, None, "f", "v", 1, "2026-01-01T00:00:00+00:00", 0.0, {}, None
)


def policy(primary: str | None = None, least: float = 1.0, **outputs: OutputKind) -> ScorePolicy:
    return ScorePolicy(primary, least, outputs)


def scored(**scores: Any) -> AttemptRecord:
    return replace(RECORD, scores=scores)


@pytest.mark.parametrize(
    ("of", "scores", "expected"),
    [
        (policy(), {}, None),
        (policy(), {"a": 1}, "a"),
        (policy(), {"a": 1, "b": 1}, None),
        (policy(), {"a": 1, "reward": 1}, "reward"),
        (policy("b"), {"a": 1, "b": 1}, "b"),
        (policy("b"), {"a": 1, "reward": 1}, None),
        (policy(tokens="measurement", tone="label"), {"a": 1, "tokens": 1, "tone": "x"}, "a"),
        (policy(a="continuous", b="continuous"), {"a": 1}, None),
        (policy(a="continuous"), {"tokens": 3}, None),
        (policy(a="continuous"), {}, None),
        (policy(a="continuous", reward="boolean"), {"a": 1}, None),
    ],
)
def test_which_score_decides(of: ScorePolicy, scores: dict[str, Any], expected: str | None) -> None:
    assert primary_score(of, scores) == expected


@pytest.mark.parametrize(
    ("least", "value", "expected"),
    [
        (1.0, 1, "passed"),
        (1.0, 1.0, "passed"),
        (1.0, 0.999, "missed"),
        (0.5, 0.5, "passed"),
        (0.5, 0.49, "missed"),
        (5.0, True, "passed"),
        (-1.0, False, "missed"),
        (-1.0, -1, "passed"),
        (0.0, math.nan, "missed"),
        (1.0, math.inf, "passed"),
        (1.0, None, "died"),
        (1.0, "good", "unmeasured"),
    ],
)
def test_what_became_of_a_scored_attempt(least: float, value: Any, expected: str) -> None:
    assert status(policy(least=least), scored(reward=value)) == expected


def test_what_became_of_an_attempt_without_its_score() -> None:
    assert status(policy("reward"), scored(other=1)) == "unmeasured"
    assert status(policy(), scored(a=1, b=1)) == "unmeasured"
    for outcome in ("died", "unmeasured"):
        assert status(policy(), replace(RECORD, outcome=outcome, scores={"reward": 1})) == outcome


TASK = Task("t", 1, {})


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], "boolean"),
        ([True, None], "boolean"),
        ([True, 1], "continuous"),
        ([1, 2.5], "continuous"),
        ([None], "continuous"),
        (["x", None], "label"),
        ([1, "x"], "label"),
    ],
)
def test_kinds_that_nobody_declared(values: list[Any], kind: str) -> None:
    assert output_kinds(policy(), TASK, [scored(a=value) for value in values]) == {"a": kind}


def test_what_is_declared_holds_and_the_tasks_own_most() -> None:
    task = replace(TASK, outputs={"a": "label", "c": "discrete"})
    found = output_kinds(policy(b="measurement", a="boolean"), task, [scored(a=1, b=2, z=True)])
    assert list(found.items()) == [("a", "label"), ("b", "measurement"), ("c", "discrete"), ("z", "boolean")]


def test_the_policy_at_a_task() -> None:
    of = policy("a", 0.5, a="boolean", b="label")
    assert policy_at(of, TASK) is of
    at_task = policy_at(of, replace(TASK, outputs={"b": "discrete", "c": "label"}))
    assert at_task == policy("a", 0.5, a="boolean", b="discrete", c="label")


@pytest.mark.parametrize("kind", ["label", "measurement"])
def test_the_primary_always_counts(kind: OutputKind) -> None:
    assert output_kinds(policy("a"), replace(TASK, outputs={"a": kind}), [])["a"] == "continuous"
    assert output_kinds(policy("a"), TASK, [])["a"] == "continuous", "nothing is known of it yet"
    assert output_kinds(policy("a", a="boolean"), TASK, []) == {"a": "boolean"}
    assert output_kinds(policy(), replace(TASK, outputs={"a": kind}), []) == {"a": kind}


@pytest.mark.parametrize(
    ("kind", "fitting", "others"),
    [
        ("label", ["x", ""], [1, True, 0.5]),
        ("boolean", [True, False], [1, 0.0, "true"]),
        ("discrete", [1, 2.0, -3], [1.5, True, "1", math.inf]),
        ("continuous", [1, 0.5, math.nan], [True, "1"]),
        ("measurement", [1, 0.5], [False, "1"]),
    ],
)
def test_values_of_a_kind(kind: OutputKind, fitting: list[Any], others: list[Any]) -> None:
    assert all(fits_kind(kind, value) for value in fitting)
    assert not any(fits_kind(kind, value) for value in others)


def test_a_score_of_another_kind_is_named() -> None:
    of = policy(a="continuous", b="boolean")
    assert kind_problem(of, {"a": 1, "b": True, "c": "x"}) is None
    assert kind_problem(of, {"a": None}) is None
    said = kind_problem(of, {"a": 1, "b": 1})
    assert said is not None
    assert said.startswith("score 'b' is 1; it is declared as boolean, which is ")


def test_why_the_score_that_decides_says_nothing() -> None:
    assert primary_problem(policy(), {"reward": 1}) is None
    assert primary_problem(policy(), {"reward": None}) is None
    assert primary_problem(policy("a"), {"c": 1, "b": 2}) == "the primary score 'a' is missing; the verifier gave b, c"
    assert primary_problem(policy(), {"b": 1, "a": 2}) == (
        "there are several scores (a, b) and none is called 'reward'; name one in score.primary"
    )
    assert primary_problem(policy(), {"a": "x"}) == (
        "the primary score 'a' is the text 'x'; a number or a boolean is expected"
    )
