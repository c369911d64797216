"""Command lines as an experiment has them: checked when it is read, with the files beside it that they name."""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pytest_metricbench.plain_files import strays

PYTHON: Final = "{python}"
"""Stands for the running interpreter in an argv; digests use it as written."""


@dataclass(frozen=True, slots=True)
class Argv:
    """A command line from an experiment: as written, as run, and the files beside the YAML that it names.

    In YAML it is a list of texts, never a shell string. Its first item is an absolute path or ``{python}``; an item
    that names a file beside the YAML becomes its absolute path.
    """

    written: tuple[str, ...]
    """The arguments as the YAML has them: what digests are made of."""
    resolved: tuple[str, ...]
    """The arguments as they are run, ``{python}`` and names of files replaced."""
    files: tuple[tuple[str, Path], ...] = ()
    """(as written, where it is) of each argument that names a file beside the YAML."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A list of texts in YAML and JSON Schema; checked against ``folder`` of the validation context."""
        texts = core_schema.list_schema(core_schema.str_schema(strict=True, min_length=1), min_length=1)
        return core_schema.with_info_after_validator_function(
            cls.checked,
            texts,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda argv: list(argv.written)),
        )

    @classmethod
    def checked(cls, written: list[str], info: ValidationInfo) -> "Argv":
        """The command line of a list of texts.

        Raises:
            PydanticCustomError: it cannot be run, or names a file outside the experiment's folder.
        """
        return _checked_argv(written, info)


def _checked_argv(written: list[str], info: ValidationInfo) -> Argv:
    context: dict[str, Any] = info.context or {}
    folder: Path | None = context.get("folder")
    executable = written[0]
    with_null = [argument for argument in written if "\0" in argument]
    if with_null:
        raise PydanticCustomError(
            "argv_null", "{argument} has a null character, which no argument can hold", {"argument": repr(with_null[0])}
        )
    if executable != PYTHON:
        if not os.path.isabs(executable):
            raise PydanticCustomError(
                "argv_relative",
                "{executable} is not an absolute path; write {example}",
                {"executable": repr(executable), "example": _absolute_example(executable)},
            )
        problem = None if context.get("cached_only") else _executable_problem(executable)
        if problem is not None:
            raise PydanticCustomError(
                "argv_missing",
                "the executable {executable} {problem}",
                {"executable": executable, "problem": problem},
            )
    resolved = [executable.replace(PYTHON, sys.executable)]
    files = []
    script = _script_position(written)
    for position, argument in enumerate(written[1:], start=1):
        path = _named_file(argument, folder)
        if path is not None:
            files.append((argument, path))
        elif position == script and not context.get("cached_only"):
            _require_script(argument, folder)
        resolved.append(str(path) if path is not None else argument.replace(PYTHON, sys.executable))
    return Argv(tuple(written), tuple(resolved), tuple(files))


def _executable_problem(executable: str) -> str | None:
    if not os.path.exists(executable):
        return "does not exist"
    if os.path.isdir(executable):
        return "is a folder"
    return None if os.access(executable, os.X_OK) else "is not executable"


def _require_script(argument: str, folder: Path | None) -> None:
    """Refuse a script that does not exist: Python would start, fail, and look like an agent that died."""
    if folder is None or (folder / argument).is_file():
        return
    problem = "is a folder; name a script in it" if (folder / argument).is_dir() else "does not exist beside the file"
    raise PydanticCustomError(
        "argv_script", "the script {script} {problem}", {"script": repr(argument), "problem": problem}
    )


def _absolute_example(executable: str) -> str:
    if os.path.basename(executable).startswith("python"):
        return f"{PYTHON} (the running interpreter) or /usr/bin/env followed by {executable}"
    return f"its whole path, or /usr/bin/env followed by {executable}"


def _script_position(written: Sequence[str]) -> int | None:
    """Where a Python command line names its script; None where it runs a module, a text, or something else."""
    start = 0
    if os.path.basename(written[0]) == "env" and len(written) > 1:
        start = 1
    if written[start] != PYTHON and not os.path.basename(written[start]).startswith("python"):
        return None
    position = start + 1
    while position < len(written):
        argument = written[position]
        if not argument.startswith("-"):
            return position
        if argument == "-" or argument.startswith("--"):
            return None
        valued = re.search("[cmWX]", argument)
        if valued is not None and valued.group() in "cm":
            return None
        # -W and -X have a value: the rest of the argument, or the next one
        position += 2 if valued is not None and valued.end() == len(argument) else 1
    return None


def _named_file(argument: str, folder: Path | None) -> Path | None:
    """The file beside the YAML that an argument names.

    Raises:
        PydanticCustomError: it names a file outside the experiment's folder.
    """
    path = file_beside(argument, folder)
    if path is None or folder is None:
        return None
    if strays(argument, path, folder):
        raise PydanticCustomError(
            "argv_outside",
            "{argument} leaves the experiment's folder; copy the file into it, or name it absolutely",
            {"argument": repr(argument)},
        )
    return path


def file_beside(argument: str, folder: Path | None) -> Path | None:
    """The file that an argument names relative to a folder, wherever it leads; None where it names none."""
    if folder is None or os.path.isabs(argument) or argument.startswith("-") or len(argument) > 1024:
        return None
    path = folder / argument
    try:
        if not path.is_file():
            return None
    except OSError:
        return None
    return path.absolute()  # not normalised: behind a link ".." is not what its text says
