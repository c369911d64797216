"""How a subset's coverage is measured, one system a module or package."""

from typing import Final

from pytest_metricbench.bases import CoverageSystem
from pytest_metricbench.kinds import Kinds

BUILTIN: Final = Kinds[CoverageSystem](
    {
        "audit": "pytest_metricbench.coverage.audit.system:AuditCoverage",
        "command": "pytest_metricbench.coverage.command:CommandCoverage",
        "eval-author": "pytest_metricbench.coverage.eval_author.system:EvalAuthorCoverage",
        "line": "pytest_metricbench.coverage.line:LineCoverage",
        "python": "pytest_metricbench.coverage.python:PythonCoverage",
        "tool-calls": "pytest_metricbench.coverage.tool_calls:ToolCallCoverage",
    }
)
"""The coverage systems that need no plugin: kind -> class."""
