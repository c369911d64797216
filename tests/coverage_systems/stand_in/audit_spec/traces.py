"""ATIF traces as the stand-in scripts read them: known keys only, steps in order, calls that their results match."""

import hashlib
import json

VERSIONS = {f"ATIF-v1.{minor}" for minor in range(9)}
TRAJECTORY = {
    "schema_version", "session_id", "trajectory_id", "agent", "steps", "notes", "final_metrics",
    "continued_trajectory_ref", "extra", "subagent_trajectories",
}  # fmt: skip
AGENT = {"name", "version", "model_name", "tool_definitions", "extra"}
STEP = {
    "step_id", "timestamp", "source", "model_name", "reasoning_effort", "message", "reasoning_content", "tool_calls",
    "observation", "metrics", "is_copied_context", "llm_call_count", "extra",
}  # fmt: skip
CALL = {"tool_call_id", "function_name", "arguments", "extra"}
RESULT = {"source_call_id", "content", "subagent_trajectory_ref", "extra"}


class TraceError(Exception):
    pass


class Trace:
    def __init__(self, content, trajectory):
        self.digest = "sha256:" + hashlib.sha256(content).hexdigest()
        short = f"trace-sha256-{self.digest.removeprefix('sha256:')[:12]}"
        self.identity = trajectory.get("trajectory_id") or trajectory.get("session_id") or short
        self.calls = list(calls(trajectory, "$"))

    def calls_of(self, tool):
        return [call for call in self.calls if call["tool"] == tool]

    def call_counts(self):
        counts = {}
        for call in self.calls:
            counts[call["tool"]] = counts.get(call["tool"], 0) + 1
        return counts


def read_trace(path):
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error}") from None
    try:
        trajectory = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path} is not JSON: {error}") from None
    check(trajectory, f"{path}: $")
    return Trace(content, trajectory)


def check(trajectory, where):
    known(trajectory, TRAJECTORY, where)
    if trajectory.get("schema_version", "ATIF-v1.7") not in VERSIONS:
        raise TraceError(f"{where}.schema_version: {trajectory.get('schema_version')!r} is not supported")
    known(trajectory.get("agent"), AGENT, f"{where}.agent")
    steps = trajectory.get("steps")
    if not isinstance(steps, list) or not steps:
        raise TraceError(f"{where}.steps: at least one step is needed")
    for number, step in enumerate(steps, start=1):
        check_step(step, number, f"{where}.steps[{number - 1}]")
    nested = trajectory.get("subagent_trajectories") or []
    names = [part.get("trajectory_id") for part in nested if isinstance(part, dict)]
    if len(set(names)) < len(nested) or None in names:
        raise TraceError(f"{where}.subagent_trajectories: each needs a trajectory_id of its own")
    for number, part in enumerate(nested):
        check(part, f"{where}.subagent_trajectories[{number}]")


def check_step(step, number, where):
    known(step, STEP, where)
    if step.get("step_id") != number:
        raise TraceError(f"{where}.step_id: expected {number}, got {step.get('step_id')!r}")
    if step.get("source") not in ("system", "user", "agent"):
        raise TraceError(f"{where}.source: {step.get('source')!r}")
    made = step.get("tool_calls") or []
    if made and step["source"] != "agent":
        raise TraceError(f"{where}.tool_calls: only steps of the agent have tool calls")
    for position, call in enumerate(made):
        known(call, CALL, f"{where}.tool_calls[{position}]")
        if not isinstance(call.get("function_name"), str) or not isinstance(call.get("tool_call_id"), str):
            raise TraceError(f"{where}.tool_calls[{position}]: tool_call_id and function_name are required")
    answered = {call["tool_call_id"] for call in made}
    for position, result in enumerate((step.get("observation") or {}).get("results", [])):
        known(result, RESULT, f"{where}.observation.results[{position}]")
        if result.get("source_call_id") is not None and result["source_call_id"] not in answered:
            raise TraceError(f"{where}.observation.results[{position}].source_call_id: no such call in the step")


def known(value, names, where):
    if not isinstance(value, dict):
        raise TraceError(f"{where}: not an object")
    extra = sorted(set(value) - names)
    if extra:
        raise TraceError(f"{where}.{extra[0]}: extra inputs are not permitted")


def calls(trajectory, path):
    for step in trajectory["steps"]:
        for call in step.get("tool_calls") or []:
            yield {
                "step_id": step["step_id"],
                "tool": call["function_name"].strip(),
                "tool_call_id": call["tool_call_id"],
                "trajectory_path": path,
            }
    for number, part in enumerate(trajectory.get("subagent_trajectories") or []):
        yield from calls(part, f"{path}.subagent_trajectories[{number}]")
