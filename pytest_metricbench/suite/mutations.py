"""A mutant as the experiment gives it, and as source: which files it changes, and into what."""

import io
import os
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from pytest_metricbench.plain_files import open_regular, strays
from pytest_metricbench.suite.changes import leading_lines, runs_of, same_code
from pytest_metricbench.suite.overlay import digest_of
from pytest_metricbench.suite.patches import PatchError, parse_patch
from pytest_metricbench.suite.places import SourcePlace, compiled_twin

_SOURCE_LIMIT: Final = 16 << 20
"""Bytes of a source file or a patch."""


class MutationError(Exception):
    """A mutant that cannot be made: what is wrong, and what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        """Keep both for the problem that is told."""
        super().__init__(f"{message}; {remedy}" if remedy else message)
        self.message = message
        self.remedy = remedy


class MutantParams(BaseModel):
    """The ``params`` of a mutant; the baseline has none."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    patch: str | None = Field(
        None, min_length=1, description="A patch file, or a unified diff itself (a text of several lines)."
    )
    replace: dict[str, str] = Field({}, description="Files of the source -> the files that stand in for them.")

    @property
    def patch_file(self) -> str | None:
        """The name of the patch file; None where the patch stands in the experiment, or there is none."""
        return None if self.patch is None or "\n" in self.patch else self.patch


@dataclass(frozen=True, slots=True)
class Change:
    """One file that a mutant changes."""

    path: Path
    old: bytes
    new: bytes


@dataclass(frozen=True)
class Mutation:
    """The files that a mutant changes: name below the source -> change. The baseline changes none."""

    changes: Mapping[str, Change]

    @cached_property
    def sources(self) -> Mapping[str, bytes]:
        """Real path -> mutated source."""
        return {os.path.realpath(change.path): change.new for change in self.changes.values()}

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """Real path -> digest of the mutated source."""
        return {path: digest_of(source) for path, source in self.sources.items()}

    @cached_property
    def leading(self) -> Mapping[str, frozenset[int]]:
        """Name -> the lines of the baseline one of which runs before the change can matter."""
        return {name: leading_lines(change.old, change.new) for name, change in self.changes.items()}

    @cached_property
    def places(self) -> str:
        """Those lines as a reader has them."""
        return ", ".join(f"{name}:{runs_of(lines)}" for name, lines in self.leading.items())

    def require_difference(self) -> None:
        """Refuse a mutant that runs the baseline's code.

        Raises:
            MutationError: it does.
        """
        if all(change.old == change.new or same_code(change.old, change.new) for change in self.changes.values()):
            raise MutationError(
                "the mutant is equal to the baseline: nothing that Python runs differs",
                "delete it (controls: 1 gives unchanged copies of the baseline)",
            )


def mutation_of(params: MutantParams, places: Sequence[SourcePlace], folder: Path) -> Mutation:
    """The mutant of some params, made from the source as it is now.

    Args:
        params: of the mutant.
        places: the source.
        folder: of the experiment, from which files are named.

    Raises:
        MutationError: it cannot be made.
    """
    if params.patch is not None and params.replace:
        raise MutationError("a mutant has a patch or files to replace, not both", "make two mutants, or one patch")
    finder = SourceFinder(places, folder)
    if params.patch is not None:
        return Mutation(_patched(params, finder, folder))
    changes = {}
    for written, replacement in params.replace.items():
        name, path = finder.find(written)
        changes[name] = Change(path, read_source(path), read_source(named_file(replacement, folder)))
    return Mutation(changes)


def _patched(params: MutantParams, finder: "SourceFinder", folder: Path) -> dict[str, Change]:
    title, text, is_bytes = "the patch", params.patch or "", False
    if params.patch_file is not None:
        title = params.patch_file
        text, is_bytes = _text_of_patch(read_source(named_file(title, folder)))
    changes: dict[str, Change] = {}
    try:
        for part in parse_patch(text):
            name, path = finder.find(part.name)
            before = changes[name].new if name in changes else read_source(path)
            source, encoding = decoded(before, name)
            patched = (part.recoded(encoding) if is_bytes else part).apply(source, name)
            old = changes[name].old if name in changes else before
            changes[name] = Change(path, old, encoded(patched, encoding, name))
    except PatchError as error:
        raise MutationError(f"{title}: {error}") from None
    return changes


