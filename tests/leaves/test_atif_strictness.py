"""What ATIF 1.0 to 1.8 does not allow or does not know, each told with its place; and traces of any size."""

import copy
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.atif.trace import Call, Trace, TraceError, read_trace

TRACES = Path(__file__).parent / "traces"

FULL: dict[str, Any] = {
    "schema_version": "ATIF-v1.8",
    "session_id": "s",
    "trajectory_id": "t",
    "agent": {"name": "a", "version": "1", "model_name": "m", "tool_definitions": [{"name": "look"}], "extra": {}},
    "steps": [
        {"step_id": 1, "source": "system", "message": "Be kind.", "timestamp": "2026-01-31T10:00:00Z"},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "hi"}], "extra": {"any": [1]}},
        {
            "step_id": 3,
            "source": "agent",
            "message": [
                {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}},
                {"type": "audio", "source": {"media_type": "audio/mp3", "path": "a.mp3", "duration_sec": 0.5}},
            ],
            "model_name": "m",
            "reasoning_effort": 0.5,
            "reasoning_content": "Hm.",
            "tool_calls": [
                {"tool_call_id": "c1", "function_name": " look ", "arguments": {"deep": [[{}]]}, "extra": {}},
                {"tool_call_id": "c2", "function_name": "ask", "arguments": {}},
            ],
            "observation": {
                "results": [
                    {"source_call_id": "c1", "content": "ok", "subagent_trajectory_ref": [{"trajectory_id": "sub"}]},
                    {"source_call_id": None, "content": [{"type": "text", "text": ""}], "extra": {}},
                    {},
                ]
            },
            "metrics": {
                "prompt_tokens": 1,
                "completion_tokens": 2,
                "cached_tokens": 0,
                "cost_usd": 0.01,
                "prompt_token_ids": [1, 2],
                "completion_token_ids": [3],
                "logprobs": [-0.5],
                "extra": None,
            },
            "is_copied_context": False,
            "llm_call_count": 1,
        },
    ],
    "notes": "n",
    "final_metrics": {"total_prompt_tokens": 1, "total_cost_usd": 1, "total_steps": 3, "extra": {}},
    "continued_trajectory_ref": "more.json",
    "extra": {},
    "subagent_trajectories": [
        {
            "schema_version": "ATIF-v1.0",
            "trajectory_id": "sub",
            "agent": {"name": "b", "version": "1"},
            "steps": [
                {
                    "step_id": 1,
                    "source": "agent",
                    "message": "",
                    "tool_calls": [{"tool_call_id": "c1", "function_name": "look", "arguments": {}}],
                }
            ],
        }
    ],
}
MISSING = object()


def read(value: Any) -> Trace:
    return read_trace(io.BytesIO(json.dumps(value).encode()))


def changed(path: str, new: Any) -> dict[str, Any]:
    """The full trace with one value replaced, added or (MISSING) taken away."""
    value = copy.deepcopy(FULL)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    level: Any = value
    for part in way:
        level = level[part]
    if new is MISSING:
        del level[last]
    else:
        level[last] = new
    return value


def test_everything_that_atif_has_is_right() -> None:
    trace = read(FULL)
    assert trace.violations == trace.unknown == ()
    assert trace == Trace(frozenset({"look", "ask"}), frozenset({"look"}))
    assert trace.counts == {"look": 2, "ask": 1}
    assert trace.calls == (
        Call("look", "c1", 3, "$"),
        Call("ask", "c2", 3, "$"),
        Call("look", "c1", 1, "$.subagent_trajectories[0]"),
    )


@pytest.mark.parametrize("path", sorted(TRACES.glob("*.json")), ids=lambda path: path.stem)
def test_real_traces_are_right(path: Path) -> None:
    with path.open("rb") as file:
        trace = read_trace(file)
    assert trace.violations == trace.unknown == ()


@pytest.mark.parametrize("minor", range(9))
def test_every_version_up_to_1_8_is_known(minor: int) -> None:
    assert read(changed("schema_version", f"ATIF-v1.{minor}")).unknown == ()


