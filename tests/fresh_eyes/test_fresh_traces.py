"""Traces with names of any length and any characters: what is said of them still fits on a terminal."""

import io
import json
from typing import Any

import pytest

from pytest_metricbench.atif.trace import TraceError, read_trace

LONG = "\x1b[2J" + "x" * 60_000


def _trace(**more: Any) -> bytes:
    step = {"step_id": 1, "source": "agent", "message": "m", "tool_calls": []}
    head = {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a", "version": "1"}}
    return json.dumps({**head, "steps": [step], **more}).encode()


def _told(content: bytes) -> tuple[str, ...]:
    trace = read_trace(io.BytesIO(content))
    return (*trace.violations, *trace.unknown)


def _subagent(name: str) -> dict[str, Any]:
    return {**json.loads(_trace()), "trajectory_id": name}


ANSWERED = {"step_id": 1, "source": "agent", "message": "m", "observation": {"results": [{"source_call_id": LONG}]}}
MEDIA = {"type": "image", "source": {"media_type": LONG, "path": "p"}}


@pytest.mark.parametrize(
    "content",
    [
        _trace(schema_version=f"ATIF-v1.{LONG}"),
        _trace(subagent_trajectories=[_subagent(LONG), _subagent(LONG)]),
        _trace(steps=[ANSWERED]),
        _trace(steps=[{"step_id": 1, "source": "user", "message": [MEDIA]}]),
        _trace(**{LONG: 1}),
    ],
    ids=["version", "subagent", "call", "media", "field"],
)
def test_what_is_noted_of_a_trace_fits_on_a_terminal(content: bytes) -> None:
    told = _told(content)
    assert told
    assert all(len(note) < 200 and note.isprintable() for note in told)


def test_what_keeps_a_trace_from_being_read_fits_on_a_terminal() -> None:
    with pytest.raises(TraceError) as caught:
        _told(_trace(schema_version=LONG))
    assert len(str(caught.value)) < 200
    assert str(caught.value).isprintable()


AUDIT = """\
<!-- BEGIN:nemo-eval-author-audit:v1 -->
```yaml
schema: nemo.eval_author.audit.v1
agent: a
status: draft
items:
  - kind: tool
    name: look
    description: d
    expected_use: u
    expected_failure_behavior: f
    evidence_required: [{kind: tool_call, tool: look, description: d}]
```
<!-- END:nemo-eval-author-audit:v1 -->
"""
AGENT = """\
def agent(request):
    if request.task.id == "half":
        (request.workspace / "trajectory.json").write_text('{"schema_version": "ATIF-v1.7", "ste')
        raise RuntimeError("out of memory")
    return 1.0
"""


def test_half_a_trace_of_a_dead_attempt_is_told_from_none(pytester: pytest.Pytester) -> None:
    (pytester.path / "audit.md").write_text(AUDIT)
    (pytester.path / "half_agent.py").write_text(AGENT)
    case = {"id": "c", "tasks": [{"id": "half"}, {"id": "none"}], "subsets": [{"id": "s", "tasks": ["half"]}]}
    experiment = {
        "metricbench": 1,
        "name": "x",
        "runner": {"kind": "python", "agent": "half_agent:agent"},
        "cases": [case],
        "coverage": [{"id": "audit", "kind": "audit", "audit": "audit.md"}],
    }
    (pytester.path / "experiment.yml").write_text(json.dumps(experiment))
    off = [part for name in ("randomly", "sugar", "html", "metadata", "pytest_cov") for part in ("-p", f"no:{name}")]
    assert pytester.runpytest_inprocess(*off, "experiment.yml").ret == 0
    store = pytester.path / ".metricbench" / "x"
    found = json.loads((store / "summary.json").read_text())["cases"]["c"]
    why = "what its attempts left when they died is no whole trajectory.json"
    assert found["subsets"]["s"]["coverage"]["audit"]["reason"] == (
        f"task half left no trace that can be measured: {why}"
    )
    assert found["pool"]["coverage"]["audit"]["reason"] == "task none left no trajectory.json"
    (warning,) = json.loads((store / "coverage" / "c" / "audit" / "s" / "warnings.json").read_text())["warnings"]
    assert "died, and what it left is no trace: not JSON: the text has no end (line 1, column 37)" in warning
