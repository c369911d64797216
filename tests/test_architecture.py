"""``docs/architecture.md`` against the code: the picture and the real imports, the map and the modules, the sizes."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.package_source import MODULES, PACKAGE, ROOT, imported, tree

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")

LONG_MODULE, LONGEST_MODULE, LONGEST_FUNCTION = 350, 450, 60
MAPPED = ("running", "pytest_side")
"""Packages whose modules the map names one by one, as it does those at the top."""


# ---------------------------------------------------------------- the code


PARTS = {name.partition(".")[0] for name in MODULES}


@cache
def imports() -> Mapping[str, frozenset[str]]:
    """Module -> the modules of the package that it imports."""
    found = {}
    for name, path in MODULES.items():
        others = set()
        for dotted in imported(path):
            top, _, other = dotted.partition(".")
            while top == PACKAGE.name and other and other not in MODULES:
                other = other.rpartition(".")[0]
            if top == PACKAGE.name and other:
                others.add(other)
        found[name] = frozenset(others - {name})
    return found


# ---------------------------------------------------------------- the picture


@dataclass(frozen=True)
class Picture:
    """Boxes with the parts in them, and arrows between boxes."""

    boxes: Mapping[str, tuple[str, ...]]
    arrows: frozenset[tuple[str, str]]


def picture(text: str) -> Picture:
    """What a Mermaid flowchart says: ``id["title<br/>part, part"]``, and ``id --> id & id``."""
    boxes, arrows = {}, set()
    for line in text.splitlines()[1:]:
        if box := re.fullmatch(r'\s*(\w+)\["(?:[^"]*<br/>)?([^"]+)"\]', line):
            boxes[box[1]] = tuple(part.strip().removesuffix("/") for part in box[2].split(","))
        elif arrow := re.fullmatch(r"\s*(\w+) --> (\w+(?: & \w+)*)", line):
            arrows |= {(arrow[1], other) for other in arrow[2].split(" & ")}
        else:
            raise ValueError(f"neither a box nor an arrow: {line!r}")
    return Picture(boxes, frozenset(arrows))


BLOCKS = re.findall(r"```mermaid\n(flowchart TD\n.*?)```", PAGE, re.DOTALL)
PICTURE = picture(BLOCKS[0])


def between_boxes(boxes: Mapping[str, tuple[str, ...]], of: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Box -> the boxes from which a module in it imports."""
    box_of = {part: box for box, parts in boxes.items() for part in parts}
    found: dict[str, set[str]] = {box: set() for box in boxes}
    for name, others in of.items():
        box = box_of[name.partition(".")[0]]
        found[box] |= {box_of[other.partition(".")[0]] for other in others} - {box}
    return found


def reduced(graph: Mapping[str, set[str]]) -> set[tuple[str, str]]:
    """The fewest arrows along which the same can be reached.

    Raises:
        CycleError: the graph has a cycle.
    """
    reachable: dict[str, set[str]] = {}
    for node in TopologicalSorter(graph).static_order():
        reachable[node] = set(graph[node]).union(*(reachable[other] for other in graph[node]))
    return {
        (node, other)
        for node, others in graph.items()
        for other in others
        if not any(other in reachable[between] for between in others - {other})
    }


def test_every_part_is_in_one_box() -> None:
    drawn = [part for parts in PICTURE.boxes.values() for part in parts]
    assert len(BLOCKS) == 1
    assert sorted(drawn) == sorted(PARTS)


def test_the_arrows_are_the_imports() -> None:
    """Each arrow is an import, and each import an arrow or a way along arrows; no arrow could be left out."""
    real = between_boxes(PICTURE.boxes, imports())
    wanted = reduced(real)
    assert {arrow for arrow in PICTURE.arrows if arrow[1] not in real[arrow[0]]} == set(), "drawn, and no import"
    assert wanted - PICTURE.arrows == set(), "an import that is not drawn"
    assert PICTURE.arrows - wanted == set(), "drawn, and said by other arrows already"


@pytest.mark.parametrize(
    ("module", "other"),
    [("store.layout", "analysis.summary"), ("contracts", "digests"), ("reporting.words", "executors.base")],
)
def test_an_import_against_the_picture_is_seen(module: str, other: str) -> None:
    real = between_boxes(PICTURE.boxes, {**imports(), module: imports()[module] | {other}})
    with suppress(CycleError):
        assert reduced(real) != PICTURE.arrows


def test_an_arrow_that_is_no_import_is_seen() -> None:
    assert ("analysis", "store") not in reduced(between_boxes(PICTURE.boxes, imports()))


def test_no_module_imports_from_itself_by_a_detour() -> None:
    """Imports inside functions count: they hide a cycle from Python and not from a reader."""
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


# ---------------------------------------------------------------- the map


def mapped(heading: str) -> list[str]:
    """The modules that the tables below a heading name in their first column."""
    section = PAGE.partition(f"\n{heading}")[2]
    section = re.split(r"\n#{2,3} ", section, maxsplit=1)[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name.removesuffix("/") for row in rows for name in re.findall(r"`([^`]+)`", row)]


@pytest.mark.parametrize("package", MAPPED)
def test_the_map_has_every_module_of_a_package(package: str) -> None:
    there = [name.partition(".")[2] for name in MODULES if name.startswith(f"{package}.")]
    assert sorted(mapped(f"### `{package}/`")) == sorted(there)


def test_the_map_has_every_part() -> None:
    headings = ("### The contract", "### Words", "### Files", "### Processes", "### Packages that each hold one part")
    named = [name for heading in headings for name in mapped(heading)]
    top = {"plugin", "hookspecs", "stages", "__main__"}
    assert sorted([*named, *MAPPED, *top]) == sorted(PARTS)
    section = PAGE.partition("\n### The top")[2].partition("\n## ")[0]
    assert all(f"`{name}`" in section for name in top)


def test_boxes_and_map_agree() -> None:
    """A module stands below the heading of its box."""
    for title in ("contract", "words", "files", "processes"):
        heading = {"contract": "### The contract"}.get(title, f"### {title.capitalize()}")
        assert sorted(mapped(heading)) == sorted(PICTURE.boxes[title])


def test_modules_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", PAGE))
    assert named
    homes = (PACKAGE, ROOT, *(PACKAGE / package for package in MAPPED))
    assert [name for name in sorted(named) if not any((home / name).exists() for home in homes)] == []


# ---------------------------------------------------------------- sizes


def test_long_modules_are_named_with_their_subject() -> None:
    lengths = {name: len(path.read_text("utf-8").splitlines()) for name, path in MODULES.items()}
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}
    long = {name.replace(".", "/") for name, length in lengths.items() if length > LONG_MODULE}
    assert long - set(mapped("## Sizes")) == set(), "split it, or name it in docs/architecture.md with its one subject"


def long_functions(path: Path) -> Iterator[str]:
    """Functions with more lines than they may have, docstrings not counted."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            said = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) is not None else 0  # type: ignore[operator]
            if node.end_lineno - node.lineno + 1 - said > LONGEST_FUNCTION:  # type: ignore[operator]
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def test_no_function_needs_scrolling() -> None:
    assert [found for path in MODULES.values() for found in long_functions(path)] == []
