"""A worker that dies in the middle of an attempt: that attempt is unmeasured, and nothing else is lost."""

from typing import Any

import pytest

from tests.faults.session_lab import Lab, no_fault, words

pytestmark = pytest.mark.slow

AGENT = """
import ctypes, os, signal, time
from pathlib import Path

def act(request):
    way = request.task.params.get("way")
    if request.variant.id != "m1" or Path(__file__).with_name("mended").exists():
        way = None
    if way == "exit":
        os._exit(3)
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "segfault":
        ctypes.string_at(0)
    time.sleep(0.01)
    return 1.0
"""
WAYS = ["exit", "kill", "segfault"]
TASKS: list[str | dict[str, Any]] = ["t1", *({"id": way, "params": {"way": way}} for way in WAYS)]
COVER = "def measure(request):\n    return 0.5\n"
COVERAGE = [{"id": "half", "kind": "python", "measure": "cover:measure"}]


def test_each_way_to_die_is_a_failed_test_and_the_rest_goes_on(lab: Lab) -> None:
    lab.write("cover.py", COVER)
    lab.make(AGENT, tasks=TASKS, mutants=["m1", "m2"], attempts=2, coverage=COVERAGE)
    ended = lab.run_apart("experiment.yml", "-v", "-n2", "--junit-xml=junit.xml")
    assert ended.status == 1, ended
    no_fault(ended.out)
    assert ended.last_line.startswith("6 failed, 19 passed in "), ended
    assert lab.counts() == {"declared": 24, "passed": 18, "unmeasured": 6}
    kept = lab.attempts()
    assert len(kept) == len(lab.journal()) == 24
    died = {f"m1::{way}[{slot}]" for way in WAYS for slot in (1, 2)}
    for slot, record in kept.items():
        if slot in died:
            assert record["outcome"] == "unmeasured"
            assert record["error"]["type"] == "WorkerCrashed"
            assert "crashed while running" in record["error"]["message"]
        else:
            assert record["outcome"] == "scored"
    assert {slot for slot, word in words(ended.out).items() if word == "FAILED"} == died
    assert lab.requests()["half[pool]"]["value"] == 0.5
    assert "6 of 24 attempts are unmeasured" in " ".join(ended.out.split())
    assert 'failures="6"' in (lab.path / "junit.xml").read_text("utf-8")
    assert 'errors="0"' in (lab.path / "junit.xml").read_text("utf-8")

    lab.write("mended", "")
    assert lab.run("experiment.yml").ret == 0
    assert lab.counts() == {"declared": 24, "passed": 24, "reused": 18}
    assert lab.attempts()["baseline::t1[1]"] == kept["baseline::t1[1]"]
    assert len(lab.journal()) == 30


def test_what_no_worker_is_left_for_is_listed_as_missing(lab: Lab) -> None:
    tasks: list[str | dict[str, Any]] = ["t1", TASKS[1], *(f"later{number}" for number in range(6))]
    lab.make(AGENT, tasks=tasks, mutants=["m1"], attempts=1)
    ended = lab.run_apart("experiment.yml", "-n2", "--max-worker-restart=0")
    assert ended.status == 1, ended
    no_fault(ended.out)
    counts = lab.counts(partial=True)
    assert counts["unmeasured"] == 1
    assert counts["missing"] > 1
    assert sum(counts.values()) == 2 * counts["declared"] == 32
    assert f"{counts['missing']} of 16 attempts are missing: nothing is known of what became of them" in " ".join(
        ended.out.split()
    )
    assert not (lab.store / "summary.json").exists()
    finished = {slot: record for slot, record in lab.attempts().items() if record["outcome"] == "scored"}
    assert len(finished) == counts["passed"]

    lab.write("mended", "")
    assert lab.run("experiment.yml").ret == 0
    assert lab.counts() == {"declared": 16, "passed": 16, "reused": len(finished)}
    assert finished.items() <= lab.attempts().items()
