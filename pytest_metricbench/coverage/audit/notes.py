"""What an audit's measurement leaves for its readers: what is not covered and why, warnings, the report of the pool."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pytest_metricbench.atif.trace import Trace
from pytest_metricbench.contracts import Json
from pytest_metricbench.coverage.audit.document import Audit, Item
from pytest_metricbench.coverage.audit.measurement import METHODS, Measurement, report
from pytest_metricbench.messages import and_more
from pytest_metricbench.plain_files import replace_file

REPORT_FILE: Final = "report.json"
UNCOVERED_FILE: Final = "uncovered.json"
WARNINGS_FILE: Final = "warnings.json"
WARNINGS_LIMIT: Final = 200
"""Warnings of one request that are written out."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one method found in one trace."""

    task: str
    run: str
    trace_sha256: str
    measured: Measurement


def unjudged(audit: Audit, findings: Iterable[Finding]) -> str | None:
    """Why there is no score when evidence has no judgment; None where all has."""
    count, first = 0, ""
    for found in findings:
        for name, index in found.measured.unjudged:
            count += 1
            item = audit.item(name)
            if not first and item is not None:
                what = f"{item.kind.replace('_', ' ')} {name!r}, evidence {index} ({item.evidence[index].kind})"
                first = (
                    f"{what}: not judged for the trace {found.trace_sha256} (task {found.task}, attempt {found.run})"
                )
    return None if not count else first + and_more(count - 1, "missing judgment")


def uncovered_items(items: Sequence[Item], findings: Sequence[Finding]) -> dict[str, Json]:
    """The items of the scope that no trace covers, and in how many traces for which reason."""
    covered = {name for found in findings for name in found.measured.covered}
    entries = []
    for item in items:
        if item.name in covered:
            continue
        of_kind = [found.measured for found in findings if found.measured.kind == item.kind]
        why = Counter(reason for measured in of_kind for reason in measured.missing.get(item.name, ()))
        reasons = {"not_called": len(of_kind)} if item.kind == "tool" else dict(sorted(why.items()))
        description = item.written["description"]
        entries.append({"name": item.name, "kind": item.kind, "description": description, "traces": reasons})
    return {"uncovered": entries}


def near_misses(audit: Audit, traces: Iterable[tuple[str, str, Trace]]) -> list[str]:
    """Tools that are called by a name that only looks like one of the audit's: case and blanks make another name.

    Args:
        audit: the audit.
        traces: task, attempt and trace.
    """
    declared = {item.name for item in audit.of_kind("tool")}
    alike = {_folded(name): name for name in declared}
    notes = []
    for task, run, trace in traces:
        for called in sorted(trace.tools_called - declared):
            meant = alike.get(_folded(called))
            if meant is not None:
                notes.append(f"task {task}, attempt {run}: calls {called!r}, which is not {meant!r} of {audit.name}")
    return notes


def _folded(name: str) -> str:
    return "".join(character for character in name.casefold() if character not in " \t_-")


def report_of(audit: Audit, findings: Iterable[Finding]) -> dict[str, Json]:
    """``report.json`` of all measurements, each under the path that Eval Author would give it."""
    measured = []
    for found in findings:
        task, run = (quote(name, safe="") for name in (found.task, found.run))
        path = f"measurements/task={task}/run={run}/{METHODS[found.measured.kind]}/coverage.json"
        measured.append((path, found.measured.coverage))
    return report(audit, measured)


def write_warnings(workspace: Path, notes: Iterable[str]) -> None:
    """Write ``warnings.json``: ``{"warnings": [text, ...]}``, each once.

    Raises:
        OSError: the folder cannot be written.
    """
    told = list(dict.fromkeys(notes))
    more = len(told) - WARNINGS_LIMIT
    write_json(
        workspace / WARNINGS_FILE, {"warnings": told[:WARNINGS_LIMIT] + ([f"and {more} more"] if more > 0 else [])}
    )


def write_json(path: Path, value: Json) -> None:
    """Write one of the files that a request leaves.

    Raises:
        OSError: the folder cannot be written.
    """
    with os.fdopen(replace_file(path), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
