"""Stands in for Eval Author's ``report.py``: coverage documents of many runs added up over the items of an audit."""

import argparse
import json
import sys
from pathlib import Path

from audit_block import KINDS, AuditError, read_audit

SCHEMA = "nemo.eval_author.audit_coverage_report.v1"


class InputError(Exception):
    pass


def main():
    parser = argparse.ArgumentParser(prog="report.py")
    parser.add_argument("--audit", type=Path, required=True)
    parser.add_argument("--coverage", type=Path, action="append", default=[])
    parser.add_argument("--coverage-dir", type=Path, action="append", default=[])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--compact", action="store_true")
    arguments = parser.parse_args()
    try:
        audit = read_audit(arguments.audit)
        inputs = [(path, read_input(path, audit)) for path in paths(arguments)]
    except AuditError as fault:
        return refuse(arguments, False, "audit_spec", fault)
    except InputError as fault:
        return refuse(arguments, True, "coverage_input", fault)
    report = added_up(audit, arguments.audit, inputs)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(text_of(report, arguments.compact) + "\n", "utf-8")
    overall = report["coverage"]["overall"]
    summary = {
        "valid": True,
        "written": True,
        "audit": str(arguments.audit),
        "coverage_report": str(arguments.out),
        "coverage_input_count": len(inputs),
        "covered_count": overall["covered_count"],
        "uncovered_count": overall["uncovered_count"],
        "uncovered": report["uncovered"],
        "measured_kinds": report["measured_kinds"],
        "warning_count": 0,
        "warnings": [],
    }
    print(text_of(summary, arguments.compact))
    return 0


def paths(arguments):
    found = []
    for path in arguments.coverage:
        if not path.is_file():
            raise InputError(f"there is no coverage file {path}")
        found.append(path)
    for folder in arguments.coverage_dir:
        if not folder.is_dir():
            raise InputError(f"there is no coverage directory {folder}")
        found += sorted(folder.rglob("coverage.json"))
    if not found:
        raise InputError("no coverage.json files found")
    return list({path.resolve(): path for path in found}.values())


def read_input(path, audit):
    try:
        document = json.loads(path.read_text("utf-8"))
        identity, kind = document["audit"], document["item_kind"]
        covered, count = document["covered"], document["item_kind_count"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no coverage document: {error!r}") from None
    expected = {"schema": audit.spec["schema"], "agent": audit.spec["agent"], "item_count": len(audit.items)}
    for key, value in expected.items():
        if identity[key] != value:
            raise InputError(f"{path}: audit.{key} {identity[key]!r} does not match the audit's {value!r}")
    if count != audit.counts()[kind]:
        raise InputError(f"{path}: item_kind_count {count!r} does not match the audit's {audit.counts()[kind]!r}")
    names = {item["name"] for item in audit.of_kind(kind)}
    for name in covered:
        if name not in names:
            raise InputError(f"{path}: covered item {name!r} is no {kind} of the audit")
    return document


def added_up(audit, path, inputs):
    union = {name for _, document in inputs for name in document["covered"]}
    measured = sorted({document["item_kind"] for _, document in inputs})
    uncovered = [item for item in audit.items if item["name"] not in union]
    return {
        "schema": SCHEMA,
        "audit": {**audit.identity(path), "item_counts": audit.counts()},
        "measured_kinds": measured,
        "warnings": [],
        "input_reports": [
            {
                "path": str(place),
                "method": document["method"]["name"],
                "item_kind": document["item_kind"],
                "item_kind_count": document["item_kind_count"],
                "subject": document["subject"],
                "covered": document["covered"],
                "covered_count": len(document["covered"]),
            }
            for place, document in inputs
        ],
        "coverage": {
            "overall": counted(audit.items, union),
            "by_kind": {kind: counted(audit.of_kind(kind), union) for kind in KINDS},
        },
        "covered": [item["name"] for item in audit.items if item["name"] in union],
        "uncovered": [item["name"] for item in uncovered],
        "uncovered_items": [gap(item, audit, measured) for item in uncovered],
    }


def counted(items, union):
    covered = sum(item["name"] in union for item in items)
    return {"item_count": len(items), "covered_count": covered, "uncovered_count": len(items) - covered}


def gap(item, audit, measured):
    reason = "not_covered_by_any_input_report" if item["kind"] in measured else "not_measured_by_any_method"
    return {
        "name": item["name"],
        "kind": item["kind"],
        "reason": reason,
        "description": item["description"],
        "source_refs": item.get("source_refs", []),
        "generation": {
            "focus": focus(item),
            "needed_tools": needed_tools(item, audit),
            "evidence_required": item["evidence_required"],
        },
        "audit_item": item,
    }


def focus(item):
    if item["kind"] == "tool":
        return f"Exercise a scenario where the agent should call {item['name']}: {item['expected_use']}"
    if item["kind"] == "capability":
        return f"Exercise capability {item['name']}: {item['expected_behavior']}"
    return (
        f"Exercise failure case {item['name']} by triggering {item['trigger'].rstrip('.')}: {item['expected_behavior']}"
    )


def needed_tools(item, audit):
    if item["kind"] == "tool":
        return [item["name"]]
    if item["kind"] == "capability":
        return list(item["required_tools"])
    required = {entry["name"]: entry["required_tools"] for entry in audit.of_kind("capability")}
    named = [name for capability in item["applies_to"] for name in required.get(capability, [])]
    return list(dict.fromkeys(named))


def refuse(arguments, valid, error_type, fault):
    print(text_of({"valid": valid, "written": False, "error_type": error_type, "error": str(fault)}, arguments.compact))
    return 1


def text_of(value, compact):
    if compact:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return json.dumps(value, sort_keys=True, indent=2)


if __name__ == "__main__":
    sys.exit(main())
