"""An experiment whose agent prints, logs and warns, and sessions under either protocol."""

import pytest

from tests.protocol.protocol_lab import Lab


@pytest.fixture
def lab(pytester: pytest.Pytester, unasked: None, compiled_anew: None) -> Lab:
    return Lab(pytester)
