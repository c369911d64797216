"""What a JSON Schema says of a value, in words: ``whole number, 1 to 10000``, ``list of texts``."""

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

ID_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._+-]*$"
UNQUOTED = re.compile(r'"([a-z_]+)"')
"""Texts that YAML takes for texts without quotes."""
LONGEST = 50
PLURALS = {
    "text": "texts",
    "number": "numbers",
    "whole number": "whole numbers",
    "mapping": "mappings",
    "id": "ids",
    "list": "lists",
    "boolean": "booleans",
}


def type_words(schema: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """A value's type.

    Args:
        schema: of the value.
        titles: name of a definition -> the heading of its section, which is linked.
    """
    if "$ref" in schema:
        title = titles.get(name := schema["$ref"].rpartition("/")[2], name)
        return f"[{title[:1].lower()}{title[1:]}](#{anchor(title)})"
    if "const" in schema:
        return f"`{json.dumps(schema['const']).strip(chr(34))}`"
    if "enum" in schema:
        return _either([f"`{value}`" for value in schema["enum"]])
    if "anyOf" in schema:
        parts = [part for part in schema["anyOf"] if part.get("type") != "null"]
        words = list(dict.fromkeys(type_words(part, titles) for part in parts))
        return _either([*words, *(["null"] if len(parts) < len(schema["anyOf"]) and _null_is_said(schema) else [])])
    return _plain(schema, titles)


def default_words(schema: Mapping[str, Any], required: bool) -> str:
    """What holds where the key is absent: ``needed``, ``none``, or the default as YAML has it."""
    if required:
        return "needed"
    default = schema.get("default")
    if default is None:
        return "none"
    if isinstance(default, dict):
        return _mapping_words(default)
    if isinstance(default, str):
        return f"`{default}`" if default else "empty"
    text = json.dumps(default, ensure_ascii=False)
    return f"`{UNQUOTED.sub(lambda word: word[1], text)}`"


def anchor(title: str) -> str:
    """The anchor of a heading, as the site and GitHub make it."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip())


def _null_is_said(schema: Mapping[str, Any]) -> bool:
    """Whether null means something else than the key's absence."""
    return schema.get("default") is not None


def _mapping_words(default: Mapping[str, Any]) -> str:
    """A mapping as YAML has it, without the keys that say nothing; of a long one, where it is told."""
    said = {key: value for key, value in default.items() if value not in (None, "", [], {})}
    text = yaml.safe_dump(said, default_flow_style=True, sort_keys=False, width=1000).strip()
    return f"`{text}`" if len(text) <= LONGEST else "its own defaults"


def _plain(schema: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return ("whole number" if kind == "integer" else "number") + _range(schema)
    if kind == "boolean":
        return "boolean"
    if kind == "string":
        return "id" if schema.get("pattern") == ID_PATTERN else "text"
    if kind == "array":
        return _list(schema.get("items", {}), titles)
    if kind == "object":
        return _mapping(schema, titles)
    return "anything"


def _range(schema: Mapping[str, Any]) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f", {low} to {high}"
    words = f" from {low:g}" if low is not None else f" above {above:g}" if above is not None else ""
    if below is not None and below < 2**60:
        words += f"{' and' if words else ''} below {below:g}"
    return words + (f" up to {high:g}" if high is not None else "")


def _list(items: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    if not items:
        return "list"
    if "anyOf" in items:
        return f"list, each entry {type_words(items, titles)}"
    words = type_words(items, titles)
    if "$ref" in items:
        return f"list, each entry {words}"
    if "enum" in items:
        return f"list of {words.replace(' or ', ' and ')}"
    first, comma, rest = words.partition(" from ")
    return f"list of {PLURALS.get(first, first)}{comma}{rest}"


def _mapping(schema: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    values = schema.get("additionalProperties")
    patterns = schema.get("patternProperties")
    if isinstance(values, dict) and values:
        return f"mapping of names to {_several(values, titles)}"
    if patterns:
        return f"mapping of names to {_several(next(iter(patterns.values())), titles)}"
    return "mapping"


def _several(schema: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    if "anyOf" in schema and any(part.get("type") == "null" for part in schema["anyOf"]):
        rest = [part for part in schema["anyOf"] if part.get("type") != "null"]
        return f"{_either([_several(part, titles) for part in rest])} or null"
    words = type_words(schema, titles)
    return PLURALS.get(words, words)


def _either(words: list[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} or {words[-1]}"
