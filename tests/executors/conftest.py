"""What tests of the executors share."""

import sys
from collections.abc import Iterator

import pytest
from executors_lab import Lab

# Imported once here, since a session in this process forgets the modules that it imported itself.
import pytest_metricbench.executors.threads
import pytest_metricbench.opening
import pytest_metricbench.scheduling
import pytest_metricbench.session  # noqa: F401


@pytest.fixture
def lab(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """A folder for an experiment; nothing that it started outlives the test."""
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        monkeypatch.delenv(name, raising=False)
    # An agent that is rewritten within a second must not be taken from its compiled file.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Lab(pytester)
    yield made
    made.write("go", "")  # whoever still waits in a thread that was left behind
    made.end_all()
