"""Fixtures of the tests of ``--metricbench-init``."""

from collections.abc import Callable

import pytest

# Imported once here, since a session in this process forgets the modules that it imported itself.
import pytest_metricbench.pytest_side.opening
import pytest_metricbench.pytest_side.session
import pytest_metricbench.stages
import pytest_metricbench.starting.start  # noqa: F401

OTHER_PLUGINS = ("randomly", "rerunfailures", "repeat", "timeout", "html", "metadata", "pytest_cov", "sugar")


@pytest.fixture
def alone(pytester: pytest.Pytester, unasked: None) -> Callable[..., pytest.RunResult]:
    """Runs pytest in a folder of its own, without plugins that have tests of their own."""
    off = [part for plugin in OTHER_PLUGINS for part in ("-p", f"no:{plugin}")]
    return lambda *args: pytester.runpytest_inprocess(*off, *args)
