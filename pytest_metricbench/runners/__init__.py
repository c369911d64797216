"""How an attempt is run, one runner a module."""

from typing import Final

from pytest_metricbench.bases import Runner
from pytest_metricbench.runners.command import CommandRunner
from pytest_metricbench.runners.python import PythonRunner

BUILTIN: Final[dict[str, type[Runner]]] = {"command": CommandRunner, "python": PythonRunner}
"""The runners that need no plugin: kind -> class."""
