"""The ``tool-calls`` coverage system: which share of an agent's tools the baseline's traces call."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, PrivateAttr, StringConstraints

from pytest_metricbench.atif.trace import Trace, TraceError
from pytest_metricbench.bases import CoverageSystem
from pytest_metricbench.contracts import CoverageError, CoverageRequest, EvidenceFile, Goals, Score
from pytest_metricbench.coverage.traces import Traces, is_trace, without_trace

ToolName: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""Without surrounding blanks, as the names in traces are compared."""


class ToolCallCoverage(CoverageSystem):
    """Share of the tools in ``tools``, or else of those the traces declare, that the subset's traces call.

    Reads every ``trajectory.json`` (ATIF) among the evidence, nested subagents included. A task without a trace, or
    traces that declare no tools where none are given, make the score null: what was called is then unknown.
    """

    kind: Literal["tool-calls"] = "tool-calls"
    tools: Annotated[list[ToolName], Field(min_length=1)] | None = Field(
        None, description="The tools that count; without it, the tool_definitions of the traces."
    )

    isolated: ClassVar[bool] = False  # it reads and nothing else, so nothing needs to be copied for it

    _traces: Traces = PrivateAttr(default_factory=Traces)

    def measure(self, request: CoverageRequest, workspace: Path) -> Score:
        """Count the tools that the subset's traces call."""
        traces = {task: self._traces_of(files) for task, files in request.files.items()}
        untraced = [task for task, found in traces.items() if not found]
        if untraced:
            return Score(None, without_trace(untraced))
        universe = set(self.tools or ())
        if not universe:
            declared = [trace.tools_declared for found in traces.values() for trace in found if trace.tools_declared]
            universe = {name for names in declared for name in names}
        if not universe:
            return Score(None, "no trace declares its tools (agent.tool_definitions); list them under tools")
        by_task = {
            task: tuple(sorted(universe & {name for trace in found for name in trace.tools_called}))
            for task, found in traces.items()
        }
        covered = {name for names in by_task.values() for name in names}
        return Score(len(covered) / len(universe), goals=Goals(tuple(sorted(universe)), by_task))

    def _traces_of(self, files: tuple[EvidenceFile, ...]) -> list[Trace]:
        """The traces of one task. What an attempt left half written when it died is no trace."""
        found = []
        for file in files:
            if is_trace(file):
                try:
                    trace = self._traces.of(file)
                    if trace.undeclared is not None:
                        raise TraceError(trace.undeclared)
                    found.append(trace)
                except TraceError as error:
                    if file.outcome == "scored":
                        raise CoverageError(f"{file.path}: {error}") from None
        return found
