"""The tasks of the ``harbor`` runner: a dataset's folder expanded to its tasks, and what each of them is made of."""

import fnmatch
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from pytest_metricbench.definition.ids import derive_id, tag_problem
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.digests import digest_value
from pytest_metricbench.plain_files import open_regular, strays
from pytest_metricbench.sources import Source, SourceError

TASK_FILE: Final = "task.toml"
_TASK_FILE_LIMIT: Final = 1 << 20
_SCRIPTS: Final = ("test.sh", "test.bat")
_PACKAGE: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*")
_NEVER_READ: Final = frozenset({"__pycache__", ".git", ".DS_Store"})
"""What changes by itself and is no part of a task."""


class HarborTask(BaseModel):
    """The ``params`` of a task: where its folder is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1, description="The task's folder, relative to the experiment's, or absolute.")


class HarborTasks(Source):
    """The tasks of a dataset: every folder that is a direct child of the dataset's."""

    harbor: str = Field(min_length=1, description="The dataset's folder, relative to the experiment's, or absolute.")
    include: list[str] | None = Field(
        None, min_length=1, description="Patterns of the names of the folders that are taken; without it, all."
    )
    exclude: list[str] = Field([], description="Patterns of the names of folders that are left out.")

    def expand(self, folder: Path) -> Sequence[Mapping[str, Any]]:
        """One entry a task, sorted by the name of its folder; its own name from ``task.toml`` where that has one.

        Raises:
            SourceError: the dataset has no tasks or is one itself, or one of its tasks is broken.
        """
        entries: dict[str, dict[str, Any]] = {}
        for path in self._tasks(folder):
            written = f"{self.harbor.rstrip('/')}/{path.name}"
            _refuse_unwritable(written)
            entry = _entry(located(written, folder, "task"), written)
            other = entries.setdefault(entry["id"], entry)
            if other is not entry:
                raise SourceError(
                    f"{entry['params']['path']} and {other['params']['path']} are both called "
                    f"{entry.get('name', entry['id'])!r}",
                    f"give one of them another name in its {TASK_FILE}, or leave it out with exclude",
                )
        return list(entries.values())

    def state(self, folder: Path) -> Mapping[str, Any]:
        """The tasks' folders, names, descriptions and tags, as one digest.

        What else stands in a task belongs to its attempts' fingerprint: changing it makes them stale and leaves the
        lock as it is.

        Raises:
            SourceError: as for :meth:`expand`.
        """
        return {"listing": digest_value(list(self.expand(folder)))}

    def _tasks(self, folder: Path) -> list[Path]:
        dataset = located(self.harbor, folder, "dataset")
        if (dataset / TASK_FILE).exists():
            parent = Path(self.harbor).parent.as_posix()
            raise SourceError(
                f"{self.harbor} is a single task, not a dataset: it holds a {TASK_FILE}",
                f"name the folder that it is in, as in {{harbor: {parent}, include: [{dataset.name}]}}",
            )
        found = _child_folders(dataset)
        names = [path.name for path in found]
        for pattern in (*(self.include or ()), *self.exclude):
            if not fnmatch.filter(names, pattern):
                raise SourceError(f"no folder of {self.harbor} matches {pattern!r}", _listed(names))
        taken = [path for path in found if self._takes(path.name)]
        if not taken:
            raise SourceError(
                f"{self.harbor} holds no task" if not found else f"exclude leaves no task of {self.harbor}",
                f"a task is a folder with a {TASK_FILE}",
            )
        return taken

    def _takes(self, name: str) -> bool:
        wanted = self.include is None or any(fnmatch.fnmatchcase(name, pattern) for pattern in self.include)
        return wanted and not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.exclude)


def located(written: str, folder: Path, what: str) -> Path:
    """The folder that an experiment names: beside it, or absolute.

    Raises:
        SourceError: there is none, or it leaves the experiment's folder.
    """
    if "\0" in written or len(written) > 1024:
        raise SourceError(f"{written[:40]!r} is no name of a folder")
    path = Path(os.path.abspath(folder / written))
    try:
        if strays(written, path, folder):
            raise SourceError(f"{written!r} leaves the experiment's folder", "name it absolutely, or copy it")
        if path.is_dir():
            return path
        is_there = os.path.lexists(path)
    except (OSError, RuntimeError) as error:  # a circle of links
        raise SourceError(f"the {what} {written!r} cannot be looked for: {error}") from None
    problem = "is no folder" if is_there else "does not exist"
    raise SourceError(f"the {what} {written!r} {problem}", f"it is looked for in {path.parent}")


def _child_folders(dataset: Path) -> list[Path]:
    try:
        children = sorted(dataset.iterdir())
    except OSError as error:
        raise SourceError(f"{dataset} cannot be read: {error.strerror}") from None
    return [path for path in children if path.is_dir() and not path.name.startswith(".") and path.name != "__pycache__"]


def _refuse_unwritable(written: str) -> None:
    """Names go into the lock, which is UTF-8 like all that is ours."""
    if not written.isascii() and written != written.encode("utf-8", "replace").decode("utf-8"):
        shown = written.encode("utf-8", "backslashreplace").decode("utf-8")
        raise SourceError(f"the name of the folder '{shown}' is not UTF-8", "rename it, or leave it out with exclude")


def _listed(names: Sequence[str]) -> str:
    return f"there are {first_names(names)}" if names else "it has no folders"


# ---------------------------------------------------------------- one task


