"""Which way imports run: what ``docs/decisions.md`` and the order of the parts say, held against the real imports."""

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pytest_metricbench"

LAYERS = (
    {
        "contracts",
        "bases",
        "sources",
        "named_files",
        "kinds",
        "origins",
        "messages",
        "score_values",
        "digests",
        "answers",
        "argv",
        "plain_files",
        "private_names",
        "process_groups",
        "orphans",
        "processes",
        "targets",
        "deadlines",
        "atif",
        "budget",
        "stops",
        "executor_settings",
        "json_stream",
        "suite",
        "generating",
    },
    {"definition"},
    {"interop"},
    {"runners", "coverage", "store", "analysis"},
    {"running"},
    {"executors", "reporting", "stages"},
    {"starting"},
    {"pytest_side"},
    {"hookspecs"},
    {"plugin", "__main__"},
)
"""From the bottom up: a part imports from the layers below its own, and leaves (the first layer) from one another."""

KNOW_PYTEST = {"pytest_side", "reporting", "hookspecs", "plugin"}
INSIDE_THE_TESTED_PROJECT = {"suite/inside.py", "suite/inside_fork.py", "suite/inside_pytest.py"}
"""Run in a process of the tested project, whose tests are pytest's."""
TOUCH_THE_DISK = {"os", "io", "pathlib", "shutil", "tempfile", "glob"}

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def imported(path: Path) -> set[str]:
    """The dotted names that a module imports, wherever in it; what only a type checker sees is no import."""
    tree = ast.parse(path.read_text("utf-8"))
    unseen = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names = set()
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def layer_of(part: str) -> int:
    return next(number for number, parts in enumerate(LAYERS) if part in parts)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_upwards(path: Path) -> None:
    part = part_of(path)
    for name in imported(path):
        top, *below = name.split(".")
        if (
            top != "pytest_metricbench"
            or not below
            or (not (PACKAGE / below[0]).with_suffix(".py").exists() and not (PACKAGE / below[0]).is_dir())
        ):
            continue
        other = below[0]
        if other == part or (layer_of(part) == layer_of(other) == 0):
            continue
        assert layer_of(other) < layer_of(part), f"{path.name} imports {name}, which stands beside or above it"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_pytest_side_knows_pytest(path: Path) -> None:
    tops = {name.split(".")[0] for name in imported(path)}
    if part_of(path) not in KNOW_PYTEST and path.relative_to(PACKAGE).as_posix() not in INSIDE_THE_TESTED_PROJECT:
        assert not tops & {"pytest", "_pytest", "xdist"}
    if path.name != "scheduling.py":
        assert "xdist" not in tops


@pytest.mark.parametrize("path", sorted((PACKAGE / "analysis").glob("*.py")), ids=lambda path: path.name)
def test_analysis_touches_no_disk(path: Path) -> None:
    assert not {name.split(".")[0] for name in imported(path)} & TOUCH_THE_DISK
    calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}
    assert "open" not in calls


def test_every_part_has_its_layer() -> None:
    parts = {part_of(path) for path in MODULES}
    assert parts == set().union(*LAYERS)
