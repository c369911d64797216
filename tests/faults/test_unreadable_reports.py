"""What arrives from a worker and cannot be read is a missing attempt, and never a fault of the session."""

import pytest

from tests.faults.session_lab import Lab, no_fault

pytestmark = pytest.mark.slow

AGENT = "def act(request):\n    return 1.0\n"
SPOIL = """
import json
import pytest

def other_attempt(wire):
    message = json.loads(wire)
    message["records"][0]["attempt"] = 7
    return json.dumps(message)

SPOILED = {
    "torn": lambda wire: wire[:40],
    "empty": lambda wire: "{}",
    "number": lambda wire: 5,
    "mapping": lambda wire: json.loads(wire),
    "none": lambda wire: None,
    "text": lambda wire: "passed",
    "list": lambda wire: "[]",
    "huge": lambda wire: wire[:-1] + " " * 1_000_000,
    "other-attempt": other_attempt,
    "nothing-new": lambda wire: json.dumps({"status": "passed", "records": []}),
    "wrong-status": lambda wire: wire.replace('"passed"', '"splendid"', 1),
    "hostile": lambda wire: wire.replace('"hostile"', '"../../hostile"'),
}

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    task = item.name.partition("[")[0]
    if call.when == "call" and task in SPOILED:
        report.metricbench = SPOILED[task](report.metricbench)
    return report

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_report_to_serializable(report):
    data = yield
    if "::never-sent[" in getattr(report, "nodeid", "") and report.when == "call":
        data["when"] = "setup"
    return data
"""
TASKS = (
    *("torn", "empty", "number", "mapping", "none", "text", "list", "huge", "other-attempt", "nothing-new"),
    *("wrong-status", "hostile", "never-sent"),
)


def test_each_is_missing_and_the_rest_is_kept(lab: Lab) -> None:
    lab.write("conftest.py", SPOIL)
    lab.make(AGENT, tasks=["good", *TASKS], mutants=["m1"])
    ended = lab.run_apart("experiment.yml", "-n2")
    assert ended.status == 1, ended
    no_fault(ended.out)
    assert set(lab.attempts()) == {"baseline::good[1]", "m1::good[1]"}
    assert lab.counts(partial=True) == {"declared": 28, "passed": 2, "missing": 26}
    assert "26 of 28 attempts are missing" in " ".join(ended.out.split())
    assert "baseline::torn[1]: what arrived cannot be read" in ended.out
    assert not (lab.path / "hostile").exists()

    lab.write("conftest.py", "")
    assert lab.run("experiment.yml").ret == 0
    assert lab.counts() == {"declared": 28, "passed": 28, "reused": 2}
