"""How pytest is run in a process of the tested project: what is imported ahead, and which options are overruled.

All that these processes use of pytest's private names stands here: the modules that are imported ahead, where
``AssertionRewritingHook`` finds files (its ``find_spec``), and how marks are judged. Each has a test in
``tests/test_private_names.py``. With a pytest that lacks one, modules are imported later, mutants of rewritten files
are found not to be in force, and skipped tests are learned of by running them.
"""

import importlib
import io
import os
import sys
import sysconfig
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final, TextIO

import pytest

from pytest_metricbench.suite.overlay import Overlay

OVERRULED: Final = (
    ("no_cov", True, "--no-cov"),
    ("numprocesses", 0, "--numprocesses=0"),
    ("dist", "no", "--dist=no"),
    ("randomly_reorganize", False, "--randomly-dont-reorganize"),
)
"""Options of pytest-cov, pytest-xdist and pytest-randomly: name in their namespace, value, and as it is written."""
_USED_BY_PYTEST: Final = (
    *("_pytest.assertion.rewrite", "_pytest.assertion.util", "_pytest.fixtures", "_pytest.python", "_pytest.unittest"),
    *("_pytest.terminal", "_pytest.junitxml", "_pytest.tmpdir", "_pytest.cacheprovider", "_pytest.doctest"),
    *("unittest", "unittest.mock", "tempfile", "asyncio", "importlib.metadata", "difflib", "pprint", "faulthandler"),
)


def import_pytest() -> None:
    """Import what every pytest session uses. A module that this pytest does not have is left out."""
    for name in _USED_BY_PYTEST:
        with suppress(ImportError):
            importlib.import_module(name)


def import_plugins(folder: str) -> None:
    """Import the plugins that are installed, as pytest does it and with its rewriting: by a session of no tests.

    Args:
        folder: an empty one.
    """
    with suppress(BaseException):  # a plugin that cannot be loaded is told of where tests are collected
        pytest.main(
            ["--collect-only", "-q", f"--rootdir={folder}", f"--confcutdir={folder}", *own_options(folder), folder]
        )


def hide() -> None:
    """Take this package out of what is imported: a project may be this one, or refuse what pytest would warn of."""
    for name in [name for name in sys.modules if name.partition(".")[0] == __name__.partition(".")[0]]:
        del sys.modules[name]


def own_options(scratch: str) -> list[str]:
    """Options that win over the project's: nothing is captured, nothing kept beside the tests."""
    return ["--capture=no", "-p", "no:metricbench", "-o", f"cache_dir={scratch}/cache"]


class Extensions:
    """The hooks of pytest-metricbench, as far as pytest must know that there are such."""

    def pytest_metricbench_runners(self, config: object) -> None:
        """Nobody calls it here."""

    def pytest_metricbench_coverage_systems(self, config: object) -> None:
        """Nobody calls it here."""

    def pytest_metricbench_generators(self, config: object) -> None:
        """Nobody calls it here."""

    def pytest_metricbench_text_operators(self, config: object) -> None:
        """Nobody calls it here."""


class Quiet(io.TextIOBase):
    """The ``sys.stdout`` that pytest's terminal report finds: goes to the log, and nowhere once tests are attempted.

    It is no descriptor, which a test could close.
    """

    def __init__(self, log: TextIO) -> None:
        """Write to ``log``."""
        self._log: Final = log
        self.silent = False

    def write(self, text: str) -> int:
        """Write, or not."""
        return len(text) if self.silent else self._log.write(text)

    def flush(self) -> None:
        """Let what is written be in the log."""
        if not self.silent:
            self._log.flush()

    def fileno(self) -> int:
        """That of the log."""
        return self._log.fileno()

    def writable(self) -> bool:
        """It can be written to."""
        return True


def dependencies(before: AbstractSet[str]) -> list[str]:
    """Modules imported since ``before`` that are an installed package's or Python's own, and nobody else's."""
    installed = tuple(
        os.path.realpath(path) + os.sep
        for key in ("stdlib", "platstdlib", "purelib", "platlib")
        if (path := sysconfig.get_paths().get(key))
    )
    found = []
    for name in [name for name in sys.modules if name not in before]:
        spec = getattr(sys.modules[name], "__spec__", None)
        loader = type(getattr(spec, "loader", None)).__module__
        origin = getattr(spec, "origin", None)
        plain = spec is not None and spec.name == name and loader.startswith(("_frozen_importlib", "importlib."))
        if plain and isinstance(origin, str) and os.path.realpath(origin).startswith(installed):
            found.append(name)
    return found


def environment() -> dict[str, str]:
    """The variables of the environment but those that pytest sets."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


def let_others_load(mutated: Overlay) -> None:
    """Keep pytest from loading mutated files: it reads the modules that it rewrites past Python's loader."""
    try:
        from _pytest.assertion.rewrite import AssertionRewritingHook
    except ImportError:  # another pytest: what it loads is found not to be in force
        return
    find = AssertionRewritingHook.find_spec

    def find_spec(hook: AssertionRewritingHook, name: str, *arguments: Any, **keywords: Any) -> Any:
        spec = find(hook, name, *arguments, **keywords)
        return None if spec is not None and mutated.place_of(spec.origin) is not None else spec

    AssertionRewritingHook.find_spec = find_spec  # type: ignore[method-assign, assignment]


def is_marked_idle(item: pytest.Item) -> bool:
    """Whether pytest would skip the test for its marks, or expects it to fail: ``_pytest.skipping.evaluate_...``.

    Raises:
        BaseException: whatever a mark's condition raises.
        ImportError: this pytest has no such functions.
    """
    from _pytest.skipping import evaluate_skip_marks, evaluate_xfail_marks

    return evaluate_skip_marks(item) is not None or evaluate_xfail_marks(item) is not None


def what_matters(log: str) -> str:
    """The line of pytest's output that says why it ended, or else its end."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("E ", "ERROR: ", "INTERNALERROR> ", "ImportError"))]
    errors = [line for line in marked if line.startswith("E ")]
    chosen = errors or marked[-1:] or lines[-5:]
    return " ".join(line.removeprefix("INTERNALERROR> ").removeprefix("E ").strip() for line in chosen)
