"""Measurements of one session, kept by everything they depend on: most traces belong to many subsets.

A call of ``measure.py`` takes seconds, nearly all of it for imports, and its documents depend on nothing but its
inputs and its arguments. Where both are as before, the same bytes are written again.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

LIMIT: Final = 256 << 20
"""Bytes that are kept at most; beyond them a trace is measured again for each subset."""

Files: TypeAlias = dict[str, bytes]
"""Path below a request's folder -> content."""


class Memory:
    """What was measured, for several threads."""

    def __init__(self, limit: int = LIMIT) -> None:
        """Begin with nothing."""
        self._kept: dict[str, Files] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._room = limit

    @contextmanager
    def only_one(self, key: str, seconds: float, late: Callable[[], Exception]) -> Iterator[None]:
        """Let one thread at a time measure what a key stands for.

        Raises:
            Exception: what ``late`` gives, when another thread has not ended within ``seconds``.
        """
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        if not lock.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            raise late()
        try:
            yield
        finally:
            lock.release()

    def write(self, key: str, workspace: Path) -> bool:
        """Write what is kept under a key into a request's folder; gives whether there was something."""
        files = self._kept.get(key)
        if files is None:
            return False
        for name, content in files.items():
            target = workspace / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return True

    def keep(self, key: str, workspace: Path, names: list[str]) -> None:
        """Keep these files of a request's folder under a key, as far as there is room."""
        with self._lock:
            files = {name: (workspace / name).read_bytes() for name in names}
            size = sum(map(len, files.values()))
            if size <= self._room:
                self._room -= size
                self._kept[key] = files
