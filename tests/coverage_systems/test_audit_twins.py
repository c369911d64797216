"""The native audit beside the stand-in for Eval Author's scripts: two programs, written apart, one answer."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pytest_metricbench.atif.trace import parse_trace
from pytest_metricbench.coverage.audit.document import BEGIN, END, Audit, read_audit
from pytest_metricbench.coverage.audit.forms import EVIDENCE_FORMS, ItemKind
from pytest_metricbench.coverage.audit.judgments import SCHEMAS, JudgedItem, read_judgments
from pytest_metricbench.coverage.audit.measurement import METHODS, Subject, measure_trace, report
from pytest_metricbench.definition.problems import ProblemList
from pytest_metricbench.digests import digest_bytes

SCRIPTS = Path(__file__).parent / "stand_in" / "audit_spec"
TOOLS = ["look", "Look", "ask.twice", "pay"]
JUDGED = [kind for kind in EVIDENCE_FORMS if kind != "tool_call"]
DRIVER = """
import json, sys
sys.path.insert(0, sys.argv[1])
import measure, report
for kind, arguments in json.load(open("calls.json")):
    sys.argv = [kind, *arguments]
    status = {"measure": measure, "report": report}[kind].main()
    assert not status, arguments
"""


def evidence(random: Random, tools: list[str]) -> list[dict[str, str]]:
    found = []
    for number in range(random.randint(1, 3)):
        if tools and random.random() < 0.5:
            found.append({"kind": "tool_call", "tool": random.choice(tools), "description": f"Call {number}."})
        else:
            found.append({"kind": random.choice(JUDGED), "description": f"Judged {number}."})
    return found


def failure_case(random: Random, number: int, capabilities: list[str], tools: list[str]) -> dict[str, Any]:
    return (
        {"kind": "failure_case", "name": f"failure-{number}", "applies_to": random.sample(capabilities, 1)}
        | {"description": "d", "trigger": "t.", "expected_behavior": "b"}
        | {"evidence_required": evidence(random, tools)}
        | ({"prohibited_tools": random.sample([*TOOLS, "other"], 2)} if random.random() < 0.7 else {})
        | ({"expected_tools": random.sample(tools, 1)} if random.random() < 0.5 else {})
        | ({"source_refs": ["x"]} if random.random() < 0.3 else {})
    )


def some_audit(random: Random) -> dict[str, Any]:
    tools = random.sample(TOOLS, random.randint(1, 4))
    items: list[dict[str, Any]] = [
        {"kind": "tool", "name": name, "description": "d", "expected_use": "u", "expected_failure_behavior": "f"}
        | {"evidence_required": [{"kind": "tool_call", "tool": name, "description": "d"}]}
        for name in tools
    ]
    capabilities = [f"capability-{number}" for number in range(random.randint(0, 3))]
    for name in capabilities:
        required = random.sample(tools, random.randint(0, min(2, len(tools))))
        items.append(
            {"kind": "capability", "name": name, "description": "d", "required_tools": required}
            | {"expected_behavior": "b", "evidence_required": evidence(random, tools)}
        )
    items += [failure_case(random, number, capabilities, tools) for number in range(2 if capabilities else 0)]
    random.shuffle(items)
    return {"schema": "nemo.eval_author.audit.v1", "agent": "a", "status": "draft", "items": items}


def some_trace(random: Random, nested: bool = True) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": "hi"}]
    for number in range(2, random.randint(2, 5)):
        names = random.choices([*TOOLS, " pay ", "other"], k=random.randint(0, 2))
        calls = [{"tool_call_id": f"c{at}", "function_name": name, "arguments": {}} for at, name in enumerate(names)]
        steps.append({"step_id": number, "source": "agent", "message": ""} | ({"tool_calls": calls} if calls else {}))
    trace: dict[str, Any] = {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": steps}
    if nested and random.random() < 0.4:
        inner = [some_trace(random, nested=False) | {"trajectory_id": f"t{at}"} for at in range(random.randint(1, 2))]
        trace["subagent_trajectories"] = inner
    return trace


def some_judgments(random: Random, kind: JudgedItem, audit: dict[str, Any], trace: bytes) -> dict[str, Any]:
    entries = [
        {kind: item["name"], "evidence_index": index, "kind": entry["kind"], "description": entry["description"]}
        | {"status": random.choice(["satisfied", "satisfied", "missing", "unclear"])}
        | {"confidence": "low", "rationale": "r"}
        | ({"supporting_trace_refs": ["$"]} if random.random() < 0.5 else {})
        for item in audit["items"]
        if item["kind"] == kind
        for index, entry in enumerate(item["evidence_required"])
        if entry["kind"] != "tool_call" and random.random() < 0.8
    ]
    by = {"judged_by": "j"} if random.random() < 0.5 else {}
    return {"schema": SCHEMAS[kind], "trace_sha256": digest_bytes(trace), "judgments": entries} | by


class Twins:
    """One audit with some traces, written for the scripts and measured here."""

    def __init__(self, folder: Path, random: Random) -> None:
        self.folder = folder
        audit = some_audit(random)
        block = json.dumps(audit, indent=1)
        (folder / "audit.md").write_text(f"# A\n\n{BEGIN}\n```yaml\n{block}\n```\n{END}\n")
        problems = ProblemList()
        read = read_audit(folder / "audit.md", "audit.md", problems)
        assert read is not None, problems.found
        self.audit: Audit = read
        self.calls: list[tuple[str, list[str]]] = []
        self.ours: dict[str, dict[str, Any]] = {}
        for run in ("r1", "r/2", "r 3"):
            self._add(random, audit, run)
        inputs = [(path, document) for path, document in self.ours.items() if path.endswith("/coverage.json")]
        arguments = ["--audit", "audit.md", "--coverage-dir", "out", "--out", "report.json"]
        self.calls.append(("report", arguments))
        self.ours["report.json"] = report(self.audit, inputs)

    def _add(self, random: Random, audit: dict[str, Any], run: str) -> None:
        number = len(self.calls)
        content = json.dumps(some_trace(random)).encode()
        (self.folder / f"trace-{number}.json").write_bytes(content)
        arguments = ["--audit", "audit.md", "--trace", f"trace-{number}.json", "--task-id", "t", "--run-id", run]
        arguments += ["--measure", "tool_calls,capabilities,failure_cases", "--out-dir", "out"]
        kinds: tuple[ItemKind, ...] = ("tool", "capability", "failure_case")
        for kind in kinds:
            judgments = None
            if kind != "tool" and random.random() < 0.7:
                path = self.folder / f"{kind}-{number}.json"
                path.write_text(json.dumps(some_judgments(random, kind, audit, content)))
                arguments += [f"--{kind.replace('_', '-')}-judgments", path.name]
                judgments = read_judgments(path, path.name, self.audit, kind)
            subject = Subject("t", run, f"trace-{number}.json")
            measured = measure_trace(kind, self.audit, parse_trace(content), subject, judgments)
            place = f"out/task=t/run={run.replace('/', '%2F').replace(' ', '%20')}/{METHODS[kind]}"
            self.ours[f"{place}/coverage.json"] = measured.coverage
            self.ours[f"{place}/details.json"] = measured.details
        self.calls.append(("measure", arguments))


def comparable(document: dict[str, Any]) -> Any:
    """A document without the one hint that nobody has written down: the tools that an uncovered item calls for."""
    plain: dict[str, Any] = json.loads(json.dumps(document))
    for item in plain.get("uncovered_items", []):
        del item["generation"]["needed_tools"]
    return plain


@pytest.mark.parametrize("seed", range(12))
def test_both_write_the_same_documents(tmp_path: Path, seed: int) -> None:
    twins = Twins(tmp_path, Random(seed))
    (tmp_path / "calls.json").write_text(json.dumps(twins.calls))
    argv = [sys.executable, "-B", "-c", DRIVER, str(SCRIPTS)]
    ended = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for path, document in twins.ours.items():
        assert comparable(document) == comparable(json.loads((tmp_path / path).read_text())), path
