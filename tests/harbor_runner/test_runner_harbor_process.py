"""Harbor as a process: what it is told, and what is made of what it leaves, with a stand-in for the executable."""

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench import processes
from pytest_metricbench.contracts import Outcome
from pytest_metricbench.runners.harbor import runner as harbor_runner
from tests.harbor_runner.harbor_runner_lab import (
    left,
    make_runner,
    request_for,
    run,
    seen,
    write_dataset,
    write_stand_in,
    write_task,
)
from tests.present import present

VARIANT = {"agent": "oracle"}


def outcome(folder: Path, body: str, variant: dict[str, Any] | None = None, **keys: Any) -> Outcome:
    write_task(folder / "task")
    runner = make_runner(folder, harbor=str(write_stand_in(folder, body)), **keys)
    return run(runner, folder / "ws", variant or VARIANT)


# ---------------------------------------------------------------- what it is told


def test_the_job_is_one_trial_of_the_variant_on_the_task(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"shop": {"command": "shop"}}}')
    variant: dict[str, Any] = {
        "agent": "toy:Agent",
        "model": "fake/m",
        "kwargs": {"x": [1], "prompt_template_path": "p.j2"},
        "env": {"A": "1"},
        "skills": ["skills", "owner/name@v1"],
        "mcp_servers": ["mcp.json", {"name": "b", "url": "http://x"}],
        "extra_instructions": ["Be brief."],
        "extra_instruction_files": ["more.md"],
        "base_url": "http://model",
        "api_key_name": "MODEL_KEY",
    }
    keys = {
        "environment": {"type": "local:Local", "kwargs": {"k": 1}, "env": {"E": "${E}"}, "override_cpus": 2.0},
        "verifier": {"type": "judge:Judge", "kwargs": {"strict": True}, "env": {"V": "1"}},
        "artifacts": ["/app/out"],
        "agent_timeout": 10,
        "agent_max_timeout": 20,
        "agent_setup_timeout": 30,
        "verifier_timeout": 40,
        "timeout_multiplier": 2,
        "agent_timeout_multiplier": 3,
        "agent_setup_timeout_multiplier": 4,
        "verifier_timeout_multiplier": 5,
        "environment_build_timeout_multiplier": 6,
        "retry": {"max_retries": 2, "exclude_exceptions": ["A"], "min_wait_sec": 0.5},
        "delete": False,
        "force_build": True,
    }
    assert outcome(tmp_path, "trial()", variant, **keys).kind == "scored"
    told = seen(tmp_path)["config"]
    assert told == {
        "job_name": "0123456789ab-1-abcdef012345",
        "jobs_dir": str(tmp_path / "ws" / "jobs"),
        "n_attempts": 1,
        "n_concurrent_trials": 1,
        "quiet": True,
        "retry": {"max_retries": 2, "exclude_exceptions": ["A"], "min_wait_sec": 0.5},
        "tasks": [{"path": str(tmp_path / "task")}],
        "agents": [
            {
                "import_path": "toy:Agent",
                "model_name": "fake/m",
                "base_url": "http://model",
                "model_api_key_name": "MODEL_KEY",
                "kwargs": {"x": [1], "prompt_template_path": str(tmp_path / "p.j2")},
                "env": {"A": "1"},
                "skills": [str(tmp_path / "skills"), "owner/name@v1"],
                "mcp_servers": [
                    {"name": "shop", "command": "shop", "transport": "stdio"},
                    {"name": "b", "url": "http://x"},
                ],
                "override_timeout_sec": 10,
                "max_timeout_sec": 20,
                "override_setup_timeout_sec": 30,
            }
        ],
        "environment": {
            "import_path": "local:Local",
            "kwargs": {"k": 1},
            "env": {"E": "${E}"},
            "override_cpus": 2.0,
            "force_build": True,
            "delete": False,
        },
        "verifier": {
            "import_path": "judge:Judge",
            "kwargs": {"strict": True},
            "env": {"V": "1"},
            "override_timeout_sec": 40,
        },
        "artifacts": ["/app/out"],
        "timeout_multiplier": 2,
        "agent_timeout_multiplier": 3,
        "agent_setup_timeout_multiplier": 4,
        "verifier_timeout_multiplier": 5,
        "environment_build_timeout_multiplier": 6,
        "extra_instructions": ["Be brief."],
        "extra_instruction_paths": [str(tmp_path / "more.md")],
    }


def test_what_is_not_set_is_not_told(tmp_path: Path) -> None:
    outcome(tmp_path, "trial()")
    told = seen(tmp_path)["config"]
    assert told["agents"] == [{"name": "oracle"}]
    assert told["environment"] == {"type": "docker", "force_build": False, "delete": True}
    assert set(told) == {
        *("job_name", "jobs_dir", "n_attempts", "n_concurrent_trials", "quiet", "retry", "tasks", "agents"),
        "environment",
    }


