"""Stores made by hand, for what happens between stores."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_metricbench.contracts import AttemptRecord
from pytest_metricbench.store.files import digest_folder
from pytest_metricbench.store.writing import StoreWriter


@pytest.fixture
def record() -> Callable[..., AttemptRecord]:
    """A record of a slot, with what is given changed."""

    def make(task: str = "t1", attempt: int = 1, **changed: object) -> AttemptRecord:
        values: dict[str, object] = {
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
        return AttemptRecord(**{**values, **changed})  # type: ignore[arg-type]

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
