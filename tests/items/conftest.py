"""Fixtures for experiments whose items are tasks or variants with their attempts inside."""

from collections.abc import Iterator

import pytest

from tests.faults import session_lab
from tests.plugin import plugin_lab


@pytest.fixture
def lab(pytester: pytest.Pytester, unasked: None, compiled_anew: None) -> plugin_lab.Lab:
    """The experiment of the plugin's own tests: 3 tasks, 2 mutants, 2 attempts each."""
    return plugin_lab.Lab(pytester)


@pytest.fixture
def sessions(pytester: pytest.Pytester, unasked: None) -> Iterator[session_lab.Lab]:
    """Experiments whose sessions go wrong."""
    made = session_lab.Lab(pytester)
    yield made
    made.kill_all()


@pytest.fixture(params=["task", "variant"])
def unit(request: pytest.FixtureRequest) -> str:
    """What one item is."""
    given: str = request.param
    return given
