"""Stands in for Eval Author's ``measure.py``: the documented command line, documents, exit statuses and error types."""

import argparse
import json
import sys
from pathlib import Path
from urllib.parse import quote

from audit_block import AuditError, read_audit
from judging import JudgmentError, read_judgments
from methods import METHODS
from traces import TraceError, read_trace

COVERAGE = "nemo.eval_author.audit_coverage.v1"


class MeasurementError(Exception):
    pass


def main():
    arguments = parsed()
    try:
        methods = chosen(arguments.measure)
        audit = read_audit(arguments.audit)
        path, task, run = subject(arguments)
        trace = read_trace(path)
        about = {
            "audit": audit.identity(arguments.audit),
            "subject": {
                "trace": str(path),
                "trace_format": "atif",
                "task_id": task,
                "run_id": run or trace.identity,
            },
        }
        files = {
            "capabilities": arguments.capability_judgments,
            "failure_cases": arguments.failure_case_judgments,
        }
        documents = [measured(method, audit, trace, about, files.get(method)) for method in methods]
    except AuditError as fault:
        return refuse(arguments, False, "audit_spec", fault)
    except TraceError as fault:
        return refuse(arguments, True, "trace", fault)
    except (MeasurementError, JudgmentError) as fault:
        return refuse(arguments, True, "measurement", fault)
    folder = arguments.out_dir / f"task={quote(task, safe='')}" / f"run={quote(about['subject']['run_id'], safe='')}"
    written = [
        write(folder / method, *pair, arguments.compact) for method, pair in zip(methods, documents, strict=True)
    ]
    show(
        {
            "valid": True,
            "written": True,
            "audit": str(arguments.audit),
            "trace": str(path),
            "task_id": task,
            "run_id": about["subject"]["run_id"],
            "methods": methods,
            "measurements": written,
        },
        arguments.compact,
    )
    return 0


def parsed():
    parser = argparse.ArgumentParser(prog="measure.py")
    parser.add_argument("--audit", type=Path, required=True)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--trace", type=Path)
    given.add_argument("--trial-dir", type=Path)
    parser.add_argument("--task-id")
    parser.add_argument("--run-id")
    parser.add_argument("--out-dir", type=Path, required=True)
    parser.add_argument("--measure", action="append")
    parser.add_argument("--capability-judgments", type=Path)
    parser.add_argument("--failure-case-judgments", type=Path)
    parser.add_argument("--compact", action="store_true")
    return parser.parse_args()


def chosen(lists):
    names = [name.strip() for text in lists or ["tool_calls"] for name in text.split(",") if name.strip()]
    if not names:
        raise MeasurementError("--measure names no measurement method")
    unknown = sorted(set(names) - set(METHODS))
    if unknown:
        known = ", ".join(sorted(METHODS))
        raise MeasurementError(f"unknown measurement method(s): {', '.join(unknown)}; available: {known}")
    return list(dict.fromkeys(names))


def subject(arguments):
    """The trace, its task id and, where something names it, its run id."""
    path, trial = arguments.trace, arguments.trial_dir
    if trial is not None:
        if not trial.is_dir():
            raise TraceError(f"there is no trial directory {trial}")
        path = trial / "agent" / "trajectory.json"
        if not path.exists():
            raise TraceError(f"the trial has no ATIF trace at {path}")
    elif (path.parent.name, path.name) == ("agent", "trajectory.json"):
        trial = path.parent.parent
    result = {}
    if trial is not None and (trial / "result.json").exists():
        try:
            result = json.loads((trial / "result.json").read_text("utf-8"))
        except ValueError as error:
            raise TraceError(f"{trial / 'result.json'}: {error}") from None
        if not isinstance(result, dict):
            raise TraceError(f"{trial / 'result.json'} is no JSON object")
    fallback = trial.name if trial is not None else None
    task = arguments.task_id or result.get("task_name") or fallback or path.stem
    return path, task, arguments.run_id or result.get("trial_name") or fallback


def measured(method, audit, trace, about, judgments):
    kind, measure = METHODS[method]
    judged = read_judgments(judgments, kind, audit, trace)
    covered, details = measure(audit, trace, judged)
    named = {**about, "method": {"name": method}}
    coverage = {
        **named,
        "schema": COVERAGE,
        "item_kind": kind,
        "item_kind_count": audit.counts()[kind],
        "covered": covered,
    }
    return coverage, {**details, **named}


def write(folder, coverage, details, compact):
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in (("coverage", coverage), ("details", details)):
        (folder / f"{name}.json").write_text(text_of(document, compact) + "\n", "utf-8")
    return {
        "method": coverage["method"]["name"],
        "item_kind": coverage["item_kind"],
        "coverage": str(folder / "coverage.json"),
        "details": str(folder / "details.json"),
        "covered": coverage["covered"],
        "covered_count": len(coverage["covered"]),
    }


def refuse(arguments, valid, error_type, fault):
    show({"valid": valid, "written": False, "error_type": error_type, "error": str(fault)}, arguments.compact)
    return 1


def show(value, compact):
    print(text_of(value, compact))


def text_of(value, compact):
    if compact:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return json.dumps(value, sort_keys=True, indent=2)


if __name__ == "__main__":
    sys.exit(main())
