"""How a subset's coverage is measured, one system a module."""

from typing import Final

from pytest_metricbench.bases import CoverageSystem
from pytest_metricbench.coverage.audit.system import AuditCoverage
from pytest_metricbench.coverage.command import CommandCoverage
from pytest_metricbench.coverage.eval_author.system import EvalAuthorCoverage
from pytest_metricbench.coverage.line import LineCoverage
from pytest_metricbench.coverage.python import PythonCoverage
from pytest_metricbench.coverage.tool_calls import ToolCallCoverage

BUILTIN: Final[dict[str, type[CoverageSystem]]] = {
    "audit": AuditCoverage,
    "command": CommandCoverage,
    "eval-author": EvalAuthorCoverage,
    "line": LineCoverage,
    "python": PythonCoverage,
    "tool-calls": ToolCallCoverage,
}
"""The coverage systems that need no plugin: kind -> class."""
