"""What one trace covers of an audit, method by method, and what several traces cover together.

The results have the form of Eval Author's own files (``coverage.json``, ``details.json``, ``report.json``), so that one
can be compared with the other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pytest_metricbench.atif.trace import Trace
from pytest_metricbench.contracts import Json
from pytest_metricbench.coverage.audit.document import KINDS, Audit, Evidence, Item
from pytest_metricbench.coverage.audit.forms import AUDIT_SCHEMA, ItemKind
from pytest_metricbench.coverage.audit.judgments import SCHEMAS, JudgedItem, Judgment, Judgments

Method: TypeAlias = Literal["tool_calls", "capabilities", "failure_cases"]
METHODS: Final[dict[ItemKind, Method]] = {
    "tool": "tool_calls",
    "capability": "capabilities",
    "failure_case": "failure_cases",
}
"""The method that measures each kind of item."""

_REASONS: Final = (
    "missing_required_tool",
    "prohibited_tool_observed",
    "missing_tool_call_evidence",
    "unjudged_evidence",
    "judged_evidence_not_satisfied",
)
_COVERAGE: Final = "nemo.eval_author.audit_coverage.v1"
_REPORT: Final = "nemo.eval_author.audit_coverage_report.v1"


@dataclass(frozen=True, slots=True)
class Subject:
    """The trace that is measured, as the files name it."""

    task_id: str
    run_id: str
    trace: str
    """Its path."""

    def to_json(self) -> dict[str, Json]:
        """The ``subject`` of the files."""
        return {"run_id": self.run_id, "task_id": self.task_id, "trace": self.trace, "trace_format": "atif"}


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one method found in one trace."""

    kind: ItemKind
    covered: tuple[str, ...]
    """Names of items, in the order of the audit."""
    missing: Mapping[str, tuple[str, ...]]
    """Every other item of the kind -> why, in Eval Author's words; a tool is only ever not called."""
    unjudged: tuple[tuple[str, int], ...]
    """Item and position of each piece of evidence that has no judgment and needs one."""
    coverage: dict[str, Json]
    """``coverage.json``."""
    details: dict[str, Json]
    """``details.json``."""


def measure_trace(
    kind: ItemKind, audit: Audit, trace: Trace, subject: Subject, judgments: Judgments | None = None
) -> Measurement:
    """Measure one trace with the method of a kind of items.

    A tool is covered when a call has its name. A capability is covered when every required tool is called and all its
    evidence is there; a failure case when no prohibited tool is called and all its evidence is there. Evidence of the
    kind ``tool_call`` is there when that tool is called, evidence of every other kind when a judgment says so.

    Args:
        kind: of the items to measure.
        audit: the audit.
        trace: the trace; of one with more calls than it keeps one by one, the files list the first ones.
        subject: how the files name it.
        judgments: of this kind of items, about this trace.
    """
    calls, matches = _calls(trace)
    look = _Look(trace, matches, judgments)
    results = {item.name: look.at(item) for item in audit.of_kind(kind)}
    covered = tuple(name for name, result in results.items() if result["covered"])
    head = {"audit": _audit_head(audit), "method": {"name": METHODS[kind]}, "subject": subject.to_json()}
    coverage = {
        **head,
        "schema": _COVERAGE,
        "item_kind": kind,
        "item_kind_count": len(results),
        "covered": list(covered),
    }
    details = {
        **head,
        "schema": f"nemo.eval_author.audit_{METHODS[kind]}_details.v1",
        "covered": list(covered),
        "missing": [name for name in results if name not in covered],
        "observed_tool_calls": calls,
        "tool_call_counts": dict(trace.counts),
        **_own_details(kind, results, matches, judgments),
    }
    missing = {name: tuple(result["missing_reasons"]) for name, result in results.items() if not result["covered"]}
    return Measurement(kind, covered, missing, tuple(look.unjudged), coverage, details)


