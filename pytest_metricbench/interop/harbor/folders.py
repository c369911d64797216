"""Harbor's job folders as they lie on disk: which trials they hold, what was planned, and which version wrote them."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from pytest_metricbench.answers import named, plain_text, read_json_file
from pytest_metricbench.contracts import ContractError, Json
from pytest_metricbench.digests import digest_value
from pytest_metricbench.interop.harbor.variants import agent_settings, settings_key
from pytest_metricbench.interop.recordings import RecordingError

RESULT: Final = "result.json"
_CONFIG: Final = "config.json"
_LOCK: Final = "lock.json"
_LIMIT: Final = 256 << 20
"""Bytes that one of Harbor's files may have: token ids of whole conversations may stand in a result."""
_OLDEST: Final = (0, 13)
_NEWEST: Final = (0, 26)

PlanKey: TypeAlias = tuple[str, str]
"""Agent's settings as one text, and the name of the task."""


@dataclass(frozen=True, slots=True)
class TrialFolder:
    """One trial of a job."""

    name: str
    """Of the folder, as reports show it."""
    path: Path
    task: str
    agent: Mapping[str, Json]
    """The settings of its agent."""
    result: Mapping[str, Any] | None
    """What of ``result.json`` is needed; None where the trial left none."""

    @property
    def key(self) -> PlanKey:
        """What it was planned as."""
        return settings_key(self.agent), self.task


@dataclass(frozen=True, slots=True)
class JobFolder:
    """One job: its trials by the names of their folders, and what is known about the whole."""

    name: str
    trials: tuple[TrialFolder, ...]
    version: str | None = None
    """Of Harbor; None where the job has no ``lock.json``."""
    has_ended: bool = True
    planned_total: int | None = None
    """How many trials were planned, where the job says it."""
    plan: Counter[PlanKey] | None = None
    """How many of them of each agent and task; None where that is not known."""
    agents: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    """Settings as one text -> settings, of the agents of the plan."""
    common: Mapping[str, Json] = field(default_factory=dict)
    """Settings that hold for all agents of the job: instructions that were added."""
    skills: Mapping[str, Json] = field(default_factory=dict)
    """Agent's settings as one text -> digests of its skills."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Every file that was read."""

    @property
    def is_newer(self) -> bool:
        """Whether a Harbor wrote it that is newer than those whose rules are known."""
        numbers = version_numbers(self.version)
        return numbers is not None and numbers > _NEWEST


def version_numbers(version: str | None) -> tuple[int, int] | None:
    """Major and minor number of a version; None where it has none."""
    parts = (version or "").split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (ValueError, IndexError):
        return None


def read_folder(name: str, path: Path) -> JobFolder:
    """Read a job folder, or the folder of a single trial.

    Raises:
        RecordingError: it is none, a file in it is broken, or its version is too old.
    """
    if not path.is_dir():
        raise RecordingError(f"{name} is no folder", "name a job folder of Harbor, which holds a folder for each trial")
    reader = _Reader()
    if reader.is_trial(path):
        trial, job = reader.trial(name, path), name.rpartition("/")[0] or name
        return JobFolder(job, () if trial is None else (trial,), files=reader.files)
    own = {file: reader.read(f"{name}/{file}", path / file) for file in (_CONFIG, _LOCK, RESULT)}
    version = _version(name, own[_LOCK], own[RESULT])
    trials = tuple(reader.trials(name, path))
    if not trials and own[_CONFIG] is None:
        raise _no_job(name, path)
    found = {trial.result["task_path"]: trial.task for trial in trials if trial.result and trial.result["task_path"]}
    planned = list(_planned(own[_LOCK], found))
    total = (own[RESULT] or {}).get("n_total_trials")
    return JobFolder(
        name=name,
        trials=trials,
        version=version,
        has_ended=own[RESULT] is not None and own[RESULT].get("finished_at") is not None,
        planned_total=total if isinstance(total, int) else (len(planned) or None),
        plan=Counter((settings_key(agent), task) for agent, task, _ in planned) if planned else None,
        common=_common(own[_CONFIG], own[_LOCK]),
        skills={settings_key(agent): skills for agent, _, skills in planned if skills},
        agents={settings_key(agent): agent for agent, _, _ in planned},
        files=reader.files,
    )