@pytest.mark.parametrize(
    ("path", "new", "note"),
    [
        ("schema_version", "ATIF-v1.9", "trajectory.schema_version is 'ATIF-v1.9'; ATIF-v1.0 to ATIF-v1.8 are known"),
        ("schema_version", "ATIF-v1.10", "trajectory.schema_version is 'ATIF-v1.10'; ATIF-v1.0 to ATIF-v1.8 are known"),
        ("mood", 1, "trajectory.mood is an unknown field"),
        ("agent.mood", 1, "trajectory.agent.mood is an unknown field"),
        ("steps.0.mood", {"a": [1]}, "trajectory.steps[0].mood is an unknown field"),
        ("steps.2.tool_calls.1.mood", "", "trajectory.steps[2].tool_calls[1].mood is an unknown field"),
        ("steps.2.observation.mood", 0, "trajectory.steps[2].observation.mood is an unknown field"),
        (
            "steps.2.observation.results.2.mood",
            0,
            "trajectory.steps[2].observation.results[2].mood is an unknown field",
        ),
        ("steps.2.metrics.mood", 0, "trajectory.steps[2].metrics.mood is an unknown field"),
        ("steps.2.message.0.mood", 0, "trajectory.steps[2].message[0].mood is an unknown field"),
        ("steps.2.message.0.source.mood", 0, "trajectory.steps[2].message[0].source.mood is an unknown field"),
        ("final_metrics.mood", 0, "trajectory.final_metrics.mood is an unknown field"),
        ("subagent_trajectories.0.mood", 0, "trajectory.subagent_trajectories[0].mood is an unknown field"),
        ("x" * 100, 0, f"trajectory.{'x' * 57}... is an unknown field"),
    ],
)
def test_what_atif_does_not_know(path: str, new: Any, note: str) -> None:
    trace = read(changed(path, new))
    assert trace.unknown == (note,)
    assert trace.violations == ()
    assert trace == read(FULL)


