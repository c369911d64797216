"""The keys of the ``helix`` runner: what is wrong is told when the file is collected, in the words of the file."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_metricbench.bases import Role, Runner
from pytest_metricbench.definition.fields import role_of
from pytest_metricbench.runners.helix import forms as helix_forms
from pytest_metricbench.runners.helix.client import HelixError
from pytest_metricbench.runners.helix.runner import HelixRunner

KEYS: dict[str, Any] = {
    "base_url": "http://127.0.0.1:18080",
    "executor": {"provider": "subprocess"},
    "command": ["python3", "agent.py"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "experiment"
    (folder / "lib").mkdir(parents=True)
    (folder / "agent.py").write_text("pass")
    (folder / "lib" / "agent.py").write_text("pass")
    (tmp_path / "outside.py").write_text("pass")
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    return folder


@pytest.fixture
def check(folder: Path) -> Callable[..., HelixRunner]:
    return lambda **keys: HelixRunner.model_validate(KEYS | keys, context={"folder": folder})


@pytest.fixture
def refused(check: Callable[..., HelixRunner]) -> Callable[..., tuple[tuple[object, ...], str]]:
    """Where the one error of some keys is, and what it says."""

    def of(**keys: Any) -> tuple[tuple[object, ...], str]:
        with pytest.raises(ValidationError) as caught:
            check(**keys)
        (error,) = caught.value.errors()
        return error["loc"], error["msg"]

    return of


def test_a_command_names_what_is_sent(check: Callable[..., HelixRunner], folder: Path) -> None:
    runner = check(command=["python3", "agent.py", "--config", "lib/agent.py", "/app/run.py", "-x.py", "--out=a.py"])
    assert runner.command.files == (("agent.py", folder / "agent.py"), ("lib/agent.py", folder / "lib/agent.py"))
    assert runner.model_dump(mode="json")["command"][:2] == ["python3", "agent.py"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ["{python}", "agent.py"],
            "{python} is the interpreter here, and this runs in the job; write python3, or its path there",
        ),
        (
            ["python3", "agnet.py"],
            "the script 'agnet.py' does not exist beside the file; a script that the job has already is named by its "
            "whole path there",
        ),
        (["bash", "run.sh"], "the script 'run.sh' does not exist beside the file"),
        (["python3", "../outside.py"], "'../outside.py' leaves the experiment's folder; copy the file into it"),
        (
            ["python3", "lib/../agent.py"],
            "'lib/../agent.py' has a .. in it, and the job has no such folder; write agent.py",
        ),
        (["python3", "link.py"], "'link.py' leaves the experiment's folder; copy the file into it"),
        (["python3", "a\0b"], "has a null character; no argument can hold one"),
    ],
)
def test_commands_that_cannot_be_run(
    refused: Callable[..., tuple[tuple[object, ...], str]], command: list[str], said: str
) -> None:
    where, message = refused(command=command)
    assert where == ("command",)
    assert said in message


@pytest.mark.parametrize("command", [[], "python3 agent.py", ["python3", ""], [1]])
def test_a_command_is_a_list_of_texts(check: Callable[..., HelixRunner], command: object) -> None:
    with pytest.raises(ValidationError):
        check(command=command)


def test_where_only_the_store_counts_files_may_be_absent(folder: Path) -> None:
    keys = KEYS | {"command": ["python3", "gone.py"], "files": ["gone.txt"]}
    HelixRunner.model_validate(keys, context={"folder": folder, "cached_only": True})


def test_files_that_cannot_be_sent_together(
    refused: Callable[..., tuple[tuple[object, ...], str]],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = tmp_path / "agent.py"
    other.write_text("other")
    assert "would both arrive as 'agent.py'; rename one of the two files" in refused(files=[str(other)])[1]
    monkeypatch.setattr(helix_forms, "FILES_LIMIT", 5)
    where, said = refused(files=["lib/agent.py"])
    assert where == ()
    assert said == (
        "the files that are sent with each job have 8 bytes; at most 5 are sent; put large ones into the job's image, "
        "or where it can fetch them"
    )


def test_a_file_whose_name_leads_up_and_back(refused: Callable[..., tuple[tuple[object, ...], str]]) -> None:
    """It would be sent under the name that it has here, which lies outside the job's folder."""
    said = "'../experiment/agent.py' leaves the experiment's folder; copy the file into it, or name it absolutely"
    assert refused(files=["../experiment/agent.py"]) == ((), said)


