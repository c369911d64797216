"""``from: params``."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.digests import canonical_json
from pytest_metricbench.generating.base import Context, Proposal
from pytest_metricbench.generating.params import ParamsGenerator
from pytest_metricbench.sources import SourceError
from tests.generating.generating_lab import Bench


def found(bench: Bench, baseline: dict[str, Any], **keys: Any) -> list[tuple[str, Mapping[str, Any] | None]]:
    context = bench.context(baseline)
    maker = ParamsGenerator(**keys).bound(context)
    return [(proposal.operator, proposal.params) for proposal in maker.generate(context)]


def test_every_kind_of_value(bench: Bench) -> None:
    baseline = {"steps": 3, "share": 0.25, "careful": True, "word": "a", "none": None, "stops": [1]}
    per_key: dict[str, list[tuple[str, Any]]] = {
        "steps": [("zero-param", 0), ("off-by-one", 2), ("off-by-one", 4)],
        "share": [("zero-param", 0.0), ("boundary", 0.0), ("boundary", 1.0)],
        "careful": [("flip-boolean", False)],
        "word": [("zero-param", "")],
        "none": [],
        "stops": [("zero-param", [])],
    }
    expected: list[tuple[str, dict[str, Any]]] = []
    for key, changes in per_key.items():
        expected.append(("remove-param", {name: value for name, value in baseline.items() if name != key}))
        expected += [(operator, {**baseline, key: value}) for operator, value in changes]
    assert canonical_json(found(bench, baseline)) == canonical_json(expected)


def test_below_mappings_and_only_what_is_asked_for(bench: Bench) -> None:
    baseline = {"model": {"top": 1.5, "name": "m"}, "seen": [5]}
    assert found(bench, baseline, only=["model.top", "seen.0"], operators=["zero-param", "remove-param"]) == [
        ("remove-param", {"model": {"name": "m"}, "seen": [5]}),
        ("zero-param", {"model": {"top": 0.0, "name": "m"}, "seen": [5]}),
        ("remove-param", {"model": {"top": 1.5, "name": "m"}, "seen": []}),
        ("zero-param", {"model": {"top": 1.5, "name": "m"}, "seen": [0]}),
    ]
    assert found(bench, baseline, ignore=["model"], operators=["remove-param"]) == [
        ("remove-param", {"model": baseline["model"]})
    ]
    assert found(bench, baseline, boundaries={"model.top": [0, 2, 1.5]}, operators=["boundary"]) == [
        ("boundary", {"model": {"top": 0, "name": "m"}, "seen": [5]}),
        ("boundary", {"model": {"top": 2, "name": "m"}, "seen": [5]}),
    ]


def test_what_other_generators_fill_is_left(bench: Bench) -> None:
    assert found(bench, {"files": {"a": "b"}, "tool_faults": {"a": {"delay": 1}}}) == []


@given(
    baseline=st.dictionaries(
        st.text(st.characters(codec="ascii", exclude_characters="."), min_size=1, max_size=4),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(max_size=3),
            lambda inner: (
                st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=2) | st.lists(inner, max_size=2)
            ),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_a_changed_value_is_another_one_and_the_baseline_stays(
    tmp_path_factory: pytest.TempPathFactory, baseline: dict[str, Any]
) -> None:
    before = canonical_json(baseline)
    context = Context(tmp_path_factory.getbasetemp(), "c", None, baseline)  # type: ignore[arg-type]
    for proposal in ParamsGenerator().bound(context).generate(context):
        assert isinstance(proposal, Proposal)
        assert canonical_json(proposal.params) != before
    assert canonical_json(baseline) == before


@pytest.mark.parametrize(
    ("baseline", "keys", "message", "remedy"),
    [
        ({}, {}, "from: params damages the baseline's params, and it has none", "write baseline: {params: ...}"),
        ({"a": {"b": 1}}, {"only": ["a.c"]}, "the baseline's params have no 'a.c'", "there are a, a.b"),
        ({"a": 1}, {"ignore": ["b"]}, "the baseline's params have no 'b'", "there are a"),
        ({"a": 1}, {"boundaries": {"b": [1]}}, "the baseline's params have no 'b'", "there are a"),
    ],
)
def test_wrong_keys(bench: Bench, baseline: dict[str, Any], keys: dict[str, Any], message: str, remedy: str) -> None:
    with pytest.raises(SourceError) as caught:
        ParamsGenerator(**keys).bound(bench.context(baseline))
    assert (caught.value.message, caught.value.remedy) == (message, remedy)
