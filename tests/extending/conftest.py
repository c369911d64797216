"""Fixtures of the tests of what plugins add."""

import pytest

# Imported once here, since a session in this process forgets the modules that it imported itself.
import pytest_metricbench.pytest_side.opening
import pytest_metricbench.pytest_side.session  # noqa: F401


@pytest.fixture
def folder(pytester: pytest.Pytester, unasked: None) -> pytest.Pytester:
    """A folder in which pytest runs without what the environment asks of it."""
    return pytester
