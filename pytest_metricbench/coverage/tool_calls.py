"""The ``tool-calls`` coverage system: which share of an agent's tools the baseline's traces call."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, PrivateAttr, StringConstraints

from pytest_metricbench.atif import TRACE_NAME, Trace, TraceError, parse_trace
from pytest_metricbench.bases import CoverageSystem
from pytest_metricbench.contracts import CoverageError, CoverageRequest, EvidenceFile, Goals, Score
from pytest_metricbench.digests import digest_bytes
from pytest_metricbench.plain_files import open_regular

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

    _traces: dict[str, Trace] = PrivateAttr(default_factory=dict)
    """Digest -> trace: most traces belong to many subsets."""

    def measure(self, request: CoverageRequest, workspace: Path) -> Score:
        """Count the tools that the subset's traces call."""
        traces = {task: self._traces_of(files) for task, files in request.files.items()}
        untraced = sorted(task for task, found in traces.items() if not found)
        if untraced:
            return Score(None, f"task {untraced[0]} left no {TRACE_NAME}{_and_more(len(untraced))}")
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
            if file.name.rpartition("/")[2] == TRACE_NAME:
                try:
                    found.append(self._trace(file))
                except TraceError as error:
                    if file.outcome == "scored":
                        raise CoverageError(f"{file.path}: {error}") from None
        return found

    def _trace(self, file: EvidenceFile) -> Trace:
        if file.sha256 not in self._traces:
            try:
                with open_regular(file.path) as trace:
                    content = trace.read()
                if digest_bytes(content) != file.sha256:
                    raise CoverageError(f"{file.path} has changed since its attempt ended; run the attempt again")
                self._traces[file.sha256] = parse_trace(content)
            except OSError as error:
                raise CoverageError(f"{file.path} cannot be read: {error.strerror}") from None
        return self._traces[file.sha256]


def _and_more(count: int) -> str:
    return f" (and {count - 1} more tasks)" if count > 1 else ""
