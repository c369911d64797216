"""What tests of the ``helix`` runner share: a server, a runner made as the definition layer makes one, requests."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.contracts import AttemptRequest, CaseRef, Outcome, TaskRef, VariantRef
from pytest_metricbench.runners.helix.runner import HelixRunner
from tests.experiment_folder import folder
from tests.helix.helix_lab import SCORED, Ask, Make, Perform
from tests.helix.helix_server import HelixServer

__all__ = ["folder"]

collect_ignore_glob = [] if importlib.util.find_spec("httpx") else ["test_*.py"]
"""Nothing of this runs without the client: ``pip install 'pytest-metricbench[helix]'``."""


@pytest.fixture
def server() -> Iterator[HelixServer]:
    server = HelixServer()
    yield server
    server.close()


@pytest.fixture
def make(server: HelixServer, folder: Path) -> Iterator[Make]:
    """Makes a runner for the server whose agent is a shell text or an argv; it looks often and tries again soon."""
    made: list[HelixRunner] = []

    def build(command: str | list[str] = SCORED, **keys: Any) -> HelixRunner:
        keys = {
            "base_url": server.url,
            "executor": {"provider": "subprocess"},
            "command": ["/bin/sh", "-c", command] if isinstance(command, str) else command,
            "poll": 0.02,
            "timeout": 20,
            "transport_retries": 2,
        } | keys
        runner = HelixRunner.model_validate(keys, context={"folder": folder})
        made.append(runner)
        return runner

    yield build
    for runner in made:
        runner.close()


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Makes the request of an attempt, and its workspace."""
    counter = iter(range(1, 10_000))

    def of(task: str = "late", slot: int = 1, fingerprint: str = "sha256:" + "ab12" * 16) -> AttemptRequest:
        trial = f"trial{next(counter)}"
        workspace = tmp_path / "store" / trial
        workspace.mkdir(parents=True)
        variant = VariantRef("no-date", {"drop": "date"})
        where = str(workspace)
        case, named = CaseRef("refunds"), TaskRef(task, {"n": 3})
        return AttemptRequest("refund-agent", case, variant, named, slot, 99, trial, where, fingerprint=fingerprint)

    return of


@pytest.fixture
def perform(make: Make, ask: Ask) -> Perform:
    """Runs one attempt with an agent given as a shell text."""

    def run(command: str | list[str] = SCORED, **keys: Any) -> Outcome:
        request = ask()
        return make(command, **keys).run(request, request.workspace)

    return run


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow one another sooner than a real server would want it."""
    monkeypatch.setattr("pytest_metricbench.runners.helix.client.LONGEST_PAUSE", 0.01)
