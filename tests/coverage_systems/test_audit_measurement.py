"""What the native audit finds in traces, compared with what Eval Author's own scripts wrote for the same traces."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.atif.trace import parse_trace
from pytest_metricbench.coverage.audit.document import Audit, read_audit
from pytest_metricbench.coverage.audit.judgments import Judgments, read_judgments
from pytest_metricbench.coverage.audit.measurement import METHODS, Subject, measure_trace, report
from pytest_metricbench.definition.problems import ProblemList

SAMPLES = Path(__file__).parent / "samples" / "audit"
KIND_OF = {method: kind for kind, method in METHODS.items()}
RUNS = {"task-lookup": "lookup__aaa", "task-ticket": "ticket__bbb", "task-chat": "chat__ccc"}
MEASURED = sorted(path.parent for path in SAMPLES.rglob("coverage.json"))
REPORTED = sorted(path.parent for path in SAMPLES.rglob("report.json"))


def audit_of(folder: Path) -> Audit:
    name = "audit-tool-only.md" if "out-tool-only" in folder.parts else "audit-mixed.md"
    problems = ProblemList()
    audit = read_audit(SAMPLES / name, name, problems)
    assert audit is not None
    assert not len(problems)
    return audit


def recorded(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


def measured(folder: Path) -> Any:
    """What we find where the recorded folder says which task, run and method it is about."""
    method, run, task = folder.name, folder.parent.name.removeprefix("run="), folder.parents[1].name[5:]
    audit, trace = audit_of(folder), f"trials/{run}/agent/trajectory.json"
    judgments: Judgments | None = None
    if "out-judged" in folder.parts:
        judgments = read_judgments(SAMPLES / "capability-judgments.json", "capability-judgments.json", audit)
    content = parse_trace((SAMPLES / trace).read_bytes())
    kind = next(kind for known, kind in KIND_OF.items() if known == method)
    return measure_trace(kind, audit, content, Subject(task, run, trace), judgments)


def test_the_samples_are_all_here() -> None:
    assert len(MEASURED) == 28
    assert len(REPORTED) == 9
    assert {folder.name for folder in MEASURED} == set(METHODS.values())


@pytest.mark.parametrize("folder", MEASURED, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_a_trace_is_measured_as_upstream_measured_it(folder: Path) -> None:
    ours = measured(folder)
    assert json.loads(json.dumps(ours.coverage)) == recorded(folder / "coverage.json")
    assert json.loads(json.dumps(ours.details)) == recorded(folder / "details.json")


@pytest.mark.parametrize("folder", REPORTED, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_traces_are_reported_as_upstream_reported_them(folder: Path) -> None:
    theirs = recorded(folder / "report.json")
    inputs = []
    for entry in theirs["input_reports"]:
        (folder_of_it,) = [at for at in MEASURED if entry["path"].endswith(f"{at.relative_to(SAMPLES)}/coverage.json")]
        inputs.append((entry["path"], measured(folder_of_it).coverage))
    inputs.reverse()  # the order of the report is the paths'
    assert json.loads(json.dumps(report(audit_of(folder), inputs))) == theirs
