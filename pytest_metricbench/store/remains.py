"""What is no longer an attempt's result and is kept all the same: what is stale, and what was interrupted."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from pytest_metricbench.contracts import AttemptRecord
from pytest_metricbench.store.layout import Layout, free_name


def set_aside_stale(layout: Layout, record: AttemptRecord) -> None:
    """Move what a superseded attempt left to ``stale/``, where it stays readable.

    Raises:
        OSError: the store cannot be written.
    """
    folder = layout.left_by(record)
    if folder.is_dir():
        _move(folder, layout.stale, layout.workspaces)


def set_aside_interrupted(layout: Layout, known: Collection[str], superseded: Collection[str] = ()) -> list[Path]:
    """Move every workspace that no record speaks of to ``interrupted/``: its attempt was in flight when a run ended.

    A workspace of a superseded record goes to ``stale/``: that run ended before it came to it.

    Args:
        layout: the store.
        known: names of the folders of the records that count.
        superseded: names of the folders of those that no longer do.

    Returns:
        Where those of the first kind are now.

    Raises:
        OSError: the store cannot be written.
    """
    found = [folder for folder in _workspaces(layout.workspaces) if folder.name not in known]
    for folder in found:
        if folder.name in superseded:
            _move(folder, layout.stale, layout.workspaces)
    in_flight = [folder for folder in found if folder.name not in superseded]
    return [_move(folder, layout.interrupted, layout.workspaces) for folder in in_flight]


def _workspaces(root: Path) -> Iterator[Path]:
    """The folders four levels down: case, variant, task, workspace."""
    level = [root]
    for _ in range(4):
        level = [Path(entry.path) for folder in level for entry in _folders(folder)]
    yield from level


def _folders(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return sorted((e for e in entries if e.is_dir(follow_symlinks=False)), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _move(folder: Path, to: Path, below: Path) -> Path:
    target = free_name(to / folder.relative_to(below))
    target.parent.mkdir(parents=True, exist_ok=True)
    os.rename(folder, target)
    return target
