"""Fixtures for tests of runners and coverage systems, which are checked against the folder of an experiment."""

import sys
import textwrap
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The experiment's folder."""
    folder = tmp_path / "experiment"
    folder.mkdir()
    return folder


@pytest.fixture
def module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Writes a module of a name of its own into the experiment's folder and gives the name."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(text: str) -> str:
        name = f"target_{uuid.uuid4().hex}"
        (folder / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        return name

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]