def _calls(trace: Trace) -> tuple[list[Json], dict[str, list[Json]]]:
    """The calls as the files list them, all of them and by tool."""
    calls: list[Json] = []
    matches: dict[str, list[Json]] = {}
    for call in trace.calls:
        place = {"step_id": call.step_id, "tool_call_id": call.tool_call_id, "trajectory_path": call.trajectory_path}
        calls.append({"tool": call.tool, **place})
        matches.setdefault(call.tool, []).append(calls[-1])
    return calls, matches


def _own_details(
    kind: ItemKind,
    results: Mapping[str, Mapping[str, Any]],
    matches: Mapping[str, list[Json]],
    judgments: Judgments | None,
) -> dict[str, Json]:
    """What the details of one method have and those of another do not."""
    if kind == "tool":
        return {
            "item_kind": kind,
            "audit_tools": list(results),
            "matches": {name: matches.get(name, []) for name in results},
        }
    return {f"{kind}_results": dict(results), "judgment_input": _judgment_input(kind, judgments)}


def _judgment_input(kind: JudgedItem, judgments: Judgments | None) -> dict[str, Json]:
    if judgments is None:
        return {"provided": False, "judgment_count": 0}
    given = {
        "provided": True,
        "judgment_count": len(judgments.by_evidence),
        "schema": SCHEMAS[kind],
        "trace_sha256": judgments.trace_sha256,
    }
    return given if judgments.judged_by is None else given | {"judged_by": judgments.judged_by}


class _Look:
    """Looks for items in one trace."""

    def __init__(self, trace: Trace, matches: Mapping[str, list[Json]], judgments: Judgments | None) -> None:
        self._trace = trace
        self._matches = matches
        self._judged = {} if judgments is None else judgments.by_evidence
        self.unjudged: list[tuple[str, int]] = []

    def at(self, item: Item) -> dict[str, Any]:
        """Whether the trace covers an item, and the evidence for it."""
        if item.kind == "tool":
            return {"covered": item.name in self._trace.tools_called, "missing_reasons": ()}
        found: set[str] = set()
        evidence = [self._evidence(item, index, entry, found) for index, entry in enumerate(item.evidence)]
        result: dict[str, Any] = {"evidence_results": evidence}
        if item.kind == "capability":
            tools = [self._tool(tool, wanted=True) for tool in item.texts("required_tools")]
            result["required_tool_results"] = tools
            if any(tool["status"] != "satisfied" for tool in tools):
                found.add("missing_required_tool")
        else:
            tools = [self._tool(tool, wanted=False) for tool in item.texts("prohibited_tools")]
            result["prohibited_tool_results"] = tools
            if any(tool["status"] != "satisfied" for tool in tools):
                found.add("prohibited_tool_observed")
        return result | {"covered": not found, "missing_reasons": [reason for reason in _REASONS if reason in found]}

    def _tool(self, tool: str, *, wanted: bool) -> dict[str, Json]:
        """Whether a tool is called that should be, or not called that should not."""
        called = tool.strip() in self._trace.tools_called
        status = "satisfied" if called is wanted else "missing"
        return {"tool": tool, "status": status, "matches": self._matches.get(tool.strip(), [])}

    def _evidence(self, item: Item, index: int, evidence: Evidence, found: set[str]) -> dict[str, Json]:
        """One piece of evidence; why it is not there is added to ``found``."""
        result = {"kind": evidence.kind, "evidence_index": index, "description": evidence.description}
        if evidence.tool is not None:
            tool = self._tool(evidence.tool, wanted=True)
            if tool["status"] != "satisfied":
                found.add("missing_tool_call_evidence")
            return {**result, **tool, "measurement": "deterministic"}
        judgment = self._judged.get((item.name, index))
        if judgment is None:
            self.unjudged.append((item.name, index))
            found.add("unjudged_evidence")
            return {**result, "measurement": "judgment_required", "status": "unjudged"}
        if judgment.status != "satisfied":
            found.add("judged_evidence_not_satisfied")
        return {**result, "measurement": "judged", **_judged(judgment)}


