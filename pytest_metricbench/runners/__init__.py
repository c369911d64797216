"""How an attempt is run, one runner a module or package."""

from typing import Final

from pytest_metricbench.bases import Runner
from pytest_metricbench.kinds import Kinds

BUILTIN: Final = Kinds[Runner](
    {
        "command": "pytest_metricbench.runners.command:CommandRunner",
        "harbor": "pytest_metricbench.runners.harbor.runner:HarborRunner",
        "helix": "pytest_metricbench.runners.helix.runner:HelixRunner",
        "python": "pytest_metricbench.runners.python:PythonRunner",
        "recorded": "pytest_metricbench.runners.recorded:RecordedRunner",
        "suite": "pytest_metricbench.runners.suite:SuiteRunner",
    }
)
"""The runners that need no plugin: kind -> class."""
