"""What the keys of ``kind: eval-author`` name, checked at collection: scripts, interpreter, a fixed audit."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import yaml
from pydantic import AfterValidator, GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pytest_metricbench.argv import PYTHON
from pytest_metricbench.named_files import NamedFile
from pytest_metricbench.plain_files import strays

Method: TypeAlias = Literal["tool_calls", "capabilities", "failure_cases"]
Kind: TypeAlias = Literal["tool", "capability", "failure_case"]
Scope: TypeAlias = Literal["overall", "tool", "capability", "failure_case"]

KIND_OF: Final[Mapping[Method, Kind]] = {
    "tool_calls": "tool",
    "capabilities": "capability",
    "failure_cases": "failure_case",
}
"""The method that measures a kind of items -> that kind."""

MEASURE: Final = "measure.py"
REPORT: Final = "report.py"
AUDIT: Final = "audit.md"
PACKAGES: Final = "'harbor>=0.16.1' 'jsonschema>=4.0' 'PyYAML>=6.0'"
"""What the scripts need, as arguments of pip."""

RESERVED: Final = frozenset({
    "evidence", "goals.json", "judgments", "logs", "measurements", "receipt.json", "report.json", "request.json",
    "response.json", "system.stderr", "warnings.json",
})  # fmt: skip
"""Names at the top of a request's folder that no document of the audit may have."""

_DOCUMENT_LIMIT: Final = 16 << 20
"""Bytes of an audit that are looked at for the sources it names."""
_INSIDE: Final = PurePosixPath("skills/eval-author-audit/scripts/audit_spec")
_BEGIN: Final = "<!-- BEGIN:nemo-eval-author-audit:v1 -->"
_END: Final = "<!-- END:nemo-eval-author-audit:v1 -->"


def _wrong(message: str, remedy: str) -> PydanticCustomError:
    return PydanticCustomError("eval_author", "{message}; {remedy}", {"message": message, "remedy": remedy})


# ---------------------------------------------------------------- interpreter


def interpreter_path(written: str) -> str:
    """The interpreter to run: its absolute path; ``{python}`` is the running one."""
    return sys.executable if written == PYTHON else written


def _checked_interpreter(written: str, info: ValidationInfo) -> str:
    if written == PYTHON:
        return written
    if not os.path.isabs(written):
        example = f"write its whole path, or {PYTHON} for the running interpreter"
        raise _wrong(f"{written!r} is not an absolute path", example)
    if "\0" in written:
        raise _wrong(f"{written!r} has a null character", "no path can hold one")
    if (info.context or {}).get("cached_only"):
        return written
    problem = "is a folder" if os.path.isdir(written) else "does not exist" if not os.path.exists(written) else ""
    if not problem and not os.access(written, os.X_OK):
        problem = "is not executable"
    if problem:
        raise _wrong(
            f"the interpreter {written} {problem}",
            f"make one with Python 3.12 or newer: python3 -m venv VENV && VENV/bin/pip install {PACKAGES}, "
            "and write VENV/bin/python here, VENV as its whole path",
        )
    return written


Interpreter: TypeAlias = Annotated[str, AfterValidator(_checked_interpreter)]
"""An absolute path or ``{python}``, as written; checked against the validation context."""


# ---------------------------------------------------------------- scripts


