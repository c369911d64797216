"""What somebody met who used Harbor through the plugin for the first time, by hand and with a slip here and there."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_metricbench.contracts import AttemptRequest, CaseRef, Outcome, TaskRef, VariantRef
from pytest_metricbench.interop.harbor.results import trial_outcome
from pytest_metricbench.runners.harbor.runner import HarborRunner
from pytest_metricbench.runners.harbor.tasks import HarborTasks
from pytest_metricbench.sources import SourceError

STAND_IN = """\
#!{python}
import json, pathlib, sys
config = json.loads(pathlib.Path(sys.argv[3]).read_text())
folder = pathlib.Path(config["jobs_dir"]) / config["job_name"] / "task__abcdefg"
{body}
"""

LEAVES = """\
folder.mkdir(parents=True)
result = {{"trial_name": "task__abcdefg", "task_name": "task", "agent_execution": None, "exception_info": {{
    "exception_type": {type!r}, "exception_message": {message}}}}}
(folder / "result.json").write_text(json.dumps(result))
"""


def runner_in(folder: Path, **keys: Any) -> HarborRunner:
    return HarborRunner.model_validate({"kind": "harbor", **keys}, context={"folder": folder, "cached_only": False})


def run(folder: Path, body: str, *, name: str = "harbor") -> Outcome:
    """One attempt by a stand-in for the executable that does what ``body`` says."""
    executable = folder / name
    executable.write_text(STAND_IN.format(python=sys.executable, body=body))
    executable.chmod(0o755)
    workspace = folder / "ws"
    workspace.mkdir()
    request = AttemptRequest(
        experiment="e",
        case=CaseRef("c"),
        variant=VariantRef("baseline", {"agent": "oracle"}),
        task=TaskRef("task", {"path": "task"}),
        attempt=1,
        seed=1,
        trial_id="0123456789abcdef",
        _workspace=str(workspace),
    )
    return runner_in(folder, harbor=str(executable)).run(request, workspace)


def said(outcome: Outcome) -> str:
    assert outcome.kind == "unmeasured"
    assert outcome.error is not None
    return outcome.error.message


# ---------------------------------------------------------------- whose fault it is


@pytest.mark.parametrize(
    "name",
    [
        *("InfrastructureTimeout", "RequestThrottled", "EndpointCredentialExpired"),
        *("IncompleteDownload", "CreateOutcomeUnknown", "ShortCredential"),
    ],
)
def test_a_sandbox_that_fails_while_the_agent_works_is_no_crash_of_the_agent(name: str) -> None:
    """Harbor's table has none of them; its environment ``sbx`` raises them from a command that the agent asked for."""
    result = {
        "trial_name": "task__abcdefg",
        "task_name": "task",
        "agent_execution": {"started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:09Z"},
        "verifier_result": {"rewards": {"reward": 0.0}},
        "exception_info": {"exception_type": name, "exception_message": "exec exceeded its 60s budget"},
    }
    assert trial_outcome(result, version="0.26.0").kind == "unmeasured"


# ---------------------------------------------------------------- what to do


def test_an_interpreter_without_harbor_is_told_what_it_lacks(tmp_path: Path) -> None:
    body = "sys.exit(\"x: Error while finding module specification (ModuleNotFoundError: No module named 'harbor')\")"
    assert said(run(tmp_path, body)).endswith(
        f"No module named 'harbor')\nHarbor is not installed for {tmp_path / 'harbor'}: name bin/harbor of the "
        "environment that it is in, or that environment's interpreter"
    )


def test_a_variable_that_harbor_does_not_see_says_where_to_name_it(tmp_path: Path) -> None:
    message = "\"Environment variable 'JUDGE_KEY' not found in host environment\""
    assert said(run(tmp_path, LEAVES.format(type="ValueError", message=message))) == (
        "Environment variable 'JUDGE_KEY' not found in host environment\nHarbor sees PATH, HOME, LANG and what env of "
        "the runner names; there, {JUDGE_KEY: null} takes it from the environment"
    )


def test_a_module_that_is_nowhere_says_where_it_is_looked_for(tmp_path: Path) -> None:
    body = "sys.exit(\"ValueError: Failed to import module 'mygent': No module named 'mygent'\")"
    assert said(run(tmp_path, body)).endswith(
        "No module named 'mygent'\nit is looked for in python_path (.) and among what is installed beside Harbor"
    )


