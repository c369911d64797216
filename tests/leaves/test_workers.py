"""How many workers of pytest-xdist the items of a session go to, and which process is one."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_metricbench.workers import is_worker, worker_count


def config(**options: Any) -> SimpleNamespace:
    """What pytest-xdist makes of a command line, as far as it is asked for."""
    return SimpleNamespace(
        option=SimpleNamespace(**options), getoption=lambda name, default: options.get(name, default)
    )


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 0),  # it is not installed
        ({"dist": "no", "tx": []}, 0),
        ({"dist": "no", "tx": ["popen"]}, 0),
        ({"dist": "load", "tx": ["popen"] * 3}, 3),
        ({"dist": "load", "tx": ["4*popen", "popen//chdir=/tmp"]}, 5),
        ({"dist": "load", "tx": ["ssh=user@host//chdir=a*b"]}, 1),
        ({"dist": "load", "tx": []}, 0),
        ({"dist": "load", "tx": None}, 0),
    ],
)
def test_worker_count(options: dict[str, Any], count: int) -> None:
    assert worker_count(config(**options)) == count


def test_is_worker() -> None:
    assert not is_worker(config())
    assert is_worker(SimpleNamespace(workerinput={"workerid": "gw0"}))


def test_options_are_as_xdist_has_them(pytestconfig: pytest.Config) -> None:
    """A session of this very process: the options are called so."""
    if pytestconfig.pluginmanager.has_plugin("xdist"):
        assert isinstance(pytestconfig.getoption("tx"), list)
        assert pytestconfig.getoption("dist") is not None
    assert is_worker(pytestconfig) == hasattr(pytestconfig, "workerinput")
