"""Answers of coverage systems: scores, reasons and goals, and what every malformed one is told."""

import json
from pathlib import Path

import numpy as np
import pytest

from pytest_metricbench.answers import as_coverage_score, as_coverage_value, as_goals, read_coverage
from pytest_metricbench.contracts import ContractError, Goals, Score


@pytest.fixture
def response(tmp_path: Path) -> Path:
    return tmp_path / "response.json"


@pytest.mark.parametrize(
    ("content", "score"),
    [
        ('{"value": 0.5}', Score(0.5)),
        ('{"value": 1}', Score(1.0)),
        ('{"value": 0}', Score(0.0)),
        ('{"value": 0.5, "reason": "two of four"}', Score(0.5, "two of four")),
        ('{"value": 0.5, "reason": null}', Score(0.5)),
        ('{"value": null, "reason": " nothing was judged "}', Score(None, "nothing was judged")),
        (r'{"value": null, "reason": "half \ud83d"}', Score(None, "half \N{REPLACEMENT CHARACTER}")),
    ],
)
def test_a_coverage_answer(response: Path, content: str, score: Score) -> None:
    response.write_text(content)
    read = read_coverage(response, response.parent / "goals.json")
    assert read == score
    assert read.value is None or type(read.value) is float


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"value": "oops"}', 'the text "oops"'),
        ('{"value": "0.5"}', 'the text "0.5"'),
        ('{"value": true}', "the boolean true"),
        ('{"value": NaN}', "value is nan"),
        ('{"value": Infinity}', "value is inf"),
        ('{"value": 1.0000001}', "from 0 to 1"),
        ('{"value": -0.1}', "from 0 to 1"),
        ('{"value": [0.5]}', "a list [0.5]"),
        ('{"value": null}', "no reason is given"),
        ('{"value": null, "reason": ""}', "no reason is given"),
        ('{"value": null, "reason": "  "}', "no reason is given"),
        ('{"value": null, "reason": null}', "no reason is given"),
        ('{"value": null, "reason": 3}', "reason is the number 3"),
        ('{"reason": "none"}', 'has no "value"'),
        ("{}", 'has no "value"'),
        ("0.5", "is expected"),
        ("[0.5]", "is expected"),
        ('{"value": 0.5, "goals": {}}', "has the key 'goals'"),
        ('{"value": 0.5, "value": 0.6}', "has the key 'value' twice"),
        (f'{{"value": {"9" * 400}}}', "digits"),
    ],
)
def test_a_malformed_coverage_answer_is_told(response: Path, content: str, words: str) -> None:
    response.write_text(content)
    with pytest.raises(ContractError) as caught:
        read_coverage(response, response.parent / "goals.json")
    assert words in str(caught.value)


@pytest.mark.parametrize("value", [np.float32(0.25), np.array(0.25), np.float64(0.25)])
def test_a_numpy_coverage_value_is_plain(value: object) -> None:
    result = as_coverage_value(value)
    assert type(result) is float
    assert result == 0.25


@pytest.mark.parametrize(
    "value",
    [np.bool_(True), np.str_("0.5"), np.float32("nan"), np.float64(2), None, True, 10**5000],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(ContractError):
        as_coverage_value(value)


def test_the_value_may_come_from_numpy_with_a_reason() -> None:
    assert as_coverage_score({"value": np.float32(0.5), "reason": np.str_("half")}) == Score(0.5, "half")


def test_goals_are_read_beside_the_answer(response: Path, tmp_path: Path) -> None:
    response.write_text('{"value": 0.5}')
    goals = tmp_path / "goals.json"
    goals.write_text('{"universe": ["b", "a", "b"], "by_task": {"t1": ["b", "b"], "t2": []}}')
    assert read_coverage(response, goals).goals == Goals(("a", "b"), {"t1": ("b",), "t2": ()})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "goals.json is empty"),
        ("[]", "goals are a list []"),
        ("{}", "goals are a mapping {}"),
        ('{"universe": []}', "is expected"),
        ('{"universe": [], "by_task": {}, "more": 1}', "is expected"),
        ('{"universe": "abc", "by_task": {}}', 'universe is the text "abc"'),
        ('{"universe": [1], "by_task": {}}', "universe is a list [1]"),
        ('{"universe": ["a"], "by_task": []}', "by_task is a list []"),
        ('{"universe": ["a"], "by_task": {"t": "a"}}', "by_task['t'] is the text"),
        ('{"universe": ["a"], "by_task": {"t": [null]}}', "by_task['t'] is a list"),
        ('{"universe": ["a"], "by_task": {"t": ["z"]}}', "the goal 'z', which the universe does not have"),
        ('{"universe": ["a"], "by_task": {"t": ["a"], "t": []}}', "has the key 't' twice"),
        ("null", "goals are null"),
    ],
)
def test_malformed_goals_are_told(response: Path, tmp_path: Path, content: str, words: str) -> None:
    response.write_text('{"value": 0.5}')
    goals = tmp_path / "goals.json"
    goals.write_text(content)
    with pytest.raises(ContractError) as caught:
        read_coverage(response, goals)
    assert words in str(caught.value)


def test_goals_that_are_a_link_are_refused(response: Path, tmp_path: Path) -> None:
    response.write_text('{"value": 0.5}')
    (tmp_path / "goals.json").symlink_to("/dev/zero")
    with pytest.raises(ContractError, match=r"goals\.json .*not a regular file"):
        read_coverage(response, tmp_path / "goals.json")


def test_goals_may_be_larger_than_a_response(response: Path, tmp_path: Path) -> None:
    response.write_text('{"value": 0.5}')
    universe = [f"line {number:06}" for number in range(100_000)]
    (tmp_path / "goals.json").write_text(json.dumps({"universe": universe, "by_task": {"t": universe[:3]}}))
    goals = read_coverage(response, tmp_path / "goals.json").goals
    assert goals == Goals(tuple(universe), {"t": tuple(universe[:3])})


def test_goals_from_python_may_be_sets() -> None:
    assert as_goals({"universe": {"b", "a"}, "by_task": {"t": frozenset({"a"})}}) == Goals(("a", "b"), {"t": ("a",)})


def test_a_task_of_goals_is_named_by_a_text() -> None:
    with pytest.raises(ContractError, match="1 is no task"):
        as_goals({"universe": ["a"], "by_task": {1: ["a"]}})
