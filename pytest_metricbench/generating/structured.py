"""Edits of JSON and YAML files that leave everything else as it is written: layout, comments, order.

An edit is made in the text where the parts stand, and read back. Where that is not what was meant (a list that has
become empty, a form of YAML that is rarely seen), the whole file is written anew, and its diff is longer.
"""

import copy
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import yaml

from pytest_metricbench.contracts import Json
from pytest_metricbench.generating.diffs import yaml_text
from pytest_metricbench.generating.values import Path, value_at
from pytest_metricbench.sources import SourceError

_PARTS_LIMIT: Final = 100_000
_INDENT: Final = re.compile(r"\n([ \t]+)\S")


@dataclass(frozen=True, slots=True)
class Put:
    """Another text in the place of the one at a path."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Remove:
    """The entry at a path taken out."""

    path: Path


@dataclass(frozen=True, slots=True)
class Rename:
    """Another key for the entry of a mapping."""

    path: Path
    key: str


Edit: TypeAlias = Put | Remove | Rename


@dataclass(frozen=True, slots=True)
class Structured:
    """A JSON or YAML file that was read."""

    name: str
    text: str
    """Its lines end with a newline."""
    value: Json

    def edited(self, edits: Sequence[Edit]) -> str:
        """The text after some edits, none of them inside another."""
        wanted = edited(self.value, edits)
        # PyYAML reads JSON, but for tabs between its parts; strings of JSON hold none
        shown = self.text.replace("\t", " ") if self.name.endswith(".json") else self.text
        text = _in_place(self.text, shown, edits)
        if text is not None and _is_read_as(self.name, text, wanted):
            return text
        return _written(self.name, self.text, wanted)


def read_structured(name: str, text: str) -> Structured:
    """A file's text as JSON, where its name ends in ``.json``, or else as YAML.

    Raises:
        SourceError: it is neither.
    """
    try:
        return Structured(name, text, _unshared(_read(name, text), itertools.count()))
    except json.JSONDecodeError as error:
        raise SourceError(f"line {error.lineno} of the file {name!r} is no JSON: {error.msg}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1} of the file" if mark is not None else "the file"
        raise SourceError(f"{where} {name!r} is no YAML: {getattr(error, 'problem', None) or error}") from None
    except RecursionError:
        raise SourceError(f"the file {name!r} is nested too deeply") from None


def _unshared(value: Json, counted: Iterator[int]) -> Json:
    """A value in which nothing stands twice: what YAML's aliases share would be changed everywhere at once.

    Raises:
        SourceError: the aliases multiply.
    """
    if next(counted) > _PARTS_LIMIT:
        raise SourceError(f"aliases make more than {_PARTS_LIMIT} values of it", "write it without aliases")
    if isinstance(value, dict):
        return {key: _unshared(entry, counted) for key, entry in value.items()}
    return [_unshared(entry, counted) for entry in value] if isinstance(value, list) else value


def _read(name: str, text: str) -> Json:
    return json.loads(text.removeprefix("\ufeff")) if name.endswith(".json") else yaml.safe_load(text)


def _is_read_as(name: str, text: str, wanted: Json) -> bool:
    try:
        found = _read(name, text)
    except (ValueError, yaml.YAMLError):
        return False
    return bool(found == wanted) and _keys_in_order(found) == _keys_in_order(wanted)


def _keys_in_order(value: Json) -> Any:
    if isinstance(value, dict):
        return [(key, _keys_in_order(entry)) for key, entry in value.items()]
    return [_keys_in_order(entry) for entry in value] if isinstance(value, list) else None


def _written(name: str, old: str, value: Json) -> str:
    """The whole file anew, JSON indented as it was."""
    end = "\n" if old.endswith("\n") else ""
    if name.endswith(".json"):
        indent = _INDENT.search(old)
        return json.dumps(value, indent=indent[1] if indent else None, ensure_ascii=False) + end
    return yaml_text(value)


# ---------------------------------------------------------------- the value


def edited(value: Json, edits: Sequence[Edit]) -> Json:
    """A copy of a value after some edits; entries of lists are taken out from the last to the first."""
    changed = copy.deepcopy(value)
    for edit in edits:
        if isinstance(edit, Put):
            value_at(changed, edit.path[:-1])[edit.path[-1]] = edit.text
        elif isinstance(edit, Rename):
            _rename(value_at(changed, edit.path[:-1]), str(edit.path[-1]), edit.key)
    removals = [edit.path for edit in edits if isinstance(edit, Remove)]
    for path in sorted(removals, key=lambda path: [part for part in path if isinstance(part, int)], reverse=True):
        del value_at(changed, path[:-1])[path[-1]]
    return changed


def _rename(held: dict[str, Any], old: str, new: str) -> None:
    entries = [(new if key == old else key, entry) for key, entry in held.items()]
    held.clear()
    held.update(entries)


# ---------------------------------------------------------------- the text


def _in_place(text: str, shown: str, edits: Sequence[Edit]) -> str | None:
    """The text with the edits made where the parts stand; None where that cannot be done.

    ``shown`` is the text as YAML, part for part where it is in ``text``.
    """
    try:
        root = yaml.compose(shown, Loader=yaml.SafeLoader)
        changes = sorted((_change(text, root, edit) for edit in edits), reverse=True)
    except (yaml.YAMLError, LookupError, RecursionError):
        return None
    before = len(text) + 1
    for start, end, new in changes:
        if end > before:
            return None
        text = text[:start] + new + text[end:]
        before = start
    return text


def _change(text: str, root: yaml.Node | None, edit: Edit) -> tuple[int, int, str]:
    """Start, end and what stands there instead.

    Raises:
        LookupError: it does not stand there.
    """
    parent = root
    for part in edit.path[:-1]:
        parent = _entries(parent)[_position(parent, part)][1]
    entries = _entries(parent)
    at = _position(parent, edit.path[-1])
    key, node = entries[at]
    if isinstance(edit, Remove):
        return _removal(text, parent, entries, at)
    scalar, new = (key, edit.key) if isinstance(edit, Rename) else (node, edit.text)
    if not isinstance(scalar, yaml.ScalarNode):
        raise LookupError
    start, end = scalar.start_mark.index, scalar.end_mark.index
    block = scalar.style in ("|", ">")
    return start, end, json.dumps(new, ensure_ascii=False) + ("\n" if block and text[end - 1 : end] == "\n" else "")


def _entries(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    """Where each entry begins, and its value."""
    if isinstance(node, yaml.MappingNode):
        return list(node.value)
    if isinstance(node, yaml.SequenceNode):
        return [(entry, entry) for entry in node.value]
    raise LookupError


def _position(node: yaml.Node | None, part: str | int) -> int:
    if isinstance(node, yaml.MappingNode):
        found = [at for at, (key, _) in enumerate(node.value) if key.value == str(part)]
        return found[0]
    if isinstance(part, int) and isinstance(node, yaml.SequenceNode) and part < len(node.value):
        return part
    raise LookupError


def _removal(
    text: str, parent: yaml.Node | None, entries: list[tuple[yaml.Node, yaml.Node]], at: int
) -> tuple[int, int, str]:
    begin = entries[at][0].start_mark.index
    following = entries[at + 1][0].start_mark.index if at + 1 < len(entries) else None
    if isinstance(parent, yaml.CollectionNode) and parent.flow_style:
        if following is not None:
            return begin, following, ""
        start = entries[at - 1][1].end_mark.index if at else begin
        return start, entries[at][1].end_mark.index, ""
    start = text.rfind("\n", 0, begin) + 1
    if following is not None:
        return start, text.rfind("\n", 0, following) + 1, ""
    end = entries[at][1].end_mark.index
    return start, end if end == len(text) else text.rfind("\n", 0, end) + 1, ""