class Scripts(NamedTuple):
    """The folder with ``measure.py`` and ``report.py``; both are part of the settings' digest."""

    written: str
    folder: Path
    files: tuple[NamedFile, ...]

    def path(self, name: str) -> str:
        """The absolute path of one of the scripts."""
        return str(self.folder / name)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A text in YAML and JSON Schema; found relative to ``folder`` of the validation context."""
        text = core_schema.str_schema(strict=True, min_length=1)
        return _as_written(_checked_scripts, text, lambda scripts: scripts.written)


def _checked_scripts(written: str, info: ValidationInfo) -> Scripts:
    context: dict[str, Any] = info.context or {}
    experiment: Path = context.get("folder") or Path()
    if "\0" in written:
        raise _wrong(f"{written!r} has a null character", "no path can hold one")
    folder = Path(os.path.abspath(experiment / written))
    try:
        if strays(written, folder, experiment):
            raise _wrong(f"{written!r} leaves the experiment's folder", "name it absolutely")
        if not context.get("cached_only"):
            _require_scripts(folder)
    except OSError as error:
        raise _wrong("the folder cannot be looked at", f"{error.strerror}: {folder}") from None
    stem = written.rstrip("/") or "/"
    files = tuple(NamedFile(f"{stem}/{name}", folder / name) for name in (MEASURE, REPORT))
    return Scripts(written, folder, files)


def _require_scripts(folder: Path) -> None:
    where = f"{_INSIDE} of an Eval Author checkout, absolute or beside this file"
    if not folder.exists():
        raise _wrong(f"the folder {folder} does not exist", f"get Eval Author's audit skill and name {where}")
    if not folder.is_dir():
        raise _wrong(f"{folder} is no folder", f"name the folder of {MEASURE} and {REPORT}: {where}")
    absent = [name for name in (MEASURE, REPORT) if not (folder / name).is_file()]
    if absent:
        inner = [folder.joinpath(*_INSIDE.parts[start:]) for start in range(len(_INSIDE.parts))]
        inner = [path for path in inner if (path / MEASURE).is_file()]
        remedy = f"did you mean {inner[0]}?" if inner else f"name {where}"
        raise _wrong(f"the folder {folder} has no {' and no '.join(absent)}", remedy)


# ---------------------------------------------------------------- a fixed audit


class FixedAudit(NamedTuple):
    """An audit that the experiment names, and the sources that it names with their digests.

    All of them are part of the settings' digest. The scripts look for a source relative to the audit, so both are
    copied into the request's folder as they stand to one another.
    """

    document: NamedFile
    sources: tuple[NamedFile, ...]
    copies: tuple[tuple[str, Path], ...]
    """(path below the request's folder, file) of the audit, which is the first, and of its sources."""

    @property
    def place(self) -> str:
        """Where the audit is below the request's folder."""
        return self.copies[0][0]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A text in YAML and JSON Schema; found relative to ``folder`` of the validation context."""
        named = handler.generate_schema(NamedFile)
        return _as_written(_checked_audit, named, lambda audit: audit.document.written)


def _checked_audit(document: NamedFile, info: ValidationInfo) -> FixedAudit:
    context: dict[str, Any] = info.context or {}
    sources = _sources(document)
    for source in sources:
        _require_source(document, source, context)
    depth = max((_depth(source) for source in sources), default=0)
    above = document.path.parent.parts
    inside = PurePosixPath(*above[len(above) - depth :])
    copies = [(str(inside / AUDIT), document.path)]
    named = []
    for source in sources:
        path = document.path.parent / source
        written = os.path.normpath(os.path.join(os.path.dirname(document.written), source))
        named.append(NamedFile(written, path))
        if not os.path.isabs(source):
            copies.append((os.path.normpath(inside / source), path))
    _refuse_reserved(document, copies)
    return FixedAudit(document, tuple(named), tuple(copies))


def _require_source(document: NamedFile, source: str, context: Mapping[str, Any]) -> None:
    folder: Path = context.get("folder") or Path()
    path = document.path.parent / source
    free = os.path.isabs(source) or os.path.isabs(document.written)
    try:
        inside = free or not strays(source, path, folder)
        there = path.is_file()
    except OSError:  # a name that no file can have
        inside, there = True, False
    named = f"{document.written} names the source {source}"
    if not inside or _depth(source) >= len(document.path.parent.parts):
        raise _wrong(
            f"{named}, which is outside the experiment's folder",
            "copy the source into it, or name the audit by its absolute path",
        )
    if not there and not context.get("cached_only"):
        raise _wrong(
            f"{named}, which is no file beside it ({path})", "put it there, or take its sha256 out of the audit"
        )


def _depth(source: str) -> int:
    """How many folders above the audit a relative source stands."""
    return 0 if os.path.isabs(source) else PurePosixPath(os.path.normpath(source)).parts.count("..")


def _refuse_reserved(document: NamedFile, copies: list[tuple[str, Path]]) -> None:
    names = [name for name, _ in copies]
    taken = [name for name in names if PurePosixPath(name).parts[0] in RESERVED]
    taken += [name for name in names[1:] if name == names[0]]
    if taken:
        raise _wrong(
            f"a copy of {taken[0]} would take a name of the request's own folder",
            f"move {document.written} and its sources into a folder of another name",
        )


def _sources(document: NamedFile) -> list[str]:
    """The sources that the audit names with a digest, as written; whether it is right otherwise is for the scripts."""
    try:
        with document.path.open("rb") as file:
            text = file.read(_DOCUMENT_LIMIT).decode("utf-8")
    except (OSError, UnicodeError):
        return []
    block = text.partition(_BEGIN)[2].partition(_END)[0]
    fenced = block.partition("```yaml")[2] or block.partition("```yml")[2]
    try:
        spec = yaml.safe_load(fenced.rpartition("```")[0])
    except (yaml.YAMLError, ValueError, RecursionError):
        return []
    listed = spec.get("sources") if isinstance(spec, dict) else None
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    paths = [entry.get("path") for entry in entries if entry.get("sha256") is not None]
    return list(dict.fromkeys(path for path in paths if isinstance(path, str) and path and "\0" not in path))


def _as_written(
    checked: Callable[[Any, ValidationInfo], Any], given: CoreSchema, written: Callable[[Any], str]
) -> CoreSchema:
    return core_schema.with_info_after_validator_function(
        checked, given, serialization=core_schema.plain_serializer_function_ser_schema(written)
    )
