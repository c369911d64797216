"""The files that an attempt or a coverage request left: listed, digested, copied; links are never followed."""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from pytest_metricbench.digests import digest_stream
from pytest_metricbench.plain_files import open_regular

LITTLE_ROOM: Final = 32 << 10
"""Bytes of free disk space below which a failure is taken for one of the disk."""


def regular_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every regular file below a folder, as (relative path with forward slashes, path), in no order.

    Links, pipes and devices are left out: what they lead to is not the folder's. So are names that are no UTF-8, which
    no record can hold, and folders that cannot be read.
    """
    waiting = [(folder, "")]
    while waiting:
        current, prefix = waiting.pop()
        for entry in _entries(current):
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append((Path(entry.path), name + "/"))
            elif entry.is_file(follow_symlinks=False):
                yield name, Path(entry.path)


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if _is_text(entry.name)]
    except OSError:  # gone, not ours to read, or nested deeper than a path can be long
        return []


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def digest_folder(folder: Path) -> dict[str, str]:
    """Relative path -> digest of every regular file below a folder; empty when there is no such folder.

    A file that cannot be read (somebody else's, or gone since it was listed) is left out.
    """
    digests = {}
    for name, path in sorted(regular_files(folder)):
        with suppress(OSError):
            digests[name] = _digest(path)
    return digests


def _digest(path: Path) -> str:
    with open_regular(path) as file:
        return digest_stream(file)


def files_match(folder: Path, digests: Mapping[str, str]) -> bool:
    """Whether every file of a record is still there, unchanged. Names that lead out of the folder are never there."""
    try:
        if folder.is_symlink():
            return False
        there = dict(regular_files(folder))
        return all(name in there and _digest(there[name]) == digest for name, digest in digests.items())
    except OSError:
        return False


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file's content and whether it can be executed, making the folders above the target.

    Raises:
        OSError: the source is no regular file or cannot be read, or the target is there already or cannot be written;
            nothing is left of it then.
    """
    with open_regular(source) as reader:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as writer:
            try:
                shutil.copyfileobj(reader, writer, 1 << 20)
                writer.flush()
                if (mode := stat.S_IMODE(os.fstat(reader.fileno()).st_mode)) & 0o111:
                    os.fchmod(writer.fileno(), mode & 0o777 | 0o600)
            except BaseException:
                target.unlink()
                raise


def no_room(folder: Path) -> str | None:
    """Why nothing can be written below a folder, which need not exist; None where it can.

    Less than :data:`LITTLE_ROOM` counts as nothing: who could not write a file may have removed the half of it.
    """
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    if disk.f_flag & os.ST_RDONLY:
        return f"{folder}: the file system is read-only"
    free = disk.f_bavail if os.geteuid() else disk.f_bfree
    if free * disk.f_frsize < LITTLE_ROOM:
        return f"{folder}: no space is left on the disk"
    return f"{folder}: the disk can hold no more files" if disk.f_files and not disk.f_ffree else None
