"""Fixtures of the tests of evaluator bundles."""

from pathlib import Path

import pytest

from tests.interop_nemo.bundle_lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "runs")
