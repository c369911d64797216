"""One writer at a time: a lock that names its process and falls open when that process ends, however it ends."""

import fcntl
import os
import socket
from pathlib import Path
from typing import Final

from pytest_metricbench.store.journal import StoreError


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
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 200, 0).decode("utf-8", "replace").strip() or "unknown"
            os.close(self._descriptor)
            raise StoreError(
                f"{path.parent}: another run is writing this store ({holder}); wait for it, or use "
                "--metricbench-store for a store of your own"
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def release(self) -> None:
        """Let the next run in."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
