"""One level of an ATIF trace, read field by field as its table says; what is not as ATIF has it is noted."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from pytest_metricbench.answers import plain_text
from pytest_metricbench.atif import fields
from pytest_metricbench.json_stream import JsonReader, Kind

NOTES_LIMIT: Final = 20
"""Mistakes of one trace that are told."""
KEYS_LIMIT: Final = 100_000
"""Keys of one mapping that are compared with one another."""

Readers: TypeAlias = Mapping[str, Callable[[str], Any]]
"""Kind of field -> what reads it, given its place."""

_EXPECTED: Final[dict[str, tuple[str, frozenset[Kind]]]] = {
    "text": ("a text", frozenset({"text"})),
    "text or number": ("a text or a number", frozenset({"text", "number"})),
    "number": ("a number", frozenset({"number"})),
    "whole number": ("a whole number", frozenset({"number"})),
    "boolean": ("true or false", frozenset({"boolean"})),
    "mapping": ("a mapping", frozenset({"object"})),
    "list": ("a list", frozenset({"array"})),
}
_NAMED: Final[dict[Kind, str]] = {
    "object": "a mapping",
    "array": "a list",
    "text": "a text",
    "number": "a number",
    "boolean": "a boolean",
    "null": "null",
}


class TraceError(ValueError):
    """A trace that is not ATIF; the message says what is wrong and where in the trace."""


class Notes:
    """The first mistakes of many, and how many there are."""

    def __init__(self) -> None:
        """Begin with none."""
        self._first: list[str] = []
        self._count = 0

    def add(self, note: str) -> None:
        """Keep one, or count it."""
        self._count += 1
        if len(self._first) < NOTES_LIMIT:
            self._first.append(note)

    @property
    def told(self) -> tuple[str, ...]:
        """What is kept, and how many are not."""
        more = self._count - len(self._first)
        return (*self._first, *([f"and {more} more"] if more else []))


class LevelReader:
    """Reads fields, values and content of a trace from a :class:`~pytest_metricbench.json_stream.JsonReader`."""

    def __init__(self, reader: JsonReader) -> None:
        """Prepare to read; nothing is read yet."""
        self._reader = reader
        self.violations = Notes()
        self.unknown = Notes()

    # ------------------------------------------------------------ content

    def _content(self, where: str) -> None:
        """A text, or a list of parts."""
        if self._reader.kind == "text":
            self._reader.skip()
            return
        if self._wrong(where, "array", "a text or a list of parts"):
            return
        for index in self._reader.items():
            place = f"{where}[{index}]"
            if not self._wrong(place, "object", "a mapping"):
                self._part(place)

    def _part(self, where: str) -> None:
        media: list[str] = []
        readers = {
            "SHORT": lambda place: self._choice(place, fields.PART_TYPES),
            "MEDIA": lambda p: self._media(p, media),
        }
        given = self._mapping(where, fields.PART, readers)
        kind = given.get("type")
        if kind not in fields.PART_TYPES:
            return
        needed, other = ("text", "source") if kind == "text" else ("source", "text")
        if needed not in given:
            self.violations.add(f"{where}.{needed} is missing; a part of type {kind!r} needs it")
        if other in given:
            self.violations.add(f"{where}.{other} stands in a part of type {kind!r}")
        known = {"image": fields.IMAGE_TYPES, "audio": fields.AUDIO_TYPES}.get(kind, frozenset())
        for found in media:
            if found not in known:
                self.violations.add(
                    f"{where}.source.media_type {shown_value(found)} is no type of {kind} that ATIF knows"
                )

    def _media(self, where: str, media: list[str]) -> None:
        if self._wrong(where, "object", "a mapping"):
            return
        given = self._mapping(where, fields.MEDIA, {"SHORT": lambda place: self._value(), "SECONDS": self._seconds})
        found = given.get("media_type")
        if isinstance(found, str):
            media.append(found.strip().lower() if found.strip().lower().startswith("audio/") else found)
        elif "media_type" in given:
            self.violations.add(f"{where}.media_type is {shown_value(found)}; a text is expected")

    # ------------------------------------------------------------ values

    def _timestamp(self, where: str) -> Any:
        found = self._value()
        try:
            datetime.fromisoformat(found.replace("Z", "+00:00"))
        except (AttributeError, ValueError, TypeError):
            self.violations.add(f"{where} is {shown_value(found)}; a time in ISO 8601 is expected")
        return found

    def _choice(self, where: str, known: tuple[str, ...]) -> Any:
        found = self._value()
        if found not in known:
            self.violations.add(f"{where} is {shown_value(found)}; {', '.join(known[:-1])} or {known[-1]} is expected")
        return found

    def _count(self, where: str) -> Any:
        found = self._value()
        if type(found) is not int or found < 0:
            self.violations.add(f"{where} is {shown_value(found)}; a whole number from 0 is expected")
        return found

    def _seconds(self, where: str) -> None:
        found = self._value()
        if isinstance(found, bool) or not isinstance(found, int | float) or found < 0:
            self.violations.add(f"{where} is {shown_value(found)}; a number from 0 is expected")

    def _level(self, where: str, level: fields.Fields) -> None:
        if not self._wrong(where, "object", "a mapping"):
            self._mapping(where, level, {"COUNT": self._count})

    def _name(self) -> str | None:
        """A tool's name, or None where there is none."""
        found = self._value()
        return plain_text(found.strip()) if isinstance(found, str) and found.strip() else None

    def _value(self) -> Any:
        """The next value; what is large, as what it is."""
        kind = self._reader.kind
        if kind == "text":
            return self._reader.text()
        if kind in ("object", "array"):
            self._reader.skip()
            return {} if kind == "object" else []
        return self._reader.scalar()

    # ------------------------------------------------------------ mappings

    def _mapping(
        self,
        where: str,
        level: fields.Fields,
        readers: Readers,
        *,
        needed: bool = True,
        told_elsewhere: str = "",
    ) -> dict[str, Any]:
        """Read one level; gives the fields that are there and not null, with what their readers gave."""
        given: dict[str, Any] = {}
        for key in self._keys(where):
            kind = level.get(key)
            if kind is None:
                self.unknown.add(f"{where}.{_shortened(key)} is an unknown field")
                self._reader.skip()
            elif kind.endswith("?") and self._reader.kind == "null":
                self._reader.skip()
            else:
                given[key] = self._field(f"{where}.{key}", kind.removesuffix("?"), readers)
        if needed:
            for key, kind in level.items():
                if key not in given and not kind.endswith("?") and key != told_elsewhere:
                    self.violations.add(f"{where}.{key} is missing")
        return given

    def _field(self, where: str, kind: str, readers: Readers) -> Any:
        reader = readers.get(kind)
        if reader is not None:
            return reader(where)
        if kind == "ID":
            return self._id(where)
        if kind == "FINAL_METRICS":
            return self._level(where, fields.FINAL_METRICS)
        expected, kinds = _EXPECTED[kind]
        if self._reader.kind not in kinds:
            self.violations.add(f"{where} is {_NAMED[self._reader.kind]}; {expected} is expected")
            self._reader.skip()
        elif kind == "whole number":
            found = self._reader.scalar()
            if not isinstance(found, int) and not (isinstance(found, float) and found.is_integer()):
                self.violations.add(f"{where} is {found}; {expected} is expected")
        else:
            self._reader.skip()
        return None

    def _id(self, where: str) -> str | None:
        found = self._value()
        if isinstance(found, str):
            return plain_text(found)
        self.violations.add(f"{where} is {shown_value(found)}; a text is expected")
        return None

    def _keys(self, where: str) -> Iterator[str]:
        """The keys of the next mapping; one that stands twice leaves open which of its values is meant."""
        seen: set[str] = set()
        for key in self._reader.members():
            if key in seen:
                raise TraceError(f"{where} has the key {shown_value(key)} twice")
            if len(seen) < KEYS_LIMIT:
                seen.add(key)
            yield key

    def _require(self, where: str, kind: Kind, problem: str) -> None:
        if self._reader.kind != kind:
            raise TraceError(f"{where} {problem}")

    def _wrong(self, where: str, kind: Kind, expected: str) -> bool:
        """Whether the next value is of another kind; it is noted and skipped then."""
        found = self._reader.kind
        if found == kind:
            return False
        self.violations.add(f"{where} is {_NAMED[found]}; {expected} is expected")
        self._reader.skip()
        return True


def shown_value(value: Any) -> str:
    """A wrong value as a message names it."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None:
        return "null"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _shortened(key: str) -> str:
    text = plain_text(key if len(key) <= 60 else f"{key[:57]}...")
    return text if text.isprintable() else repr(text)[1:-1]
