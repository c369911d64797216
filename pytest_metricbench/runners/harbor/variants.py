"""The variants of the ``harbor`` runner: agent configurations, what a mutant inherits, and the files they name."""

import json
import os
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from pytest_metricbench.contracts import Json
from pytest_metricbench.messages import did_you_mean, joined
from pytest_metricbench.plain_files import open_regular, strays
from pytest_metricbench.runners.harbor.modules import KwargsCheck, check_kwargs, code_files, is_import_path
from pytest_metricbench.runners.harbor.tasks import folder_files, located
from pytest_metricbench.sources import SourceError

PROMPT_TEMPLATE: Final = "prompt_template_path"
"""The kwarg of Harbor's installed agents that names a file."""

_MERGED: Final = ("kwargs", "env")
"""What a mutant says of these is merged with the baseline's, key by key."""
_MASKED: Final = re.compile(r"(KEY|SECRET|TOKEN(?!S)|PASSWORD|CREDENTIAL|AUTH)", re.IGNORECASE)
"""Names of variables whose values Harbor takes for secrets."""
_TEMPLATE: Final = re.compile(r"\$\{([^}:]+)(:-.*)?\}")
_PLAIN_FLAGS: Final = frozenset({"true", "false", "1", "0", "yes", "no"})
_SERVER_KEYS: Final = frozenset({"name", "transport", "type", "url", "command", "args", "headers"})
_CONFIG_LIMIT: Final = 4 << 20

Text: TypeAlias = Annotated[str, StringConstraints(min_length=1)]


def _unmasked(env: dict[str, str | None] | None) -> dict[str, str | None] | None:
    for name, value in (env or {}).items():
        masked = _MASKED.search(name) is not None
        if masked and value and not _TEMPLATE.fullmatch(value) and value.lower() not in _PLAIN_FLAGS:
            raise PydanticCustomError(
                "harbor_masked",
                "{name} has a value that Harbor takes for a secret: it replaces the value by [REDACTED] in every file "
                "that a trial leaves, the trajectory too; write {template} and name the variable in the runner's env, "
                "or call it otherwise",
                {"name": name, "template": f"${{{name}}}"},
            )
    return env