def read_document(path: Path) -> Any:
    """The content of one of Harbor's JSON files.

    The bound is that of the file as it is: the most that may be read is set aside before anything is.

    Raises:
        ContractError: it is none, it is too large, or it cannot be read.
    """
    try:
        size = path.lstat().st_size
    except OSError:  # then reading it says what is wrong
        size = 0
    return read_json_file(path, min(max(size, 1), _LIMIT))


class _Reader:
    """Reads Harbor's files and remembers which."""

    def __init__(self) -> None:
        self.files: dict[str, Path] = {}

    def read(self, name: str, path: Path) -> Mapping[str, Any] | None:
        """A file of Harbor's; None where there is none."""
        if not os.path.lexists(path):
            return None
        try:
            content = read_document(path)
        except ContractError as error:
            folder = name.rpartition("/")[0]
            remedy = "if the job is still running, wait for its end; otherwise repair or remove the folder of the trial"
            raise RecordingError(f"{folder}: {error}", remedy) from None
        if not isinstance(content, dict):
            raise RecordingError(f"{name} holds {named(content)}; a mapping is expected")
        version = content.get("schema_version", 1)
        if path.name == RESULT and version != 1:
            raise RecordingError(
                f"{name} has the schema_version {named(version)}; 1 is known",
                "it was written by a newer Harbor; look for a newer pytest-metricbench",
            )
        self.files[name] = path
        return content

    def is_trial(self, path: Path) -> bool:
        """Whether a folder is that of a single trial."""
        for file in (RESULT, _CONFIG):
            try:
                content = read_document(path / file)
            except ContractError:
                continue
            return isinstance(content, dict) and "trial_name" in content
        return False

    def trials(self, name: str, path: Path) -> Iterator[TrialFolder]:
        """The trials of a job, by the names of their folders. Links are not followed."""
        with os.scandir(path) as entries:
            folders = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        for folder in folders:
            trial = self.trial(f"{name}/{plain_text(folder)}", path / folder)
            if trial is not None:
                yield trial

    def trial(self, name: str, path: Path) -> TrialFolder | None:
        """The trial of a folder; None where it has neither a result nor the configuration of one."""
        result = self.read(f"{name}/{RESULT}", path / RESULT)
        if result is not None and "n_total_trials" in result and "trial_name" not in result:
            outer = name.rpartition("/")[0]
            raise RecordingError(f"{outer} is no job of Harbor: {name} is one", f"name {outer}/*")
        if result is not None:
            task, agent = result.get("task_name"), _agent(result.get("config"))
            if not isinstance(task, str) or not task or agent is None:
                what = "task_name" if agent is not None else "config.agent"
                raise RecordingError(
                    f"{name}/{RESULT} has no {what}", "it is no result of a trial of Harbor 0.13 or newer"
                )
            return TrialFolder(name, path, plain_text(task), agent_settings(agent), _needed(result))
        config = self.read(f"{name}/{_CONFIG}", path / _CONFIG)
        agent = _agent(config)
        if config is None or agent is None or "trial_name" not in config:
            return None
        lock = self.read(f"{name}/{_LOCK}", path / _LOCK) or {}
        return TrialFolder(name, path, _task_of(lock.get("task"), config.get("task")), agent_settings(agent), None)


def _needed(result: Mapping[str, Any]) -> dict[str, Any]:
    """What of a result is kept in memory: everything but conversations, tracebacks and configuration."""
    kept = {
        key: result.get(key)
        for key in ("id", "task_name", "trial_name", "source", "task_checksum", "verifier_result", "verifier")
    }
    if "agent_execution" in result:
        kept["agent_execution"] = result["agent_execution"]
    kept["exception_info"] = _without_traceback(result.get("exception_info"))
    steps = result.get("step_results")
    kept["step_results"] = steps
    if isinstance(steps, list):
        kept["step_results"] = [_needed_step(step) for step in steps]
    agent = result.get("agent_info")
    kept["agent_name"] = agent.get("name") if isinstance(agent, dict) else None
    task_id = result.get("task_id")
    kept["task_path"] = str(task_id.get("path") or "") if isinstance(task_id, dict) else ""
    source = (result.get("config") or {}).get("source_trial")
    kept["regrade_of"] = source.get("trial_id") if isinstance(source, dict) else None
    kept["is_newer_form"] = "reward_valid" in result
    return kept


