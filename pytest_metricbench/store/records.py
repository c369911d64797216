"""Records as JSON lines, written and read back checked.

Non-finite scores have no word in JSON and a text would be a label, so they stand as ``{"number": "NaN"}``.
"""

import json
import math
import re
import zlib
from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from pytest_metricbench.answers import LARGEST_INT, plain_text
from pytest_metricbench.contracts import AttemptRecord, CoverageRecord, Goals
from pytest_metricbench.score_values import ScoreValue, value_to_json

_ATTEMPT: Final = TypeAdapter(AttemptRecord)
_COVERAGE: Final = TypeAdapter(CoverageRecord)


_encode: Final = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode


class RecordError(ValueError):
    """A line that is no record; the message says what is wrong with it."""


def attempt_to_json(record: AttemptRecord) -> dict[str, Any]:
    """The JSON value of an attempt's record."""
    error = record.error
    return {
        "case": record.case,
        "variant": record.variant,
        "task": record.task,
        "attempt": record.attempt,
        "trial_id": record.trial_id,
        "outcome": record.outcome,
        "scores": {name: _to_json(value) for name, value in record.scores.items()},
        "error": None if error is None else {"type": error.type, "message": error.message, "phase": error.phase},
        "time_limit": record.time_limit,
        "fingerprint": record.fingerprint,
        "verifier": record.verifier,
        "seed": record.seed,
        "started": record.started,
        "duration": record.duration,
        "files": record.files,
        "supersedes": record.supersedes,
        **({} if record.folder is None else {"folder": record.folder}),
        **({} if record.trial_name is None else {"trial_name": record.trial_name}),
    }


def coverage_to_json(record: CoverageRecord) -> dict[str, Any]:
    """The JSON value of a coverage request's record."""
    goals = record.goals
    return {
        "case": record.case,
        "system": record.system,
        "subset": record.subset,
        "outcome": record.outcome,
        "value": record.value,
        "reason": record.reason,
        "goals": None if goals is None else goals_to_json(goals),
        "error": record.error,
        "request_digest": record.request_digest,
        "settings_digest": record.settings_digest,
        "started": record.started,
        "duration": record.duration,
        "files": record.files,
    }


def goals_to_json(goals: Goals) -> dict[str, Any]:
    """Goals as ``goals.json`` holds them."""
    return {
        "universe": list(goals.universe),
        "by_task": {task: list(covered) for task, covered in goals.by_task.items()},
    }


def to_line(value: Mapping[str, Any]) -> str:
    """A JSON value as one line of ASCII. Half a surrogate pair, which no reader of ours takes, becomes U+FFFD."""
    try:
        return to_json(value).decode("ascii")
    except UnicodeDecodeError:
        return _encode(value)
    except PydanticSerializationError:  # half a surrogate pair
        return _encode(_with_plain_texts(value))


def _with_plain_texts(value: Any) -> Any:
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, Mapping):
        return {plain_text(key): _with_plain_texts(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_plain_texts(item) for item in value]
    return value


_SEAL: Final = b',"check":"%08x"}'
_SEALED: Final = re.compile(rb',"check":"([0-9a-f]{8})"}\n?\Z')


def seal(line: str) -> str:
    """A line with its checksum as the last key: the CRC-32 (ISO 3309) of every byte before it.

    It finds every damage of up to 32 bits in a row, and with it a flipped digit, which would still be JSON. It is no
    protection against somebody who means harm: they can compute it too.
    """
    body = line[:-1]
    return body + (_SEAL % zlib.crc32(body.encode("ascii"))).decode("ascii")


def unsealed(line: bytes) -> bytes:
    """A journal's line, once its checksum has been held against it.

    Raises:
        RecordError: it has none, or another one.
    """
    found = _SEALED.search(line, len(line) - 22)  # before the start is at the start
    if found is None:
        raise RecordError("the line does not end with its checksum")
    if zlib.crc32(memoryview(line)[: found.start()]) != int(found[1], 16):
        raise RecordError("the line is not as it was written: its checksum is another one")
    return line


def attempt_from_line(line: bytes | str) -> AttemptRecord:
    """Read a line of ``attempts.jsonl``.

    Raises:
        RecordError: it is not the record of an attempt.
    """
    try:
        record = _ATTEMPT.validate_json(line)
    except ValidationError as error:
        raise RecordError(_first_problem(error)) from None
    _refuse_outside(record.files)
    _refuse_impossible(record)
    return record


def coverage_from_line(line: bytes) -> CoverageRecord:
    """Read a line of ``coverage.jsonl``.

    Raises:
        RecordError: it is not the record of a coverage request.
    """
    try:
        record = _COVERAGE.validate_json(line)
    except ValidationError as error:
        raise RecordError(_first_problem(error)) from None
    _refuse_outside(record.files)
    return record


def _refuse_outside(files: Mapping[str, str]) -> None:
    """Refuse a file name that leads out of the folder it belongs to: a record is only data, whoever wrote it."""
    for name in files:
        if "\0" in name or not {"", ".", ".."}.isdisjoint(name.split("/")):
            raise RecordError(f"files: {name!r} leads out of the folder")


def _refuse_impossible(record: AttemptRecord) -> None:
    """Refuse numbers that no run writes and that no analysis can work with."""
    limit = record.time_limit
    if not 0 <= record.duration < math.inf:
        raise RecordError(f"duration: {record.duration} is no number of seconds")
    if limit is not None and not 0 <= limit < math.inf:
        raise RecordError(f"time_limit: {limit} is no number of seconds")
    for name, value in record.scores.items():
        if isinstance(value, int) and abs(value) > LARGEST_INT:
            raise RecordError(f"scores.{name}: the number is larger than 1e308")


def _to_json(value: ScoreValue) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": value_to_json(value)}
    return value


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])
