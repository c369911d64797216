"""One writer at a time: a lock that names its process and falls open when that process ends, however it ends."""

import fcntl
import os
import socket
from pathlib import Path
from typing import Final

from pytest_metricbench.store.journal import StoreError

_held: Final[set["StoreLock"]] = set()


class StoreLock:
    """The lock of a store, held from construction to :meth:`release`."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            StoreError: another process holds it; the message names it.
            OSError: the file cannot be written.
        """
        self._descriptor: Final = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            self._take(path.parent)
        except BaseException:
            os.close(self._descriptor)
            raise
        _held.add(self)

    def _take(self, store: Path) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 200, 0).decode("utf-8", "replace").strip() or "unknown"
            raise StoreError(
                f"{store}: another run is writing this store ({holder}); wait for it, or use "
                "--metricbench-store for a store of your own"
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def release(self) -> None:
        """Let the next run in; releasing again does nothing."""
        if self in _held:
            os.ftruncate(self._descriptor, 0)
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also for a child between its fork and its program
            self._close()

    def _close(self) -> None:
        _held.discard(self)
        os.close(self._descriptor)


def _let_go_in_child() -> None:
    """A forked child has the descriptors of its parent, and with them its locks, which it must not keep alive."""
    for lock in list(_held):
        lock._close()


os.register_at_fork(after_in_child=_let_go_in_child)
