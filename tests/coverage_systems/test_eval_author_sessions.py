"""Whole sessions with ``eval-author``: attempts leave traces, requests are tests, answers are kept and reused."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.coverage_systems.eval_author_lab import CHAT, LOOKUP, MIXED, SCRIPTS, TICKET
from tests.faults.session_lab import Lab, lab, no_fault, words

__all__ = ["lab"]

AGENT = """
import json, os
request = json.load(open("request.json"))
baseline = request["variant"]["id"] == "baseline"
os.makedirs("agent")
open("agent/trajectory.json", "w").write(request["task"]["params"]["trace"] if baseline else "no trace")
json.dump({"scores": {"reward": 1.0 if baseline else 0.0}}, open("response.json", "w"))
"""
TASKS = [
    {"id": name, "params": {"trace": trace.decode()}}
    for name, trace in (("lookup", LOOKUP), ("ticket", TICKET), ("chat", CHAT))
]
SUBSETS = [{"id": f"s-{task['id']}", "tasks": [task["id"]]} for task in TASKS]
NOTING = "def main():\n    with open({log!r}, 'a') as log:\n        log.write(' '.join(sys.argv) + chr(10))\n"


class Audited:
    """An experiment with an audit, scripts that note their calls, and an interpreter that can be taken away."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.scripts = lab.path.parent / f"{lab.path.name}-scripts"
        self.interpreter = lab.path.parent / f"{lab.path.name}-python"
        self._log = lab.path.parent / f"{lab.path.name}-calls"
        shutil.copytree(SCRIPTS, self.scripts, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("measure.py", "report.py"):
            source = (SCRIPTS / name).read_text().replace("def main():\n", NOTING.format(log=str(self._log)), 1)
            (self.scripts / name).write_text(source)
        self.interpreter.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        self.interpreter.chmod(0o755)
        shutil.copy(MIXED, lab.path / "audit.md")

    def make(self, *, tasks: list[dict[str, Any]] | None = None, agent: str = AGENT, **keys: Any) -> None:
        entry = {
            "id": "audit",
            "kind": "eval-author",
            "audit": "audit.md",
            "scripts": str(self.scripts),
            "interpreter": str(self.interpreter),
            "score_scope": "tool",
            **keys,
        }
        coverage = [{key: value for key, value in entry.items() if value is not None}]
        self.lab.make(
            agent, command=True, tasks=tasks or TASKS, mutants=["m-secret"], subsets=SUBSETS, coverage=coverage,
            analysis={"resamples": 99},
        )  # fmt: skip

    def run(self, *args: str) -> tuple[int, str]:
        ended = self.lab.run("experiment.yml", "-v", *args)
        output = ended.stdout.str() + ended.stderr.str()
        no_fault(output)
        return int(ended.ret), output

    def calls(self) -> int:
        """How often a script was called since the last time."""
        if not self._log.exists():
            return 0
        count = len(self._log.read_text().splitlines())
        self._log.unlink()
        return count

    def values(self) -> list[float | None]:
        case = self.lab.summary()["cases"]["c"]
        found = [case["subsets"][subset["id"]] for subset in SUBSETS]
        return [entry["coverage"]["audit"]["value"] for entry in (*found, case["pool"])]


@pytest.fixture
def audited(lab: Lab) -> Audited:
    return Audited(lab)


def test_a_session_its_store_and_the_next_session(audited: Audited) -> None:
    audited.make()
    status, output = audited.run()
    assert status == 0, output
    requests = {name: word for name, word in words(output).items() if name.startswith("coverage::")}
    assert requests == dict.fromkeys(
        [f"coverage::audit[{subset}]" for subset in ("s-lookup", "s-ticket", "s-chat", "pool")], "PASSED"
    )
    assert audited.values() == [0.5, 0.5, 0.0, 1.0]
    assert audited.calls() == 3 + 4  # each trace once, a report for each request

    kept = audited.lab.store / "coverage/c/audit/s-lookup"
    names = {str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()}
    trial = audited.lab.attempts()["baseline::lookup[1]"]["trial_id"]
    assert {"audit.md", "report.json", "receipt.json", "response.json", "goals.json", "request.json"} <= names
    assert f"measurements/task=lookup/run={trial}/tool_calls/coverage.json" in names
    assert not [name for name in names if name.startswith("evidence/")]  # it is in the store already
    assert set(json.loads((kept / "receipt.json").read_text())["files"]) == names - {"receipt.json"}
    assert json.loads((kept / "goals.json").read_text()) == {
        "universe": ["customer.lookup", "ticket.create"],
        "by_task": {"lookup": ["customer.lookup"]},
    }
    assert not [name for name in names if b"m-secret" in (kept / name).read_bytes()]

    status, output = audited.run()
    assert status == 0, output
    assert set(words(output).values()) == {"REUSED"}
    assert audited.calls() == 0
    assert audited.values() == [0.5, 0.5, 0.0, 1.0]


def test_nothing_is_needed_where_nothing_is_run(audited: Audited) -> None:
    audited.make()
    assert audited.run()[0] == 0
    shutil.rmtree(audited.scripts)
    audited.interpreter.unlink()
    (audited.lab.path / "audit.md").unlink()
    (audited.lab.path / "agent.py").unlink()
    status, output = audited.run("--metricbench-cached-only")
    assert status == 0, output
    assert set(words(output).values()) == {"REUSED"}
    assert audited.values() == [0.5, 0.5, 0.0, 1.0]
    status, output = audited.run()
    assert status == 4
    assert f"coverage[0].scripts: the folder {audited.scripts} does not exist; get Eval Author's audit skill" in output
    assert f"coverage[0].interpreter: the interpreter {audited.interpreter} does not exist; make one with" in output


def test_an_edited_audit_or_script_is_measured_again(audited: Audited) -> None:
    """Upstream's files carry no digest of the audit, and an edit that keeps its counts passes its checks."""
    audited.make()
    audited.run()
    text = (audited.lab.path / "audit.md").read_text()
    (audited.lab.path / "audit.md").write_text(text.replace("customer.lookup", "customer.search"))
    status, output = audited.run("--metricbench-cached-only")
    assert status == 1
    assert "the settings of its system have changed" in output
    status, output = audited.run()
    assert status == 0, output
    assert audited.values() == [0.0, 0.5, 0.0, 0.5]
    audited.calls()
    with (audited.scripts / "report.py").open("a") as script:
        script.write("\n# another version\n")
    audited.run()
    assert audited.calls() == 3 + 4


def test_a_request_that_fails(audited: Audited) -> None:
    broken = [*TASKS[:2], {"id": "chat", "params": {"trace": "{"}}]
    audited.make(tasks=broken)
    status, output = audited.run()
    assert status == 1
    found = words(output)
    assert [found[f"coverage::audit[{subset}]"] for subset in ("s-lookup", "s-ticket", "s-chat", "pool")] == [
        "PASSED", "PASSED", "FAILED", "FAILED",
    ]  # fmt: skip
    said = audited.lab.requests()["audit[s-chat]"]["error"]
    trial = audited.lab.attempts()["baseline::chat[1]"]["trial_id"]
    assert said.startswith(
        f"measure.py for task chat, trial {trial} ended with exit status 1: the trace is not right (error_type trace): "
        f"evidence/chat/{trial}/agent/trajectory.json is not JSON"
    )
    assert f"coverage c audit s-chat: measure.py for task chat, trial {trial} ended with exit status 1" in output
    failed = Path(said.rpartition("kept in ")[2])
    assert failed.name.startswith("failed-s-chat-")
    left = {str(path.relative_to(failed)) for path in failed.rglob("*") if path.is_file()}
    assert f"evidence/chat/{trial}/agent/trajectory.json" in left
    assert f"logs/measure/chat/{trial}.stdout" in left
    assert "receipt.json" not in left
    assert audited.lab.requests()["audit[s-lookup]"]["value"] == 0.5


def test_a_missing_judgment_is_a_result(audited: Audited) -> None:
    audited.make(score_scope="capability")
    status, output = audited.run()
    assert status == 0, output
    record = audited.lab.requests()["audit[s-chat]"]
    trial = audited.lab.attempts()["baseline::chat[1]"]["trial_id"]
    assert (record["outcome"], record["value"]) == ("measured", None)
    assert record["reason"] == (
        "a judgment is missing: evidence 0 (user_intent) of the capability account_recovery in task chat, "
        f"trial {trial}"
    )
    assert "a judgment is missing" in output


AUTHOR = """
import os, shutil, sys
if os.environ.get("CHANGE"):
    for parent, _, files in os.walk("evidence"):
        for name in files:
            open(os.path.join(parent, name), "a").write(" ")
shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "audit.md"), "audit.md")
"""


def test_an_author_that_changes_evidence(audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    audited.lab.write("author.py", AUTHOR)
    audited.make(audit=None, author=["{python}", "author.py"], env={"CHANGE": None})
    monkeypatch.setenv("CHANGE", "")
    assert audited.run()[0] == 0
    assert audited.values() == [0.5, 0.5, 0.0, 1.0]
    monkeypatch.setenv("CHANGE", "1")
    shutil.rmtree(audited.lab.store / "coverage")
    assert audited.run()[0] == 1
    assert audited.lab.requests()["audit[s-chat]"]["error"].splitlines()[0].endswith("trajectory.json was changed")