class HarborVariant(BaseModel):
    """The ``params`` of a variant: a configuration of a Harbor agent. A mutant says only what differs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    agent: Text | None = Field(None, description="An agent of Harbor's by its name, or module.path:Class.")
    model: Text | None = Field(None, description="The model's name, as the agent takes it.")
    kwargs: dict[str, Any] | None = Field(
        None, description="Keyword arguments of the agent; merged with the baseline's, null removes one."
    )
    env: Annotated[dict[str, str | None] | None, AfterValidator(_unmasked)] = Field(
        None, description="Environment variables of the agent; merged with the baseline's, null removes one."
    )
    skills: list[Text] | None = Field(
        None, description="Folders that hold skills, beside the experiment; or sources with a version (owner/name@ref)."
    )
    mcp_servers: list[Text | dict[str, Any]] | None = Field(
        None, description="MCP servers: mappings as Harbor has them, or files (JSON, YAML, TOML) that list some."
    )
    extra_instructions: list[Text] | None = Field(None, description="Texts that are added to the task's instruction.")
    extra_instruction_files: list[Text] | None = Field(
        None, description="Files whose texts are added to the task's instruction, before extra_instructions."
    )
    base_url: Text | None = Field(None, description="Where the agent's model is reached.")
    api_key_name: Text | None = Field(None, description="The environment variable that holds the model's key.")


def inherited(baseline: Mapping[str, Json], mutant: Mapping[str, Json]) -> dict[str, Json]:
    """The whole configuration of a mutant.

    What it does not name is the baseline's. ``kwargs`` and ``env`` are merged key by key, and a key that is null there
    is removed; null in place of anything else removes the whole. Lists are replaced whole. A mutant with another
    ``agent`` inherits no ``kwargs``, which belong to the agent.
    """
    whole = {key: value for key, value in baseline.items() if value is not None}
    if mutant.get("agent") not in (None, baseline.get("agent")):
        whole.pop("kwargs", None)
    for key, value in mutant.items():
        if value is None:
            whole.pop(key, None)
        elif key in _MERGED and isinstance(value, Mapping):
            merged = {**(whole.get(key) or {}), **value}
            whole[key] = {name: entry for name, entry in merged.items() if entry is not None}
        else:
            whole[key] = value
    return whole


def named_files(params: Mapping[str, Json], folder: Path, python_path: Sequence[Path]) -> dict[str, Path]:
    """The files that a whole configuration names: the agent's code, skills, prompts and lists of MCP servers.

    Raises:
        SourceError: one is missing, no agent is named, or the agent does not take a kwarg.
    """
    agent = _agent(params)
    files: dict[str, Path] = {}
    if is_import_path(agent):
        files.update(code_files(agent, python_path, folder))
        _refuse_kwargs(agent, check_kwargs(agent, list(params.get("kwargs") or {}), python_path))
    for skill in params.get("skills") or []:
        if not is_remote(skill):
            files.update(folder_files(located(skill, folder, "folder of skills"), skill.rstrip("/")))
    for server in params.get("mcp_servers") or []:
        if isinstance(server, str):
            files[server] = named_file(server, folder)
            read_servers(server, folder)
    for name in params.get("extra_instruction_files") or []:
        files[name] = named_file(name, folder)
    template = (params.get("kwargs") or {}).get(PROMPT_TEMPLATE)
    if isinstance(template, str):
        files[template] = named_file(template, folder)
    return files


def refuse_unseen(params: Mapping[str, Json], seen: Collection[str]) -> None:
    """Hold the variables that a whole configuration takes from Harbor's environment against those that are there.

    Args:
        params: of the variant.
        seen: names of the variables of Harbor's environment.

    Raises:
        SourceError: one is not there and has no default; Harbor would refuse every trial.
    """
    for name, value in (params.get("env") or {}).items():
        taken = _TEMPLATE.fullmatch(value) if isinstance(value, str) else None
        if taken is not None and taken[2] is None and taken[1] not in seen:
            raise SourceError(
                f"env.{name} takes {taken[1]} from Harbor's environment, which has no variable of that name",
                f"name it under env of the runner: {{{taken[1]}: null}} takes it from the environment",
            )


def unread_kwargs(params: Mapping[str, Json], python_path: Sequence[Path]) -> KwargsCheck:
    """What Harbor cannot tell about a configuration's kwargs: those that nothing in the agent's code reads.

    Raises:
        SourceError: the code cannot be read.
    """
    agent = params.get("agent")
    if not isinstance(agent, str) or not is_import_path(agent):
        return KwargsCheck()
    return check_kwargs(agent, list(params.get("kwargs") or {}), python_path)


def is_remote(skill: str) -> bool:
    """Whether a source of skills is one that Harbor fetches: an address, or ``owner/name`` with a version."""
    return "://" in skill or "@" in skill


def named_file(written: str, folder: Path) -> Path:
    """A file beside the experiment, or an absolute one.

    Raises:
        SourceError: there is none, or it leaves the experiment's folder.
    """
    parent, name = os.path.split(written)
    path = located(parent or ".", folder, "folder") / name if "\0" not in written else folder
    if not path.is_file():
        problem = "is no file" if os.path.lexists(path) else "does not exist"
        raise SourceError(f"the file {written!r} {problem}", f"it is looked for in {path.parent}")
    if strays(written, path, folder):
        raise SourceError(f"{written!r} leaves the experiment's folder", "name it absolutely, or copy it")
    return path


def read_servers(written: str, folder: Path) -> list[dict[str, Json]]:
    """The MCP servers that a file lists, under ``mcpServers`` or ``mcp_servers``, as Harbor's configuration has them.

    Raises:
        SourceError: the file cannot be read, or lists none.
    """
    data = _parsed(written, named_file(written, folder))
    listed = None
    if isinstance(data, dict):
        listed = data.get("mcpServers") or data.get("mcp_servers")
    if isinstance(listed, dict):
        listed = [{"name": name, **value} for name, value in listed.items() if isinstance(value, dict)]
    if not isinstance(listed, list) or not listed or not all(isinstance(server, dict) for server in listed):
        raise SourceError(f"{written} lists no MCP servers", "they stand under mcpServers or mcp_servers")
    return [_server(server) for server in listed]


def _server(raw: Mapping[str, Json]) -> dict[str, Json]:
    server = {key: value for key, value in raw.items() if key in _SERVER_KEYS}
    if "type" in server:
        server.setdefault("transport", server.pop("type"))
    if "command" in server:
        server.setdefault("transport", "stdio")
    if server.get("transport") == "http":
        server["transport"] = "streamable-http"
    return server


def _parsed(written: str, path: Path) -> Json:
    try:
        with open_regular(path.resolve()) as file:
            content = file.read(_CONFIG_LIMIT).decode("utf-8")
        if path.suffix == ".toml":
            return tomllib.loads(content)
        return json.loads(content) if path.suffix == ".json" else yaml.safe_load(content)
    except OSError as error:
        raise SourceError(f"{written} cannot be read: {error.strerror}") from None
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise SourceError(f"{written} is broken: {error}") from None


def _agent(params: Mapping[str, Json]) -> str:
    agent = params.get("agent")
    if not isinstance(agent, str):
        raise SourceError("no agent is named", "params: {agent: ...} of the baseline names it, or module.path:Class")
    return agent


def _refuse_kwargs(agent: str, found: KwargsCheck) -> None:
    if not found.refused:
        return
    names = ", ".join(repr(name) for name in found.refused)
    raise SourceError(
        f"{agent} takes no kwarg {names}: Harbor would refuse it",
        joined(did_you_mean(found.refused[0], found.known), f"it takes {', '.join(found.known) or 'none'}"),
    )
