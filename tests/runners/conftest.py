"""What tests of runners share: a request, a workspace, and a runner made as the definition layer makes one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import AttemptRequest, CaseRef, Outcome, TaskRef, VariantRef
from pytest_metricbench.runners.python import PythonRunner
from tests.experiment_folder import folder, module

__all__ = ["folder", "module"]


@pytest.fixture
def request_of(tmp_path: Path) -> Callable[[], AttemptRequest]:
    """Makes the request of an attempt; always the same one, its workspace not made yet."""

    def make() -> AttemptRequest:
        return AttemptRequest(
            "refund-agent",
            CaseRef("refunds"),
            VariantRef("no-date", {"drop": "date", "nested": {"keep": [1, 2]}}),
            TaskRef("late", {"request": "äöü \u2603", "expected": ["refuse"]}),
            2,
            3141592653,
            "a1b2c3",
            str(tmp_path / "store" / "a1b2c3"),
        )

    return make


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Where the request's workspace is or will be."""
    return tmp_path / "store" / "a1b2c3"


@pytest.fixture
def make(folder: Path) -> Callable[..., Any]:
    """Makes a runner from its YAML keys, files relative to the experiment's folder."""

    def build(kind: type[Runner], /, **keys: Any) -> Runner:
        return kind.model_validate(keys, context={"folder": folder})

    return build


@pytest.fixture
def error_of() -> Callable[[Outcome], tuple[str, str, str]]:
    """Kind of outcome, type and phase of its error."""

    def of(outcome: Outcome) -> tuple[str, str, str]:
        assert outcome.error is not None
        assert not outcome.scores
        return outcome.kind, outcome.error.type, outcome.error.phase

    return of


@pytest.fixture
def build(make: Callable[..., Any], module: Callable[[str], str]) -> Callable[..., PythonRunner]:
    """Makes a runner from the text of a module that defines ``agent`` and perhaps ``verify``."""

    def of(text: str, **keys: Any) -> PythonRunner:
        name = module(text)
        if "def verify" in text:
            keys = {"verifier": f"{name}:verify"} | keys
        runner: PythonRunner = make(PythonRunner, agent=f"{name}:agent", **keys)
        return runner

    return of


@pytest.fixture
def perform(
    build: Callable[..., PythonRunner], request_of: Callable[[], AttemptRequest], workspace: Path
) -> Callable[..., Outcome]:
    """Runs the agent, and perhaps the verifier, of a module that is given as its text."""
    return lambda text, **keys: build(text, **keys).run(request_of(), workspace)
