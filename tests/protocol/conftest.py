"""An experiment whose agent prints, logs and warns, and sessions under either protocol."""

import pytest

# Imported once here, since a session in this process forgets the modules that it imported itself.
import pytest_metricbench.pytest_side.opening
import pytest_metricbench.pytest_side.scheduling
import pytest_metricbench.pytest_side.session  # noqa: F401
from tests.protocol.protocol_lab import Lab


@pytest.fixture
def lab(pytester: pytest.Pytester, unasked: None, compiled_anew: None) -> Lab:
    return Lab(pytester)
