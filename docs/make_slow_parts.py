"""Writes the tables of docs/testing.md: which test files are slow, benchmarks, or need the real thing of others.

    python docs/make_slow_parts.py [junit.xml ...]

The markers are read from the files. Seconds are taken from reports of ``pytest --junit-xml`` where some are given, and
otherwise stay as they are on the page. The same without reports, with METRICBENCH_WRITE_DOCS=1 and
tests/docs/test_slow_parts.py, which otherwise fails where the page does not list what is marked.
"""

import ast
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "testing.md"
MARKERS: Final = ("slow", "benchmark", "upstream", "harbor")
UNKNOWN: Final = "?"
"""Stands for the seconds of a file that no report was given of."""


def marks(node: ast.AST) -> set[str]:
    """The markers that a piece of code names as ``pytest.mark.<marker>``."""
    named = (part for part in ast.walk(node) if isinstance(part, ast.Attribute) and part.attr in MARKERS)
    return {part.attr for part in named if isinstance(part.value, ast.Attribute) and part.value.attr == "mark"}


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a file, and those of its classes."""
    for node in tree.body:
        for part in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                yield part


def marked_fixtures(folder: Path) -> dict[str, set[str]]:
    """Name of a fixture of a folder's conftest.py whose parameters carry markers -> these."""
    conftest = folder / "conftest.py"
    if not conftest.is_file():
        return {}
    return {node.name: marks(node) for node in functions(ast.parse(conftest.read_text("utf-8")))}


@dataclass(frozen=True)
class Marked:
    """A test file some of whose tests carry markers."""

    path: str
    some: set[str]
    """Markers that tests of it carry."""
    every: set[str]
    """Markers that all tests of it carry, by ``pytestmark``."""
    about: str
    """The first sentence of its docstring."""


def marked_files() -> list[Marked]:
    """The test files that name a marker, or use a fixture of their folder that does, in order."""
    found = []
    for folder in sorted({path.parent for path in (ROOT / "tests").rglob("test_*.py")}):
        fixtures = marked_fixtures(folder)
        for path in sorted(folder.glob("test_*.py")):
            text = path.read_text("utf-8")
            if "pytest.mark" in text or any(fixtures.values()):
                found.append(_marked(path, ast.parse(text), fixtures))
    return [file for file in found if file.some]


def _marked(path: Path, tree: ast.Module, fixtures: Mapping[str, set[str]]) -> Marked:
    used = {entry.arg for node in functions(tree) if node.name.startswith("test") for entry in node.args.args}
    given = {marker for name, carried in fixtures.items() if name in used for marker in carried}
    assigned = (node for node in tree.body if isinstance(node, ast.Assign))
    every = {marker for node in assigned if ast.unparse(node.targets[0]) == "pytestmark" for marker in marks(node)}
    about = " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())
    return Marked(path.relative_to(ROOT).as_posix(), marks(tree) | given, every, about)


def seconds_of(reports: list[Path]) -> dict[str, float]:
    """Path of a test file -> seconds that its tests took in some reports."""
    spent: dict[str, float] = {}
    for case in (case for report in reports for case in ET.parse(report).getroot().iter("testcase")):
        parts = case.attrib["classname"].split(".")
        for length in range(len(parts), 0, -1):
            path = f"{'/'.join(parts[:length])}.py"
            if (ROOT / path).is_file():
                spent[path] = spent.get(path, 0.0) + float(case.attrib["time"])
                break
    return spent


def seconds_on(page: str) -> dict[str, str]:
    """Path of a test file -> the seconds that the page says."""
    return dict(re.findall(r"^\| `(tests/[^`]+)` \| \w+ \| (\S+) \|", page, re.M))


def table(marker: str, files: Iterable[Marked], seconds: Mapping[str, str]) -> str:
    """The table of a marker, in Markdown."""
    rows = [
        f"| `{file.path}` | {'all' if marker in file.every else 'some'} | {seconds.get(file.path, UNKNOWN)} | "
        + file.about.replace("|", r"\|")
        + " |"
        for file in files
        if marker in file.some
    ]
    return "\n".join(["| file | tests | s | about |", "|---|---|---|---|", *rows])


def page(text: str, reports: list[Path]) -> str:
    """The page with its tables as they are now.

    Args:
        text: the page as it is.
        reports: JUnit files to take seconds from.
    """
    measured = {path: f"{spent:.1f}" for path, spent in seconds_of(reports).items()}
    seconds, files = seconds_on(text) | measured, marked_files()
    for marker in MARKERS:
        place = re.compile(rf"(<!-- {marker} -->\n).*?(<!-- end -->)", re.S)
        new = table(marker, files, seconds)
        places = place.findall(text)
        if len(places) != 1:
            raise ValueError(
                f"docs/testing.md has {len(places)} places <!-- {marker} --> ... <!-- end -->; it needs one"
            )
        begin, end = places[0]
        text = place.sub(lambda _, new=f"{begin}{new}\n{end}": new, text)  # type: ignore[misc]
    return text


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text("utf-8"), [Path(name) for name in sys.argv[1:]]), encoding="utf-8")
    print("docs/testing.md")


if __name__ == "__main__":
    main()
