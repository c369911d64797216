"""What baseline attempts left of the lines they ran: the suite runner's ``reach.json``, or coverage.py's own files."""

import json
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from pytest_metricbench.contracts import CoverageError, EvidenceFile
from pytest_metricbench.coverage.traces import changed
from pytest_metricbench.digests import digest_bytes
from pytest_metricbench.plain_files import open_regular
from pytest_metricbench.suite.reach import REACH_FILE

Arc: TypeAlias = tuple[int, int]
"""From a line to the next one; a negative number is the way into or out of the code that begins at that line."""

JSON_FILE: Final = "coverage.json"
DATA_FILES: Final = (".coverage", "coverage.sqlite")
_LIMIT: Final = 256 << 20
"""Bytes that are read of one file."""


class DataError(Exception):
    """A file that is not what it is named; the message says how."""


@dataclass(frozen=True, slots=True)
class FileRan:
    """What ran of one file."""

    lines: frozenset[int]
    arcs: frozenset[Arc] | None
    """None where only lines were recorded."""
    digest: str | None = None
    """Of the file as it was; None where nobody kept it."""


@dataclass(frozen=True, slots=True)
class TaskRan:
    """What ran of the source in one attempt: name of a file -> what of it."""

    files: Mapping[str, FileRan]

    @property
    def has_arcs(self) -> bool:
        """Whether branches can be told."""
        return all(file.arcs is not None for file in self.files.values())


Naming: TypeAlias = Callable[[Sequence[str]], Mapping[str, str]]
"""Which of some recorded paths are files of the source: path -> name."""


def kind_of(file: EvidenceFile) -> str | None:
    """``reach``, ``json`` or ``data``, by the name of a file; None where it is no coverage data."""
    name = file.name.rpartition("/")[2]
    if name == REACH_FILE:
        return "reach"
    if name == JSON_FILE:
        return "json"
    return "data" if name in DATA_FILES or name.startswith(".coverage.") else None


def read_data(file: EvidenceFile, naming: Naming) -> TaskRan:
    """What a file says that ran.

    Raises:
        DataError: it is not of the form that its name promises.
        CoverageError: it cannot be read, or has changed since its attempt ended.
    """
    content = _content(file)
    try:
        match kind_of(file):
            case "reach":
                return _from_reach(content)
            case "json":
                return _from_json(content, naming)
            case _:
                return _from_data(content, naming)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DataError(f"it is not of the expected form ({type(error).__name__}: {error})") from None


def _content(file: EvidenceFile) -> bytes:
    try:
        with open_regular(file.path) as opened:
            content = opened.read(_LIMIT + 1)
    except OSError as error:
        raise CoverageError(f"{file.path} cannot be read: {error.strerror}") from None
    if len(content) > _LIMIT:
        raise CoverageError(f"{file.path} has more than {_LIMIT >> 20} MiB")
    if digest_bytes(content) != file.sha256:
        raise changed(file.path)
    return content


def _from_reach(content: bytes) -> TaskRan:
    document = json.loads(content)
    if document["metricbench"] != 1:
        raise DataError(f"it is of format version {document['metricbench']}")
    files = {}
    for name, part in document["files"].items():
        arcs = frozenset((int(start), int(end)) for key in ("imported", "test") for start, end in part[key])
        lines = frozenset(line for arc in arcs for line in arc if line > 0)
        files[str(name)] = FileRan(lines, arcs, str(part["digest"]))
    return TaskRan(files)


def _from_json(content: bytes, naming: Naming) -> TaskRan:
    recorded: dict[str, Any] = json.loads(content)["files"]
    files = {}
    for path, name in naming(list(recorded)).items():
        part = recorded[path]
        branches = part.get("executed_branches")
        arcs = None if branches is None else frozenset((int(start), int(end)) for start, end in branches)
        files[name] = FileRan(frozenset(int(line) for line in part["executed_lines"]), arcs)
    return TaskRan(files)


def _from_data(content: bytes, naming: Naming) -> TaskRan:
    """coverage.py's database, read from a copy: SQLite may write to one that it was only asked to read."""
    from coverage import CoverageData
    from coverage.exceptions import CoverageException

    with tempfile.TemporaryDirectory(prefix="metricbench-line-") as folder:
        copy = Path(folder) / "data"
        copy.write_bytes(content)
        data = CoverageData(str(copy), warn=lambda *args, **kwargs: None)
        try:
            data.read()
            files = {}
            for path, name in naming(sorted(data.measured_files())).items():
                arcs = frozenset(data.arcs(path) or ()) if data.has_arcs() else None
                files[name] = FileRan(frozenset(data.lines(path) or ()), arcs)
        except (CoverageException, sqlite3.Error) as error:
            raise DataError(f"coverage.py cannot read it ({error})") from None
        finally:
            data.close(force=True)
    return TaskRan(files)
