"""The JSON Schemas that the command prints: what a run leaves is valid, what is damaged is not, nothing is left out."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from pytest_metricbench.__main__ import main
from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.analysis.summary_json import summary_to_json
from pytest_metricbench.contracts import AttemptRecord, CoverageRecord, Goals
from pytest_metricbench.starting.schemas import FORMATS, schema_of
from pytest_metricbench.store.records import attempt_to_json, coverage_to_json, seal, to_line
from tests.plugin.record_strategies import records
from tests.reporting.terminal_lab import summary_of
from tests.reporting.test_terminal_section import gates, shop

Change = Callable[[dict[str, Any]], Any]
VALIDATORS = {form: jsonschema.Draft202012Validator(json.loads(schema_of(form))) for form in FORMATS}


def an_attempt(reward: float) -> AttemptRecord:
    return AttemptRecord(
        case="c",
        variant="baseline",
        task="t",
        attempt=1,
        trial_id="a",
        outcome="scored",
        scores={"reward": reward},
        error=None,
        time_limit=None,
        fingerprint="f",
        verifier="v",
        seed=7,
        started="2026-01-01T00:00:00+00:00",
        duration=0.5,
        files={},
        supersedes=None,
    )


def attempt_line(record: AttemptRecord) -> Any:
    return json.loads(seal(to_line(attempt_to_json(record))))


def coverage_line(**changed: Any) -> Any:
    record = CoverageRecord(
        case="c",
        system="tools",
        subset="s1",
        outcome="measured",
        value=0.5,
        reason=None,
        goals=Goals(("a", "b"), {"t": ("a",)}),
        error=None,
        request_digest="r",
        settings_digest="s",
        started="2026-01-01T00:00:00+00:00",
        duration=0.5,
        files={"response.json": "sha256:f"},
    )
    return json.loads(seal(to_line(coverage_to_json(replace(record, **changed)))))


def refused(form: str, content: Any) -> bool:
    return not VALIDATORS[form].is_valid(content)


@pytest.mark.parametrize("form", FORMATS)
def test_each_is_a_schema_and_is_what_the_command_prints(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    schema = json.loads(schema_of(form))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"].startswith("https://json-schema.org/draft/2020-12/")
    assert main(["schema", form]) == 0
    assert json.loads(capsys.readouterr().out) == schema


def test_without_a_word_it_is_that_of_experiments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == schema_of("experiment")


def test_another_word_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["schema", "store"])
    assert ended.value.code == 2
    assert "'experiment', 'attempts', 'coverage', 'summary'" in capsys.readouterr().err


# ---------------------------------------------------------------- the journals


@given(records())
def test_every_attempt_has_a_valid_line(record: AttemptRecord) -> None:
    VALIDATORS["attempts"].validate(attempt_line(record))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_without_a_word_is_valid(number: float) -> None:
    line = attempt_line(an_attempt(number))
    assert isinstance(line["scores"]["reward"], dict)
    VALIDATORS["attempts"].validate(line)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"value": None, "reason": "no judgment"},
        {"outcome": "failed", "value": None, "goals": None, "error": "it raised"},
        {"value": 0, "subset": "pool"},
    ],
)
def test_every_coverage_request_has_a_valid_line(changed: dict[str, Any]) -> None:
    VALIDATORS["coverage"].validate(coverage_line(**changed))


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.pop("check"),
        lambda line: line.pop("supersedes"),
        lambda line: line.update(check="0"),
        lambda line: line.update(outcome="won"),
        lambda line: line.update(attempt=0),
        lambda line: line.update(case="../c"),
        lambda line: line.update(verdict="solved"),
        lambda line: line["scores"].update(reward={"number": "many"}),
        lambda line: line["scores"].update(reward=[1]),
    ],
)
def test_what_is_no_line_of_attempts_is_refused(change: Change) -> None:
    line = attempt_line(an_attempt(1.0))
    assert not refused("attempts", line)
    change(line)
    assert refused("attempts", line)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.update(value=1.5),
        lambda line: line.update(value="0.5"),
        lambda line: line.pop("reason"),
        lambda line: line["goals"].pop("universe"),
    ],
)
def test_what_is_no_line_of_coverage_is_refused(change: Change) -> None:
    line = coverage_line()
    change(line)
    assert refused("coverage", line)


# ---------------------------------------------------------------- the summary


@pytest.fixture(scope="module")
def summary() -> Summary:
    return summary_of(shop(), gates=gates())


def test_a_summary_is_valid(summary: Summary) -> None:
    VALIDATORS["summary"].validate(json.loads(summary_to_json(summary)))


def test_a_summary_with_another_field_or_without_one_is_refused(summary: Summary) -> None:
    content = json.loads(summary_to_json(summary))
    for name in json.loads(schema_of("summary"))["required"]:
        assert refused("summary", {key: value for key, value in content.items() if key != name})
    assert refused("summary", {**content, "score": 1})
    assert refused("summary", {**content, "metricbench": 2})
