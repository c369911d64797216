"""The text files that generators change, read with care."""

import os
from pathlib import Path
from typing import Final

from pytest_metricbench.plain_files import open_regular, strays
from pytest_metricbench.sources import SourceError

TEXT_LIMIT: Final = 128 << 10
"""Bytes of a prompt, policy or tool list. A mutant's request carries the whole changed text."""


def located(folder: Path, name: str) -> Path:
    """Where a file of the experiment's folder is, named relative to it.

    Raises:
        SourceError: the name leads out of the folder, or there is no such file.
    """
    parts = name.split("/")
    if not name or "\0" in name or "\\" in name or os.path.isabs(name) or {"", ".", ".."} & set(parts):
        raise SourceError(
            f"{name!r} does not name a file of the experiment's folder", "write folder/file, relative to it"
        )
    path = folder / name
    if not path.exists():
        raise SourceError(f"the file {name!r} does not exist", f"it would be {path}")
    if strays(name, path, folder):
        raise SourceError(f"{name!r} leaves the experiment's folder by a link", "copy the file into the folder")
    if not path.is_file():
        raise SourceError(f"{name!r} is not a regular file", "name a text file")
    return path


def read_text(folder: Path, name: str) -> str:
    """The text of a file as it stands there, its line ends included.

    Raises:
        SourceError: it cannot be read, is too large, or is no UTF-8 text.
    """
    try:
        with open_regular(located(folder, name).resolve()) as file:
            content = file.read(TEXT_LIMIT + 1)
    except OSError as error:
        raise SourceError(f"the file {name!r} cannot be read: {error.strerror}") from None
    if len(content) > TEXT_LIMIT:
        raise SourceError(f"the file {name!r} has more than {TEXT_LIMIT >> 10} KiB", "name a smaller one")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SourceError(f"line {line} of the file {name!r} is no UTF-8", "save it as UTF-8 text") from None


def plain(text: str) -> str:
    """A text whose lines end with a newline, as operators see it."""
    return text.replace("\r\n", "\n")
