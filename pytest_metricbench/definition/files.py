"""The files that an experiment names: further files of the definition, and the inputs that define a system."""

import fnmatch
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_metricbench.definition.documents import Document, Place
from pytest_metricbench.definition.experiment import InputFile
from pytest_metricbench.definition.problems import ProblemList, shortened
from pytest_metricbench.definition.source import read_document

_MAGIC: Final = frozenset("*?[")
_NEVER_MATCHED: Final = frozenset({"__pycache__"})
"""Folders that no glob enters: what they hold changes by itself."""


def read_named(place: Place, folder: Path, problems: ProblemList) -> Document | None:
    """Read the YAML file that a text of a document names, relative to it and inside the experiment's folder."""
    written = place.value
    path = place.document.path.parent / written
    problem = _unfit_name(written)
    if problem is None and os.path.isabs(written):
        problem = "is absolute; name a file relative to this one"
    if problem is None and _leaves(path, folder):
        problem = "leaves the experiment's folder; copy the file into it"
    if problem is None and not path.is_file():
        problem = f"{'is no regular file' if path.exists() else 'does not exist'}; name a YAML file beside this one"
    if problem is not None:
        problems.add(place.problem(f"{shortened(written)!r} {problem}"))
        return None
    return read_document(Path(os.path.abspath(path)), problems)


@dataclass(frozen=True, slots=True)
class InputFinder:
    """Finds the files of ``inputs``."""

    folder: Path
    """The experiment's."""
    own: frozenset[Path]
    """The experiment file and its lock, which no glob matches: they hold what is no part of a fingerprint."""
    cached_only: bool
    """Accept that a file is absent."""
    problems: ProblemList

    def find(self, places: list[Place]) -> tuple[InputFile, ...]:
        """The files that the entries name, each once, in the order of the entries and sorted within a glob."""
        found: dict[Path, InputFile] = {}
        for place in places:
            if isinstance(place.value, str) and place.value:
                for file in self._named(place, place.value):
                    found.setdefault(file.path, file)
        return tuple(found.values())

    def _named(self, place: Place, written: str) -> list[InputFile]:
        unfit = _unfit_name(written)
        if unfit is not None:
            return self._wrong(place, f"{shortened(written)!r} {unfit}")
        base = place.document.path.parent
        path = Path(os.path.abspath(base / written))
        if not is_glob(written) or path.exists():
            return self._literal(place, written, path)
        if ".." in written.split("/") and not os.path.isabs(written):
            return self._wrong(place, f"{written!r} leaves the experiment's folder", "name it absolutely")
        matches = sorted(_matches(base, written))
        files = [InputFile(name, path) for name, path in matches if path not in self.own]
        if not files:
            if self.cached_only:
                return [InputFile(written, path)]
            return self._wrong(place, f"no file matches {written!r}", f"it is looked for in {base}")
        return [file for file in files if self._is_fit(place, file)]

    def _literal(self, place: Place, written: str, path: Path) -> list[InputFile]:
        file = InputFile(written, path)
        if self._leaves_told(place, file):
            return []
        if path.is_dir():
            whole = f"{written.rstrip('/')}/**"
            return self._wrong(place, f"{written!r} is a folder", f"name its files, as in {whole!r}")
        if not os.path.lexists(path):
            if self.cached_only:
                return [file]
            return self._wrong(place, f"the file {written!r} does not exist", f"it is looked for in {path.parent}")
        return [file] if self._is_fit(place, file) else []

    def _is_fit(self, place: Place, file: InputFile) -> bool:
        if self._leaves_told(place, file):
            return False
        try:
            regular = stat.S_ISREG(file.path.stat().st_mode)
        except OSError as error:
            self._wrong(place, f"{file.name!r} cannot be read: {error.strerror}")
            return False
        if not regular or not os.access(file.path, os.R_OK):
            self._wrong(place, f"{file.name!r} is {'not readable' if regular else 'no regular file'}")
            return False
        return True

    def _leaves_told(self, place: Place, file: InputFile) -> bool:
        leaves = not os.path.isabs(file.name) and _leaves(file.path, self.folder)
        if leaves:
            self._wrong(place, f"{file.name!r} leaves the experiment's folder", "name it absolutely, or copy it")
        return leaves

    def _wrong(self, place: Place, message: str, remedy: str = "") -> list[InputFile]:
        self.problems.add(place.problem(message, remedy))
        return []


def is_glob(written: str) -> bool:
    """Whether a name of ``inputs`` is a pattern."""
    return not _MAGIC.isdisjoint(written)


def _unfit_name(written: str) -> str | None:
    if not written or "\0" in written or len(written) > 1024:
        return "is no name of a file"
    return None


def _leaves(path: Path, folder: Path) -> bool:
    """Whether a path leads out of a folder by ``..`` or a link."""
    try:
        return not path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a circle of links
        return True


def _matches(base: Path, pattern: str) -> Iterator[tuple[str, Path]]:
    """(name as written, path) of the files that a glob matches.

    ``**`` stands for any number of folders, and at the end for all files below; it follows no links, so that it ends.
    Hidden names are matched only by a pattern that begins with a dot.
    """
    written = [part for part in pattern.split("/") if part not in ("", ".")]
    parts = [part for part, before in zip(written, ["", *written], strict=False) if part != "**" or before != "**"]
    start = "/" if os.path.isabs(pattern) else ""
    for name in _walk(Path("/") if start else base, start, parts):
        yield name, Path(os.path.abspath(base / name))


def _walk(folder: Path, prefix: str, parts: list[str]) -> Iterator[str]:
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _walk(folder, prefix, rest or ["*"])
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False) and _is_open(entry.name, ""):
                yield from _walk(folder / entry.name, f"{prefix}{entry.name}/", parts)
    elif is_glob(part):
        for entry in _entries(folder):
            if fnmatch.fnmatchcase(entry.name, part) and _is_open(entry.name, part):
                yield from _descend(folder / entry.name, f"{prefix}{entry.name}", rest)
    else:
        yield from _descend(folder / part, f"{prefix}{part}", rest)


def _descend(path: Path, name: str, rest: list[str]) -> Iterator[str]:
    if rest:
        yield from _walk(path, f"{name}/", rest)
    elif path.is_file():
        yield name


def _is_open(name: str, pattern: str) -> bool:
    return name not in _NEVER_MATCHED and (not name.startswith(".") or pattern.startswith("."))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
