"""The files of a new experiment, written all or none, over nothing that exists."""

import errno
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path


class StartError(Exception):
    """No experiment was written; the message says why, and what to do."""


def place(files: Mapping[Path, str]) -> None:
    """Write files, and the folders that they need: all of them, or none.

    Raises:
        StartError: one of them exists, or cannot be written.
    """
    made: list[Path] = []
    try:
        for path, text in files.items():
            made += _made_folders(path.parent)
            with open(path, "x", encoding="utf-8", newline="\n") as file:
                made.append(path)
                file.write(text)
    except OSError as error:
        _take_back(made)
        raise StartError(_told(error)) from None
    except BaseException:
        _take_back(made)
        raise


def existing(paths: Sequence[Path]) -> list[Path]:
    """Those that exist, links that lead nowhere included."""
    return [path for path in paths if os.path.lexists(path)]


def repository_of(folder: Path) -> Path | None:
    """The top of the git repository that a folder is in; None where it is in none."""
    for above in (folder, *folder.parents):
        if os.path.exists(above / ".git"):
            return above
    return None


def _made_folders(folder: Path) -> list[Path]:
    """Make a folder and those above it; the ones that were not there, the uppermost first."""
    new = []
    for above in (folder, *folder.parents):
        if os.path.isdir(above):
            break
        new.append(above)
    for above in reversed(new):
        above.mkdir()
    return new[::-1]


def _take_back(made: Sequence[Path]) -> None:
    for path in reversed(made):
        with suppress(OSError):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def _told(error: OSError) -> str:
    where = error.filename or "the folder"
    if isinstance(error, FileExistsError):
        return f"{where} exists; nothing was written. Move it, or name another folder"
    if isinstance(error, NotADirectoryError):
        return f"{where}: a file is in the way where a folder is needed; nothing was written. Name another folder"
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return f"{where}: {error.strerror}; nothing was written. Name a folder that you may write to"
    return f"{where}: {error.strerror}; nothing was written"
