"""What tests of the store share: records, stores made by hand, small disks, and a user without rights."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.contracts import AttemptRecord, CoverageRecord
from pytest_metricbench.store.files import digest_folder
from pytest_metricbench.store.writing import StoreWriter

NOBODY = 65534


@pytest.fixture
def attempt() -> Callable[..., AttemptRecord]:
    """Makes the record of an attempt; what is given changes it."""

    def make(**changed: Any) -> AttemptRecord:
        values: dict[str, Any] = {
            "case": "refunds",
            "variant": "baseline",
            "task": "late",
            "attempt": 1,
            "trial_id": "a1b2c3",
            "outcome": "scored",
            "scores": {"reward": 1.0},
            "error": None,
            "time_limit": None,
            "fingerprint": "sha256:f",
            "verifier": "sha256:v",
            "seed": 7,
            "started": "2026-01-01T00:00:00.000+00:00",
            "duration": 0.25,
            "files": {"trace/t.json": "sha256:t"},
            "supersedes": None,
        }
        return AttemptRecord(**(values | changed))

    return make


@pytest.fixture
def coverage() -> Callable[..., CoverageRecord]:
    """Makes the record of a coverage request; what is given changes it."""

    def make(**changed: Any) -> CoverageRecord:
        values: dict[str, Any] = {
            "case": "refunds",
            "system": "tools",
            "subset": "s1",
            "outcome": "measured",
            "value": 0.5,
            "reason": None,
            "goals": None,
            "error": None,
            "request_digest": "sha256:r",
            "settings_digest": "sha256:s",
            "started": "2026-01-01T00:00:00.000+00:00",
            "duration": 0.25,
            "files": {},
        }
        return CoverageRecord(**(values | changed))

    return make


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB of its own; it needs the right to mount one."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mounted = subprocess.run(
        ["/usr/bin/env", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("no right to mount a file system")
    yield folder
    subprocess.run(["/usr/bin/env", "umount", "-l", str(folder)], check=True)


def _open_to_all() -> str | None:
    """A folder for temporary files that every user can reach: the usual one may be below somebody's own."""
    for name in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        folder = Path(name)
        if folder.is_dir() and all(up.stat().st_mode & 0o001 for up in (folder, *folder.parents)):
            return name
    return None


@pytest.fixture
def unprivileged() -> Iterator[tuple[Path, Callable[[], AbstractContextManager[None]]]]:
    """A folder of a user without rights, and a block in which this process has that user's rights."""
    folder = Path(tempfile.mkdtemp(prefix="metricbench-test-", dir=_open_to_all()))
    root = os.geteuid() == 0
    if root:
        os.chown(folder, NOBODY, NOBODY)

    @contextmanager
    def act() -> Iterator[None]:
        if root:
            os.seteuid(NOBODY)
        try:
            yield
        finally:
            if root:
                os.seteuid(0)

    yield folder, act
    subprocess.run(["/bin/chmod", "-R", "u+rwx", str(folder)], check=True)
    shutil.rmtree(folder)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where an experiment has its store."""
    return tmp_path / ".metricbench" / "refund-agent"


# ---------------------------------------------------------------- stores that are merged


@pytest.fixture
def record() -> Callable[..., AttemptRecord]:
    """A record of a slot, with what is given changed."""

    def make(task: str = "t1", attempt: int = 1, **changed: Any) -> AttemptRecord:
        values: dict[str, Any] = {
            "case": "c",
            "variant": "baseline",
            "task": task,
            "attempt": attempt,
            "trial_id": f"trial-{task}-{attempt}",
            "outcome": "scored",
            "scores": {"reward": 1.0},
            "error": None,
            "time_limit": None,
            "fingerprint": "f",
            "verifier": "v",
            "seed": 1,
            "started": "2026-01-01T00:00:00.000+00:00",
            "duration": 1.0,
            "files": {},
            "supersedes": None,
        }
        return AttemptRecord(**{**values, **changed})

    return make


@pytest.fixture
def filled(tmp_path: Path) -> Callable[..., Path]:
    """A store with these records; each that is given files leaves them in its workspace."""

    def make(
        name: str, records: list[AttemptRecord], files: dict[str, str] | None = None, **description: object
    ) -> Path:
        writer = StoreWriter(tmp_path / name)
        for made in records:
            folder = writer.layout.workspace(made.case, made.variant, made.task, made.trial_id)
            for file, text in (files or {}).items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_text(text)
            made.files.update(digest_folder(folder))
            writer.add_attempt(made)
        writer.write_experiment({"experiment": "e", "digests": {"runner": "r"}, **description})
        writer.close()
        return tmp_path / name

    return make
