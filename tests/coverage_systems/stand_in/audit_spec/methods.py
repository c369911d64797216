"""The three measurement methods of the stand-in scripts: what of an audit a trace covers, and the details."""


def tool_calls(audit, trace, judgments):
    names = [item["name"] for item in audit.of_kind("tool")]
    matches = {name: trace.calls_of(name) for name in names}
    covered = [name for name in names if matches[name]]
    return covered, {
        "schema": "nemo.eval_author.audit_tool_calls_details.v1",
        "item_kind": "tool",
        "audit_tools": names,
        "matches": matches,
        **common(names, covered, trace),
    }


def capabilities(audit, trace, judgments):
    def gate(item):
        results = [tool_result(name, trace, wanted=True) for name in item["required_tools"]]
        return "required_tool_results", results, "missing_required_tool"

    return composite("capability", "capabilities", gate, audit, trace, judgments)


def failure_cases(audit, trace, judgments):
    def gate(item):
        results = [tool_result(name, trace, wanted=False) for name in item.get("prohibited_tools", [])]
        return "prohibited_tool_results", results, "prohibited_tool_observed"

    return composite("failure_case", "failure_cases", gate, audit, trace, judgments)


METHODS = {
    "tool_calls": ("tool", tool_calls),
    "capabilities": ("capability", capabilities),
    "failure_cases": ("failure_case", failure_cases),
}


def composite(kind, plural, gate, audit, trace, judgments):
    results = {}
    for item in audit.of_kind(kind):
        key, gates, gate_reason = gate(item)
        evidence = [
            evidence_result(index, entry, trace, judgments.by_target.get((item["name"], index)))
            for index, entry in enumerate(item["evidence_required"])
        ]
        reasons = missing_reasons(gates, gate_reason, evidence)
        results[item["name"]] = {
            "covered": not reasons,
            key: gates,
            "evidence_results": evidence,
            "missing_reasons": reasons,
        }
    covered = [name for name, result in results.items() if result["covered"]]
    return covered, {
        "schema": f"nemo.eval_author.audit_{plural}_details.v1",
        f"{kind}_results": results,
        "judgment_input": judgments.summary(),
        **common(list(results), covered, trace),
    }


def common(names, covered, trace):
    return {
        "covered": covered,
        "missing": [name for name in names if name not in covered],
        "observed_tool_calls": trace.calls,
        "tool_call_counts": trace.call_counts(),
    }


def tool_result(name, trace, *, wanted):
    matches = trace.calls_of(name)
    fine = bool(matches) == wanted
    return {"tool": name, "matches": matches, "status": "satisfied" if fine else "missing"}


def evidence_result(index, entry, trace, judgment):
    result = {"evidence_index": index, "kind": entry["kind"], "description": entry["description"]}
    if entry["kind"] == "tool_call":
        return {**result, **tool_result(entry["tool"], trace, wanted=True), "measurement": "deterministic"}
    if judgment is None:
        return {**result, "measurement": "judgment_required", "status": "unjudged"}
    kept = ("status", "confidence", "rationale", "supporting_trace_refs")
    return {**result, "measurement": "judged", **{key: judgment[key] for key in kept if key in judgment}}


def missing_reasons(gates, gate_reason, evidence):
    found = {
        gate_reason: any(gate["status"] != "satisfied" for gate in gates),
        "missing_tool_call_evidence": has(evidence, "deterministic", ("missing",)),
        "unjudged_evidence": has(evidence, "judgment_required", ("unjudged",)),
        "judged_evidence_not_satisfied": has(evidence, "judged", ("missing", "unclear")),
    }
    return [reason for reason, holds in found.items() if holds]


def has(evidence, measurement, statuses):
    return any(entry["measurement"] == measurement and entry["status"] in statuses for entry in evidence)
