"""The JSON Schemas of what a user writes and of what a run leaves, for editors and for readers in any language."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.contracts import AttemptRecord, CoverageRecord
from pytest_metricbench.score_values import NON_FINITE
from pytest_metricbench.starting.start import schema_of_experiments

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_CHECK: Final = {
    "type": "string",
    "pattern": "^[0-9a-f]{8}$",
    "description": "The CRC-32 of all bytes of the line before it; always the last key.",
}
_NON_FINITE_NUMBER: Final = {
    "type": "object",
    "properties": {"number": {"enum": sorted(NON_FINITE)}},
    "required": ["number"],
    "additionalProperties": False,
    "description": "A number that JSON has no word for; a text would be a label.",
}


def _of_attempts() -> str:
    schema = TypeAdapter(AttemptRecord).json_schema()
    schema["properties"]["scores"]["additionalProperties"]["anyOf"].append(_NON_FINITE_NUMBER)
    return _text("A line of attempts.jsonl", _sealed(schema))


def _of_coverage() -> str:
    return _text("A line of coverage.jsonl", _sealed(TypeAdapter(CoverageRecord).json_schema()))


def _of_summaries() -> str:
    return _text("summary.json", Summary.model_json_schema())


_MADE: Final[Mapping[str, Callable[[], str]]] = {
    "experiment": schema_of_experiments,
    "attempts": _of_attempts,
    "coverage": _of_coverage,
    "summary": _of_summaries,
}
FORMATS: Final = tuple(_MADE)
"""What there is a schema of: experiment files, lines of the journals ``attempts.jsonl`` and ``coverage.jsonl``, and
``summary.json``."""


def schema_of(form: str) -> str:
    """The text of the JSON Schema (draft 2020-12) of one of :data:`FORMATS`, as this version reads and writes it.

    What is left out of a line or a summary where it is not set is not required; no other key is allowed.

    Raises:
        KeyError: it is none of them.
    """
    return _MADE[form]()


def _sealed(record: dict[str, Any]) -> dict[str, Any]:
    """The schema of a journal's line, given its record's: with its checksum, and closed."""
    properties = {**record["properties"], "check": _CHECK}
    return {
        **record,
        "properties": properties,
        "required": [*record["required"], "check"],
        "additionalProperties": False,
    }


def _text(title: str, schema: Mapping[str, Any]) -> str:
    for part in (schema, *schema.get("$defs", {}).values()):
        for field in part.get("properties", {}).values():
            field.pop("title", None)  # the key in other letters
    return json.dumps({"$schema": _DIALECT, **schema, "title": title}, indent=2, ensure_ascii=False) + "\n"
