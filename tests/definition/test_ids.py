"""What may be an id or a tag, and what is said of what may not."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.definition.ids import (
    EXPRESSION_WORDS,
    ID_LIMIT,
    ID_PATTERN,
    derive_id,
    id_problem,
    subset_id_problem,
    tag_problem,
    variant_id_problem,
)
from pytest_metricbench.messages import nearest


@pytest.mark.parametrize("text", ["a", "9", "a.b_c+d-e", "A" * ID_LIMIT, "a..b", "nota", "none", "true", "pool"])
def test_an_id(text: str) -> None:
    assert id_problem(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a/b",
        "a b",
        "..",
        ".a",
        "-a",
        "_a",
        "a\n",
        "a::b",
        "a[1]",
        "x" * 101,
        "x" * 300,
        "é",
        "a\u0661",
        *sorted(EXPRESSION_WORDS),
    ],
)
def test_no_id(text: str) -> None:
    problem = id_problem(text)
    assert problem is not None
    assert all(problem)


@pytest.mark.parametrize("text", ["baseline", "coverage", "control-1", "control-12", "a b"])
def test_no_id_of_a_mutant(text: str) -> None:
    assert variant_id_problem(text) is not None


@pytest.mark.parametrize("text", ["control-", "control-x", "control", "Baseline", "pool"])
def test_an_id_of_a_mutant(text: str) -> None:
    assert variant_id_problem(text) is None


def test_pool_is_no_id_of_a_subset() -> None:
    assert subset_id_problem("pool") is not None
    assert subset_id_problem("baseline") is None


@pytest.mark.parametrize(
    "text",
    [
        "skip",
        "xfail",
        "parametrize",
        "usefixtures",
        "tryfirst",
        "baseline",
        "mutant",
        "metricbench",
        "xdist_group",
        "a b",
    ],
)
def test_no_tag(text: str) -> None:
    assert tag_problem(text) is not None


def test_a_tag() -> None:
    assert tag_problem("policy") is None


@given(st.text(min_size=1))
def test_a_derived_id_is_free_everywhere_and_keeps_the_name(name: str) -> None:
    derived, kept = derive_id(name)
    assert re.fullmatch(ID_PATTERN[1:-1], derived)
    assert variant_id_problem(derived) is None
    assert subset_id_problem(derived) is None
    assert (derived == name) == (kept == "")
    assert kept in ("", name)


@given(st.text(), st.text())
def test_derived_ids_of_different_names_differ(one: str, other: str) -> None:
    assert one == other or derive_id(one)[0] != derive_id(other)[0]


def test_derived_ids() -> None:
    # the digits are those of sha256(name)
    assert derive_id("plain") == ("plain", "")
    assert derive_id("org/task") == ("org-task-e05942", "org/task")
    assert derive_id("baseline")[0].startswith("baseline-")
    assert len(derive_id("x" * 300)[0]) == ID_LIMIT
    assert derive_id("")[0].startswith("id-")


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("mutant", ["mutants", "tasks"], "mutants"),
        ("PassAtK", ["pass_at_k", "kill"], "pass_at_k"),
        ("tool_calls", ["tool-calls", "command"], "tool-calls"),
        ("zzz", ["mutants"], None),
        ("x", [], None),
    ],
)
def test_nearest(word: str, known: list[str], expected: str | None) -> None:
    assert nearest(word, known) == expected
