"""How a subset's coverage is measured, one system a module."""

from typing import Final

from pytest_metricbench.bases import CoverageSystem
from pytest_metricbench.coverage.command import CommandCoverage
from pytest_metricbench.coverage.python import PythonCoverage
from pytest_metricbench.coverage.tool_calls import ToolCallCoverage

BUILTIN: Final[dict[str, type[CoverageSystem]]] = {
    "command": CommandCoverage,
    "python": PythonCoverage,
    "tool-calls": ToolCallCoverage,
}
"""The coverage systems that need no plugin: kind -> class."""
