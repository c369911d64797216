"""Harbor datasets and projects with tests in a folder."""

import ast
import os
import re
import shutil
import tomllib
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from pytest_metricbench.messages import counted
from pytest_metricbench.starting.finding import Finding, files_in, folders_in, text_of

TASK_FILE: Final = "task.toml"
_NO_SOURCE: Final = frozenset(
    {"tests", "test", "testing", "docs", "doc", "examples", "example", "benchmarks", "scripts", "tools", "datasets"}
)
_NO_MODULE: Final = re.compile(r"(setup|conftest|noxfile|manage|test_.*|.*_test|metricbench_.*|__.*)\.py")
_TEST_FILE: Final = re.compile(r"test_.*\.py|.*_test\.py")
_PLACES: Final = 2000
"""Folders in which a dataset is looked for."""
_FILES: Final = 2000
"""Test files that are looked at."""


def find_dataset(folder: Path) -> Finding | None:
    """The Harbor dataset with most tasks: a folder, at most three below, whose folders have a ``task.toml``."""
    places = [place for place in islice(_below(folder, 3), _PLACES) if not os.path.isfile(place / TASK_FILE)]
    found = [(tasks, place) for place in places if (tasks := _tasks(place))]
    if not found:
        return None
    tasks, place = max(found, key=lambda one: len(one[0]))
    name = place.relative_to(folder).as_posix()
    first = (tasks[0] / TASK_FILE).relative_to(folder).as_posix()
    others = f" and {len(tasks) - 1} more" if len(tasks) > 1 else ""
    values = {
        "dataset": name,
        "tasks": len(tasks),
        "strangers": [path.name for path in folders_in(place) if path not in tasks],
        "docker": shutil.which("docker") is not None,
    }
    return Finding("harbor", f"found {first}{others}", values)


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """A folder and those below it; what is in a task is no dataset."""
    yield folder
    if depth and not os.path.isfile(folder / TASK_FILE):
        for inner in folders_in(folder):
            yield from _below(inner, depth - 1)


def _tasks(place: Path) -> list[Path]:
    """The folders in it that are Harbor tasks; other tools have a task.toml too."""
    return [
        path
        for path in folders_in(place)
        if os.path.isfile(path / TASK_FILE) and os.path.isfile(path / "instruction.md") and _is_toml(path / TASK_FILE)
    ]


def _is_toml(path: Path) -> bool:
    try:
        return bool(tomllib.loads(text_of(path) or ""))
    except tomllib.TOMLDecodeError:
        return False


# ---------------------------------------------------------------- test suites


def find_suite(folder: Path) -> Finding | None:
    """A project's tests, with the source that they are of."""
    tests = _tests(folder)
    source = _source(folder)
    if tests is None or not source:
        return None
    count = sum(_tests_in(path) for path in _test_files(folder / tests))
    reason = f"found {tests}/ with {counted(count, 'test function')}, and {', '.join(source)}"
    return Finding("suite", reason, {"tests": tests, "source": source, "count": count})


def _tests(folder: Path) -> str | None:
    """The folder of the tests, relative; the first of the usual places that has test files."""
    packages = [path for path in folders_in(folder) if path.name not in _NO_SOURCE]
    for place in (folder / "tests", folder / "test", *(package / "tests" for package in packages)):
        if os.path.isdir(place) and next(_test_files(place), None) is not None:
            return place.relative_to(folder).as_posix()
    return None


def _test_files(place: Path) -> Iterator[Path]:
    seen = 0
    for parent, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        for name in sorted(names):
            if _TEST_FILE.fullmatch(name) and seen < _FILES:
                seen += 1
                yield Path(parent, name)


def _tests_in(path: Path) -> int:
    """Test functions in a file, before their parameters are counted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text_of(path) or "")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return 0
    inner = (part for node in tree.body for part in ([node] if not isinstance(node, ast.ClassDef) else node.body))
    return sum(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test") for node in inner
    )


def _source(folder: Path) -> list[str]:
    """What the tests are of: the source tree, or else the packages, or else the modules of a folder."""
    if any(_has_python(path) for path in folders_in(folder / "src")) or _has_python(folder / "src"):
        return ["src"]
    packages = [
        path.name
        for path in folders_in(folder)
        if path.name not in _NO_SOURCE and path.name.isidentifier() and os.path.isfile(path / "__init__.py")
    ]
    if packages:
        return packages
    return [path.name for path in files_in(folder) if path.suffix == ".py" and not _NO_MODULE.fullmatch(path.name)]


def _has_python(folder: Path) -> bool:
    return any(path.suffix == ".py" for path in files_in(folder))
