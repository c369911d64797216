"""What Harbor is told to run: its configuration of one trial, and of a job of one trial."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from pytest_metricbench.contracts import AttemptRequest, Json
from pytest_metricbench.digests import PREFIX
from pytest_metricbench.interop.harbor.exceptions import RULES
from pytest_metricbench.messages import did_you_mean
from pytest_metricbench.runners.harbor.modules import is_import_path
from pytest_metricbench.runners.harbor.variants import PROMPT_TEMPLATE, is_remote, read_servers

if TYPE_CHECKING:
    from pytest_metricbench.runners.harbor.runner import HarborRunner

Factor: TypeAlias = Annotated[float, Field(gt=0, strict=True, allow_inf_nan=False)]
Text: TypeAlias = Annotated[str, StringConstraints(min_length=1)]

_A_SLIP: Final = 0.92
"""How alike two names of types are of which one is the other misspelt: a letter or two of twenty."""

FIXED_ENV: Final[Mapping[str, str]] = {
    "HARBOR_TELEMETRY": "off",  # on by default, and sent by a process of its own
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise fetched, three times where there is no network
    "NO_COLOR": "1",
    "COLUMNS": "200",
}
"""Environment variables of every trial."""


class HarborEnvironment(BaseModel):
    """The environment of the trials, as Harbor has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Text = Field("docker", description="A type of environment that Harbor knows, or module.path:Class.")
    kwargs: dict[str, Any] = Field({}, description="Keyword arguments of the environment.")
    env: dict[str, str] = Field({}, description="Environment variables inside; ${NAME} takes one from the runner's.")
    override_cpus: Factor | None = Field(None, description="CPUs, in place of the task's.")
    override_memory_mb: Annotated[int, Field(gt=0)] | None = Field(None, description="MiB, in place of the task's.")
    override_storage_mb: Annotated[int, Field(gt=0)] | None = Field(None, description="MiB, in place of the task's.")
    override_gpus: Annotated[int, Field(ge=0)] | None = Field(None, description="GPUs, in place of the task's.")


class HarborVerifier(BaseModel):
    """The verifier of the trials, as Harbor has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Text | None = Field(None, description="module.path:Class of a verifier in place of Harbor's own.")
    kwargs: dict[str, Any] = Field({}, description="Keyword arguments of that verifier.")
    env: dict[str, str] = Field({}, description="Environment variables of it; ${NAME} takes one from the runner's.")


class HarborRetry(BaseModel):
    """How Harbor repeats a trial that ended with an exception. What it repeats leaves no trace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_retries: Annotated[int, Field(ge=0)] = Field(0, description="How often a trial is repeated.")
    include_exceptions: list[Text] | None = Field(None, description="Types of exceptions after which it is.")
    exclude_exceptions: list[Text] | None = Field(None, description="Types after which it is not; Harbor's own list.")
    wait_multiplier: Factor | None = Field(None, description="By how much the pause grows.")
    min_wait_sec: Annotated[float, Field(ge=0)] | None = Field(None, description="The shortest pause, in seconds.")
    max_wait_sec: Annotated[float, Field(ge=0)] | None = Field(None, description="The longest one.")


