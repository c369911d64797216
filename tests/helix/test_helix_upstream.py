"""A live Helix server, with the ``subprocess`` backend: ``METRICBENCH_HELIX_URL`` says where; docs/helix.md says how.

``METRICBENCH_HELIX_TOKEN_ENV`` names the variable with its token, where it wants one.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.runners.helix.client import HelixClient
from pytest_metricbench.runners.helix.runner import HelixRunner
from tests.helix.helix_lab import Ask, error_of, message_of

URL = os.environ.get("METRICBENCH_HELIX_URL")
pytestmark = [
    pytest.mark.upstream,
    pytest.mark.slow,
    pytest.mark.skipif(URL is None, reason="METRICBENCH_HELIX_URL names no Helix server"),
]
AGENT = """\
import json, pathlib, sys, time

request = json.loads(pathlib.Path("request.json").read_text())
pathlib.Path("trace.txt").write_text(request["task"]["id"])
if request["attempt"] == 2:
    sys.exit(3)
time.sleep(60 if request["attempt"] == 3 else 0)
pathlib.Path("response.json").write_text(json.dumps({"scores": {"reward": 1.0}}))
"""


@pytest.fixture
def connect(folder: Path) -> Iterator[Callable[..., HelixRunner]]:
    """Makes a runner for the server, as a process of its own would."""
    (folder / "agent.py").write_text(AGENT)
    made: list[HelixRunner] = []

    def build(**keys: Any) -> HelixRunner:
        usual: dict[str, Any] = {
            "base_url": URL,
            "executor": {"provider": "subprocess"},
            "command": ["python3", "agent.py"],
            "token_env": os.environ.get("METRICBENCH_HELIX_TOKEN_ENV"),
            "timeout": 5,
            "job_timeout": 120,
            "max_in_flight": 4,
        }
        made.append(HelixRunner.model_validate(usual | keys, context={"folder": folder}))
        return made[-1]

    yield build
    for runner in made:
        runner.close()


@pytest.fixture
def fingerprint() -> str:
    """Of no other run: a live server remembers."""
    return f"sha256:{secrets.token_hex(32)}"


def test_attempts_on_a_live_server(connect: Callable[..., HelixRunner], ask: Ask, fingerprint: str) -> None:
    runner = connect()
    requests = [ask(slot=slot, fingerprint=fingerprint) for slot in (1, 2, 3, 4)]
    for request in requests:
        runner.begin(request, request.workspace)
    scored, failed, late, again = (runner.run(request, request.workspace) for request in requests)
    assert scored.kind == again.kind == "scored", (scored, again)
    assert scored.scores == {"reward": 1.0}
    assert error_of(failed) == ("died", "AgentFailed", "agent")
    assert "exit status 3" in message_of(failed)
    assert error_of(late) == ("died", "TimeOut", "agent")
    assert all((request.workspace / "trace.txt").read_text() == "late" for request in requests)
    client = runner._client
    assert all(client.status(outcome.trial_name or "") is None for outcome in (scored, failed, late, again))


def test_a_job_on_a_live_server_is_found_again(connect: Callable[..., HelixRunner], ask: Ask, fingerprint: str) -> None:
    first, second = ask(fingerprint=fingerprint), ask(fingerprint=fingerprint)
    killed = connect()
    killed.begin(first, first.workspace)
    (name,) = [job.name for job in killed._jobs._jobs.values()]
    outcome = connect().run(second, second.workspace)
    assert outcome.kind == "scored", outcome
    assert outcome.trial_name == name


def await_status(client: HelixClient, name: str, status: str) -> None:
    """Wait until a job has a status."""
    end = time.monotonic() + 60
    while (seen := (client.status(name) or {}).get("status")) != status:
        assert time.monotonic() < end, f"{name} is {seen} and not {status}"
        time.sleep(0.2)


def test_a_job_on_a_live_server_is_cancelled(connect: Callable[..., HelixRunner], ask: Ask, fingerprint: str) -> None:
    runner, request = connect(), ask(slot=3, fingerprint=fingerprint)
    runner.begin(request, request.workspace)
    (name,) = [job.name for job in runner._jobs._jobs.values()]
    client = runner._client
    await_status(client, name, "active")
    runner.close()
    await_status(client, name, "cancelled")
    client.delete(name)
    client.close()


def test_refusals_of_a_live_server(connect: Callable[..., HelixRunner], ask: Ask) -> None:
    request = ask()
    outcome = connect(workspace="no-such-workspace").run(request, request.workspace)
    assert error_of(outcome) == ("unmeasured", "HelixRefused", "setup")
    assert "Workspace 'no-such-workspace' does not exist" in message_of(outcome)
    outcome = connect(executor={"provider": "subprocess", "profile": "no-such"}).run(request, request.workspace)
    assert error_of(outcome) == ("unmeasured", "NoSuchProfile", "setup")
