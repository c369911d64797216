"""Summaries that somebody changed: refused in words, or compared; never a traceback."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.analysis.comparing import compare_runs
from pytest_metricbench.analysis.comparing_terms import ComparisonError
from pytest_metricbench.analysis.summary_json import summary_to_json
from pytest_metricbench.reporting.comparison_block import comparison_block
from pytest_metricbench.reporting.markdown import markdown_text
from pytest_metricbench.running.earlier import read_earlier
from tests.comparing.comparing_lab import BASE, summary_of, table

SUBSETS = {"s": ["a"], "t": ["a", "b"], "u": ["c"]}
COVERAGE = {"x": {"s": 0.5, "t": 0.6, "u": 0.1, "pool": 0.5}}
LATER = summary_of(
    table({"m": {**BASE, "c": [0] * 5}, "n": BASE}, subsets=SUBSETS, coverage=COVERAGE), bootstrap=20, permutation=19
)
EARLIER = summary_to_json(
    summary_of(table({"m": BASE, "n": {**BASE, "a": [0, None, 0, 0, 1]}}, subsets=SUBSETS, coverage=COVERAGE), run="r")
)
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, 1, -1, 5, 10**30, -0.5, 1e308, 0.3, "", "a", "m", "baseline", "killed", "detected", [], {}]
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with a key or position in it."""
    if isinstance(value, dict):
        return [(value, key) for key in value] + [place for inner in value.values() for place in places(inner)]
    if isinstance(value, list):
        return [(value, index) for index in range(len(value))] + [place for inner in value for place in places(inner)]
    return []


@given(st.data())
@settings(max_examples=150)
def test_a_changed_summary_is_refused_or_compared(tmp_path: Path, data: st.DataObject) -> None:
    content = json.loads(EARLIER)
    found = places(content)
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = found[data.draw(st.integers(0, len(found) - 1))]
        if isinstance(container, list) and key >= len(container):
            continue
        kind = data.draw(st.sampled_from(["set", "remove", "rename"]))
        if kind == "set":
            container[key] = data.draw(VALUES)
        elif kind == "remove" or isinstance(container, list):
            container.pop(key, *([] if isinstance(container, list) else [None]))
        elif key in container:
            container["other"] = container.pop(key)
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(content))
    comparison, refusal = None, ""
    try:
        comparison = compare_runs(read_earlier(path, "built"), LATER, "x")
    except ComparisonError as error:
        refusal = str(error)
    assert len(refusal.splitlines()) == (comparison is None), "a refusal is one line"
    summary = LATER.model_copy(update={"comparison": comparison})
    assert summary_to_json(summary)
    assert markdown_text(summary)
    assert bool(comparison_block(summary, 80)) is (comparison is not None)


def test_the_unchanged_one_is_compared(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text(EARLIER)
    comparison = compare_runs(read_earlier(path, "built"), LATER, "x")
    assert [change.mutant for change in comparison.cases["c"].newly_killed] == ["m"]
    assert [change.mutant for change in comparison.cases["c"].new_survivors] == ["n"]
    with pytest.raises(ComparisonError, match="it is of the experiment 'built', this one is 'other'"):
        compare_runs(read_earlier(path, "built"), LATER.model_copy(update={"experiment": "other"}), "x")
