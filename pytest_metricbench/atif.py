"""Agent traces in ATIF (Agent Trajectory Interchange Format), read for the tools they call and declare."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pytest_metricbench.answers import plain_text

TRACE_NAME: Final = "trajectory.json"
"""What a trace is called by those who write them."""


class TraceError(ValueError):
    """A trace that is not ATIF; the message says what is wrong and where in the trace."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One attempt's trace: the tools it called, and the tools the agent declares (None when it declares nothing)."""

    tools_called: frozenset[str]
    tools_declared: frozenset[str] | None


def parse_trace(content: bytes) -> Trace:
    """Read a trace, nested ``subagent_trajectories`` included.

    Names are compared without surrounding blanks and case-sensitively, as Eval Author's audit does.

    Raises:
        TraceError: no JSON, or not of the form of an ATIF trajectory.
    """
    try:
        trajectory = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"not JSON: {error or type(error).__name__}") from None
    called: set[str] = set()
    declared: set[str] = set()
    declares = False
    for where, part in _trajectories(trajectory, "trajectory"):
        called.update(_calls(where, part))
        tools = _declared(where, part)
        if tools is not None:
            declares = True
            declared |= tools
    return Trace(frozenset(called), frozenset(declared) if declares else None)


def _trajectories(value: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """A trajectory and those nested in it, each with its place in the file. Iterative: depth is the file's choice."""
    waiting = [(where, value)]
    while waiting:
        where, value = waiting.pop()
        if not isinstance(value, dict):
            raise TraceError(f"{where} is not a mapping")
        version = value.get("schema_version")
        if not isinstance(version, str) or not version.startswith("ATIF-v1."):
            raise TraceError(f"{where}.schema_version is {version!r}; ATIF-v1.x is expected")
        yield where, value
        nested = _list_or_none(value, where, "subagent_trajectories")
        waiting.extend((f"{where}.subagent_trajectories[{index}]", part) for index, part in enumerate(nested))


def _calls(where: str, trajectory: dict[str, Any]) -> Iterator[str]:
    steps = trajectory.get("steps")
    if not isinstance(steps, list) or not steps:
        raise TraceError(f"{where}.steps is missing or empty")
    for index, step in enumerate(steps):
        if not isinstance(step, dict):
            raise TraceError(f"{where}.steps[{index}] is not a mapping")
        calls = _list_or_none(step, f"{where}.steps[{index}]", "tool_calls")
        for number, call in enumerate(calls):
            name = call.get("function_name") if isinstance(call, dict) else None
            if not isinstance(name, str) or not name.strip():
                raise TraceError(f"{where}.steps[{index}].tool_calls[{number}] has no function_name")
            yield plain_text(name.strip())


def _list_or_none(mapping: dict[str, Any], where: str, key: str) -> list[Any]:
    """The list under a key that may be absent or null."""
    value = mapping.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise TraceError(f"{where}.{key} is not a list")
    return value


def _declared(where: str, trajectory: dict[str, Any]) -> set[str] | None:
    """The tools of ``agent.tool_definitions``, plain (``{"name": ..}``) or as functions (``{"function": {..}}``)."""
    agent = trajectory.get("agent")
    definitions = agent.get("tool_definitions") if isinstance(agent, dict) else None
    if definitions is None:
        return None
    if not isinstance(definitions, list):
        raise TraceError(f"{where}.agent.tool_definitions is not a list")
    names = set()
    for index, definition in enumerate(definitions):
        inner = definition.get("function", definition) if isinstance(definition, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else None
        if not isinstance(name, str) or not name.strip():
            raise TraceError(f"{where}.agent.tool_definitions[{index}] has no name")
        names.add(plain_text(name.strip()))
    return names
