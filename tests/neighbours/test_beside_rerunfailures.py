"""pytest-rerunfailures runs a failed item again: that is the attempt's next try, and a second attempt nowhere."""

from typing import Any

import pytest

from tests.faults.session_lab import Lab, no_fault, words

pytest.importorskip("pytest_rerunfailures")

AGENT = """
from pathlib import Path

def act(request):
    return {"reward": 1.0}

def verify(request, output):
    tried = Path(__file__).with_name(f"tried-{request.variant.id}-{request.task.id}-{request.attempt}")
    tries = len(tried.read_text()) + 1 if tried.exists() else 1
    tried.write_text("x" * tries)
    if tries <= request.task.params.get("fails", 0):
        raise RuntimeError("the judge is out")
    return output
"""
TASKS: list[str | dict[str, Any]] = [
    "good",
    {"id": "once", "params": {"fails": 1}},
    {"id": "always", "params": {"fails": 99}},
]
RERUN = ("experiment.yml", "-v", "--reruns", "2")


@pytest.fixture(params=[[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])
def workers(request: pytest.FixtureRequest) -> list[str]:
    given: list[str] = request.param
    return given


def test_a_rerun_is_a_second_attempt_nowhere(lab: Lab, workers: list[str]) -> None:
    lab.make(AGENT, tasks=TASKS, attempts=2, runner={"verifier": "agent:verify"})
    ended = lab.run_apart(*RERUN, *workers, beside=["rerunfailures"])
    assert ended.status == 1, ended
    no_fault(ended.out)
    assert ended.last_line.startswith("4 failed, 8 passed, 12 rerun in "), ended
    assert lab.counts() == {"declared": 12, "passed": 8, "unmeasured": 4}
    assert lab.entries() == {
        f"{variant}::{task}": 0 if task == "always" else 2
        for variant in ("baseline", "m1")
        for task in ("good", "once", "always")
    }
    tries = {"good": 1, "once": 2, "always": 3}
    for slot, record in lab.attempts().items():  # which also holds that each try names the one before it
        made = [line for line in lab.journal() if f"{line['variant']}::{line['task']}[{line['attempt']}]" == slot]
        assert len(made) == tries[record["task"]], slot
        assert made[-1]["outcome"] == ("unmeasured" if record["task"] == "always" else "scored")


def test_what_was_measured_by_a_rerun_is_reused(lab: Lab) -> None:
    lab.make(AGENT, tasks=TASKS[:2], attempts=1, runner={"verifier": "agent:verify"})
    assert lab.run(*RERUN, beside=["rerunfailures"]).ret == 0
    again = lab.run(*RERUN, beside=["rerunfailures"])
    assert again.ret == 0
    assert set(words(again.stdout.str()).values()) == {"REUSED"}
    assert len(lab.journal()) == 6  # two of them first tries that failed


@pytest.mark.slow
def test_a_crashed_attempt_is_run_again_by_another_worker(lab: Lab) -> None:
    crashing = AGENT.replace('raise RuntimeError("the judge is out")', "__import__('os')._exit(3)")
    lab.make(crashing, tasks=TASKS, mutants=[], attempts=1, runner={"verifier": "agent:verify"})
    ended = lab.run_apart(*RERUN, "-n2", beside=["rerunfailures"])
    assert ended.status == 1, ended
    no_fault(ended.out)
    assert lab.counts() == {"declared": 3, "passed": 2, "unmeasured": 1}
    kept = lab.attempts()
    assert kept["baseline::once[1]"]["outcome"] == "scored"
    assert kept["baseline::always[1]"]["error"]["type"] == "WorkerCrashed"