def _needed_step(step: Any) -> Any:
    if not isinstance(step, dict):
        return step
    kept = {
        key: value
        for key, value in step.items()
        if key in ("step_name", "verifier_result", "verifier", "agent_execution")
    }
    return {**kept, "exception_info": _without_traceback(step.get("exception_info"))}


def _without_traceback(info: Any) -> Any:
    if not isinstance(info, dict):
        return info
    return {key: value for key, value in info.items() if key != "exception_traceback"}


def _agent(config: Any) -> Mapping[str, Any] | None:
    agent = config.get("agent") if isinstance(config, Mapping) else None
    return agent if isinstance(agent, Mapping) else None


def _task_of(*known: Any) -> str:
    """The name of a task from its lock or its configuration: its name, or else that of its folder."""
    for task in known:
        if isinstance(task, Mapping):
            name = task.get("name") or os.path.basename(str(task.get("path") or "").rstrip("/"))
            if name:
                return plain_text(str(name))
    return "unknown"


def _planned(lock: Any, found: Mapping[str, str]) -> Iterator[tuple[dict[str, Json], str, Json]]:
    """(agent's settings, task, digests of its skills) of every trial that the job planned.

    ``found``: path of a task -> its name in results, which may differ from that in the lock.
    """
    trials = lock.get("trials") if isinstance(lock, Mapping) else None
    for trial in trials if isinstance(trials, list) else ():
        agent, task = _agent(trial), trial.get("task") if isinstance(trial, Mapping) else None
        if agent is None or not isinstance(task, Mapping):
            continue
        skills = trial.get("skills")
        digests = {
            str(skill.get("name")): skill.get("digest")
            for skill in (skills if isinstance(skills, list) else ())
            if isinstance(skill, Mapping)
        }
        yield agent_settings(agent), found.get(str(task.get("path"))) or _task_of(task), digests


def _common(config: Any, lock: Any) -> dict[str, Json]:
    """What a job adds to the instruction of every agent: texts, and files by their digests."""
    common: dict[str, Json] = {}
    for key in ("extra_instructions", "extra_instruction_paths", "user_agent"):
        value = config.get(key) if isinstance(config, Mapping) else None
        if value:
            common[key] = digest_value(value)[:13] if key == "user_agent" else value
    trials = lock.get("trials") if isinstance(lock, Mapping) else None
    first = trials[0] if isinstance(trials, list) and trials and isinstance(trials[0], Mapping) else {}
    added = first.get("extra_instructions")
    digests = [entry.get("digest") for entry in added if isinstance(entry, Mapping)] if isinstance(added, list) else []
    if digests and "extra_instruction_paths" in common:
        common["extra_instruction_digests"] = digests
    return common


def _version(name: str, lock: Mapping[str, Any] | None, result: Mapping[str, Any] | None) -> str | None:
    """The version that wrote a job; None where it does not say.

    Raises:
        RecordingError: it is too old.
    """
    harbor = (lock or {}).get("harbor")
    version = harbor.get("version") if isinstance(harbor, Mapping) else None
    version = version if isinstance(version, str) else None
    stats = (result or {}).get("stats")
    numbers = version_numbers(version)
    is_old = isinstance(stats, Mapping) and "n_completed_trials" not in stats and "n_trials" in stats
    if (numbers is not None and numbers < _OLDEST) or (numbers is None and is_old):
        shown = "before 0.13" if version is None else version
        raise RecordingError(
            f"{name} was written by Harbor {shown}; 0.13 and newer are read", "run the job again with a newer Harbor"
        )
    return version


def _no_job(name: str, path: Path) -> RecordingError:
    """Why a folder is no job, with what was probably meant."""
    with os.scandir(path) as entries:
        inner = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    jobs = [folder for folder in inner if any((path / folder / file).is_file() for file in (_CONFIG, _LOCK))]
    if not jobs and any((path / folder / "task.toml").is_file() for folder in inner):
        return RecordingError(f"{name} holds tasks of Harbor and no trials", "name the folder of the job that ran them")
    deeper = any(config.is_file() for folder in inner for config in (path / folder).glob(f"*/{_CONFIG}"))
    hint = (
        f"it holds folders of jobs: name {name}/*"
        if jobs or deeper
        else "name a job folder, as in jobs/2026-01-31__12-00-00"
    )
    return RecordingError(f"{name} holds no trial of Harbor", hint)
