"""Lists of tools as agents have them: names, or mappings as OpenAI, Anthropic and MCP write them, in JSON or YAML."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_metricbench.contracts import Json
from pytest_metricbench.generating.values import Path, shown, value_at
from pytest_metricbench.sources import SourceError

_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema")
"""Where a tool has the JSON Schema of its parameters."""
_FORMS: Final = (
    "a list of names, a list of mappings with name (or function.name), or a mapping of names to mappings is expected"
)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a list, and the paths of its parts in the value that holds the list."""

    name: str
    path: Path
    """Of the whole tool."""
    name_path: Path | None
    """None where its name is the key of a mapping."""
    description: str | None
    description_path: Path
    required: tuple[tuple[str, int], ...]
    """Parameters that must be given and are described, each with its position in the list of those."""
    schema_path: Path


def tools_in(value: Json, path: Path, where: str) -> list[Tool]:
    """The tools of the list at a path.

    Args:
        value: what holds the list.
        path: where in it.
        where: how an error names the list.

    Raises:
        SourceError: there is no list of tools.
    """
    held = value_at(value, path)
    if isinstance(held, Mapping) and "tools" in held and not _is_named(held):
        held, path = held["tools"], (*path, "tools")
    found = list(_tools(held, path))
    if not found or None in found:
        raise SourceError(f"{where} is no list of tools", _FORMS)
    tools = [tool for tool in found if tool is not None]
    names = [tool.name for tool in tools]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"{where} has two tools {twice!r}", "name each tool once")
    return tools


def _is_named(held: Mapping[str, Any]) -> bool:
    """Whether a mapping with the key ``tools`` is one of names to tools, one of which is called so."""
    return isinstance(held["tools"], Mapping) and bool({"description", *_SCHEMAS} & set(held["tools"]))


def _tools(held: Json, path: Path) -> Iterator[Tool | None]:
    if isinstance(held, list):
        for number, entry in enumerate(held):
            yield _tool(entry, (*path, number))
    elif isinstance(held, Mapping):
        for name, entry in held.items():
            yield (
                _described(str(name), None, entry, (*path, name), (*path, name)) if isinstance(entry, Mapping) else None
            )


def _tool(entry: Json, path: Path) -> Tool | None:
    if isinstance(entry, str):
        return Tool(entry, path, path, None, path, (), path)
    if not isinstance(entry, Mapping):
        return None
    inner: tuple[str, ...] = ("function",) if isinstance(entry.get("function"), Mapping) else ()
    own = value_at(entry, inner)
    name = own.get("name")
    if not isinstance(name, str):
        return None
    return _described(name, (*path, *inner, "name"), own, (*path, *inner), path)


def _described(name: str, name_path: Path | None, own: Mapping[str, Any], inner: Path, path: Path) -> Tool:
    description = own.get("description")
    key = next((key for key in _SCHEMAS if isinstance(own.get(key), Mapping)), _SCHEMAS[0])
    schema = own.get(key, {})
    properties = schema.get("properties") if isinstance(schema.get("properties"), Mapping) else {}
    required = schema.get("required") if isinstance(schema.get("required"), list) else []
    return Tool(
        name,
        path,
        name_path,
        description if isinstance(description, str) else None,
        (*inner, "description"),
        tuple((name, at) for at, name in enumerate(required) if isinstance(name, str) and name in properties),
        (*inner, key),
    )


def path_of(value: Json, written: str, where: str) -> Path:
    """The path of a part of a tool list's file: ``agent.tools``; empty for the whole.

    Raises:
        SourceError: there is no such part.
    """
    path: Path = ()
    for part in written.split(".") if written else []:
        held = value_at(value, path)
        key: str | int = int(part) if isinstance(held, list) and part.isdigit() else part
        there = range(len(held)) if isinstance(held, list) else held if isinstance(held, Mapping) else ()
        if key not in there:
            listed = ", ".join(str(name) for name in there) or "nothing"
            raise SourceError(f"{where} has no {shown((*path, key))!r}", f"there is {listed}")
        path = (*path, key)
    return path