@pytest.mark.parametrize(
    ("path", "new", "note"),
    [
        ("agent", MISSING, "agent is missing"),
        ("agent", "a", "agent is a text; a mapping is expected"),
        ("agent.name", MISSING, "agent.name is missing"),
        ("agent.version", 1, "agent.version is a number; a text is expected"),
        ("agent.tool_definitions", {}, "agent.tool_definitions is a mapping; a list is expected"),
        ("session_id", 1, "session_id is a number; a text is expected"),
        ("trajectory_id", 1, "trajectory_id is 1; a text is expected"),
        ("extra", [], "extra is a list; a mapping is expected"),
        ("final_metrics", [], "final_metrics is a list; a mapping is expected"),
        ("final_metrics.total_steps", -1, "final_metrics.total_steps is -1; a whole number from 0 is expected"),
        ("steps.1.step_id", 3, "steps[1].step_id is 3; 2 is expected: steps are counted from 1"),
        ("steps.0.step_id", 0, "steps[0].step_id is 0; 1 is expected: steps are counted from 1"),
        ("steps.0.step_id", True, "steps[0].step_id is true; 1 is expected: steps are counted from 1"),
        ("steps.0.step_id", MISSING, "steps[0].step_id is missing"),
        ("steps.0.source", "tool", "steps[0].source is 'tool'; system, user or agent is expected"),
        ("steps.0.source", MISSING, "steps[0].source is missing"),
        ("steps.0.message", MISSING, "steps[0].message is missing"),
        ("steps.0.message", None, "steps[0].message is null; a text or a list of parts is expected"),
        ("steps.0.timestamp", "yesterday", "steps[0].timestamp is 'yesterday'; a time in ISO 8601 is expected"),
        ("steps.0.timestamp", 5, "steps[0].timestamp is 5; a time in ISO 8601 is expected"),
        ("steps.0.tool_calls", [], "steps[0].tool_calls stands in a step of the system; only the agent's have it"),
        ("steps.1.model_name", "m", "steps[1].model_name stands in a step of the user; only the agent's have it"),
        ("steps.2.llm_call_count", 0, "steps[2].metrics stands in a step whose llm_call_count is 0"),
        ("steps.2.llm_call_count", 0.5, "steps[2].llm_call_count is 0.5; a whole number from 0 is expected"),
        ("steps.2.is_copied_context", 0, "steps[2].is_copied_context is a number; true or false is expected"),
        ("steps.2.reasoning_effort", [], "steps[2].reasoning_effort is a list; a text or a number is expected"),
        ("steps.2.metrics.prompt_tokens", 0.5, "steps[2].metrics.prompt_tokens is 0.5; a whole number is expected"),
        ("steps.2.metrics.logprobs", {}, "steps[2].metrics.logprobs is a mapping; a list is expected"),
        ("steps.2.tool_calls.0.tool_call_id", MISSING, "steps[2].tool_calls[0].tool_call_id is missing"),
        ("steps.2.tool_calls.1.arguments", MISSING, "steps[2].tool_calls[1].arguments is missing"),
        ("steps.2.tool_calls.1.arguments", "{}", "steps[2].tool_calls[1].arguments is a text; a mapping is expected"),
        ("steps.2.observation", [], "steps[2].observation is a list; a mapping is expected"),
        ("steps.2.observation.results", MISSING, "steps[2].observation.results is missing"),
        ("steps.2.observation.results.1", "ok", "steps[2].observation.results[1] is a text; a mapping is expected"),
        (
            "steps.2.observation.results.0.source_call_id",
            "c3",
            "steps[2].observation.results[0].source_call_id is 'c3'; no tool call of this step has that id",
        ),
        (
            "steps.2.observation.results.0.subagent_trajectory_ref",
            [{"session_id": "s"}],
            "steps[2].observation.results[0].subagent_trajectory_ref[0] has neither trajectory_id nor trajectory_path",
        ),
        ("steps.1.message.0.type", "video", "steps[1].message[0].type is 'video'; text, image or audio is expected"),
        ("steps.1.message.0.text", MISSING, "steps[1].message[0].text is missing; a part of type 'text' needs it"),
        ("steps.2.message.0.text", "x", "steps[2].message[0].text stands in a part of type 'image'"),
        ("steps.2.message.1.source.duration_sec", -1, "steps[2].message[1].source.duration_sec is -1; a number from 0"),
        (
            "steps.2.message.0.source.media_type",
            "audio/wav",
            "steps[2].message[0].source.media_type 'audio/wav' is no type of image that ATIF knows",
        ),
        (
            "steps.2.message.0.source.media_type",
            5,
            "steps[2].message[0].source.media_type is 5; a text is expected",
        ),
        (
            "steps.2.message.1.source.media_type",
            None,
            "steps[2].message[1].source.media_type is null; a text is expected",
        ),
        (
            "subagent_trajectories.0.trajectory_id",
            MISSING,
            "subagent_trajectories[0].trajectory_id is missing; a subagent's trajectory needs one",
        ),
        (
            "subagent_trajectories",
            FULL["subagent_trajectories"] * 2,
            "subagent_trajectories[1].trajectory_id 'sub' stands twice; each needs its own",
        ),
        (
            "subagent_trajectories.0.steps.0.step_id",
            2,
            "subagent_trajectories[0].steps[0].step_id is 2; 1 is expected: steps are counted from 1",
        ),
    ],
)
def test_what_atif_does_not_allow(path: str, new: Any, note: str) -> None:
    trace = read(changed(path, new))
    assert trace.violations[0].startswith(f"trajectory.{note}")
    assert trace.unknown == ()


def test_of_many_mistakes_the_first_are_told() -> None:
    trace = read(changed("steps", [{"step_id": 1, "source": "user", "message": "", f"k{n}": 0} for n in range(1)] * 30))
    assert len(trace.violations) == 21
    assert trace.violations[-1] == "and 9 more"
    assert trace.unknown[-1] == "and 10 more"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"schema_version": "ATIF-v1.7", "schema_version": "ATIF-v1.6"}',
            "trajectory has the key 'schema_version' twice",
        ),
        (
            '{"schema_version": "ATIF-v1.7", "steps": [{"step_id": 1, "step_id": 2}]}',
            "trajectory.steps[0] has the key 'step_id' twice",
        ),
        (
            json.dumps(changed("steps.2.tool_calls.0.function_name", "x" * 70_000)),
            "a text of more than 65536 characters stands where a short one is expected",
        ),
    ],
)
def test_what_cannot_be_understood(text: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_trace(io.BytesIO(text.encode()))
    assert str(caught.value).startswith(message)


def test_subagents_nested_without_end_are_refused() -> None:
    value = FULL
    for _ in range(120):
        value = {**FULL, "subagent_trajectories": [value]}
    with pytest.raises(TraceError, match="is nested deeper than 100 levels"):
        read(value)


def test_the_order_of_keys_does_not_matter() -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(entry) for entry in value] if isinstance(value, list) else value

    trace = read(turned(FULL))
    assert trace.violations == trace.unknown == ()
    assert trace == read(FULL)
    assert sorted(map(repr, trace.calls)) == sorted(map(repr, read(FULL).calls))


