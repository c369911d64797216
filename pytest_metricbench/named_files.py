"""A file that a key of an experiment names: where it is, and its content part of the digest the key belongs to."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pytest_metricbench.plain_files import strays


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file as the experiment names it, and where it is.

    A relative name stands beside the YAML and stays in the experiment's folder; an absolute one may be anywhere.
    """

    written: str
    path: Path

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A text in YAML and JSON Schema; found relative to ``folder`` of the validation context."""
        return core_schema.with_info_after_validator_function(
            _checked_file,
            core_schema.str_schema(strict=True, min_length=1),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda named: named.written),
        )


def _checked_file(written: str, info: ValidationInfo) -> NamedFile:
    context: dict[str, Any] = info.context or {}
    folder: Path = context.get("folder") or Path()
    path = Path(os.path.abspath(folder / written)) if "\0" not in written else folder
    problem = problem_of(written, path, folder)
    if problem is not None and not (context.get("cached_only") and not os.path.lexists(path)):
        raise PydanticCustomError("named_file", "{file} {problem}", {"file": repr(written), "problem": problem})
    return NamedFile(written, path)


def problem_of(written: str, path: Path, folder: Path) -> str | None:
    """Why a name that is relative to the experiment's folder, or absolute, is of no file; None where it is of one."""
    if "\0" in written:
        return "has a null character, which no name can hold"
    try:
        if strays(written, path, folder):
            return "leaves the experiment's folder; copy the file into it, or name it absolutely"
        if not os.path.lexists(path):
            return f"does not exist; it is looked for in {path.parent}"
        if not path.is_file():
            return "is a folder; name a file" if path.is_dir() else "is no regular file"
    except OSError as error:
        return f"cannot be looked for: {error.strerror}"
    return None if os.access(path, os.R_OK) else "is not readable"