def test_a_file_that_is_named_twice_is_sent_once(check: Callable[..., HelixRunner], folder: Path) -> None:
    runner = check(command=["python3", "agent.py", "agent.py"], files=["agent.py", str(folder / "agent.py")])
    assert list(helix_forms.sent_files(helix_forms.as_sent(runner.command, runner.files))) == ["agent.py"]


def test_a_file_that_is_gone_when_the_job_is_submitted(check: Callable[..., HelixRunner], folder: Path) -> None:
    runner = check()
    (folder / "agent.py").unlink()
    with pytest.raises(HelixError, match=r"the file 'agent.py' cannot be sent: No such file"):
        helix_forms.sent_files(runner.command.files)
    (folder / "agent.py").write_bytes(b"x" * (helix_forms.FILES_LIMIT + 1))
    with pytest.raises(HelixError, match="has grown to more than may be sent"):
        helix_forms.sent_files(runner.command.files)


@pytest.mark.parametrize(
    "address", ["127.0.0.1:18080", "ftp://x", "http://x?y", "http://x#y", "", "http://", "http:// x"]
)
def test_an_address_is_that_of_a_server(refused: Callable[..., tuple[tuple[object, ...], str]], address: str) -> None:
    said = f"{address!r} is no address of a server; http://host:port or https://host is expected"
    assert refused(base_url=address) == (("base_url",), said)


def test_an_address_holds_no_password(refused: Callable[..., tuple[tuple[object, ...], str]]) -> None:
    where, said = refused(base_url="http://me:hush@x")
    assert where == ("base_url",)
    assert said == (
        "is an address with a user in it, and this file is no place for that; leave it out, and name the variable that "
        "holds a token with token_env"
    )
    assert "hush" not in said


@pytest.mark.parametrize(
    ("executor", "said"),
    [
        (
            {"provider": "subprocess", "image": "x"},
            "image is for containers, and subprocess runs on the server's host; leave it out, or name a provider that "
            "runs containers",
        ),
        ({"provider": "subprocess", "compute": "gpu"}, "compute is for containers"),
        ({"provider": "subprocess", "resources": {}}, "resources is for containers"),
        ({"provider": "slurm"}, "Input should be 'subprocess', 'docker', 'kubernetes_job' or 'volcano_job'"),
        ({"provider": "docker", "resources": {"shm_size": "2"}}, "String should match pattern"),
        ({"provider": "docker", "gpu": 1}, "Extra inputs are not permitted"),
    ],
)
def test_executors_that_cannot_be(
    refused: Callable[..., tuple[tuple[object, ...], str]], executor: dict[str, object], said: str
) -> None:
    where, message = refused(executor=executor)
    assert where[0] == "executor"
    assert said in message


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"env": {"NHX_BASE_URL": "x"}}, "NHX_BASE_URL is a name of the server's own; take another one"),
        ({"secrets": {"NEMO_JOB_ID": "x"}}, "NEMO_JOB_ID is a name of the server's own"),
        ({"env": {"A": "x"}, "secrets": {"A": "y"}}, "env and secrets both give A; name it once"),
        ({"env": {"A-B": "x"}}, "String should match pattern"),
        ({"env": {"A": None}}, "Input should be a valid string"),
        ({"max_in_flight": 0}, "greater than or equal to 1"),
        ({"poll": 0}, "greater than 0"),
        ({"comand": []}, "Extra inputs are not permitted"),
    ],
)
def test_other_keys_that_are_wrong(
    refused: Callable[..., tuple[tuple[object, ...], str]], keys: dict[str, object], said: str
) -> None:
    assert said in refused(**keys)[1]


def test_a_missing_client_is_told_with_what_to_install(
    refused: Callable[..., tuple[tuple[object, ...], str]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "httpx" else find(name))
    assert refused() == ((), "the runner helix needs httpx; pip install 'pytest-metricbench[helix]'")
    HelixRunner.model_validate(KEYS, context={"folder": folder, "cached_only": True})


def test_what_a_result_depends_on() -> None:
    roles = {name: role_of(info) for name, info in HelixRunner.model_fields.items() if name != "kind"}
    shaping = {name for name, role in roles.items() if role is Role.RESULT}
    assert shaping == {"executor", "command", "files", "env", "secrets"}
    assert {name for name, role in roles.items() if role is Role.VERIFIER} == {"verifier", "verifier_env"}


def test_the_runner_keeps_the_contract(check: Callable[..., HelixRunner]) -> None:
    runner = check(timeout=7)
    assert isinstance(runner, Runner)
    assert runner.time_limit == 7
    assert HelixRunner.model_json_schema()["properties"]["command"]["type"] == "array"
