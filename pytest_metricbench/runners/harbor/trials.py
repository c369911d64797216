"""What a Harbor trial leaves: found in the job's folder, read, and what is kept of it moved into the workspace."""

import fnmatch
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pytest_metricbench.answers import read_json_file
from pytest_metricbench.contracts import FORMAT_VERSION, RESERVED_FILES, ContractError, Json
from pytest_metricbench.plain_files import open_regular, replace_file, write_whole

HARBOR_FILE: Final = "harbor.json"
"""Says in the workspace which Harbor ran the trial, and what it called it."""
RESULT_FILE: Final = "result.json"
TRIAL_FILES: Final = (RESULT_FILE, "config.json", "lock.json", "trial.log", "exception.txt")
"""What is kept of every trial."""

_RESULT_LIMIT: Final = 256 << 20
"""Bytes of a result: it may hold the token ids of a whole trial."""
_LOCK_LIMIT: Final = 16 << 20


def find_trial(job: Path) -> Path | None:
    """The folder of the job's one trial; None where there is none yet."""
    with suppress(OSError), os.scandir(job) as entries:
        folders = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
        trials = [path for path in folders if any((path / name).is_file() for name in TRIAL_FILES)]
        return max(trials, key=lambda path: path.stat().st_mtime_ns, default=None)
    return None


def read_result(trial: Path) -> Json:
    """What stands in ``result.json`` of a trial, or of a workspace that it was moved to; None where there is none.

    Raises:
        ContractError: it cannot be read.
    """
    path = trial / RESULT_FILE
    return read_json_file(path, _RESULT_LIMIT) if os.path.lexists(path) else None


def harbor_version(job: Path) -> str | None:
    """The version of the Harbor that ran a job, from the job's lock."""
    try:
        lock = read_json_file(job / "lock.json", _LOCK_LIMIT)
        version = lock["harbor"]["version"]
    except (ContractError, KeyError, TypeError):
        return None
    return version if isinstance(version, str) else None


def write_about(workspace: Path, about: Mapping[str, Json]) -> None:
    """Write ``harbor.json``.

    Raises:
        OSError: the workspace cannot be written.
    """
    write_whole(workspace / HARBOR_FILE, json.dumps({"metricbench": FORMAT_VERSION, **about}, indent=1) + "\n")


def read_about(workspace: Path) -> Mapping[str, Json]:
    """What ``harbor.json`` says; empty where there is none."""
    try:
        about = read_json_file(workspace / HARBOR_FILE, _LOCK_LIMIT)
    except ContractError:
        return {}
    return about if isinstance(about, dict) else {}


def keep_files(trial: Path, workspace: Path, patterns: Sequence[str]) -> None:
    """Move the files of a trial that are kept into the workspace, under their names below the trial's folder.

    Those are :data:`TRIAL_FILES` and what matches a pattern (``*`` stands for slashes too). Links, pipes and the like
    are left: an agent may have made them.

    Raises:
        OSError: the workspace cannot be written.
    """
    wanted = (*TRIAL_FILES, *patterns)
    for name, path in _files(trial, ""):
        if name in RESERVED_FILES or name == HARBOR_FILE:
            continue  # our own names
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted):
            target = workspace / name
            target.parent.mkdir(parents=True, exist_ok=True)
            _move(path, target)


def _files(folder: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    with suppress(PermissionError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                yield from _files(folder / entry.name, f"{prefix}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield f"{prefix}{entry.name}", folder / entry.name


def _move(path: Path, target: Path) -> None:
    """Move a file; copy it where that is not allowed, which a container's files may be."""
    try:
        os.replace(path, target)
    except PermissionError:
        with suppress(PermissionError), open_regular(path) as source, os.fdopen(replace_file(target), "wb") as copy:
            shutil.copyfileobj(source, copy)
