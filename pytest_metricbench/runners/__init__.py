"""How an attempt is run, one runner a module."""

from typing import Final

from pytest_metricbench.bases import Runner
from pytest_metricbench.runners.command import CommandRunner
from pytest_metricbench.runners.harbor.runner import HarborRunner
from pytest_metricbench.runners.helix.runner import HelixRunner
from pytest_metricbench.runners.python import PythonRunner
from pytest_metricbench.runners.recorded import RecordedRunner
from pytest_metricbench.runners.suite import SuiteRunner

BUILTIN: Final[dict[str, type[Runner]]] = {
    "command": CommandRunner,
    "harbor": HarborRunner,
    "helix": HelixRunner,
    "python": PythonRunner,
    "recorded": RecordedRunner,
    "suite": SuiteRunner,
}
"""The runners that need no plugin: kind -> class."""