def _text_of_patch(content: bytes) -> tuple[str, bool]:
    """A patch file as text; where it is not UTF-8, a character for each byte, which is said."""
    try:
        return content.decode("utf-8-sig"), False
    except UnicodeDecodeError:
        return content.decode("latin-1"), True


# ---------------------------------------------------------------- files


@dataclass(frozen=True, slots=True)
class SourceFinder:
    """Finds the file of the source that a patch or ``replace`` names."""

    places: Sequence[SourcePlace]
    folder: Path
    """Of the experiment."""

    def find(self, written: str) -> tuple[str, Path]:
        """The file's name below its place, and where it is.

        ``a/`` and ``b/`` before it are left out, and folders above the place (``src/``) may stand before it or not.

        Raises:
            MutationError: it is no file of the source, several are meant, or it is compiled.
        """
        found = self._exact(written) or self._by_ending(written)
        if not found:
            known = [name for place in self.places for name in place.files if name.endswith(".py")]
            listed = f"{', '.join(known[:5])}{' ...' if len(known) > 5 else ''}"
            raise MutationError(f"{written} is no file of the source", f"its files are {listed}")
        if len(found) > 1:
            raise MutationError(f"{written} may be {' or '.join(sorted(map(str, found.values())))}", "name it whole")
        (name, path), *_ = found.items()
        if path.suffix != ".py":
            raise MutationError(f"{written} is no Python source", "a mutant changes .py files")
        twin = compiled_twin(path)
        if twin is not None:
            message = f"{written} is not what Python imports: the compiled {twin.name} beside it is"
            raise MutationError(message, "a mutant needs a module that is imported from its source")
        return name, path

    def _exact(self, written: str) -> dict[str, Path]:
        for text in _without_prefix(written):
            path = Path(os.path.abspath(self.folder / text))
            for place in self.places:
                if text in place.files:
                    return {text: place.files[text]}
                for name, file in place.files.items():
                    if file == path:
                        return {name: file}
        return {}

    def _by_ending(self, written: str) -> dict[str, Path]:
        """Files whose path ends as the name does, or whose name does as the written path."""
        for text in _without_prefix(written):
            parts = PurePosixPath(text).parts
            found = {
                name: file
                for place in self.places
                for name, file in place.files.items()
                if file.parts[-len(parts) :] == parts
                or parts[-len(PurePosixPath(name).parts) :] == tuple(name.split("/"))
            }
            if found:
                return found
        return {}


def _without_prefix(written: str) -> list[str]:
    text = written.removeprefix("./")
    return [text[2:], text] if text[:2] in ("a/", "b/") else [text]


def named_file(written: str, folder: Path) -> Path:
    """A file beside the experiment, or anywhere where it is named absolutely.

    Raises:
        MutationError: there is none.
    """
    path = Path(os.path.abspath(folder / written)) if "\0" not in written else folder
    if strays(written, path, folder):
        raise MutationError(
            f"{written!r} leaves the experiment's folder", "copy the file into it, or name it absolutely"
        )
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise MutationError(f"{written!r} {problem}", f"it is looked for in {path.parent}")
    return path


def read_source(path: Path) -> bytes:
    """The content of a source file or a patch.

    Raises:
        MutationError: it cannot be read, or is larger than any source.
    """
    try:
        with open_regular(path.resolve()) as file:
            content = file.read(_SOURCE_LIMIT + 1)
    except OSError as error:
        raise MutationError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > _SOURCE_LIMIT:
        raise MutationError(f"{path} has more than {_SOURCE_LIMIT >> 20} MiB")
    return content


def decoded(source: bytes, name: str) -> tuple[str, str]:
    """A source as text, line endings as they are, and its encoding as it declares it (PEP 263).

    Raises:
        MutationError: it is not in that encoding.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise MutationError(f"{name} cannot be read as Python source: {error}") from None
    return text, encoding


def encoded(text: str, encoding: str, name: str) -> bytes:
    """A source as it stands on disk.

    Raises:
        MutationError: a character has no place in the encoding.
    """
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        character = text[error.start]
        message = f"the mutant puts {character!r} into {name}, whose encoding is {encoding}"
        raise MutationError(message, "that cannot be written there") from None