def test_the_environment_is_clean_and_telemetry_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "hidden")
    monkeypatch.setenv("DOCKER_HOST", "unix:///docker")
    (tmp_path / "src").mkdir()
    keys: dict[str, Any] = {
        "env": {"DOCKER_HOST": None, "MINE": "1", "PYTHONPATH": "/more"},
        "python_path": [".", "src"],
    }
    outcome(tmp_path, "trial()", **keys)
    told = seen(tmp_path)
    env = told["env"]
    assert told["cwd"] == str(tmp_path)
    assert env["HARBOR_TELEMETRY"] == "off"
    assert env["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    assert env["NO_COLOR"] == "1"
    assert env["PYTHONPATH"] == f"{tmp_path}:{tmp_path}/src:/more"
    assert (env["DOCKER_HOST"], env["MINE"]) == ("unix:///docker", "1")
    assert "SOME_SECRET" not in env
    assert not [name for name in env if name.startswith("PYTEST")]


def test_a_variable_that_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    ended = outcome(tmp_path, "trial()", env={"DOCKER_HOST": None})
    assert ended == Outcome.unmeasured(
        "MissingVariableError", "env takes DOCKER_HOST from the environment, and it is not set there", "setup"
    )


def test_an_interpreter_runs_harbor_as_a_module(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/argv.txt\n')
    python.chmod(0o755)
    run(make_runner(tmp_path, harbor=str(python)), tmp_path / "ws", VARIANT)
    told = (tmp_path / "argv.txt").read_text().split()
    assert told == ["-m", "harbor.cli.main", "run", "--config", f"{tmp_path}/ws/job.json", "--yes"]


def test_no_two_attempts_share_a_name(tmp_path: Path) -> None:
    from pytest_metricbench.runners.harbor.config import job_name

    one = request_for(tmp_path, VARIANT)
    names = {
        job_name(one),
        job_name(request_for(tmp_path, VARIANT, slot=2)),
        job_name(request_for(tmp_path, VARIANT, trial="b" * 32)),
    }
    assert len(names) == 3
    assert all(name.startswith("0123456789ab-") for name in names)


# ---------------------------------------------------------------- what is made of what it leaves


def test_a_trial_is_kept_and_the_rest_is_not(tmp_path: Path) -> None:
    body = """
    folder = trial()
    for name in ("agent/trajectory.json", "agent/sessions/huge.bin", "verifier/reward.txt", "verifier/deep/log.txt",
                 "artifacts/manifest.json", "trial.log", "lock.json", "steps/one/agent/trajectory.json",
                 "steps/one/verifier/reward.txt", "steps/one/agent/other.txt", "response.json", "harbor.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (job / "lock.json").write_text(json.dumps({"harbor": {"version": "0.26.0"}}))
    (job / "result.json").write_text("{}")
    """
    ended = outcome(tmp_path, body)
    assert ended == Outcome.scored({"reward": 1.0}, trial_name="task__abcdefg")
    assert left(tmp_path / "ws") == {
        *("agent.stdout", "agent.stderr", "harbor.json", "config.json", "result.json", "trial.log", "lock.json"),
        *("agent/trajectory.json", "verifier/reward.txt", "verifier/deep/log.txt", "artifacts/manifest.json"),
        *("steps/one/agent/trajectory.json", "steps/one/verifier/reward.txt"),
    }
    about = json.loads((tmp_path / "ws" / "harbor.json").read_text())
    digest = about.pop("verifier")
    assert digest.startswith("sha256:")
    assert about == {
        "metricbench": 1,
        "harbor": "0.26.0",
        "in_process": False,
        "job": "0123456789ab-1-abcdef012345",
        "trial": "task__abcdefg",
    }


def test_evidence_goes_by_pattern(tmp_path: Path) -> None:
    body = """
    folder = trial()
    for name in ("agent/a.log", "agent/b.txt", "agent/deep/c.log", "verifier/reward.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    """
    outcome(tmp_path, body, evidence=["agent/*.log", "agent/?.txt"])
    kept = {name for name in left(tmp_path / "ws") if "/" in name}
    assert kept == {"agent/a.log", "agent/b.txt", "agent/deep/c.log"}  # a star stands for slashes too


def test_what_an_agent_puts_there_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    body = f"""
    folder = trial()
    (folder / "artifacts" / "deep").mkdir(parents=True)
    os.symlink({str(tmp_path / "secret.txt")!r}, folder / "artifacts" / "link.txt")
    os.symlink({str(tmp_path)!r}, folder / "artifacts" / "folder")
    os.mkfifo(folder / "artifacts" / "pipe")
    (folder / "artifacts" / "deep" / "real.txt").write_text("x")
    """
    outcome(tmp_path, body)
    assert {name for name in left(tmp_path / "ws") if name.startswith("artifacts")} == {"artifacts/deep/real.txt"}
    assert (tmp_path / "secret.txt").read_text() == "secret"


def test_a_result_that_is_a_link_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps({"trial_name": "t", "task_name": "t"}))
    body = f"""
    folder = trial()
    (folder / "result.json").unlink()
    os.symlink({str(tmp_path / "mine.json")!r}, folder / "result.json")
    """
    ended = outcome(tmp_path, body)
    assert ended.kind == "unmeasured"
    assert ended.error is not None
    assert ended.error.message.startswith("the trial's result.json: ")


def test_the_exit_status_says_nothing(tmp_path: Path) -> None:
    assert outcome(tmp_path, "trial(); sys.exit(1)").kind == "scored"
    died = 'trial(verifier_result=None, exception_info={"exception_type": "RuntimeError", "exception_message": "x"})'
    assert outcome(tmp_path, died).kind == "died"


def test_no_result_is_no_measurement(tmp_path: Path) -> None:
    ended = outcome(tmp_path, 'print("all is well"); print("a warning", file=sys.stderr)')
    assert ended == Outcome.unmeasured(
        "HarborFailed",
        "Harbor left no result of the trial: it ended well; the end of what it printed:\nall is well\na warning",
        "setup",
    )
    assert present(outcome(tmp_path, "sys.exit(3)").error).message == (
        "Harbor left no result of the trial: it ended with exit status 3; it printed nothing"
    )
    ended = outcome(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    assert (
        present(ended.error).message
        == "Harbor left no result of the trial: it was killed by SIGKILL; it printed nothing"
    )


def test_of_a_framed_traceback_the_error_is_told(tmp_path: Path) -> None:
    frame = "\u256d\u2500 Traceback \u2500\u256e\n\u2502 code \u2502\n\u2570\u2500\u2500\u256f\n"
    ended = outcome(tmp_path, f"print({frame!r} + 'ValueError: no such agent', file=sys.stderr); sys.exit(1)")
    assert present(ended.error).message.endswith("the end of what it printed:\nValueError: no such agent")
    ended = outcome(tmp_path, f"print({frame!r}, file=sys.stderr); sys.exit(1)")
    assert present(ended.error).message.endswith("the end of what it printed:\nTraceback\ncode")


def test_a_trial_without_a_result_is_no_measurement(tmp_path: Path) -> None:
    ended = outcome(tmp_path, '(trial() / "result.json").unlink()')  # as Harbor leaves one that still runs
    assert (ended.kind, present(ended.error).type) == ("unmeasured", "HarborFailed")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("{", "the trial's result.json: "),
        ("[]", "the trial's result.json: it is a list []; a mapping is expected"),
        ("{}", "the trial's result.json: trial_name is null; a text is expected"),
    ],
)
def test_a_broken_result_is_named(tmp_path: Path, result: str, message: str) -> None:
    ended = outcome(tmp_path, f'(trial() / "result.json").write_text({result!r})')
    assert ended.kind == "unmeasured"
    assert present(ended.error).phase == "contract"
    assert present(ended.error).message.startswith(message)


