"""The files of an evaluator bundle, found and read with care: rows one at a time, regular files only.

A bundle is a folder that ``AgentEvalResult.persist`` of NVIDIA's evaluator SDK wrote (``nhx_evals_sdk``, before that
``nemo_evaluator_sdk``). None of its files says which version wrote it.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from pytest_metricbench.answers import named
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.interop.json_lines import JsonLines
from pytest_metricbench.interop.recordings import RecordingError
from pytest_metricbench.plain_files import open_regular

RUN, METADATA, TASKS, TRIALS, SCORES, SUMMARY = (
    "run.json",
    "metadata.json",
    "tasks.jsonl",
    "trials.jsonl",
    "scores.jsonl",
    "summary.json",
)
NEEDED: Final = (RUN, TASKS, TRIALS, SCORES, SUMMARY)
"""The files without which a folder is no whole bundle. ``run.json`` is written last."""
DOCUMENT_LIMIT: Final = 1 << 30
"""Bytes of the largest ``summary.json`` that is read."""
DEPTH_LIMIT: Final = 6
"""How far below a named folder bundles are looked for."""

_MARKS: Final = (TRIALS, SCORES, TASKS)
_AGAIN: Final = "write the bundle again, or take it out of what is read"
_WAIT: Final = "wait until the run has ended; a run that was stopped leaves no whole bundle"


@dataclass(frozen=True, slots=True)
class Bundle:
    """One bundle: its name as reports show it, and its folder."""

    name: str
    folder: Path

    def where(self, file: str, line: int | None = None) -> str:
        """How messages call a place in it."""
        return f"{self.name}/{file}" if line is None else f"{self.name}/{file}:{line}"

    def stamp(self) -> tuple[tuple[str, int, int, int], ...]:
        """What changes when somebody writes the bundle: size, time and inode of each of its files."""
        found = []
        for file in (*NEEDED, METADATA):
            try:
                status = os.stat(self.folder / file, follow_symlinks=False)
            except OSError:
                continue
            found.append((file, status.st_size, status.st_mtime_ns, status.st_ino))
        return tuple(found)


def find_bundles(paths: Mapping[str, Path]) -> list[Bundle]:
    """The bundles among folders and below them, in the order of the folders and of the names in each.

    Raises:
        RecordingError: a path holds no bundle, or one that is not whole.
    """
    found: dict[Path, Bundle] = {}
    for name, path in paths.items():
        if path.is_file():
            hint = (
                "unpack it and name the folder" if path.suffix in (".gz", ".tgz", ".zip", ".tar") else "name the folder"
            )
            raise RecordingError(f"{name} is a file; an evaluator bundle is a folder", hint)
        bundles = list(_below(Bundle(name, path), DEPTH_LIMIT))
        if not bundles:
            message = f"{name} holds no evaluator bundle" if path.is_dir() else f"{name} does not exist"
            raise RecordingError(message, f"a bundle is a folder with {', '.join(NEEDED)}")
        for bundle in bundles:
            found.setdefault(bundle.folder, bundle)
    for bundle in found.values():
        _check_whole(bundle)
    return list(found.values())


def _below(place: Bundle, depth: int) -> Iterator[Bundle]:
    """The place itself if it looks like a bundle, else those in its folders.

    Links to folders are not followed, and hidden folders are not looked into: somebody may be writing there.
    """
    try:
        with os.scandir(place.folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            return
        raise RecordingError(f"{place.name} cannot be listed: {error.strerror}", "make it readable") from None
    names = {entry.name for entry in entries}
    if names.intersection(_MARKS) or {RUN, SUMMARY} <= names:
        yield place
    elif depth:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                yield from _below(Bundle(f"{place.name}/{entry.name}", place.folder / entry.name), depth - 1)


def _check_whole(bundle: Bundle) -> None:
    absent = [file for file in NEEDED if not os.path.lexists(bundle.folder / file)]
    if absent == [RUN]:
        raise RecordingError(f"{bundle.name} has no {RUN}, which is written last: it is not whole yet", _WAIT)
    if absent:
        raise RecordingError(f"{bundle.name} is no whole bundle: {', '.join(absent)} missing", _WAIT)


# ---------------------------------------------------------------- reading


def read_document(bundle: Bundle, file: str, hook: Callable[[list[tuple[str, Any]]], Any] = dict) -> dict[str, Any]:
    """The mapping that a JSON file of the bundle holds; ``hook`` makes each mapping from its pairs.

    Raises:
        RecordingError: it cannot be read, is too large, or holds something else.
    """
    with _opened(bundle, file) as stream:
        if os.fstat(stream.fileno()).st_size > DOCUMENT_LIMIT:
            raise RecordingError(f"{bundle.where(file)} has more than {DOCUMENT_LIMIT} bytes", "read smaller bundles")
        content = stream.read()
    try:
        value = json.loads(content.decode("utf-8-sig"), object_pairs_hook=hook)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{bundle.where(file)} is no JSON, or was cut: {_reason(error)}", _AGAIN) from None
    if not isinstance(value, dict):
        raise RecordingError(f"{bundle.where(file)} is {named(value)}; a mapping is expected", _AGAIN)
    return value


def read_rows(bundle: Bundle, file: str) -> JsonLines:
    """The rows of a JSON Lines file with their line numbers, one at a time; blank lines are no rows.

    Iterating raises a RecordingError where it cannot be read, ends within a row, or has a row that is no mapping.
    """
    return JsonLines(bundle.folder / file, bundle.where(file))


def listed(names: Iterable[str]) -> str:
    """Names for a message, sorted; not more of them than one can read."""
    return first_names(sorted(names), 20)


def _opened(bundle: Bundle, file: str) -> BinaryIO:
    try:
        return open_regular(bundle.folder / file)
    except OSError as error:
        raise RecordingError(
            f"{bundle.where(file)} cannot be read: {error.strerror}", "make it a regular file"
        ) from None


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
