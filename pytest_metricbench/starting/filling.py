"""Templates filled in, texts as YAML writes them, and ids made of the names of folders and files."""

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from pytest_metricbench.definition.ids import ID_LIMIT, id_problem

SUFFIX: Final = ".in"
"""Of a template's name: so that no tool takes it for a test or a module."""
_PLACE: Final = re.compile(r"<<(\w+)>>")
_PER_SIZE: Final = 20
"""Subsets drawn of each size, where there are so many."""
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_TEXT: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def templates(folder: str) -> dict[str, str]:
    """The templates of a folder and the folders in it: name of the file to be written -> its text, unfilled."""
    return dict(_below(files("pytest_metricbench.starting") / "templates" / folder, ""))


def _below(folder: Traversable, before: str) -> list[tuple[str, str]]:
    found = []
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            found += _below(entry, f"{before}{entry.name}/")
        elif entry.name.endswith(SUFFIX):
            found.append((f"{before}{entry.name.removesuffix(SUFFIX)}", entry.read_text("utf-8")))
    return found


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template with its places, ``<<name>>``, filled in; a line of nothing but an empty value goes, as does
    an empty line above it.

    Raises:
        KeyError: a place has no value.
    """
    lines: list[str] = []
    for line in template.splitlines(keepends=True):
        whole = _PLACE.fullmatch(line.strip())
        if whole is not None and not values[whole[1]]:
            if lines[-1:] == ["\n"]:
                lines.pop()
            continue
        lines.append(_PLACE.sub(lambda found: values[found[1]], line))
    return "".join(lines)


def scalar(text: str) -> str:
    """A text as it stands in YAML, also in flow lists: plain where that means the same, else in quotes."""
    if _PLAIN.fullmatch(text) and text.casefold() not in _NOT_TEXT:
        return text
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7f")


def scalars(texts: Sequence[str]) -> str:
    """Texts as the inside of a flow list of YAML."""
    return ", ".join(scalar(text) for text in texts)


def id_of(name: str, otherwise: str) -> str:
    """An id that is like a name: of a folder, a file. Where nothing is left of it, another."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^A-Za-z0-9._+]+", "-", plain).strip("._+-")[:ID_LIMIT]
    return stem if id_problem(stem) is None else otherwise


def subsets_of(tasks: int) -> str:
    """The key ``subsets`` of a case with so many tasks; empty where they are too few to draw from."""
    if tasks < 3:
        return ""
    sizes = sorted({min(max(1, round(tasks / 4)), 20), min(max(2, tasks // 2), 40)})
    drawn = min(_PER_SIZE, *(math.comb(tasks, size) for size in sizes))
    return (
        "    # Smaller evaluations to compare with the whole: what would fewer tasks have noticed?\n"
        f"    subsets: {{sizes: {sizes}, per_size: {drawn}, seed: 1}}"
    )


def folder_name(folder: Path) -> str:
    """What a folder is called, also where it is named by a point."""
    return Path(folder).resolve().name
