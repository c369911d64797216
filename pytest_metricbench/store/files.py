"""The files that an attempt or a coverage request left: listed, digested, copied; links are never followed."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_metricbench.digests import digest_file


def regular_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every regular file below a folder, as (relative path with forward slashes, path), in order of name.

    Links, pipes and devices are left out: what they lead to is not the folder's.
    """
    waiting = [(folder, "")]
    while waiting:
        current, prefix = waiting.pop()
        try:
            entries = sorted(os.scandir(current), key=lambda entry: entry.name, reverse=True)
        except FileNotFoundError:
            continue
        for entry in entries:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append((Path(entry.path), name + "/"))
            elif entry.is_file(follow_symlinks=False):
                yield name, Path(entry.path)


def digest_folder(folder: Path) -> dict[str, str]:
    """Relative path -> digest of every regular file below a folder; empty when there is no such folder."""
    return {_plain(name): digest_file(path) for name, path in sorted(regular_files(folder))}


def _plain(name: str) -> str:
    """A file name as a text that JSON can hold: bytes that are no UTF-8 are escaped."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def files_match(folder: Path, digests: Mapping[str, str]) -> bool:
    """Whether every file of a record is still there, unchanged. Names that lead out of the folder are never there."""
    try:
        there = dict(regular_files(folder))
        return all(name in there and digest_file(there[name]) == digest for name, digest in digests.items())
    except OSError:
        return False


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file's content, making the folders above the target.

    Raises:
        OSError: the source is no regular file or cannot be read, or the target cannot be written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as reader, target.open("xb") as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)


def write_whole(path: Path, text: str) -> None:
    """Write a text file whole or not at all.

    Raises:
        OSError: the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
