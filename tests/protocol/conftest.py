"""An experiment whose agent prints, logs and warns, and sessions under either protocol."""

import sys
from pathlib import Path

import pytest

# Imported once here, since a session in this process forgets the modules that it imported itself.
import pytest_metricbench.opening
import pytest_metricbench.scheduling
import pytest_metricbench.session  # noqa: F401

sys.path.insert(0, str(Path(__file__).parents[1] / "plugin"))

from protocol_lab import Lab


@pytest.fixture
def lab(pytester: pytest.Pytester, unasked: None, compiled_anew: None) -> Lab:
    return Lab(pytester)
