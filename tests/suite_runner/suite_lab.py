"""A small project in a folder, and attempts at its tests made with the runner itself."""

import itertools
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import (
    AttemptKey,
    AttemptRecord,
    AttemptRequest,
    CaseRef,
    Outcome,
    TaskRef,
    VariantRef,
)
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.runners.suite import SuiteRunner
from pytest_metricbench.running.attempts import Attempts, Performed
from pytest_metricbench.stages import load_experiment
from pytest_metricbench.store.layout import Layout

PRICES: Final = '''\
"""Prices of a shop."""

RATE = 10


def total(prices):
    result = 0
    for price in prices:
        result += price
    return result


def discount(price, percent):
    if percent > 100:
        raise ValueError("too much")
    if percent == 0:
        return price
    return price - price * percent / 100
'''
TESTS: Final = """\
import pytest

from shop import discount, total


def test_total():
    assert total([1, 2, 3]) == 6


def test_discount():
    assert discount(100, 50) == 50


def test_no_discount():
    assert discount(100, 0) == 100


def test_too_much():
    with pytest.raises(ValueError):
        discount(1, 101)
"""
FILE: Final = "tests/test_prices.py"
QUICK: Final = {"env": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}}
"""Without the plugins of an environment for development a server starts in a third of the time."""


def diff(path: str, line: int, old: str, new: str) -> str:
    """A patch of one line."""
    return f"--- a/{path}\n+++ b/{path}\n@@ -{line} +{line} @@\n-{old}\n+{new}\n"


class SuiteLab:
    """Makes a project, and attempts at its tests."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers = itertools.count()
        self._runners: list[SuiteRunner] = []
        self.folders: dict[str, list[Path]] = {}
        """Node id -> the workspaces of baseline attempts."""

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode("utf-8"))
        return path

    def shop(self, tests: str = TESTS, prices: str | bytes = PRICES) -> None:
        """The usual project: a package with one module, and a file of tests."""
        self.write("shop/__init__.py", "from shop.prices import discount, total\n")
        self.write("shop/prices.py", prices)
        self.write(FILE, tests)

    def runner(self, **keys: Any) -> SuiteRunner:
        given = {"source": ["shop"], "tests": "tests", **QUICK, **keys}
        runner = SuiteRunner.model_validate(given, context={"folder": self.path})
        self._runners.append(runner)
        return runner

    def close(self) -> None:
        for runner in self._runners:
            runner.close()

    # ------------------------------------------------ attempts

    def attempt(
        self,
        runner: SuiteRunner,
        nodeid: str,
        params: Mapping[str, Any] | None = None,
        *,
        variant: str = "",
        seed: int = 1,
    ) -> Outcome:
        """One attempt; without params it is the baseline's. What baseline attempts left is known to later ones."""
        nodeid = nodeid if "::" in nodeid else f"{FILE}::{nodeid}"
        workspace = self.path / "store" / str(next(self._numbers))
        known = tuple(self.folders.get(nodeid, ())) if params else ()
        if not params:
            self.folders.setdefault(nodeid, []).append(workspace)
        request = AttemptRequest(
            experiment="shop",
            case=CaseRef("shop"),
            variant=VariantRef(variant or ("mutant" if params else "baseline"), dict(params or {})),
            task=TaskRef("task", {"nodeid": nodeid}),
            attempt=1,
            seed=seed,
            trial_id=workspace.name,
            _workspace=str(workspace),
            baseline=known,
        )
        self.workspace = workspace
        return runner.run(request, workspace)

    def left(self) -> set[str]:
        """The files that the last attempt left."""
        return {path.name for path in self.workspace.iterdir()} if self.workspace.exists() else set()


def told(outcome: Outcome) -> tuple[str, str | int | None]:
    """An outcome in a word, with the score where there is one and the kind of error where there is none."""
    if outcome.kind == "scored":
        score = outcome.scores["passed"]
        assert isinstance(score, int)
        return outcome.kind, score
    return outcome.kind, None if outcome.error is None else outcome.error.type


def message(outcome: Outcome) -> str:
    assert outcome.error is not None
    return outcome.error.message


class Made:
    """All attempts of an experiment, made in this process in the order of the file."""

    def __init__(self, file: Path, store: Path, **runners: type[Runner]) -> None:
        self.experiment = load_experiment(file, runners_by_kind=runners)
        self.fingerprints = Fingerprints(self.experiment)
        self.layout = Layout(store)
        self.stored: dict[AttemptKey, AttemptRecord] = {}
        self.attempts = Attempts(self.experiment, self.fingerprints, self.layout, lambda: self.stored)

    def make(self) -> dict[AttemptKey, Performed]:
        found = {}
        for case, variant, task, slot in self.experiment.attempts():
            key = (case.id, variant.id, task.id, slot)
            found[key] = self.attempts.perform(case, variant, task, slot)
            self.stored[key] = found[key].record
        self.attempts.close()
        return found
