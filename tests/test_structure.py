"""Who may import what: neighbours, pytest and pytest-xdist, the disk. ``test_architecture.py`` has the picture."""

import ast
from pathlib import Path

import pytest

from tests.package_source import MODULES, PACKAGE, imported, tree

NEIGHBOURS = ("runners", "coverage", "store", "analysis", "interop")
"""Packages that do not know each other; only runners know ``interop``."""
KNOW_PYTEST = {"pytest_side", "reporting", "hookspecs", "plugin"}
INSIDE_THE_TESTED_PROJECT = {"suite/inside.py", "suite/inside_fork.py", "suite/inside_pytest.py"}
"""Run in a process of the tested project, whose tests are pytest's."""
TOUCH_THE_DISK = {"os", "io", "pathlib", "shutil", "tempfile", "glob"}

PATHS = sorted(MODULES.values())


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("package", NEIGHBOURS)
def test_neighbours_do_not_know_each_other(package: str) -> None:
    others = set(NEIGHBOURS) - {package} - ({"interop"} if package == "runners" else set())
    for path in sorted((PACKAGE / package).rglob("*.py")):
        known = {name.split(".")[1] for name in imported(path) if name.startswith("pytest_metricbench.")}
        assert not known & others, f"{path} imports from {known & others}"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_pytest_side_knows_pytest(path: Path) -> None:
    tops = {name.split(".")[0] for name in imported(path)}
    if part_of(path) not in KNOW_PYTEST and path.relative_to(PACKAGE).as_posix() not in INSIDE_THE_TESTED_PROJECT:
        assert not tops & {"pytest", "_pytest", "xdist"}
    if path.name != "scheduling.py":
        assert "xdist" not in tops


@pytest.mark.parametrize("path", sorted((PACKAGE / "analysis").glob("*.py")), ids=lambda path: path.name)
def test_analysis_touches_no_disk(path: Path) -> None:
    assert not {name.split(".")[0] for name in imported(path)} & TOUCH_THE_DISK
    calls = {ast.unparse(node.func) for node in ast.walk(tree(path)) if isinstance(node, ast.Call)}
    assert "open" not in calls
