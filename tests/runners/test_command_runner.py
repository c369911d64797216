"""The command runner, outcome by outcome, with real processes."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_metricbench import processes
from pytest_metricbench.contracts import AttemptRequest, Outcome
from pytest_metricbench.runners.command import CommandRunner

SCORED = """printf '{"scores": {"reward": 1.0, "tone": "polite"}}' > response.json"""
Perform = Callable[..., Outcome]


def sh(text: str) -> list[str]:
    return ["/bin/sh", "-c", text]


@pytest.fixture
def perform(make: Callable[..., Any], request_of: Callable[[], AttemptRequest], workspace: Path) -> Perform:
    """Runs an agent and a verifier, given as shell texts, in a new workspace."""

    def run(agent: str | list[str], verifier: str | list[str] | None = None, **keys: Any) -> Outcome:
        for step, given in (("agent", agent), ("verifier", verifier)):
            if given is not None:
                keys[step] = sh(given) if isinstance(given, str) else given
        runner = make(CommandRunner, **({"timeout": 20} | keys))
        workspace.mkdir(parents=True)
        outcome: Outcome = runner.run(request_of(), workspace)
        return outcome

    return run


# ---------------------------------------------------------------- the table of outcomes


@pytest.mark.parametrize(
    ("agent", "verifier", "kind", "error", "phase"),
    [
        (SCORED, None, "scored", None, None),
        ("true", SCORED, "scored", None, None),
        ("exit 1", SCORED, "died", "AgentFailed", "agent"),
        (f"{SCORED}; exit 1", None, "died", "AgentFailed", "agent"),
        ("kill -KILL $$", SCORED, "died", "AgentFailed", "agent"),
        ("kill -SEGV $$", None, "died", "AgentFailed", "agent"),
        (f"{SCORED}; sleep 20", None, "died", "TimeOut", "agent"),
        ("sleep 20", SCORED, "died", "TimeOut", "agent"),
        ("true", "exit 1", "unmeasured", "VerifierFailed", "verifier"),
        ("true", f"{SCORED}; exit 3", "unmeasured", "VerifierFailed", "verifier"),
        ("true", "kill -KILL $$", "unmeasured", "VerifierFailed", "verifier"),
        ("true", f"{SCORED}; sleep 20", "unmeasured", "TimeOut", "verifier"),
        ("true", "true", "unmeasured", "ContractError", "contract"),
        (SCORED, "true", "unmeasured", "ContractError", "contract"),
        ("true", None, "unmeasured", "ContractError", "contract"),
        ("echo > response.json", None, "unmeasured", "ContractError", "contract"),
        ("true", "echo '[1]' > response.json", "unmeasured", "ContractError", "contract"),
        ("true", "ln -s response.json response.json", "unmeasured", "ContractError", "contract"),
        ("true", "ln -s /dev/zero response.json", "unmeasured", "ContractError", "contract"),
        ("true", "mkfifo response.json", "unmeasured", "ContractError", "contract"),
        ("true", "mkdir response.json", "unmeasured", "ContractError", "contract"),
        ("true", "head -c 2000000 /dev/zero > response.json", "unmeasured", "ContractError", "contract"),
    ],
)
def test_outcomes(
    perform: Perform, agent: str, verifier: str | None, kind: str, error: str | None, phase: str | None
) -> None:
    outcome = perform(agent, verifier, timeout=0.5 if error == "TimeOut" else 20)
    assert outcome.kind == kind
    if error is None:
        assert outcome.error is None
        assert outcome.scores == {"reward": 1.0, "tone": "polite"}
    else:
        assert outcome.error is not None
        assert (outcome.error.type, outcome.error.phase) == (error, phase)
        assert outcome.scores == {}
    assert outcome.time_limit == (0.5 if (kind, error) == ("died", "TimeOut") else None)


@pytest.mark.parametrize(("answer", "reward"), [("1", 1), ("true", True), ('"1"', "1"), ("null", None), ("-0.5", -0.5)])
def test_scores_come_as_the_verifier_gave_them(perform: Perform, answer: str, reward: object) -> None:
    outcome = perform("true", f"""echo '{{"scores": {{"reward": {answer}}}}}' > response.json""")
    assert outcome.scores == {"reward": reward}
    assert type(outcome.scores["reward"]) is type(reward)


@pytest.mark.parametrize("step", ["agent", "verifier"])
def test_an_executable_that_vanished(
    perform: Perform, folder: Path, step: str, make: Callable[..., Any], request_of: Any, workspace: Path
) -> None:
    executable = folder / "tool"
    executable.write_text("#!/bin/sh\n")
    executable.chmod(0o755)
    runner = make(CommandRunner, **({"agent": sh("true")} | {step: [str(executable)]}))
    executable.unlink()
    workspace.mkdir(parents=True)
    outcome = runner.run(request_of(), workspace)
    assert outcome.kind == "unmeasured"
    assert outcome.error.type == "CannotStartError"
    assert outcome.error.phase == ("setup" if step == "agent" else "verifier")
    assert str(executable) in outcome.error.message


# ---------------------------------------------------------------- messages


def test_a_dead_agent_is_told_with_the_end_of_its_stderr(perform: Perform) -> None:
    outcome = perform("echo ok; for i in $(seq 2000); do echo line $i >&2; done; exit 7")
    assert outcome.error is not None
    first, _, tail = outcome.error.message.partition("\n")
    assert first == "the agent ended with exit status 7; the end of its stderr:"
    assert tail.endswith("line 1999\nline 2000")
    assert len(tail) <= 2000


def test_a_silent_death_says_so(perform: Perform) -> None:
    outcome = perform("kill -TERM $$")
    assert outcome.error is not None
    assert outcome.error.message == "the agent was killed by SIGTERM; it wrote nothing to stderr"


def test_a_failed_verifier_is_told(perform: Perform) -> None:
    outcome = perform("echo agent >&2", "echo judge is out >&2; exit 2")
    assert outcome.error is not None
    assert outcome.error.message == "the verifier ended with exit status 2; the end of its stderr:\njudge is out"


@pytest.mark.parametrize(("verifier", "who"), [("true", "verifier"), (None, "agent")])
def test_a_broken_contract_names_who_broke_it(perform: Perform, verifier: str | None, who: str) -> None:
    outcome = perform("true", verifier)
    assert outcome.error is not None
    assert outcome.error.message == f"the {who}'s answer: response.json was not written"


def test_an_agent_that_prints_too_much_died(perform: Perform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "OUTPUT_LIMIT", 2 << 20)
    outcome = perform("yes", SCORED)
    assert outcome.kind == "died"
    assert outcome.error is not None
    assert "more than 2 MiB" in outcome.error.message
    assert outcome.time_limit is None


# ---------------------------------------------------------------- what the steps are given


def test_the_request_is_a_file_in_the_workspace(
    perform: Perform, workspace: Path, request_of: Callable[[], AttemptRequest]
) -> None:
    perform(f"cp request.json seen.json; pwd > where; {SCORED}")
    seen = json.loads((workspace / "seen.json").read_text(encoding="utf-8"))
    assert seen == request_of().to_json()
    assert seen == {
        "metricbench": 1,
        "experiment": "refund-agent",
        "case": {"id": "refunds"},
        "variant": {"id": "no-date", "params": {"drop": "date", "nested": {"keep": [1, 2]}}},
        "task": {"id": "late", "params": {"request": "äöü \u2603", "expected": ["refuse"]}},
        "attempt": 2,
        "seed": 3141592653,
        "trial_id": "a1b2c3",
        "workspace": str(workspace),
    }
    assert (workspace / "where").read_text().strip() == str(workspace)


@pytest.mark.parametrize(
    "damage", ["echo '{}' > request.json", "rm request.json", "rm request.json; ln -s /etc/passwd request.json"]
)
def test_the_verifier_sees_the_request_as_it_was(perform: Perform, workspace: Path, damage: str) -> None:
    outcome = perform(damage, f"cp request.json seen.json; {SCORED}")
    assert outcome.kind == "scored"
    assert json.loads((workspace / "seen.json").read_text())["trial_id"] == "a1b2c3"


def test_the_environment_is_clean(perform: Perform, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-x")
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    monkeypatch.setenv("TOKEN", "secret")
    monkeypatch.setenv("OTHER", "not asked for")
    monkeypatch.setenv("LANG", "C.UTF-8")
    dump = [sys.executable, "-ISc", "import os, json; json.dump(dict(os.environ), open(os.environ['OUT'], 'w'))"]
    outcome = perform(["/usr/bin/env", "OUT=agent.env", *dump], ["/usr/bin/env", "OUT=verifier.env", *dump],
                      env={"TOKEN": None, "MODE": "test"})  # fmt: skip
    assert outcome.error is not None
    assert outcome.error.type == "ContractError"
    for step in ("agent", "verifier"):
        seen = json.loads((workspace / f"{step}.env").read_text())
        assert seen.pop("OUT")
        seen.pop("LC_CTYPE", None)  # Python sets it for itself
        expected = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        assert seen == expected | {"TOKEN": "secret", "MODE": "test"}
    for file in workspace.iterdir():
        if not file.name.endswith(".env"):
            assert "secret" not in file.read_text()


def test_a_variable_that_is_not_set_leaves_the_attempt_unmeasured(
    perform: Perform, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    outcome = perform("touch ran", env={"TOKEN": None})
    assert outcome.kind == "unmeasured"
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.phase) == ("MissingVariableError", "setup")
    assert "TOKEN" in outcome.error.message
    assert not (workspace / "ran").exists()


def test_scripts_beside_the_yaml_are_found_from_the_workspace(perform: Perform, folder: Path, workspace: Path) -> None:
    (folder / "agent.py").write_text("open('left', 'w').write('x')\n")
    (folder / "verify.py").write_text(
        "import json, os\njson.dump({'scores': {'reward': os.path.exists('left')}}, open('response.json', 'w'))\n"
    )
    assert perform(["{python}", "agent.py"], ["{python}", "verify.py"]).scores == {"reward": True}
    assert {path.name for path in workspace.iterdir()} == {
        "request.json", "response.json", "left", "agent.stdout", "agent.stderr", "verifier.stdout", "verifier.stderr",
    }  # fmt: skip


# ---------------------------------------------------------------- what an agent leaves for the verifier


@pytest.mark.parametrize(
    "plant",
    [
        SCORED,
        f"{SCORED}; mv response.json real; ln real response.json",
        f"{SCORED}; mv response.json real; ln -s real response.json",
        "ln -s response.json response.json",
        "ln -s /etc response.json",
        "ln -s nowhere/at/all response.json",
        "mkfifo response.json",
        "mkdir -p response.json/full/of; touch response.json/full/of/files",
    ],
)
def test_what_the_agent_leaves_as_a_response_never_counts(perform: Perform, workspace: Path, plant: str) -> None:
    verdict = """printf '{"scores": {"reward": 0}}' > response.json"""
    outcome = perform(plant, verdict)
    assert outcome.kind == "scored"
    assert outcome.scores == {"reward": 0}
    assert not (workspace / "response.json").is_symlink()


def test_what_the_agent_leaves_as_a_response_is_not_the_verifiers(perform: Perform) -> None:
    outcome = perform(SCORED, "test ! -e response.json && exit 0")
    assert outcome.error is not None
    assert outcome.error.message == "the verifier's answer: response.json was not written"


@pytest.mark.parametrize(
    "name", ["verifier.stdout", "verifier.stderr", "agent.stderr", "response.json", "request.json"]
)
@pytest.mark.parametrize("kind", ["link", "pipe", "hard link"])
def test_no_file_of_ours_is_written_through_what_the_agent_planted(
    perform: Perform, tmp_path: Path, name: str, kind: str
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    plant = {"link": f"ln -s {precious} {name}", "pipe": f"mkfifo {name}", "hard link": f"ln {precious} {name}"}[kind]
    outcome = perform(f"rm -f {name}; {plant}", f"echo out; echo err >&2; {SCORED}")
    assert outcome.kind == "scored"
    assert precious.read_text() == "mine"


def test_a_folder_in_the_way_of_a_log_is_told(perform: Perform) -> None:
    outcome = perform("mkdir verifier.stdout", SCORED)
    assert outcome.kind == "unmeasured"
    assert outcome.error is not None
    assert outcome.error.phase == "verifier"
    assert re.match(r"\S+ cannot be started: its output cannot be kept: .*verifier.stdout", outcome.error.message)


@pytest.mark.parametrize("damage", ["rm -r $PWD", "mv $PWD $PWD.away", "rm -r $PWD; touch $PWD"])
def test_an_agent_that_removes_its_workspace(perform: Perform, damage: str) -> None:
    outcome = perform(damage, SCORED)
    assert outcome.kind == "unmeasured"
    assert outcome.error is not None
    assert outcome.error.phase == "verifier"
    assert outcome.error.message.startswith("the agent left no workspace that can be written: ")


def test_the_verifier_waits_until_everything_of_the_agent_is_gone(perform: Perform, workspace: Path) -> None:
    racing = """(while :; do echo '{"scores": {"reward": 1}}' > response.json; done) & sleep 0.05"""
    outcome = perform(racing, """echo '{"scores": {"reward": 0}}' > response.json; sleep 0.05""")
    assert outcome.scores == {"reward": 0}


# ---------------------------------------------------------------- its keys


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"agent": []},
        {"agent": "agent.py"},
        {"agent": ["agent.py"]},
        {"agent": sh("true"), "timeout": 0},
        {"agent": sh("true"), "timeout": -1},
        {"agent": sh("true"), "timeout": "60"},
        {"agent": sh("true"), "timeout": float("inf")},
        {"agent": sh("true"), "timeout": None},
        {"agent": sh("true"), "env": {"A": 1}},
        {"agent": sh("true"), "env": ["A=1"]},
        {"agent": sh("true"), "shell": True},
        {"agent": sh("true"), "kind": "python"},
        {"agent": sh("true"), "verifier": ["/no/such/verifier"]},
    ],
)
def test_wrong_keys_are_refused(make: Callable[..., Any], keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make(CommandRunner, **keys)


def test_its_time_limit_is_its_timeout(make: Callable[..., Any]) -> None:
    assert make(CommandRunner, agent=sh("true"), timeout=7).time_limit == 7
    assert make(CommandRunner, agent=sh("true")).time_limit == 600
    assert make(CommandRunner, agent=sh("true")).rescore(None, None) is None


# ---------------------------------------------------------------- what env says, and scoring again


def test_a_command_that_env_does_not_find_is_no_dead_agent(perform: Perform) -> None:
    outcome = perform(["/usr/bin/env", "nosuch-agent"], SCORED)
    assert (outcome.kind, outcome.error and outcome.error.phase) == ("unmeasured", "setup")
    assert outcome.error is not None
    assert "nosuch-agent" in outcome.error.message


@pytest.mark.parametrize("status", [125, 126, 127])
def test_an_agent_that_ends_as_env_does_died(perform: Perform, status: int) -> None:
    outcome = perform(["/usr/bin/env", "sh", "-c", f"echo not found >&2; exit {status}"], SCORED)
    assert outcome.kind == "died"


def test_scoring_again_runs_the_verifier_on_what_is_there(
    make: Callable[..., Any], request_of: Callable[[], AttemptRequest], workspace: Path
) -> None:
    runner = make(CommandRunner, agent=sh("exit 9"), verifier=sh(f"test -f answer.txt && {SCORED}"))
    workspace.mkdir(parents=True)
    (workspace / "answer.txt").write_text("yes")
    (workspace / "response.json").write_text('{"scores": {"reward": 0.0}}')
    assert runner.rescore(request_of(), workspace) == Outcome.scored({"reward": 1.0, "tone": "polite"})
    assert not (workspace / "agent.stdout").exists()


def test_without_a_verifier_there_is_nothing_to_score_again(
    make: Callable[..., Any], request_of: Callable[[], AttemptRequest], workspace: Path
) -> None:
    workspace.mkdir(parents=True)
    assert make(CommandRunner, agent=sh(SCORED)).rescore(request_of(), workspace) is None


def test_scoring_again_without_a_variable_it_needs(
    make: Callable[..., Any],
    request_of: Callable[[], AttemptRequest],
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("JUDGE_TOKEN", raising=False)
    workspace.mkdir(parents=True)
    runner = make(CommandRunner, agent=sh("true"), verifier=sh(SCORED), env={"JUDGE_TOKEN": None})
    outcome = runner.rescore(request_of(), workspace)
    assert (outcome.kind, outcome.error.phase) == ("unmeasured", "verifier")