def _as_mapping(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


EnvironmentKey: TypeAlias = Annotated[
    HarborEnvironment, BeforeValidator(_as_mapping, json_schema_input_type=str | HarborEnvironment)
]
VerifierKey: TypeAlias = Annotated[
    HarborVerifier, BeforeValidator(_as_mapping, json_schema_input_type=str | HarborVerifier)
]
OutcomeName: TypeAlias = Literal["died", "unmeasured", "scored"]


def known_types(outcomes: dict[str, OutcomeName]) -> dict[str, OutcomeName]:
    """The exception types of ``outcomes``: any, since agents raise their own, but none that is a slip.

    Raises:
        PydanticCustomError: one is all but the name of a type in the table, and would change nothing without a word.
    """
    for name in outcomes:
        meant = "" if name in RULES else did_you_mean(name, RULES, cutoff=_A_SLIP)
        if meant:
            message = "no exception of Harbor's is called {name}; {meant}"
            raise PydanticCustomError("harbor", message, {"name": repr(name), "meant": meant})
    return outcomes


def job_name(request: AttemptRequest) -> str:
    """A name that no other attempt has, and no attempt of other inputs: Harbor takes up a job of the same name.

    It begins with the fingerprint and the slot.
    """
    return f"{request.fingerprint.removeprefix(PREFIX)[:12] or 'none'}-{request.attempt}-{request.trial_id[:12]}"


def trial_config(runner: "HarborRunner", request: AttemptRequest, trials: Path) -> dict[str, Json]:
    """Harbor's ``TrialConfig`` of one attempt, as JSON; the trial's folder is made below ``trials``.

    Raises:
        SourceError: a file that the variant names cannot be read.
    """
    return {"task": _task(runner, request), "agent": _agent(runner, request), "trials_dir": str(trials)} | _common(
        runner, request
    )


def job_config(runner: "HarborRunner", request: AttemptRequest, jobs: Path) -> dict[str, Json]:
    """Harbor's ``JobConfig`` of one attempt, as JSON; the job's folder is made below ``jobs``.

    Raises:
        SourceError: a file that the variant names cannot be read.
    """
    return {
        "job_name": job_name(request),
        "jobs_dir": str(jobs),
        "n_attempts": 1,
        "n_concurrent_trials": 1,
        "quiet": True,
        "retry": retry_config(runner),
        "tasks": [_task(runner, request)],
        "agents": [_agent(runner, request)],
    } | _common(runner, request)


def retry_config(runner: "HarborRunner") -> dict[str, Json]:
    """Harbor's ``RetryConfig``, as JSON."""
    return _given(runner.retry.model_dump())


def _common(runner: "HarborRunner", request: AttemptRequest) -> dict[str, Json]:
    """What a trial and a job are told under the same keys."""
    params, folder = request.variant.params, runner.folder
    environment = {**runner.environment.model_dump(), "force_build": runner.force_build, "delete": runner.delete}
    kind = environment.pop("type")
    environment[_key(kind, "type")] = kind
    verifier = runner.verifier.model_dump()
    verifier["import_path"] = verifier.pop("type")
    verifier["override_timeout_sec"] = runner.verifier_timeout
    config = {
        "timeout_multiplier": runner.timeout_multiplier,
        "agent_timeout_multiplier": runner.agent_timeout_multiplier,
        "verifier_timeout_multiplier": runner.verifier_timeout_multiplier,
        "agent_setup_timeout_multiplier": runner.agent_setup_timeout_multiplier,
        "environment_build_timeout_multiplier": runner.environment_build_timeout_multiplier,
        "environment": _given(environment),
        "verifier": _given(verifier),
        "artifacts": runner.artifacts,
        "extra_instructions": params.get("extra_instructions"),
        "extra_instruction_paths": [_absolute(name, folder) for name in params.get("extra_instruction_files") or []],
    }
    return _given(config)


def _task(runner: "HarborRunner", request: AttemptRequest) -> dict[str, Json]:
    return {"path": _absolute(str(request.task.params["path"]), runner.folder)}


def _agent(runner: "HarborRunner", request: AttemptRequest) -> dict[str, Json]:
    params, folder = request.variant.params, runner.folder
    name = str(params["agent"])
    kwargs = dict(params.get("kwargs") or {})
    if isinstance(kwargs.get(PROMPT_TEMPLATE), str):
        kwargs[PROMPT_TEMPLATE] = _absolute(kwargs[PROMPT_TEMPLATE], folder)
    config = {
        _key(name, "name"): name,
        "model_name": params.get("model"),
        "base_url": params.get("base_url"),
        "model_api_key_name": params.get("api_key_name"),
        "kwargs": kwargs,
        "env": {key: value for key, value in (params.get("env") or {}).items() if value is not None},
        "skills": _skills(params.get("skills") or [], folder),
        "mcp_servers": _servers(params.get("mcp_servers") or [], folder),
        "override_timeout_sec": runner.agent_timeout,
        "max_timeout_sec": runner.agent_max_timeout,
        "override_setup_timeout_sec": runner.agent_setup_timeout,
    }
    return _given(config)


def _key(name: str, named: str) -> str:
    return "import_path" if is_import_path(name) else named


def _skills(skills: Sequence[str], folder: Path) -> list[str]:
    return [skill if is_remote(skill) else _absolute(skill, folder) for skill in skills]


def _servers(servers: Sequence[Json], folder: Path) -> list[Json]:
    found: list[Json] = []
    for server in servers:
        found.extend(read_servers(server, folder) if isinstance(server, str) else [server])
    return found


def _absolute(written: str, folder: Path) -> str:
    return os.path.abspath(folder / written)


def _given(config: Mapping[str, Json]) -> dict[str, Json]:
    """Without what says nothing: a version of Harbor that does not know a key never sees it then."""
    return {key: value for key, value in config.items() if value is not None and value not in ({}, [])}
