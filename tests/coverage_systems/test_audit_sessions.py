"""Whole sessions with ``audit``: a broken audit is told when it is collected, answers are kept, reused and stale."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.faults.session_lab import Lab, lab, no_fault, words

__all__ = ["lab"]

SAMPLES = Path(__file__).parent / "samples" / "audit"
TRACES = {
    name: (SAMPLES / f"trials/{trial}/agent/trajectory.json").read_text("utf-8")
    for name, trial in (("lookup", "lookup__aaa"), ("ticket", "ticket__bbb"), ("chat", "chat__ccc"))
}
TASKS = [{"id": name, "params": {"trace": trace}} for name, trace in TRACES.items()]
SUBSETS = [{"id": f"s-{name}", "tasks": [name]} for name in TRACES]
AGENT = """
import hashlib, json, os
request = json.load(open("request.json"))
baseline = request["variant"]["id"] == "baseline"
trace = request["task"]["params"]["trace"].encode() if baseline else b"no trace"
os.makedirs("agent")
open("agent/trajectory.json", "wb").write(trace)
for kind, name, word, text in (
    ("capability", "account_recovery", "user_intent", "User is trying to recover account access."),
    ("failure_case", "unverified_identity", "output", "Agent refuses direct recovery."),
):
    judgment = {kind: name, "evidence_index": 0, "kind": word, "description": text}
    judgment |= {"status": "satisfied", "confidence": "high", "rationale": ""}
    content = {"schema": f"nemo.eval_author.audit_{kind}_judgments.v1", "judgments": [judgment]}
    content["trace_sha256"] = "sha256:" + hashlib.sha256(trace).hexdigest()
    json.dump(content, open(f"agent/{kind.replace('_', '-')}-judgments.json", "w"))
json.dump({"scores": {"reward": 1.0 if baseline else 0.0}}, open("response.json", "w"))
"""
NO_JUDGE = AGENT[: AGENT.index("for kind")] + AGENT[AGENT.rindex("json.dump") :]


class Audited:
    """An experiment with an audit."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.audit = lab.path / "audit.md"
        shutil.copy(SAMPLES / "audit-mixed.md", self.audit)

    def make(self, *, agent: str = AGENT, **keys: Any) -> None:
        entries = [{"id": "audit", "kind": "audit", "audit": "audit.md", **keys}]
        self.lab.make(
            agent, command=True, tasks=TASKS, mutants=["m-secret"], subsets=SUBSETS, coverage=entries,
            analysis={"resamples": 99},
        )  # fmt: skip

    def run(self, *args: str) -> tuple[int, str]:
        ended = self.lab.run("experiment.yml", "-v", *args)
        output = ended.stdout.str() + ended.stderr.str()
        no_fault(output)
        return int(ended.ret), output

    def scores(self) -> list[dict[str, Any]]:
        case = self.lab.summary()["cases"]["c"]
        found = [case["subsets"][subset["id"]] for subset in SUBSETS]
        return [entry["coverage"]["audit"] for entry in (*found, case["pool"])]

    def requests(self, output: str) -> set[str]:
        return {word for name, word in words(output).items() if name.startswith("coverage::")}


@pytest.fixture
def audited(lab: Lab) -> Audited:
    return Audited(lab)


def test_a_session_the_next_one_and_a_changed_audit(audited: Audited) -> None:
    audited.make()
    status, output = audited.run()
    assert status == 0, output
    assert [score["value"] for score in audited.scores()] == [0.75, 0.5, 0.25, 1.0]
    pool = audited.lab.store / "coverage/c/audit/pool"
    names = {path.name for path in pool.iterdir()}
    assert names == {"request.json", "response.json", "goals.json", "receipt.json", "report.json", "uncovered.json"}
    assert "m-secret" not in "".join(path.read_text() for path in pool.iterdir())

    status, output = audited.run()
    assert (status, audited.requests(output)) == (0, {"REUSED"})
    audited.audit.unlink()
    status, output = audited.run("--metricbench-cached-only")
    assert (status, audited.requests(output)) == (0, {"REUSED"})

    text = (SAMPLES / "audit-mixed.md").read_text().replace("ticket.create", "ticket.close")
    audited.audit.write_text(text)
    status, output = audited.run()
    assert (status, audited.requests(output)) == (0, {"PASSED"})
    assert [score["value"] for score in audited.scores()] == [0.75, 0.25, 0.25, 0.75]