def _judged(judgment: Judgment) -> dict[str, Json]:
    given: dict[str, Json] = {
        "status": judgment.status,
        "confidence": judgment.confidence,
        "rationale": judgment.rationale,
    }
    if judgment.supporting_trace_refs is not None:
        given["supporting_trace_refs"] = list(judgment.supporting_trace_refs)
    return given


def _audit_head(audit: Audit) -> dict[str, Json]:
    return {
        "path": audit.name,
        "schema": AUDIT_SCHEMA,
        "agent": audit.agent,
        "status": audit.status,
        "item_count": len(audit.items),
    }


# ---------------------------------------------------------------- several traces


def report(audit: Audit, measured: Iterable[tuple[str, Mapping[str, Json]]]) -> dict[str, Json]:
    """``report.json``: what several measurements cover together.

    Args:
        audit: the audit.
        measured: the path and the content of each ``coverage.json``.
    """
    inputs = sorted(measured, key=lambda entry: entry[0])
    seen = {name for _, coverage in inputs for name in coverage["covered"]}
    kinds = sorted({str(coverage["item_kind"]) for _, coverage in inputs})
    covered = [item for item in audit.items if item.name in seen]
    uncovered = [item for item in audit.items if item.name not in seen]
    counts = {kind: len(audit.of_kind(kind)) for kind in KINDS}
    return {
        "schema": _REPORT,
        "audit": {**_audit_head(audit), "item_counts": counts},
        "measured_kinds": kinds,
        "warnings": [],
        "input_reports": [_input(path, coverage) for path, coverage in inputs],
        "coverage": {
            "overall": _counts(audit.items, seen),
            "by_kind": {kind: _counts(audit.of_kind(kind), seen) for kind in KINDS},
        },
        "covered": [item.name for item in covered],
        "uncovered": [item.name for item in uncovered],
        "uncovered_items": [_uncovered(item, audit, kinds) for item in uncovered],
    }


def _input(path: str, coverage: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "path": path,
        "method": coverage["method"]["name"],
        "item_kind": coverage["item_kind"],
        "item_kind_count": coverage["item_kind_count"],
        "covered": coverage["covered"],
        "covered_count": len(coverage["covered"]),
        "subject": coverage["subject"],
    }


def _counts(items: Sequence[Item], seen: set[str]) -> dict[str, int]:
    covered = sum(item.name in seen for item in items)
    return {"item_count": len(items), "covered_count": covered, "uncovered_count": len(items) - covered}


def _uncovered(item: Item, audit: Audit, kinds: Sequence[str]) -> dict[str, Json]:
    """An item that nothing covered, with what a task that covers it would have to do."""
    written = item.written
    reason = "not_covered_by_any_input_report" if item.kind in kinds else "not_measured_by_any_method"
    return {
        "name": item.name,
        "kind": item.kind,
        "description": written["description"],
        "reason": reason,
        "source_refs": list(item.texts("source_refs")),
        "audit_item": dict(written),
        "generation": {
            "focus": _focus(item),
            "needed_tools": list(dict.fromkeys(_needed_tools(item, audit))),
            "evidence_required": written["evidence_required"],
        },
    }


def _focus(item: Item) -> str:
    name, written = item.name, item.written
    if item.kind == "tool":
        return f"Exercise a scenario where the agent should call {name}: {written['expected_use']}"
    if item.kind == "capability":
        return f"Exercise capability {name}: {written['expected_behavior']}"
    trigger = str(written["trigger"]).rstrip(".")
    return f"Exercise failure case {name} by triggering {trigger}: {written['expected_behavior']}"


def _needed_tools(item: Item, audit: Audit) -> list[str]:
    """The tools that a task for an item has to do with; those of its capabilities for a failure case."""
    named = [evidence.tool for evidence in item.evidence if evidence.tool is not None]
    if item.kind == "tool":
        return [item.name]
    if item.kind == "capability":
        return [*item.texts("required_tools"), *named]
    applies_to = [audit.item(name) for name in item.texts("applies_to")]
    required = [tool for found in applies_to if found is not None for tool in found.texts("required_tools")]
    return [*required, *item.texts("expected_tools"), *named]
