"""``eval-author`` over the stand-in and the native ``audit``, which share no code that measures, agree on any input."""

import hashlib
import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.coverage.audit.system import AuditCoverage
from tests.coverage_systems.eval_author_lab import METHODS, SCOPES, request, system, trace

TOOLS = ("a.b", "c/d", "E")
TEXT = {"description": "What it is."}
JUDGED = {"kind": "output", "description": "It says so."}


def evidence(draw: st.DrawFn, tools: list[str]) -> list[dict[str, str]]:
    called = [{"kind": "tool_call", "tool": tool, "description": "It is called."} for tool in tools]
    return draw(st.lists(st.sampled_from([*called, JUDGED]), min_size=1, max_size=3))


@st.composite
def audits(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Items with every kind of reference to one another."""
    tools = draw(st.lists(st.sampled_from(TOOLS), min_size=1, unique=True))
    items: list[dict[str, Any]] = [
        {"kind": "tool", "name": tool, **TEXT, "expected_use": "Often.", "expected_failure_behavior": "None.",
         "evidence_required": [{"kind": "tool_call", "tool": tool, "description": "It is called."}]}
        for tool in tools
    ]  # fmt: skip
    capabilities = [f"can-{number}" for number in range(draw(st.integers(0, 2)))]
    items += [
        {"kind": "capability", "name": name, **TEXT, "expected_behavior": "Well.",
         "required_tools": draw(st.lists(st.sampled_from(tools), max_size=2, unique=True)),
         "evidence_required": evidence(draw, tools)}
        for name in capabilities
    ]  # fmt: skip
    items += [
        {"kind": "failure_case", "name": f"may-not-{number}", **TEXT, "trigger": "Rain.", "expected_behavior": "Calm.",
         "applies_to": capabilities[:1], "evidence_required": evidence(draw, tools),
         "prohibited_tools": draw(st.lists(st.sampled_from([*TOOLS, "never"]), max_size=2, unique=True))}
        for number in range(draw(st.integers(0, 2)) if capabilities else 0)
    ]  # fmt: skip
    return items


def judgments(items: list[dict[str, Any]], kind: str, content: bytes, status: str) -> bytes:
    entries = [
        {
            kind: item["name"],
            "evidence_index": index,
            **entry,
            "status": status,
            "confidence": "low",
            "rationale": "So.",
        }
        for item in items
        if item["kind"] == kind
        for index, entry in enumerate(item["evidence_required"])
        if entry["kind"] != "tool_call"
    ]
    document = {
        "schema": f"nemo.eval_author.audit_{kind}_judgments.v1",
        "trace_sha256": "sha256:" + hashlib.sha256(content).hexdigest(),
        "judgments": entries,
    }
    return json.dumps(document).encode()


@pytest.mark.slow
@settings(max_examples=12)
@given(
    items=audits(),
    calls=st.lists(st.lists(st.sampled_from(TOOLS), max_size=3), min_size=1, max_size=3),
    statuses=st.lists(st.sampled_from(["satisfied", "missing", "unclear", None]), min_size=6, max_size=6),
    methods=st.lists(st.sampled_from(METHODS), min_size=1, unique=True),
)
def test_equal_scores_and_goals(
    tmp_path_factory: pytest.TempPathFactory,
    items: list[dict[str, Any]],
    calls: list[list[str]],
    statuses: list[str | None],
    methods: list[str],
) -> None:
    folder = tmp_path_factory.mktemp("both")
    spec = {"schema": "nemo.eval_author.audit.v1", "agent": "a", "status": "draft", "items": items}
    (folder / "audit.md").write_text(
        "<!-- BEGIN:nemo-eval-author-audit:v1 -->\n```yaml\n"
        + yaml.safe_dump(spec, sort_keys=False)
        + "```\n<!-- END:nemo-eval-author-audit:v1 -->\n"
    )
    traces = [trace(*tools, session_id=f"s{number}") for number, tools in enumerate(calls)]
    files = []
    for number, (content, status) in enumerate(zip([*traces, *traces], statuses, strict=False)):
        kind = ("capability", "failure_case")[number // len(traces)]
        if status is not None and any(item["kind"] == kind for item in items):
            files.append(f"j{number}.json")
            (folder / files[-1]).write_bytes(judgments(items, kind, content, status))
    tasks = {f"t{number}": {f"a{number}": content} for number, content in enumerate(traces)}
    first = system(folder, audit="audit.md", methods=methods, judgments=files)
    native = {"kind": "audit", "audit": "audit.md", "methods": methods, "judgments": files}
    for scope in SCOPES:
        workspaces = [folder / f"{name}-{scope}" for name in ("scripts", "native")]
        upstream = first.model_copy(update={"score_scope": scope}).measure(request(workspaces[0], tasks), workspaces[0])
        ours = AuditCoverage.model_validate_json(
            json.dumps({**native, "score_scope": scope}), strict=True, context={"folder": folder}
        ).measure(request(workspaces[1], tasks), workspaces[1])
        assert (upstream.value, upstream.goals) == (ours.value, ours.goals), (scope, upstream.reason, ours.reason)
        assert (upstream.reason is None) == (ours.reason is None)