def test_outcomes_may_be_overridden(tmp_path: Path) -> None:
    died = 'trial(verifier_result=None, exception_info={"exception_type": "RuntimeError", "exception_message": "x"})'
    assert outcome(tmp_path, died, outcomes={"RuntimeError": "unmeasured"}).kind == "unmeasured"
    late = 'trial(exception_info={"exception_type": "AgentTimeoutError", "exception_message": "x"})'
    assert outcome(tmp_path, late).kind == "scored"
    assert outcome(tmp_path, late, outcomes={"AgentTimeoutError": "died"}).kind == "died"


# ---------------------------------------------------------------- its end


ASKED = """
def asked(*_):
    pathlib.Path({mark!r}).write_text("asked")
    trial(verifier_result=None, agent_execution={{"started_at": "2026-01-01T00:00:00Z", "finished_at": None}},
          exception_info={{"exception_type": "CancelledError", "exception_message": "",
                           "occurred_at": "2026-01-01T00:00:09Z"}})
    sys.exit(130)
signal.signal(signal.SIGTERM, asked)
pathlib.Path({ready!r}).write_text("")
time.sleep(60)
"""
ENOUGH = 2.5
"""Seconds in which a stand-in for Harbor has come to its sleep, on a busy machine too."""


def test_past_the_limit_it_is_asked_to_end_and_the_agent_died(tmp_path: Path) -> None:
    body = ASKED.format(mark=str(tmp_path / "asked"), ready=str(tmp_path / "ready"))
    ended = outcome(tmp_path, body, timeout=ENOUGH)
    assert (tmp_path / "asked").exists()
    message = "the trial ran longer than 2.5 s and was stopped while the agent worked"
    assert ended == Outcome.died("TimeOut", message, time_limit=ENOUGH, trial_name="task__abcdefg")


