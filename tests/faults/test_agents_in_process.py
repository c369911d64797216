"""Agents and verifiers in this process that end it, or try to: the session is not theirs."""

import pytest

from tests.faults.session_lab import Lab, no_fault, words

AGENT = """
import asyncio, os, signal, sys, threading, time

import pytest

def act(request):
    task = request.task.id
    if task == "exits":
        sys.exit(0)
    if task == "exits-session":
        pytest.exit("enough", returncode=7)
    if task == "fails-test":
        pytest.fail("as a test would")
    if task == "skips":
        pytest.skip("as a test would")
    if task == "generator-exit":
        raise GeneratorExit
    if task == "cancelled":
        raise asyncio.CancelledError
    if task == "recursion":
        return act(request)
    if task == "no-text":
        raise Wordless()
    if task == "surrogate":
        raise RuntimeError("\\udcff")
    if task == "group":
        raise BaseExceptionGroup("several", [SystemExit(1), ValueError("one")])
    if task == "moves":
        os.chdir(request.workspace)
    if task == "thread":
        threading.Thread(target=time.sleep, args=(0.2,)).start()
    return 1.0

class Wordless(Exception):
    def __str__(self):
        raise ValueError("no words")

def verify(request, output):
    if request.variant.id == "m1":
        sys.exit("the judge leaves")
    return {"reward": output}
"""
DIES = (
    *("exits", "exits-session", "fails-test", "skips", "generator-exit", "cancelled", "recursion", "no-text"),
    *("surrogate", "group"),
)


def test_no_agent_ends_the_session(lab: Lab) -> None:
    lab.make(AGENT, tasks=["first", *DIES, "moves", "thread", "last"], mutants=[])
    result = lab.run("experiment.yml", "-v")
    assert result.ret == 0, result.stdout.str()
    no_fault(result.stdout.str())
    shown = words(result.stdout.str())
    assert {slot.removeprefix("baseline::") for slot, word in shown.items() if word == "DIED"} == {
        f"{task}[1]" for task in DIES
    }
    assert lab.counts() == {"declared": 14, "passed": 4, "died": 10}
    kept = lab.attempts()
    assert kept["baseline::exits-session[1]"]["error"]["message"].startswith("enough")
    assert all(kept[f"baseline::{task}[1]"]["error"]["phase"] == "agent" for task in DIES)


def test_no_verifier_either(lab: Lab) -> None:
    lab.make(AGENT, runner={"verifier": "agent:verify"})
    result = lab.run("experiment.yml")
    assert result.ret == 1
    no_fault(result.stdout.str())
    assert lab.counts() == {"declared": 4, "passed": 2, "unmeasured": 2}
    error = lab.attempts()["m1::t1[1]"]["error"]
    assert (error["type"], error["phase"]) == ("SystemExit", "verifier")


INTERRUPTED = """
import os, signal
from pathlib import Path

def act(request):
    if request.task.id == "stops" and not Path(__file__).with_name("mended").exists():
        HOW
    return 1.0
"""


@pytest.mark.parametrize(
    "how", ["raise KeyboardInterrupt", "os.kill(os.getpid(), signal.SIGINT)", "os.kill(os.getpid(), signal.SIGTERM)"]
)
def test_an_interrupt_in_an_agent_stops_the_session_in_order(lab: Lab, how: str) -> None:
    lab.make(INTERRUPTED.replace("HOW", how), tasks=["t1", "stops", "t2"], mutants=["m1"])
    result = lab.pytester.runpytest_inprocess("experiment.yml", "-p", "no:randomly", no_reraise_ctrlc=True)
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*= metricbench: lab =*"])
    finished = lab.attempts()
    assert set(finished) == {"baseline::t1[1]"}
    assert lab.counts(partial=True) == {"declared": 6, "passed": 1, "missing": 5}
    lab.write("mended", "")
    again = lab.run("experiment.yml")
    assert again.ret == 0
    assert lab.attempts()["baseline::t1[1]"] == finished["baseline::t1[1]"]
    assert lab.counts() == {"declared": 6, "passed": 6, "reused": 1}


@pytest.mark.slow
def test_an_interrupt_in_a_worker_stops_the_session_too(lab: Lab) -> None:
    lab.make(INTERRUPTED.replace("HOW", "raise KeyboardInterrupt"), tasks=["t1", "stops", "t2"], mutants=["m1"])
    ended = lab.run_apart("experiment.yml", "-n2")
    assert ended.status == 2, ended
    assert "INTERNALERROR" not in ended.out
    finished = lab.attempts()
    assert "baseline::t1[1]" in finished
    lab.write("mended", "")
    again = lab.run("experiment.yml")
    assert again.ret == 0
    scored = [slot for slot, record in finished.items() if record["outcome"] == "scored"]
    assert lab.counts() == {"declared": 6, "passed": 6, "reused": len(scored)}
