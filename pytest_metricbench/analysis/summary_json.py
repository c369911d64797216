"""The text of ``summary.json``, written and read.

Laid out for people and for ``diff``: a mapping of plain values on one line, anything deeper one entry a line. The
same summary always gives the same text.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.analysis.variant_models import AttemptValue
from pytest_metricbench.contracts import FORMAT_VERSION

_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(", ", ": ")).encode
_text = json.encoder.encode_basestring_ascii
_ATOMS = frozenset((str, int, float, bool, type(None)))
_TYPES = {kind: f'", "value_type": "{kind}", "value": ' for kind in ("number", "label", "missing")}


class SummaryError(ValueError):
    """A text that is no summary of this version; the message says why."""


def summary_to_json(summary: Summary) -> str:
    """The text of a summary, with a newline at its end.

    Fields that have a default and are not set are left out. Non-finite numbers can only be values of attempts, where
    they are texts already; anything else would be refused here.
    """
    pieces: list[str] = []
    _write(summary, "\n", pieces.append)
    return "".join((*pieces, "\n"))


def summary_from_json(text: str) -> Summary:
    """The summary that a text holds.

    Raises:
        SummaryError: no JSON, a version that this one cannot read, or a field that is missing, unknown or wrong.
    """
    try:
        content = json.loads(text)
    except ValueError as error:
        raise SummaryError(f"the summary is no JSON: {error}") from None
    version = content.get("metricbench") if isinstance(content, dict) else None
    if version != FORMAT_VERSION:
        raise SummaryError(
            f"the summary has the format version {json.dumps(version)}; this version reads {FORMAT_VERSION}"
        )
    try:
        return Summary.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SummaryError(f"the summary is not as documented at {where}: {first['msg']}") from None


def _write(value: object, newline: str, out: Callable[[str], None]) -> None:
    """Give the text of a value in pieces; ``newline`` starts a line at the value's own depth."""
    content: Any = _fields(value) if isinstance(value, BaseModel) else value
    if isinstance(content, Mapping) and content:
        if all(map(_plain, content.values())):
            out(f"{{{', '.join([f'{_text(key)}: {_short(item)}' for key, item in content.items()])}}}")
            return
        _write_broken("{", "}", ((f"{_text(key)}: ", item) for key, item in content.items()), newline, out)
    elif isinstance(content, tuple) and content and isinstance(content[0], AttemptValue):
        inner = newline + " "
        out(f"[{inner}{(',' + inner).join(map(_attempt, content))}{newline}]")
    elif isinstance(content, list | tuple) and not all(_plain(item) for item in content):
        _write_broken("[", "]", (("", item) for item in content), newline, out)
    else:
        out(_encode(content))


def _write_broken(
    start: str, end: str, items: Iterable[tuple[str, object]], newline: str, out: Callable[[str], None]
) -> None:
    inner = newline + " "
    separator = start + inner
    for prefix, item in items:
        if type(item) in _ATOMS:
            out(separator + prefix + _short(item))
        else:
            out(separator + prefix)
            _write(item, inner, out)
        separator = "," + inner
    out(newline + end)


def _short(value: object) -> str:
    """The text of a plain value. Encoders of the library cost more to set up than most of these to write."""
    if type(value) is str:
        return _text(value)
    if type(value) is int:
        return repr(value)
    return "null" if value is None else "[]" if value == () else _encode(value)


def _plain(value: object) -> bool:
    if type(value) in _ATOMS:
        return True
    return not isinstance(value, BaseModel | AttemptValue | Mapping | list | tuple) or (
        isinstance(value, tuple) and all(isinstance(item, str | float | int) for item in value)
    )


def _fields(model: BaseModel) -> dict[str, object]:
    optional = _optional_fields(type(model))
    values = model.__dict__
    return {name: value for name, value in values.items() if value is not None or name not in optional}


@cache
def _optional_fields(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(name for name, field in model.model_fields.items() if not field.is_required())


def _attempt(entry: AttemptValue) -> str:
    """By hand: a big experiment has nothing else in such numbers."""
    value = entry.value
    text = repr(value) if type(value) in (float, int) else _encode(value)
    return f'{{"trial_id": "{_encode(entry.trial_id)[1:-1]}{_TYPES[entry.value_type]}{text}}}'