def _entry(path: Path, written: str) -> dict[str, Any]:
    config = checked_task(path, written)
    about = _table(config, "task", written)
    own = about.get("name")
    id_, name = derive_id(own if isinstance(own, str) and own else path.name)
    entry: dict[str, Any] = {"id": id_}
    if name:
        entry["name"] = name
    description = about.get("description")
    if isinstance(description, str) and description.strip():
        entry["description"] = description.strip()
    keywords = about.get("keywords")
    if isinstance(keywords, list):
        tags = [word for word in dict.fromkeys(map(str, keywords)) if tag_problem(word) is None]
        if tags:
            entry["tags"] = tags
    entry["params"] = {"path": written}
    return entry


def checked_task(path: Path, written: str) -> Mapping[str, Any]:
    """What a task's ``task.toml`` says, once everything that Harbor needs of the task is there.

    Harbor leaves a task out of its dataset, without a word, when something of this is missing.

    Raises:
        SourceError: something is; the message names the task and the part.
    """
    config = _read_toml(path / TASK_FILE, written)
    _check_values(config, written)
    environment = _table(config, "environment", written)
    if not environment.get("docker_image") and not (path / "environment").is_dir():
        raise SourceError(
            f"the task {written} has neither a folder environment nor a docker_image in its {TASK_FILE}",
            "Harbor would leave it out; add one of them, or leave the task out with exclude",
        )
    verifier = _table(config, "verifier", written)
    is_separate = verifier.get("environment_mode") == "separate" or isinstance(verifier.get("environment"), dict)
    steps = config.get("steps") or []
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise SourceError(f"{written}/{TASK_FILE}: steps is no list of tables")
    if not steps:
        _require(path, written, "instruction.md")
        if not is_separate:
            _require(path, written, *(f"tests/{script}" for script in _SCRIPTS))
    for step in steps:
        _check_step(path, written, step, has_own_verifier=is_separate or "verifier" in step)
    return config


def _check_values(config: Mapping[str, Any], written: str) -> None:
    """Hold what most often is wrong against Harbor's form; what else is, a trial tells."""
    if "task" in config:
        name = _table(config, "task", written).get("name")
        if not isinstance(name, str) or not _PACKAGE.fullmatch(name) or ".." in name:
            said = "task.name is missing" if name is None else f"task.name is {name!r}"
            raise SourceError(f"{written}/{TASK_FILE} is broken: {said}", "Harbor wants organization/name there")
    for table in ("agent", "verifier", "environment"):
        for key, value in _table(config, table, written).items():
            if key.endswith("_sec") and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise SourceError(
                    f"{written}/{TASK_FILE} is broken: {table}.{key} is {value!r}", "a number of seconds is expected"
                )


def _check_step(path: Path, written: str, step: Mapping[str, Any], *, has_own_verifier: bool) -> None:
    name = step.get("name")
    if not isinstance(name, str) or not name or "/" in name or name.startswith("."):
        raise SourceError(f"{written}/{TASK_FILE}: a step is called {name!r}, which is no name of a folder")
    _require(path, written, f"steps/{name}/instruction.md")
    places = (path / "steps" / name / "tests", path / "tests")
    scripts = [folder / script for folder in places for script in _SCRIPTS]
    if not has_own_verifier and not any(script.is_file() for script in scripts):
        raise SourceError(
            f"the step {name!r} of the task {written} has no test script",
            f"it would be {written}/steps/{name}/tests/test.sh, or {written}/tests/test.sh for all steps",
        )


def _require(path: Path, written: str, *names: str) -> None:
    """One of the files must be there."""
    if not any((path / name).is_file() for name in names):
        raise SourceError(
            f"the task {written} has no {names[0]}",
            "Harbor would leave it out; add the file, or leave the task out with exclude",
        )


def _read_toml(file: Path, written: str) -> Mapping[str, Any]:
    try:
        with open_regular(file) as opened:
            content = opened.read(_TASK_FILE_LIMIT + 1)
    except FileNotFoundError:
        raise SourceError(
            f"{written} has no {TASK_FILE}", "a folder of a dataset that is no task is named under exclude"
        ) from None
    except OSError as error:
        raise SourceError(f"{written}/{TASK_FILE} cannot be read: {error.strerror}") from None
    if len(content) > _TASK_FILE_LIMIT:
        raise SourceError(f"{written}/{TASK_FILE} is larger than {_TASK_FILE_LIMIT >> 20} MiB")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and TOMLDecodeError are ValueErrors
        raise SourceError(
            f"{written}/{TASK_FILE} is broken: {error}", "Harbor would leave the task out without a word"
        ) from None


def _table(config: Mapping[str, Any], key: str, written: str) -> Mapping[str, Any]:
    table = config.get(key, {})
    if not isinstance(table, dict):
        raise SourceError(f"{written}/{TASK_FILE}: {key} is no table")
    return table


def folder_files(root: Path, prefix: str) -> Mapping[str, Path]:
    """Every regular file below a folder, links followed: ``prefix`` and its path there -> where it is.

    Raises:
        SourceError: a folder cannot be read, or links lead in a circle.
    """
    return {f"{prefix}/{name}": path for name, path in _walk(root, "", (os.path.realpath(root),))}


def _walk(folder: Path, prefix: str, parents: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise SourceError(f"{folder} cannot be read: {error.strerror}") from None
    for entry in entries:
        if entry.name in _NEVER_READ:
            continue
        path = folder / entry.name
        if entry.is_dir():
            real = os.path.realpath(path)
            if real in parents:
                raise SourceError(f"the link {path} leads in a circle", "remove it")
            yield from _walk(path, f"{prefix}{entry.name}/", (*parents, real))
        elif entry.is_file():
            yield f"{prefix}{entry.name}", path
