"""The files that ``kind: audit`` names in an experiment: the audit, checked when it is collected, and judgments."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pytest_metricbench.coverage.audit.document import Audit, read_audit
from pytest_metricbench.definition.problems import ProblemList
from pytest_metricbench.messages import counted
from pytest_metricbench.named_files import NamedFile

_MAGIC: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class AuditFile(NamedFile):
    """An ``audit.md`` as the experiment names it, and what it says."""

    audit: Audit | None = None
    """None where the file is absent and that is accepted, since all answers are in the store."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A file's name in YAML and JSON Schema; the file is read and checked with it."""
        return core_schema.with_info_after_validator_function(
            _checked_audit,
            NamedFile.__get_pydantic_core_schema__(source, handler),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda named: named.written),
        )


def _checked_audit(named: NamedFile, info: ValidationInfo) -> AuditFile:
    context: dict[str, Any] = info.context or {}
    if not os.path.lexists(named.path):
        return AuditFile(named.written, named.path)
    told = context.get("problems")
    problems = told if isinstance(told, ProblemList) else ProblemList()
    folder: Path | None = context.get("folder")
    sources = not context.get("cached_only")
    audit = read_audit(named.path, named.written, problems, folder, sources=sources)
    if audit is None and problems is not told:
        more = len(problems) - 1
        raise PydanticCustomError(
            "audit",
            "{first}{more}",
            {
                "first": str(problems.found[0]),
                "more": f" (and {counted(more, 'more problem')} in that file)" if more else "",
            },
        )
    return AuditFile(named.written, named.path, audit)


def expand_names(value: Any, info: ValidationInfo) -> Any:
    """The entries of a list of files, each glob replaced by the names of the files that it matches, sorted.

    Raises:
        PydanticCustomError: nothing matches, or the glob leads out of the experiment's folder.
    """
    if not isinstance(value, list):
        return value
    context: dict[str, Any] = info.context or {}
    folder: Path = context.get("folder") or Path()
    names: dict[Any, None] = {}
    for entry in value:
        if not isinstance(entry, str) or _MAGIC.isdisjoint(entry):
            names[entry if isinstance(entry, str) else id(entry)] = None
            continue
        found = list(_matching(entry, folder))
        if not found and not context.get("cached_only"):
            raise PydanticCustomError(
                "glob",
                "no file matches {pattern}; it is looked for in {folder}",
                {"pattern": repr(entry), "folder": str(folder)},
            )
        names.update(dict.fromkeys(found))
    return list(names)


def _matching(pattern: str, folder: Path) -> Iterator[str]:
    if os.path.isabs(pattern) or ".." in pattern.split("/"):
        raise PydanticCustomError(
            "glob",
            "{pattern} leaves the experiment's folder; name the files one by one, absolutely",
            {"pattern": repr(pattern)},
        )
    for path in sorted(folder.glob(pattern)):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix()