def test_a_message_names_no_folder_that_is_gone(tmp_path: Path) -> None:
    message = "f'No reward file found at {folder}/verifier/reward.txt or {folder}/verifier/reward.json'"
    assert said(run(tmp_path, LEAVES.format(type="RewardFileNotFoundError", message=message))) == (
        "No reward file found at verifier/reward.txt or verifier/reward.json"
    )


# ---------------------------------------------------------------- before anything runs


def test_a_variant_that_takes_a_variable_nobody_gives_harbor(tmp_path: Path) -> None:
    runner = runner_in(tmp_path, harbor=sys.executable, env={"GIVEN": None, "WRITTEN": "x"})
    for value in ("${GIVEN}", "${WRITTEN}", "${HOME}", "${MISSING:-x}", "plain", "$MISSING", "a ${MISSING}"):
        runner.variant_files({"agent": "oracle", "env": {"X": value}}, tmp_path)
    with pytest.raises(SourceError) as caught:
        runner.variant_files({"agent": "oracle", "env": {"X": "${MISSING}"}}, tmp_path)
    assert caught.value.message == "env.X takes MISSING from Harbor's environment, which has no variable of that name"
    assert caught.value.remedy == "name it under env of the runner: {MISSING: null} takes it from the environment"


def test_a_misspelt_exception_would_change_nothing_without_a_word(tmp_path: Path) -> None:
    with pytest.raises(ValidationError) as caught:
        runner_in(tmp_path, harbor=sys.executable, outcomes={"AgentTimeoutEror": "died"})
    assert caught.value.errors()[0]["msg"] == (
        "no exception of Harbor's is called 'AgentTimeoutEror'; did you mean 'AgentTimeoutError'?"
    )
    own = dict.fromkeys(("ImportError", "TimeoutError", "MyOwnError", "BadRequest", "APIError"), "died")
    assert runner_in(tmp_path, harbor=sys.executable, outcomes=own).outcomes == own


def test_the_result_that_is_kept_is_harbors_own(tmp_path: Path) -> None:
    """Only what is told is shortened, not what is kept."""
    message = "f'No reward file found at {folder}/verifier/reward.txt'"
    run(tmp_path, LEAVES.format(type="RewardFileNotFoundError", message=message))
    kept = json.loads((tmp_path / "ws" / "result.json").read_text())
    assert kept["exception_info"]["exception_message"].startswith(f"No reward file found at {tmp_path}/ws/jobs/")


# ---------------------------------------------------------------- datasets that nobody meant well


def dataset_of(folder: Path, *names: str) -> Path:
    for name in names:
        for file in ("task.toml", "instruction.md", "tests/test.sh", "environment/Dockerfile"):
            path = folder / "ds" / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
    return folder / "ds"


def refusal(folder: Path) -> tuple[str, str]:
    with pytest.raises(SourceError) as caught:
        HarborTasks(harbor="ds").expand(folder)
    return caught.value.message, caught.value.remedy


def test_a_folder_whose_name_no_lock_can_hold(tmp_path: Path) -> None:
    try:
        dataset_of(tmp_path, "bad\udcff")
    except OSError:
        pytest.skip("names are UTF-8 on this file system")
    assert refusal(tmp_path) == (
        r"the name of the folder 'ds/bad\udcff' is not UTF-8",
        "rename it, or leave it out with exclude",
    )
    dataset_of(tmp_path, "good")
    assert [entry["id"] for entry in HarborTasks(harbor="ds", exclude=["bad*"]).expand(tmp_path)] == ["good"]


def test_a_task_that_is_a_link_out_of_the_folder_is_told_where_the_dataset_is_named(tmp_path: Path) -> None:
    elsewhere = dataset_of(tmp_path / "elsewhere", "task") / "task"
    home = tmp_path / "home"
    (dataset_of(home, "inside").parent / "ds" / "link").symlink_to(elsewhere)
    assert refusal(home) == ("'ds/link' leaves the experiment's folder", "name it absolutely, or copy it")
    absolute = HarborTasks(harbor=str(home / "ds"))
    assert [entry["id"] for entry in absolute.expand(home)] == ["inside", "link"]
