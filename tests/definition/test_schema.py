"""The JSON Schema beside the docs is the one that the models give.

METRICBENCH_WRITE_SCHEMA=1 pytest tests/definition/test_schema.py writes it again.
"""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_metricbench import coverage, runners
from pytest_metricbench.bases import CoverageSystem, Runner
from pytest_metricbench.definition.schema import DIALECT, experiment_schema, schema_text
from pytest_metricbench.generating.builtin import BUILTIN as GENERATORS
from pytest_metricbench.kinds import Kinds

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "experiment.schema.json"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return experiment_schema(runners.BUILTIN, coverage.BUILTIN, GENERATORS)


@pytest.fixture(scope="module")
def validator(schema: dict[str, Any]) -> Any:
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_file_is_current(schema: dict[str, Any]) -> None:
    if os.environ.get("METRICBENCH_WRITE_SCHEMA"):
        FILE.write_text(schema_text(schema), encoding="utf-8")
    assert json.loads(FILE.read_text("utf-8")) == schema, (
        "docs/experiment.schema.json is not what the models say; write it again with "
        "METRICBENCH_WRITE_SCHEMA=1 pytest tests/definition/test_schema.py"
    )


def test_the_dialect(schema: dict[str, Any]) -> None:
    assert schema["$schema"] == DIALECT


EXAMPLES = sorted(path for path in ROOT.glob("examples/**/experiment.yml") if "extending" not in path.parts)
"""Without those with kinds of their own, which only their plugins know."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_the_examples_are_right(validator: Any, path: Path) -> None:
    validator.validate(yaml.safe_load(path.read_text("utf-8")))


CASE = {"id": "a", "tasks": [{"id": "t"}]}
GOOD = {"metricbench": 1, "name": "x", "runner": {"kind": "python", "agent": "a:b"}, "cases": [CASE, "b.yml"]}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"coverage": [{"id": "tools", "kind": "tool-calls"}, {"id": "m", "kind": "python", "measure": "a:b"}]},
        {"runner": {"kind": "command", "agent": ["{python}", "x.py"], "timeout": 5}},
        {"cases": [CASE | {"subsets": {"sizes": [1], "per_size": 3}}]},
        {"cases": [CASE | {"subsets": [{"id": "s", "tasks": ["t"]}], "mutants": [{"id": "m", "control": True}]}]},
        {"analysis": {"resamples": 9, "kill": {"rule": "fisher", "q": 0.1}}},
    ],
)
def test_what_is_right(validator: Any, change: dict[str, Any]) -> None:
    validator.validate(GOOD | change)


@pytest.mark.parametrize(
    "change",
    [
        {"metricbench": 2},
        {"attempts": 0},
        {"attempts": 1.5},
        {"unknown": 1},
        {"name": "a b"},
        {"cases": []},
        {"cases": [5]},
        {"cases": [CASE | {"task": []}]},
        {"cases": [{"id": "a", "tasks": []}]},
        {"cases": [CASE | {"subsets": [{"id": "s", "tasks": []}]}]},
        {"runner": {"agent": "a:b"}},
        {"runner": {"kind": "nothing"}},
        {"runner": {"kind": "python", "agent": "a b"}},
        {"runner": {"kind": "command", "agent": "x"}},
        {"coverage": [{"kind": "tool-calls"}]},
        {"coverage": [{"id": "x", "kind": "tool-calls", "measure": "a:b"}]},
        {"analysis": {"kill": {"rule": "no"}}},
    ],
)
def test_what_is_wrong(validator: Any, change: dict[str, Any]) -> None:
    assert not validator.is_valid(GOOD | change)


def test_every_key_has_a_description(schema: dict[str, Any]) -> None:
    places = [("", schema), *schema["$defs"].items()]
    for name, place in places:
        assert place.get("description"), name
        for key, value in place["properties"].items():
            described = value.get("description") or "$ref" in value or "$ref" in value.get("items", {})
            assert described, f"{name}.{key}"


def test_other_kinds(fake_kinds: tuple[dict[str, type[Runner]], dict[str, type[CoverageSystem]]]) -> None:
    other = experiment_schema(*fake_kinds)
    assert other["properties"]["runner"]["anyOf"] == [{"$ref": "#/$defs/FakeRunner"}, {"$ref": "#/$defs/PlainRunner"}]
    assert other["$defs"]["FakeCoverage"]["required"] == ["id", "kind"]
    assert "with-alias" in other["$defs"]["FakeRunner"]["properties"]


@pytest.mark.parametrize("kinds", [runners.BUILTIN, coverage.BUILTIN], ids=["runners", "coverage"])
def test_a_kind_is_what_its_class_is_called(kinds: Kinds[Any]) -> None:
    assert {kind: cls.model_fields["kind"].default for kind, cls in kinds.items()} == {kind: kind for kind in kinds}
    assert "kind" not in kinds


def test_a_generator_is_what_its_class_is_called() -> None:
    assert {origin: cls.origin for origin, cls in GENERATORS.items()} == {origin: origin for origin in GENERATORS}
