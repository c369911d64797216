"""The tool-calls coverage system on real and on damaged traces."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_metricbench.contracts import CoverageError, CoverageRequest, Goals, Score
from pytest_metricbench.coverage.tool_calls import ToolCallCoverage

TRACES = Path(__file__).parents[1] / "leaves" / "traces"
LOOKUP = (TRACES / "lookup.json").read_bytes()
CHAT = (TRACES / "chat.json").read_bytes()
Measure = Callable[..., Score]


def trace(*called: str, declared: list[str] | None = None, **more: Any) -> bytes:
    agent: dict[str, Any] = {"name": "a", "version": "1"}
    if declared is not None:
        agent["tool_definitions"] = [{"type": "function", "function": {"name": name}} for name in declared]
    steps = [{"step_id": 1, "source": "agent", "message": "", "tool_calls": [{"function_name": c} for c in called]}]
    return json.dumps({"schema_version": "ATIF-v1.7", "agent": agent, "steps": steps} | more).encode()


@pytest.fixture
def measure(make: Callable[..., Any], request_for: Callable[..., CoverageRequest], workspace: Path) -> Measure:
    """Measures evidence given as task id -> name -> content."""

    def run(evidence: Mapping[str, Mapping[str, bytes]], **keys: Any) -> Score:
        score: Score = make(ToolCallCoverage, **keys).measure(request_for(evidence), workspace)
        return score

    return run


# ---------------------------------------------------------------- measured


def test_the_share_of_the_given_tools_that_are_called(measure: Measure) -> None:
    evidence = {
        "lookup": {"agent/trajectory.json": LOOKUP, "other.txt": b"not a trace"},
        "chat": {"agent/trajectory.json": CHAT},
    }
    score = measure(evidence, tools=["customer.lookup", "support.ticket"])
    assert score == Score(
        0.5,
        None,
        Goals(("customer.lookup", "support.ticket"), {"lookup": ("customer.lookup",), "chat": ()}),
    )


def test_the_tools_that_the_traces_declare(measure: Measure) -> None:
    evidence = {
        "one": {"trajectory.json": trace("a", "b", declared=["a", "b", "c"])},
        "two": {"trajectory.json": trace("a", declared=["a", "d"])},
    }
    score = measure(evidence)
    assert score.value == 0.5
    assert score.goals == Goals(("a", "b", "c", "d"), {"one": ("a", "b"), "two": ("a",)})


def test_given_tools_go_before_declared_ones(measure: Measure) -> None:
    assert measure({"t": {"trajectory.json": trace("a", declared=["a", "b", "c"])}}, tools=["a"]).value == 1


def test_tools_that_do_not_count_are_not_goals(measure: Measure) -> None:
    score = measure({"t": {"trajectory.json": trace("a", "shell")}}, tools=["a", "b"])
    assert score == Score(0.5, None, Goals(("a", "b"), {"t": ("a",)}))


def test_nothing_called_is_zero_and_everything_one(measure: Measure) -> None:
    assert measure({"t": {"trajectory.json": CHAT}}, tools=["a"]).value == 0
    assert measure({"t": {"trajectory.json": trace("a", "b")}}, tools=["a", "b", "a"]).value == 1


def test_a_given_tool_may_have_blanks_around_it_as_in_a_trace(measure: Measure) -> None:
    assert measure({"t": {"trajectory.json": trace(" a ")}}, tools=["a ", "b"]).value == 0.5


def test_several_attempts_of_a_task_count_together(measure: Measure) -> None:
    evidence = {"t": {"1/trajectory.json": trace("a"), "2/trajectory.json": trace("b"), "log": b""}}
    assert measure(evidence, tools=["a", "b"]) == Score(1.0, None, Goals(("a", "b"), {"t": ("a", "b")}))


def test_subagents_count(measure: Measure) -> None:
    inner = json.loads(trace("b", declared=["b", "c"]))
    evidence = {"t": {"trajectory.json": trace("a", declared=["a"], subagent_trajectories=[inner])}}
    score = measure(evidence)
    assert score.goals == Goals(("a", "b", "c"), {"t": ("a", "b")})


# ---------------------------------------------------------------- null


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        ({"t": {}}, "task t left no trajectory.json"),
        ({"t": {"trajectory.json.bak": CHAT, "my-trajectory.json": CHAT}}, "task t left no trajectory.json"),
        (
            {"z": {}, "b": {}, "a": {"trajectory.json": CHAT}, "c": {}},
            "task b left no trajectory.json (and 2 more tasks)",
        ),
    ],
)
def test_a_task_without_a_trace_makes_it_null(
    measure: Measure, evidence: dict[str, dict[str, bytes]], reason: str
) -> None:
    assert measure(evidence, tools=["a"]) == Score(None, reason)


@pytest.mark.parametrize("content", [CHAT, trace("a", declared=[])])
def test_no_declared_tools_make_it_null(measure: Measure, content: bytes) -> None:
    score = measure({"t": {"trajectory.json": content}})
    assert score.value is None
    assert score.reason is not None
    assert "no trace declares its tools" in score.reason


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (LOOKUP[:-20], "not JSON"),
        (b"[]", "trajectory is not a mapping"),
        (b'{"schema_version": "ATIF-v9", "steps": []}', "ATIF-v1.x is expected"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_damaged_trace_fails_the_request_and_is_named(measure: Measure, content: bytes, words: str) -> None:
    with pytest.raises(CoverageError, match=words) as caught:
        measure({"t": {"agent/trajectory.json": content}}, tools=["a"])
    assert "evidence/t/trial1/agent/trajectory.json" in str(caught.value)


@pytest.mark.parametrize("kind", ["changed", "gone", "link", "loop", "zero", "pipe", "folder"])
def test_evidence_that_is_not_what_it_was_fails_the_request(
    make: Callable[..., Any], request_for: Callable[..., CoverageRequest], workspace: Path, kind: str
) -> None:
    request = request_for({"t": {"trajectory.json": LOOKUP}})
    (file,) = request.files["t"]
    (workspace / "copy.json").write_bytes(LOOKUP)
    file.path.unlink()
    match kind:
        case "changed":
            file.path.write_bytes(CHAT)
        case "pipe":
            os.mkfifo(file.path)
        case "folder":
            file.path.mkdir()
        case "link" | "loop" | "zero":
            leads: dict[str, Path | str] = {"link": workspace / "copy.json", "loop": file.path, "zero": "/dev/zero"}
            file.path.symlink_to(leads[kind])
    words = {"changed": "has changed since its attempt ended", "gone": "cannot be read"}.get(kind, "not a regular file")
    with pytest.raises(CoverageError, match=words) as caught:
        make(ToolCallCoverage, tools=["a"]).measure(request, workspace)
    assert str(file.path) in str(caught.value)


def test_a_trace_is_read_once_for_all_subsets(
    make: Callable[..., Any], request_for: Callable[..., CoverageRequest], workspace: Path
) -> None:
    system = make(ToolCallCoverage, tools=["customer.lookup"])
    request = request_for({"t": {"trajectory.json": LOOKUP}})
    first = system.measure(request, workspace)
    request.files["t"][0].path.unlink()
    assert system.measure(request, workspace) == first == Score(1.0, None, first.goals)


# ---------------------------------------------------------------- its keys


@pytest.mark.parametrize(
    "keys", [{"tools": []}, {"tools": "a"}, {"tools": [1]}, {"tools": [""]}, {"tools": [" "]}, {"x": 1}]
)
def test_wrong_keys_are_refused(make: Callable[..., Any], keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make(ToolCallCoverage, **keys)


def test_it_only_reads() -> None:
    assert not ToolCallCoverage.isolated


# ---------------------------------------------------------------- half a trace


def _of_a_died_attempt(request: CoverageRequest, name: str) -> CoverageRequest:
    files = {
        task: tuple(replace(file, outcome="died") if file.name == name else file for file in found)
        for task, found in request.files.items()
    }
    return replace(request, files=files)


def test_what_a_died_attempt_left_half_written_is_no_trace(
    make: Callable[..., Any], request_for: Callable[..., CoverageRequest], workspace: Path
) -> None:
    system = make(ToolCallCoverage, tools=["a", "b"])
    half = {"1/trajectory.json": trace("a"), "2/trajectory.json": trace("b")[:40]}
    request = _of_a_died_attempt(request_for({"t": half}), "2/trajectory.json")
    assert system.measure(request, workspace).value == 0.5
    alone = _of_a_died_attempt(request_for({"u": {"1/trajectory.json": trace("b")[:40]}}), "1/trajectory.json")
    assert "left no trajectory.json" in str(system.measure(alone, workspace).reason)


def test_half_a_trace_of_a_scored_attempt_is_an_error(measure: Measure) -> None:
    with pytest.raises(CoverageError, match=r"trajectory\.json"):
        measure({"t": {"1/trajectory.json": trace("a")[:40]}}, tools=["a"])
