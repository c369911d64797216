"""A file system of its own for a test, so that it can run full or turn read-only."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def file_system(folder: Path, size: str) -> Iterator[Path]:
    """Mount one of a size (``1m``, ``128k``) on a new folder; the test is skipped where that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount a file system here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
