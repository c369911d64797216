"""The scripts that make pages of the documentation are no part of the package."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="session")
def scripts() -> Iterator[Path]:
    """The folder of the documentation is on the import path, as when its scripts are run."""
    sys.path.insert(0, str(DOCS))
    yield DOCS
    sys.path.remove(str(DOCS))
