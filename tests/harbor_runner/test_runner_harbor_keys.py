"""The keys of the runner: what is told where Harbor is missing, and which digest a key belongs to."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_metricbench.bases import Role
from pytest_metricbench.definition.fields import role_of
from pytest_metricbench.runners.harbor import found as harbor_found
from pytest_metricbench.runners.harbor.config import job_config
from pytest_metricbench.runners.harbor.runner import HarborRunner
from tests.harbor_runner.harbor_runner_lab import make_runner, request_for


def refusal(folder: Path, **keys: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        make_runner(folder, **keys)
    return str(caught.value.errors()[0]["msg"])


@pytest.fixture
def no_harbor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harbor_found, "installed_version", lambda: None)
    monkeypatch.delenv("METRICBENCH_HARBOR", raising=False)


ELSEWHERE = (
    "install it in an environment of its own and name its executable, harbor: /path/to/bin/harbor, or in the "
    "environment variable METRICBENCH_HARBOR"
)


def test_a_python_that_is_too_old(tmp_path: Path, no_harbor: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 11, 7, "final", 0))
    assert refusal(tmp_path) == f"Harbor needs Python 3.12 or newer, and this is 3.11.7; {ELSEWHERE}"


def test_no_harbor(tmp_path: Path, no_harbor: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 12, 1, "final", 0))
    assert refusal(tmp_path) == (
        f"Harbor is not installed in this environment; pip install 'pytest-metricbench[harbor]', or {ELSEWHERE}"
    )


def test_the_environment_variable_names_it(tmp_path: Path, no_harbor: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METRICBENCH_HARBOR", "/bin/true")
    assert make_runner(tmp_path).executable == "/bin/true"
    assert make_runner(tmp_path, harbor="/bin/false").executable == "/bin/false"
    monkeypatch.setattr(harbor_found, "installed_version", lambda: "0.26.0")
    assert make_runner(tmp_path).executable is None
    monkeypatch.setattr(harbor_found, "installed_version", lambda: None)
    monkeypatch.setenv("METRICBENCH_HARBOR", "bin/harbor")
    assert refusal(tmp_path).startswith("METRICBENCH_HARBOR is 'bin/harbor', which is not an absolute path")


def test_executables_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    remedy = "name bin/harbor of the environment that Harbor is installed in"
    assert refusal(tmp_path, harbor="harbor") == (
        "'harbor' is not an absolute path; write the whole path, as in /opt/harbor/bin/harbor"
    )
    assert refusal(tmp_path, harbor=f"{tmp_path}/no") == f"the executable {tmp_path}/no does not exist; {remedy}"
    assert (
        refusal(tmp_path, harbor=f"{tmp_path}/plain") == f"the executable {tmp_path}/plain is not executable; {remedy}"
    )


def test_a_saved_store_needs_no_harbor(tmp_path: Path, no_harbor: None) -> None:
    assert make_runner(tmp_path, checked=False, harbor="/gone/bin/harbor").harbor == "/gone/bin/harbor"
    assert make_runner(tmp_path, checked=False).kind == "harbor"


def test_folders_of_the_python_path(tmp_path: Path) -> None:
    assert refusal(tmp_path, harbor="/bin/true", python_path=["no"]) == (
        f"the folder 'no' of python_path does not exist; it would be {tmp_path}/no"
    )
    (tmp_path / "harbor.py").write_text("")
    assert refusal(tmp_path, harbor="/bin/true") == f"{tmp_path}/harbor.py would be taken for Harbor itself; rename it"


def test_a_folder_called_harbor_is_none_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "harbor").mkdir()
    assert make_runner(tmp_path, harbor="/bin/true").roots == [tmp_path]


def test_an_environment_is_named_shortly_or_described(tmp_path: Path) -> None:
    short = make_runner(tmp_path, harbor="/bin/true", environment="podman")
    assert short.environment.type == "podman"
    assert short == make_runner(tmp_path, harbor="/bin/true", environment={"type": "podman"})
    with pytest.raises(ValidationError) as caught:
        make_runner(tmp_path, harbor="/bin/true", environment={"typ": "podman"})
    assert caught.value.errors()[0]["loc"] == ("environment", "typ")


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("environment", {"override_cpus": 2.0}),
        ("environment", {"override_memory_mb": 512}),
        ("environment", {"override_storage_mb": 1024}),
        ("environment", {"override_gpus": 1}),
        ("retry", {"max_retries": 2}),
        ("retry", {"include_exceptions": ["RuntimeError"]}),
        ("retry", {"exclude_exceptions": ["ValueError"]}),
        ("retry", {"wait_multiplier": 1.5}),
        ("retry", {"min_wait_sec": 0.5}),
        ("retry", {"max_wait_sec": 9.0}),
    ],
)
def test_harbor_is_told_what_is_given_by_the_same_name(tmp_path: Path, key: str, part: dict[str, Any]) -> None:
    request = request_for(tmp_path, {"agent": "oracle"})
    told: dict[str, Any] = {}
    for given in ({}, part):
        config = job_config(make_runner(tmp_path, checked=False, **{key: given}), request, tmp_path / "jobs")
        told[str(given)] = config[key]
    assert told[str(part)] == {**told["{}"], **part}
    assert told[str(part)] != told["{}"]


def test_which_digest_a_key_belongs_to() -> None:
    by_role: dict[Role, set[str]] = {role: set() for role in Role}
    for name, field in HarborRunner.model_fields.items():
        by_role[role_of(field)].add(name)
    assert by_role[Role.VERIFIER] == {"verifier"}
    assert by_role[Role.RESULT] == {
        *("kind", "environment", "env", "python_path", "artifacts", "evidence", "outcomes"),
        *("agent_timeout", "agent_max_timeout", "timeout_multiplier", "agent_timeout_multiplier"),
    }


def test_the_limit_of_a_trial_is_kept_with_those_that_died_of_it(tmp_path: Path) -> None:
    assert make_runner(tmp_path, harbor="/bin/true", timeout=5).time_limit == 5
    assert make_runner(tmp_path, harbor="/bin/true").time_limit is None
