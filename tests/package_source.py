"""The source of the package, parsed once for all tests that look at it."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pytest_metricbench"


def _modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
        if name != "__init__":
            found[name.removesuffix(".__init__")] = path
    return found


MODULES: Mapping[str, Path] = _modules()
"""Dotted name below the package -> file; a package is named like its folder. Without the package itself."""


@cache
def tree(path: Path) -> ast.Module:
    """A module, parsed."""
    return ast.parse(path.read_text("utf-8"))


@cache
def imported(path: Path) -> frozenset[str]:
    """The dotted names that a module imports, wherever in it; what only a type checker sees is no import."""
    return frozenset(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    unseen = {
        id(inner)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import) and id(node) not in unseen:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and id(node) not in unseen:
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
