"""Agent traces: real ones, nested ones, and every malformed one told with its place."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.atif import walk
from pytest_metricbench.atif.trace import Trace, TraceError, parse_trace

TRACES = Path(__file__).parent / "traces"


def trajectory(*called: object, **more: Any) -> dict[str, Any]:
    """A trajectory whose agent calls these tools, one a step."""
    steps = [{"step_id": 1, "source": "user", "message": "hi"}]
    steps += [
        {"step_id": number, "source": "agent", "message": "", "tool_calls": [{"function_name": name, "arguments": {}}]}
        for number, name in enumerate(called, start=2)
    ]
    return {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": steps} | more


def parse(value: object) -> Trace:
    return parse_trace(json.dumps(value).encode())


def refusal(value: object) -> str:
    with pytest.raises(TraceError) as caught:
        parse(value)
    return str(caught.value)


# ---------------------------------------------------------------- what is read


@pytest.mark.parametrize(
    ("name", "called"), [("lookup", {"customer.lookup"}), ("chat", set()), ("harbor_ok", {"bash"})]
)
def test_real_traces(name: str, called: set[str]) -> None:
    assert parse_trace((TRACES / f"{name}.json").read_bytes()) == Trace(frozenset(called), None)


@pytest.mark.parametrize("version", ["ATIF-v1.0", "ATIF-v1.8", "ATIF-v1.42"])
def test_every_version_1_is_read(version: str) -> None:
    assert parse(trajectory("a", schema_version=version)).tools_called == {"a"}


def test_names_lose_surrounding_blanks_and_keep_their_case() -> None:
    assert parse(trajectory(" look up ", "Look up", "look up\n")).tools_called == {"look up", "Look up"}


def test_half_a_character_in_a_name_is_replaced() -> None:
    assert parse(trajectory("half \ud83d")).tools_called == {"half \N{REPLACEMENT CHARACTER}"}


def test_several_calls_in_a_step() -> None:
    value = trajectory()
    value["steps"][0]["tool_calls"] = [{"function_name": "a"}, {"function_name": "b"}, {"function_name": "a"}]
    assert parse(value).tools_called == {"a", "b"}


def test_subagents_are_read_to_any_depth() -> None:
    value = trajectory("level 0")
    for level in range(1, 60):
        value = trajectory(f"level {level}", subagent_trajectories=[value, trajectory("sibling")])
    assert parse(value).tools_called == {f"level {level}" for level in range(60)} | {"sibling"}


@pytest.mark.parametrize("none", [{}, {"subagent_trajectories": None}, {"subagent_trajectories": []}])
def test_no_subagents(none: dict[str, Any]) -> None:
    assert parse(trajectory("a", **none)).tools_called == {"a"}


@pytest.mark.parametrize("calls", [None, []])
def test_a_step_without_calls(calls: object) -> None:
    value = trajectory("a")
    value["steps"][0]["tool_calls"] = calls
    assert parse(value).tools_called == {"a"}


def declaring(definitions: object) -> dict[str, Any]:
    return trajectory("a", agent={"name": "x", "version": "1", "tool_definitions": definitions})


@pytest.mark.parametrize(
    ("definitions", "declared"),
    [
        ([{"name": "a"}, {"name": " b ", "description": "", "inputSchema": {}}], {"a", "b"}),
        ([{"type": "function", "function": {"name": "a", "parameters": {}}}, {"function": {"name": "b"}}], {"a", "b"}),
        ([{"name": "a"}, {"function": {"name": "b"}}, {"name": "a"}], {"a", "b"}),
        ([], set()),
        (None, None),
    ],
)
def test_both_forms_of_declared_tools(definitions: object, declared: set[str] | None) -> None:
    trace = parse(declaring(definitions))
    assert trace.tools_declared == declared
    assert trace.tools_called == {"a"}


def test_tools_declared_by_a_subagent_count() -> None:
    value = trajectory("c", subagent_trajectories=[declaring([{"name": "a"}]), declaring([{"name": "b"}])])
    assert parse(value).tools_declared == frozenset({"a", "b"})


@pytest.mark.parametrize("agent", [None, "a", [], {}])
def test_an_agent_that_says_nothing_declares_nothing(agent: object) -> None:
    assert parse(trajectory("a", agent=agent)).tools_declared is None


# ---------------------------------------------------------------- what is none


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"not json", b"\xff\xfe\x00", b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b'{"schema_version"'],
    ids=["empty", "cut", "text", "bytes", "deep lists", "deep mappings", "digits", "torn"],
)
def test_what_is_not_json(content: bytes) -> None:
    with pytest.raises(TraceError, match=r"not JSON: .+"):
        parse_trace(content)


def without(key: str) -> dict[str, Any]:
    value = trajectory("a")
    del value[key]
    return value


STEP = "trajectory.steps[0]"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "trajectory is not a mapping"),
        (None, "trajectory is not a mapping"),
        ("ATIF-v1.7", "trajectory is not a mapping"),
        ({}, "trajectory.schema_version is None"),
        (without("schema_version"), "ATIF-v1.x is expected"),
        (trajectory("a", schema_version="ATIF-v2.0"), "trajectory.schema_version is 'ATIF-v2.0'"),
        (trajectory("a", schema_version="ATIF-v1"), "ATIF-v1.x is expected"),
        (trajectory("a", schema_version=1.7), "schema_version is 1.7"),
        (without("steps"), "trajectory.steps is missing or empty"),
        (trajectory("a", steps=[]), "trajectory.steps is missing or empty"),
        (trajectory("a", steps={"1": {}}), "trajectory.steps is missing or empty"),
        (trajectory("a", steps=["hi"]), f"{STEP} is not a mapping"),
        (trajectory("a", steps=[{"tool_calls": {}}]), f"{STEP}.tool_calls is not a list"),
        (trajectory("a", steps=[{"tool_calls": 0}]), f"{STEP}.tool_calls is not a list"),
        (trajectory("a", steps=[{"tool_calls": ""}]), f"{STEP}.tool_calls is not a list"),
        (trajectory("a", steps=[{"tool_calls": "call"}]), f"{STEP}.tool_calls is not a list"),
        (trajectory("a", steps=[{"tool_calls": ["call"]}]), f"{STEP}.tool_calls[0] has no function_name"),
        (trajectory("a", steps=[{"tool_calls": [{}]}]), f"{STEP}.tool_calls[0] has no function_name"),
        (trajectory("a", steps=[{"tool_calls": [{"function_name": 3}]}]), f"{STEP}.tool_calls[0] has no"),
        (trajectory("a", None), "trajectory.steps[2].tool_calls[0] has no function_name"),
        (trajectory("a", "  "), "trajectory.steps[2].tool_calls[0] has no function_name"),
        (trajectory("a", subagent_trajectories={}), "trajectory.subagent_trajectories is not a list"),
        (trajectory("a", subagent_trajectories=0), "trajectory.subagent_trajectories is not a list"),
        (trajectory("a", subagent_trajectories=""), "trajectory.subagent_trajectories is not a list"),
        (trajectory("a", subagent_trajectories=["x"]), "trajectory.subagent_trajectories[0] is not a mapping"),
        (
            trajectory("a", subagent_trajectories=[trajectory("b"), trajectory("c", steps=[])]),
            "trajectory.subagent_trajectories[1].steps is missing",
        ),
        (declaring("lookup"), "trajectory.agent.tool_definitions is not a list"),
        (declaring({"name": "a"}), "trajectory.agent.tool_definitions is not a list"),
        (declaring(["lookup"]), "trajectory.agent.tool_definitions[0] has no name"),
        (declaring([{"name": "a"}, {}]), "trajectory.agent.tool_definitions[1] has no name"),
        (declaring([{"name": " "}]), "trajectory.agent.tool_definitions[0] has no name"),
        (declaring([{"function": "a"}]), "trajectory.agent.tool_definitions[0] has no name"),
        (declaring([{"function": {"name": 1}}]), "trajectory.agent.tool_definitions[0] has no name"),
    ],
)
def test_another_form_is_told_with_its_place(value: object, words: str) -> None:
    assert words in refusal(value)


CALLS = [{"function_name": name, "arguments": {}} for name in "abc"]


@pytest.mark.parametrize(
    ("limit", "value", "message"),
    [
        ("TOOLS_LIMIT", declaring([{"name": name} for name in "abc"]),
         "trajectory.agent.tool_definitions declares more than 2 tools"),
        ("TOOLS_LIMIT", trajectory("a", "b", "c"),
         "trajectory.steps[3].tool_calls[0] is the call of more than 2 different tools"),
        ("STEP_LIMIT", trajectory(steps=[{"tool_calls": CALLS}]),
         f"{STEP}.tool_calls has more than 2 calls in one step"),
        ("STEP_LIMIT", trajectory(steps=[{"observation": {"results": [{"source_call_id": "1"}] * 3}}]),
         f"{STEP}.observation.results has more than 2 results in one step"),
    ],
)  # fmt: skip
def test_more_than_is_held_in_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: object, message: str
) -> None:
    monkeypatch.setattr(walk, limit, 2)
    assert refusal(value) == message


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "steps",
                        "tool_calls",
                        "function_name",
                        "subagent_trajectories",
                        "agent",
                        "tool_definitions",
                        "name",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_anything_else_is_a_trace_or_an_error_of_ours(value: object) -> None:
    if isinstance(value, dict):
        value = {"schema_version": "ATIF-v1.7", **value}
    try:
        trace = parse(value)
    except TraceError:
        return
    assert all(isinstance(name, str) for name in trace.tools_called)