@given(st.data())
@settings(max_examples=200)
def test_whatever_is_done_to_a_trace_there_is_no_traceback(data: st.DataObject) -> None:
    value = copy.deepcopy(FULL)
    for _ in range(data.draw(st.integers(1, 3))):
        level: Any = value
        while True:
            keys = list(level) if isinstance(level, dict) else list(range(len(level)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if isinstance(level[key], dict | list) and data.draw(st.booleans()):
                level = level[key]
                continue
            level[key] = data.draw(
                st.sampled_from([None, 0, -1, 1.5, "", "x", True, [], {}, [None], {"a": 1}, "\ud83d"])
            )
            break
    notes: tuple[str, ...]
    try:
        trace = read(value)
        notes = (*trace.violations, *trace.unknown)
        assert sum(trace.counts.values()) == len(trace.calls)
    except TraceError as error:
        notes = (str(error),)
    assert all(note.startswith(("trajectory", "and ")) for note in notes)


# ---------------------------------------------------------------- size

MEASURE = """
import resource, sys
from pytest_metricbench.atif.trace import read_trace
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open(sys.argv[1], "rb") as file:
    trace = read_trace(file)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(after - before, sorted(trace.counts.items()), len(trace.calls), len(trace.violations))
"""


def many_steps(write: Callable[[str], object], size: int) -> int:
    """Steps of a few kilobytes each; gives the number of calls."""
    step = json.dumps(
        {
            "source": "agent",
            "message": "m" * 1500,
            "tool_calls": [{"tool_call_id": "c", "function_name": "look", "arguments": {"q": ["a", 1, {"b": None}]}}],
            "observation": {"results": [{"source_call_id": "c", "content": "é\\n" * 400}]},
        }
    )
    count = size // len(step)
    for number in range(1, count + 1):
        write(f'{"," if number > 1 else ""}{{"step_id": {number}, {step[1:]}')
    return count


def one_answer(write: Callable[[str], object], size: int) -> int:
    """One step whose observation is nearly all of the file."""
    write(
        '{"step_id": 1, "source": "agent", "message": "", "tool_calls": [{"tool_call_id": "c", "function_name": "look"'
    )
    write(', "arguments": {}}], "observation": {"results": [{"source_call_id": "c", "content": "')
    for _ in range(size >> 20):
        write("all work and no play " * ((1 << 20) // 21))
    write('"}]}}')
    return 1


def one_argument(write: Callable[[str], object], size: int) -> int:
    """One call whose arguments are nearly all of the file: small values, nested."""
    write(
        '{"step_id": 1, "source": "agent", "message": "", "tool_calls": [{"tool_call_id": "c", "function_name": "look"'
    )
    write(', "arguments": {"rows": [0')
    for _ in range(size // 33_000):
        write(', {"id": 12345, "tags": ["a", "b"]}' * 1000)
    write("]}}]}")
    return 1


LONG = pytest.mark.benchmark


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fill", "size"),
    [
        pytest.param(many_steps, 60, marks=LONG),
        (one_answer, 60),
        (one_argument, 60),
        pytest.param(many_steps, 200, marks=LONG),
        pytest.param(one_answer, 200, marks=LONG),
    ],
)
def test_a_trace_of_two_hundred_megabytes_is_read_in_bounded_memory(
    tmp_path: Path, fill: Callable[[Callable[[str], object], int], int], size: int
) -> None:
    path = tmp_path / "trajectory.json"
    with path.open("w", encoding="utf-8") as file:
        file.write('{"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": [')
        calls = fill(file.write, size << 20)
        file.write("]}")
    assert os.path.getsize(path) > (size - 5) << 20
    argv = [sys.executable, "-c", MEASURE, str(path)]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=170, check=True)
    grown, rest = ended.stdout.split(" ", 1)
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(grown) * unit < 32 << 20
    assert rest.startswith(f"[('look', {calls})] {min(calls, 10_000)} 0")
    path.unlink()
