"""No folder of a store may be a link: what a store made by somebody else says could be read from, or written to,
anywhere then.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.layout import Layout


def refuse_links(layout: Layout) -> None:
    """Look at every folder of a store above the workspaces, which are looked at when they are read.

    The store's own folder may be a link: it is the user who named it.

    Raises:
        StoreError: one is a link; the message names it.
    """
    trees = [(layout.workspaces, 3), (layout.stale, 3), (layout.interrupted, 3), (layout.root / "coverage", 3)]
    for root, depth in trees:
        for link in _links(root, depth):
            raise StoreError(
                f"{link}: this is a link, and a store is never read or written through one; put the folder itself "
                "there, or start over with --metricbench-fresh"
            )


def _links(root: Path, depth: int) -> Iterator[str]:
    if root.is_symlink():
        yield str(root)
        return
    level = [str(root)]
    for _ in range(depth):
        entries = [entry for folder in level for entry in _entries(folder)]
        yield from (entry.path for entry in entries if entry.is_symlink())
        level = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def _entries(folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StoreError(f"{folder}: cannot be read: {error.strerror}") from error
