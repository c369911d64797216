"""What tests of the executors share."""

from collections.abc import Iterator

import pytest

from tests.executors.executors_lab import Lab


@pytest.fixture
def lab(pytester: pytest.Pytester, unasked: None, compiled_anew: None) -> Iterator[Lab]:
    """A folder for an experiment; nothing that it started outlives the test."""
    made = Lab(pytester)
    yield made
    made.write("go", "")  # whoever still waits in a thread that was left behind
    made.end_all()
