"""Agent traces in ATIF (Agent Trajectory Interchange Format, 1.0 to 1.8), read for the tools they call and declare.

A trace is read once, in bounded memory (:mod:`pytest_metricbench.json_stream`), by all who want something of it. What
keeps it from being understood is a :class:`TraceError`; what else is not as ATIF has it is noted, and the reader of the
trace decides what that means.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pytest_metricbench.atif.levels import TraceError
from pytest_metricbench.atif.walk import Call, Walk
from pytest_metricbench.json_stream import JsonError, JsonReader, LongTextError, Readable

TRACE_NAME: Final = "trajectory.json"
"""What a trace is called by those who write them."""

__all__ = ["TRACE_NAME", "Call", "Trace", "TraceError", "parse_trace", "read_trace"]


@dataclass(frozen=True, slots=True)
class Trace:
    """One attempt's trace: the tools it called, and the tools the agent declares (None when it declares nothing)."""

    tools_called: frozenset[str]
    tools_declared: frozenset[str] | None
    calls: tuple[Call, ...] = field(default=(), compare=False)
    """The calls in the order of the file, those of a trajectory before those of its subagents where they stand so;
    of a trace with very many of them, the first ones."""
    counts: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Tool -> how often it is called; complete."""
    violations: tuple[str, ...] = field(default=(), compare=False)
    """What ATIF does not allow, each with its place; the first ones of many."""
    unknown: tuple[str, ...] = field(default=(), compare=False)
    """Fields, and versions, that ATIF up to 1.8 does not have, each with its place; the first ones of many."""
    undeclared: str | None = field(default=None, compare=False)
    """What is wrong with the declaration of tools, where it cannot be read."""


def parse_trace(content: bytes) -> Trace:
    """Read a trace from memory for its tools, nested ``subagent_trajectories`` included.

    Names are compared without surrounding blanks and case-sensitively, as Eval Author's audit does.

    Raises:
        TraceError: no JSON, not of the form of an ATIF trajectory, or a declaration of tools that cannot be read.
    """
    trace = read_trace(io.BytesIO(content))
    if trace.undeclared is not None:
        raise TraceError(trace.undeclared)
    return trace


def read_trace(file: Readable) -> Trace:
    """Read a trace from a file, to its end, nested ``subagent_trajectories`` included.

    Raises:
        TraceError: no JSON, or not of the form of an ATIF trajectory.
        OSError: the file cannot be read.
    """
    walk = Walk(JsonReader(file))
    try:
        walk.whole()
    except LongTextError as error:
        raise TraceError(str(error)) from None
    except JsonError as error:
        raise TraceError(f"not JSON: {error}") from None
    return Trace(
        tools_called=frozenset(walk.counts),
        tools_declared=None if walk.declared is None else frozenset(walk.declared),
        calls=tuple(walk.calls),
        counts=dict(walk.counts),
        violations=walk.violations.told,
        unknown=walk.unknown.told,
        undeclared=walk.undeclared,
    )
