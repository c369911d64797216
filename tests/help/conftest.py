"""Fixtures of the tests of what the tool says of itself."""

import pytest

# Imported once here, since a session in this process forgets the modules that it imported itself.
import pytest_metricbench.pytest_side.opening
import pytest_metricbench.pytest_side.preview
import pytest_metricbench.pytest_side.publishing
import pytest_metricbench.pytest_side.session  # noqa: F401
from tests.help.help_lab import EXPERIMENT


@pytest.fixture
def folder(pytester: pytest.Pytester, unasked: None) -> pytest.Pytester:
    """One case with two tasks, a mutant, two attempts and a coverage system."""
    pytester.makefile(".yml", experiment=EXPERIMENT)
    pytester.makepyfile(helped_agent="def act(request):\n    return 1.0\n\ndef share(request):\n    return 0.5\n")
    return pytester
