"""An append-only file of lines, each written whole or not at all.

A line reaches the kernel as it is appended, so that it outlives the process; it is synced to the disk at intervals
and at the end, so that a power cut costs at most what came after the last sync.
"""

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pytest_metricbench.plain_files import open_regular

SYNC_INTERVAL: Final = 1.0
"""Seconds between syncs while lines arrive."""


class StoreError(Exception):
    """A store that cannot be used as it is; the message names the file and the line, and says what to do."""


class DiskError(StoreError):
    """A store whose disk is full, read-only or failing: nothing is wrong with the store or with what was asked for."""


class Journal:
    """The one writer of a journal.

    Between two calls, however they end, the file holds whole lines only, and this object knows its length: a call that
    fails leaves it as long as it was. Nobody else writes the file meanwhile, which the store's lock sees to.
    """

    def __init__(self, path: Path) -> None:
        """Open for appending; a torn last line (a crash in the middle of a write) is cut off first.

        Raises:
            OSError: the file cannot be written.
        """
        self._descriptor: Final = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            whole = _length_of_whole_lines(self._descriptor)
            os.ftruncate(self._descriptor, whole)
            os.lseek(self._descriptor, whole, os.SEEK_SET)
        except BaseException:
            os.close(self._descriptor)
            raise
        self._length = whole
        """Bytes of the file, all of them in whole lines; its position is there."""
        self._closed = False
        """Once true it stays so, and the descriptor is not touched: it may be another file's by then."""
        self._synced = time.monotonic()
        """When the disk last confirmed what had been written; before the first time, when it was opened."""
        self._dirty = False
        """Whether the kernel has lines that the disk has not confirmed; they outlive this process, not a power cut."""

    def append(self, line: str) -> None:
        """Hand one line to the kernel, and once a second sync it and all before it: only that makes it durable.

        Args:
            line: ASCII without a line break.

        Raises:
            OSError: the disk is full or failed, and what was written of the line is taken back; or the journal is
                closed. After a sync that failed the line stays, and the next sync tries again.
        """
        content = line.encode("ascii") + b"\n"
        self._refuse_closed()
        try:
            written = os.write(self._descriptor, content)
            while written < len(content):
                written += os.write(self._descriptor, content[written:])
        except BaseException:  # an interrupt can come between the pieces of a line, too, and right after the last one
            if os.lseek(self._descriptor, 0, os.SEEK_CUR) == self._length + len(content):
                self._length += len(content)
                self._dirty = True
            else:
                os.ftruncate(self._descriptor, self._length)
                os.lseek(self._descriptor, self._length, os.SEEK_SET)
            raise
        self._length += len(content)
        self._dirty = True
        if time.monotonic() - self._synced >= SYNC_INTERVAL:
            self.sync()

    def sync(self) -> None:
        """Have the disk confirm what was written so far; without anything new it does nothing.

        Raises:
            OSError: the disk failed.
        """
        if self._dirty:
            os.fsync(self._descriptor)
            self._dirty = False
        self._synced = time.monotonic()

    def close(self) -> None:
        """Sync and close; appending afterwards is an error, closing again does nothing.

        Raises:
            OSError: the disk failed; it is closed all the same.
        """
        if self._closed:
            return
        try:
            self.sync()
        finally:
            self._closed = True
            os.close(self._descriptor)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, "the journal is closed")


def _length_of_whole_lines(descriptor: int) -> int:
    size = os.fstat(descriptor).st_size
    end = size
    while end > 0:
        start = max(0, end - 65536)
        block = os.pread(descriptor, end - start, start)
        newline = block.rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a journal with their numbers, without a torn last one.

    Raises:
        StoreError: the journal cannot be read.
    """
    try:
        with open_regular(path) as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield number, line
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def has_torn_line(path: Path) -> bool:
    """Whether the journal ends in the middle of a line."""
    try:
        with open_regular(path) as file:
            file.seek(0, os.SEEK_END)
            if file.tell() == 0:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:
        return False
