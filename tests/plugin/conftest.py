"""Fixtures of the plugin's integration tests."""

import pytest

from tests.plugin.plugin_lab import Lab


@pytest.fixture
def lab(pytester: pytest.Pytester, unasked: None, compiled_anew: None) -> Lab:
    return Lab(pytester)


@pytest.fixture(params=[[], ["-n0"], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n0", "n2"])
def workers(request: pytest.FixtureRequest) -> list[str]:
    """What is tested with it holds without pytest-xdist, with it and no workers, and with two."""
    given: list[str] = request.param
    return given
