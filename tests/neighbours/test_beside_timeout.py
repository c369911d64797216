"""pytest-timeout ends an item from outside: its attempt is on record, and whoever was slow is gone."""

from typing import Any

import pytest

from tests.faults.session_lab import Lab, alive, no_fault

pytest.importorskip("pytest_timeout")
pytestmark = pytest.mark.slow

FUNCTION = """
import time

def act(request):
    if request.task.params.get("slow"):
        time.sleep(60)
    return 1.0
"""
PROGRAM = """
import json, os, time
from pathlib import Path

request = json.loads(Path("request.json").read_text())
if request["task"]["params"].get("slow"):
    Path("pid").write_text(str(os.getpid()))
    time.sleep(60)
Path("response.json").write_text('{"scores": {"reward": 1}}')
"""
TASKS = ["quick", {"id": "slow", "params": {"slow": True}}]


def make(lab: Lab, kind: str, **keys: Any) -> None:
    agent = PROGRAM if kind == "command" else FUNCTION
    lab.make(agent, command=kind == "command", **{"tasks": TASKS, "mutants": [], **keys})


def gone(lab: Lab) -> bool:
    pids = [int(path.read_text()) for path in lab.store.glob("**/pid")]
    return len(pids) == 1 and not alive(pids[0])


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.benchmark)], ids=["plain", "n2"])
def test_a_slow_program_is_stopped_and_unmeasured(lab: Lab, workers: list[str]) -> None:
    make(lab, "command", retries=2)
    ended = lab.run_apart("experiment.yml", "--timeout=2", *workers, beside=["timeout"])
    assert ended.status == 1, ended
    assert ended.seconds < 30
    no_fault(ended.out)
    assert ended.last_line.startswith("1 failed, 1 passed in "), ended
    kept = lab.attempts()
    assert kept["baseline::quick[1]"]["outcome"] == "scored"
    assert kept["baseline::slow[1]"]["outcome"] == "unmeasured"
    assert "pytest-timeout" in kept["baseline::slow[1]"]["error"]["message"]
    assert lab.counts() == {"declared": 2, "passed": 1, "unmeasured": 1}
    assert gone(lab)
    assert len(lab.journal()) == 2  # not tried again: the clock of pytest-timeout runs once an item


def test_a_slow_function_is_interrupted_and_on_record(lab: Lab) -> None:
    make(lab, "python")
    ended = lab.run_apart("experiment.yml", "--timeout=1", beside=["timeout"])
    assert ended.seconds < 30
    no_fault(ended.out)
    kept = lab.attempts()
    assert kept["baseline::quick[1]"]["outcome"] == "scored"
    assert kept["baseline::slow[1]"]["outcome"] in ("died", "unmeasured")
    assert "pytest-timeout" in kept["baseline::slow[1]"]["error"]["message"]


def test_the_thread_method_ends_the_process_and_the_next_session_goes_on(lab: Lab) -> None:
    make(lab, "python")
    ended = lab.run_apart("experiment.yml", "--timeout=1", "--timeout-method=thread", beside=["timeout"])
    assert ended.status == 1, ended  # os._exit in the middle: nothing more could be said
    finished = lab.attempts()
    assert set(finished) == {"baseline::quick[1]"}
    make(lab, "python", tasks=["quick", {"id": "slow", "params": {"slow": False}}])
    assert lab.run("experiment.yml").ret == 0
    assert lab.attempts()["baseline::quick[1]"] == finished["baseline::quick[1]"]
    assert lab.counts() == {"declared": 2, "passed": 2, "reused": 1}


def test_the_thread_method_ends_a_worker_and_its_attempt_is_unmeasured(lab: Lab) -> None:
    make(lab, "python")
    arguments = ("experiment.yml", "--timeout=2", "--timeout-method=thread", "-n2")
    ended = lab.run_apart(*arguments, beside=["timeout"])
    assert ended.status == 1, ended
    no_fault(ended.out)
    assert lab.attempts()["baseline::slow[1]"]["error"]["type"] == "WorkerCrashed"
    assert lab.counts() == {"declared": 2, "passed": 1, "unmeasured": 1}


def test_the_coverage_phase_is_under_no_limit_of_items(lab: Lab) -> None:
    lab.write("cover.py", "import time\n\ndef measure(request):\n    time.sleep(1.5)\n    return 0.5\n")
    coverage = [{"id": "slow", "kind": "python", "measure": "cover:measure"}]
    lab.make(FUNCTION, tasks=["quick"], mutants=[], coverage=coverage)
    ended = lab.run_apart("experiment.yml", "--timeout=1", beside=["timeout"])
    assert ended.status == 0, ended
    assert lab.requests()["slow[pool]"]["value"] == 0.5


def test_a_slow_verifier_that_scores_kept_work_again(lab: Lab) -> None:
    """The agent's work is not run again for it, and the attempt is on record all the same."""
    lab.write("verify.py", "raise SystemExit('out of order')\n")
    verified = {"verifier": ["{python}", "verify.py"]}
    make(lab, "command", tasks=["quick"], runner=verified)
    assert lab.run("experiment.yml").ret == 1
    lab.write("verify.py", "import time\n\ntime.sleep(60)\n")
    ended = lab.run_apart("experiment.yml", "--timeout=2", beside=["timeout"])
    assert ended.status == 1, ended
    assert ended.seconds < 30
    no_fault(ended.out)
    assert "pytest-timeout" in lab.attempts()["baseline::quick[1]"]["error"]["message"]
    lab.write("verify.py", "open('response.json', 'w').write('{\"scores\": {\"reward\": 1}}')\n")
    assert lab.run("experiment.yml").ret == 0
    assert len({line["trial_id"] for line in lab.journal()}) == 1  # one run of the agent