def test_past_the_limit_without_a_result_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harbor_runner, "GRACE", 0.3)
    ended = outcome(tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)", timeout=0.5)
    message = "the trial ran longer than 0.5 s and was stopped before it had a result"
    assert ended == Outcome.unmeasured("TimeOut", message, "setup")


@pytest.mark.parametrize(
    ("phases", "kind", "phase"),
    [({}, "unmeasured", "setup"), ({"agent_execution": {}}, "died", "agent")],
)
def test_a_result_that_says_nothing_is_told_by_its_phases(
    tmp_path: Path, phases: dict[str, Any], kind: str, phase: str
) -> None:
    """What is left where an agent did not let itself be cancelled."""
    reached = {name: {"started_at": "2026-01-01T00:00:00Z"} for name in phases}
    ended = outcome(tmp_path, f"trial(verifier_result=None, **{reached!r}); time.sleep(60)", timeout=ENOUGH)
    assert (ended.kind, present(ended.error).type, present(ended.error).phase) == (kind, "TimeOut", phase)


def test_a_result_that_came_just_in_time_counts(tmp_path: Path) -> None:
    ended = outcome(tmp_path, "trial(); time.sleep(60)", timeout=ENOUGH)
    assert ended.kind == "scored"


def test_an_interruption_asks_it_to_end_and_goes_on(tmp_path: Path) -> None:
    write_task(tmp_path / "task")
    body = ASKED.format(mark=str(tmp_path / "asked"), ready=str(tmp_path / "ready"))
    runner = make_runner(tmp_path, harbor=str(write_stand_in(tmp_path, body)))

    def interrupt() -> None:
        while not (tmp_path / "ready").exists():
            time.sleep(0.02)
        signal.pthread_kill(present(threading.main_thread().ident), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(runner, tmp_path / "ws", VARIANT)
    thread.join()
    assert (tmp_path / "asked").exists()
    assert not (tmp_path / "ws" / "jobs").exists()


def test_what_it_leaves_running_is_killed(tmp_path: Path) -> None:
    body = f"""
    import subprocess
    child = subprocess.Popen(["sleep", "60"])
    pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
    trial()
    """
    outcome(tmp_path, body)
    pid = int((tmp_path / "pid").read_text())
    state = Path(f"/proc/{pid}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_what_prints_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "OUTPUT_LIMIT", 1 << 20)
    ended = outcome(tmp_path, "while True: print('x' * 100000)")
    assert ended.kind == "unmeasured"
    assert "which is the limit" in present(ended.error).message


def test_an_executable_that_went_away(tmp_path: Path) -> None:
    write_dataset(tmp_path, "task")
    runner = make_runner(tmp_path, harbor=str(write_stand_in(tmp_path, "trial()")))
    os.unlink(tmp_path / "bin" / "harbor")
    ended = run(runner, tmp_path / "ws", VARIANT)
    assert (ended.kind, present(ended.error).type, present(ended.error).phase) == (
        "unmeasured",
        "CannotStartError",
        "setup",
    )


def test_a_file_that_went_away_is_told(tmp_path: Path) -> None:
    ended = outcome(tmp_path, "trial()", {"agent": "oracle", "mcp_servers": ["gone.json"]})
    assert ended.kind == "unmeasured"
    assert present(ended.error).message.startswith("the file 'gone.json' does not exist; ")


# ---------------------------------------------------------------- scored again


def test_a_kept_result_is_read_again(tmp_path: Path) -> None:
    write_task(tmp_path / "task")
    runner = make_runner(tmp_path, harbor=str(write_stand_in(tmp_path, "trial()")))
    request = request_for(tmp_path / "ws", VARIANT)
    first = runner.run(request, request.workspace)
    assert runner.rescore(request, tmp_path / "ws") == first
    other = make_runner(tmp_path, harbor=runner.harbor, verifier={"env": {"STRICT": "1"}})
    assert other.rescore(request, tmp_path / "ws") is None  # verified by another verifier: the trial runs again
    (tmp_path / "ws" / "harbor.json").unlink()
    assert runner.rescore(request, tmp_path / "ws") is None


def test_a_result_without_rewards_is_not_scored_again(tmp_path: Path) -> None:
    body = 'trial(verifier_result=None, exception_info={"exception_type": "RewardFileNotFoundError"})'
    write_task(tmp_path / "task")
    runner = make_runner(tmp_path, harbor=str(write_stand_in(tmp_path, body)))
    request = request_for(tmp_path / "ws", VARIANT)
    assert runner.run(request, request.workspace).kind == "unmeasured"
    assert runner.rescore(request, tmp_path / "ws") is None
