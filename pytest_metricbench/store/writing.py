"""The one writer of a store: the controller."""

import errno
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.contracts import FORMAT_VERSION, AttemptRecord, CoverageRecord
from pytest_metricbench.plain_files import write_whole
from pytest_metricbench.store.journal import DiskError, Journal, StoreError
from pytest_metricbench.store.layout import STORE_FOLDER, Layout, free_name
from pytest_metricbench.store.locking import StoreLock
from pytest_metricbench.store.reading import Store, read_store
from pytest_metricbench.store.records import attempt_to_json, coverage_to_json, seal, to_line
from pytest_metricbench.store.remains import set_aside_interrupted, set_aside_stale

_IGNORE: Final = ".gitignore"


class StoreWriter:
    """A store opened for writing: locked, read, and its journals open for appending.

    ``contents`` follows what is written: after :meth:`add_attempt` the record is the one that counts.
    """

    def __init__(self, root: Path, *, fresh: bool = False) -> None:
        """Open the store, making its folder.

        Args:
            root: the store's folder.
            fresh: start over; the old store is moved aside, see :attr:`kept_aside`.

        Raises:
            StoreError: another run writes it, it is damaged, or it cannot be written.
        """
        self.layout: Final = Layout(root)
        self.kept_aside: Path | None = None
        try:
            root.mkdir(parents=True, exist_ok=True)
            _refuse_foreign(self.layout)
            self._lock = StoreLock(self.layout.lock)
        except OSError as error:
            raise _cannot_write(root, error) from error
        try:
            if fresh:
                self.kept_aside = _move_aside(self.layout)
            _keep_out_of_version_control(root)
            self.contents: Final[Store] = read_store(root)
            self._attempts = Journal(self.layout.attempts)
            try:
                self._coverage = Journal(self.layout.coverage)
            except BaseException:
                self._attempts.close()
                raise
        except OSError as error:
            self._lock.release()
            raise _cannot_write(root, error) from error
        except BaseException:
            self._lock.release()
            raise

    def add_attempt(self, record: AttemptRecord) -> None:
        """Append an attempt's record.

        Raises:
            StoreError: the disk is full or failed.
        """
        try:
            self._attempts.append(seal(to_line(attempt_to_json(record))))
        except OSError as error:
            raise _cannot_write(self.layout.attempts, error) from error
        self.contents.take(record)

    def set_aside(self, record: AttemptRecord) -> None:
        """Keep what a superseded attempt left under ``stale/``.

        Raises:
            StoreError: the store cannot be written.
        """
        try:
            set_aside_stale(self.layout, record)
        except OSError as error:
            raise _cannot_write(self.layout.stale, error) from error

    def set_aside_interrupted(self) -> list[Path]:
        """Keep what attempts in flight left when a run ended under ``interrupted/``; gives where each is.

        What a superseded attempt left and the run that ended no longer came to move goes to ``stale/``.

        Raises:
            StoreError: the store cannot be written.
        """
        known = {record.folder or record.trial_id for record in self.contents.attempts.values()}
        try:
            return set_aside_interrupted(self.layout, known, self.contents.superseded - known)
        except OSError as error:
            raise _cannot_write(self.layout.interrupted, error) from error

    def add_coverage(self, record: CoverageRecord) -> None:
        """Append a coverage request's record.

        Raises:
            StoreError: the disk is full or failed.
        """
        try:
            self._coverage.append(seal(to_line(coverage_to_json(record))))
        except OSError as error:
            raise _cannot_write(self.layout.coverage, error) from error
        self.contents.coverage[record.key] = record

    def write_experiment(self, description: Mapping[str, Any]) -> None:
        """Write ``experiment.json``: what was run.

        Raises:
            StoreError: it cannot be written.
        """
        self._write(self.layout.experiment, json.dumps({"metricbench": FORMAT_VERSION, **description}, indent=1) + "\n")

    def write_summary(self, text: str, *, partial: bool) -> Path:
        """Write the summary; a partial one has a file of its own. Returns where it stands.

        Raises:
            StoreError: it cannot be written.
        """
        path = self.layout.partial_summary if partial else self.layout.summary
        self._write(path, text)
        if not partial:
            try:
                self.layout.partial_summary.unlink(missing_ok=True)
            except OSError as error:
                raise _cannot_write(self.layout.partial_summary, error) from error
        return path

    def close(self) -> None:
        """Sync the journals and release the lock; closing again does nothing.

        Raises:
            StoreError: the disk failed.
        """
        try:
            try:
                self._attempts.close()
            finally:
                self._coverage.close()
        except OSError as error:
            raise _cannot_write(self.layout.root, error) from error
        finally:
            self._lock.release()

    def _write(self, path: Path, text: str) -> None:
        try:
            write_whole(path, text)
        except OSError as error:
            raise _cannot_write(path, error) from error


_OF_THE_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


def _cannot_write(path: Path, error: OSError) -> StoreError:
    kind = DiskError if error.errno in _OF_THE_DISK else StoreError
    return kind(
        f"{path}: cannot be written: {error.strerror or error}; make room or pass a folder that can be written with "
        "--metricbench-store"
    )


def _keep_out_of_version_control(root: Path) -> None:
    """Have git ignore the store: all of ``.metricbench``, but of a folder of the user nothing else."""
    _ignore_all_in(root.parent if root.parent.name == STORE_FOLDER else root)


def _ignore_all_in(folder: Path) -> None:
    ignore = folder / _IGNORE
    if not ignore.exists():
        ignore.write_text("# A store can be large and is made anew by a run.\n*\n", encoding="utf-8")


def _refuse_foreign(layout: Layout) -> None:
    """Leave alone what is no store: a folder of the user that happens to have the experiment's name."""
    entries = _entries(layout)
    if entries and layout.known.isdisjoint(entries):
        raise StoreError(
            f"{layout.root}: this folder is not empty and no store; pass another one with --metricbench-store"
        )


def _entries(layout: Layout) -> list[Path]:
    return [entry for entry in layout.root.iterdir() if entry != layout.lock and entry.name != _IGNORE]


def _move_aside(layout: Layout) -> Path | None:
    """Move everything but the held lock to a folder beside the store, named for the time."""
    entries = _entries(layout)
    if not entries:
        return None
    aside = free_name(layout.root.with_name(f"{layout.root.name}.before-{time.strftime('%Y%m%dT%H%M%S')}"))
    aside.mkdir()
    if (layout.root / _IGNORE).exists():
        _ignore_all_in(aside)
    for entry in entries:
        os.rename(entry, aside / entry.name)
    return aside