def test_judgments_beside_the_experiment_and_none(audited: Audited) -> None:
    audited.make(agent=NO_JUDGE, score_scope="capability")
    status, output = audited.run()
    assert status == 0, output
    digest = hashlib.sha256(TRACES["lookup"].encode()).hexdigest()
    reason = audited.scores()[0]["reason"]
    assert reason.startswith("capability 'account_recovery', evidence 0 (user_intent): not judged for the trace")
    assert digest in reason
    assert [score["value"] for score in audited.scores()] == [None] * 4

    shutil.copy(SAMPLES / "capability-judgments.json", audited.lab.path / "lookup.judgments.json")
    audited.make(agent=NO_JUDGE, score_scope="capability", judgments=["*.judgments.json"])
    status, output = audited.run()
    assert status == 0, output
    assert [score["value"] for score in audited.scores()] == [1.0, None, None, None]


def test_a_broken_audit_is_told_when_the_experiment_is_collected(audited: Audited) -> None:
    audited.make()
    audited.audit.write_text((SAMPLES / "audit-mixed.md").read_text().replace("kind: capability", "kind: skill"))
    status, output = audited.run()
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "audit.md:29:11: items[2].kind: is the text 'skill'; the kinds are tool, capability, failure_case" in output


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"audit": "none.md"}, "coverage[0].audit: 'none.md' does not exist; it is looked for in "),
        ({"score_scope": "tools"}, "coverage[0].score_scope: is the text 'tools'; 'overall', 'tool', 'capability' or "),
        ({"methods": ["tools"]}, "coverage[0].methods[0]: is the text 'tools'; 'tool_calls', 'capabilities' or "),
        ({"method": ["tool_calls"]}, "coverage[0].method: is an unknown key; did you mean 'methods'?"),
        ({"judgments": ["x*.json"]}, "coverage[0].judgments: no file matches 'x*.json'; it is looked for in "),
        ({"judgments": ["bad.json"]}, "bad.json: schema is None; nemo.eval_author.audit_capability_judgments.v1 or "),
    ],
)
def test_wrong_keys_are_told_at_their_place(audited: Audited, keys: dict[str, Any], message: str) -> None:
    (audited.lab.path / "bad.json").write_text("{}")
    audited.make(**keys)
    status, output = audited.run()
    assert status == pytest.ExitCode.USAGE_ERROR
    assert message in output


def test_a_trace_that_is_not_right_fails_its_requests_and_no_others(audited: Audited) -> None:
    broken = TRACES["chat"].replace('"step_id": 2', '"step_id": 4')
    audited.make(agent=AGENT.replace('["trace"]', f'["trace"].replace({TRACES["chat"]!r}, {broken!r})'))
    status, output = audited.run()
    assert status == 1
    outcomes = {name: word for name, word in words(output).items() if name.startswith("coverage::")}
    assert outcomes == {
        "coverage::audit[s-lookup]": "PASSED",
        "coverage::audit[s-ticket]": "PASSED",
        "coverage::audit[s-chat]": "FAILED",
        "coverage::audit[pool]": "FAILED",
    }
    assert "trajectory.json: trajectory.steps[1].step_id is 4; 2 is expected: steps are counted from 1" in output
    assert json.loads((audited.lab.store / "summary.json").read_text())["cases"]["c"]["pool"]["coverage"]["audit"][
        "reason"
    ]
