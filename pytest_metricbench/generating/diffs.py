"""Unified diffs of texts: made, and applied again only where every line of them fits."""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from pytest_metricbench.contracts import Json
from pytest_metricbench.suite.patches import FilePatch, PatchError, parse_patch

PARAMS: Final = "params"
"""How a diff names the params of the baseline and of the mutant, which are no file."""

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OTHER_BREAKS: Final = "\r\x85\u2028\u2029\ufeff"
_HEAD: Final = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")
_CONTEXT: Final = 3
"""Unchanged lines around a change."""
_HUNK: Final = re.compile(r"^@@ .*@@$", re.MULTILINE)


def unified_diff(name: str, old: str, new: str) -> str:
    """The diff of two texts whose lines end with a newline; empty where they are equal."""
    return _diff(f"a/{name}", f"b/{name}", old, new)


def params_diff(old: Mapping[str, Json], new: Mapping[str, Json]) -> str:
    """The diff of two params, as YAML."""
    return _diff(f"baseline {PARAMS}", f"mutant {PARAMS}", params_text(old), params_text(new))


def _diff(old_name: str, new_name: str, old: str, new: str) -> str:
    before, after = _lines(old), _lines(new)
    shorter = min(len(before), len(after))
    same = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    first = max(0, same - _CONTEXT)
    # What stands before and behind is left out: difflib would look at all of it for every mutant of a long text.
    behind = 0
    most = shorter - same
    while behind < most and before[-1 - behind] == after[-1 - behind]:
        behind += 1
    cut = max(0, behind - _CONTEXT)
    ends = len(before) - cut, len(after) - cut
    lines = difflib.unified_diff(before[first : ends[0]], after[first : ends[1]], old_name, new_name, lineterm="\n")
    return "".join(_ended(_moved(line, first)) for line in lines)


def _moved(line: str, by: int) -> str:
    """A line of a diff, the head of a hunk so many lines further down."""
    head = _HEAD.fullmatch(line.rstrip("\n"))
    if head is None or not by:
        return line
    return f"@@ -{int(head[1]) + by}{head[2] or ''} +{int(head[3]) + by}{head[4] or ''} @@\n"


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """The lines of a text with their ends; nothing but a newline ends one."""
    *whole, rest = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([rest] if rest else [])]


def without_positions(diff: str) -> str:
    """A diff without its line numbers, which change with what stands elsewhere."""
    return _HUNK.sub("@@", diff)


def changed_texts(diff: str, text_of: Callable[[str], str], params: str) -> tuple[dict[str, str], Any]:
    """The files that a diff changes, each with its new text, and the params that it makes of the baseline's.

    Args:
        diff: as :func:`unified_diff` and :func:`params_diff` make them, joined.
        text_of: gives the text of a file that it names.
        params: the baseline's, as :func:`params_text` writes them.

    Returns:
        Name -> new text; and the new params, None where it does not change them.

    Raises:
        PatchError: it is no diff, or does not fit.
    """
    files: dict[str, str] = {}
    changed = None
    for patch in parse_patch(diff):
        if patch.name == f"mutant {PARAMS}":
            changed = _params_from(patch, params)
        else:
            name = patch.name.removeprefix("b/")
            files[name] = patch.apply(text_of(name), name)
    return files, changed


def _params_from(patch: FilePatch, params: str) -> dict[str, Json]:
    try:
        found = yaml.load(patch.apply(params, f"the baseline's {PARAMS}"), _LOADER)
    except yaml.YAMLError as error:
        raise PatchError(f"what it makes of the {PARAMS} is no YAML: {error}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise PatchError(f"what it makes of the {PARAMS} is no mapping")
    return found


# ---------------------------------------------------------------- params as a text


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, so that a diff of them can be read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    odd = any(character in value for character in _OTHER_BREAKS)
    style = '"' if odd else "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _number(dumper: yaml.SafeDumper, value: float) -> yaml.ScalarNode:
    text = repr(value)
    if "." not in text:
        text = text.replace("e", ".0e")  # YAML reads 1e-07 as a text
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _number)


def params_text(params: Mapping[str, Json]) -> str:
    """Params as YAML in the order of their keys, one line a value."""
    return yaml_text(dict(params)) if params else ""


def yaml_text(value: Json) -> str:
    """A JSON value as YAML, texts of several lines as such."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 30)
