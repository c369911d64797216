"""Fixtures of the tests about experiment files."""

from pathlib import Path

import pytest

from pytest_metricbench.bases import CoverageSystem, Runner
from tests.definition.definition_lab import BASE, RUNNERS, SYSTEMS, Folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


@pytest.fixture
def base() -> str:
    return BASE


@pytest.fixture
def fake_kinds() -> tuple[dict[str, type[Runner]], dict[str, type[CoverageSystem]]]:
    return RUNNERS, SYSTEMS
