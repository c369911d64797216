"""A changed or failed verifier scores what is kept again: the agent's work is paid for and never thrown away."""

import json
import os
import signal
from typing import Any

import pytest

from tests.durability.durability_lab import AGENT, VERIFIER, Lab, key, no_fault

ATTEMPTS = 24
SCORED = 22
"""The two attempts of m2 on t3 die."""
OTHER_VERIFIER = VERIFIER.replace("$(cat answer.txt)", "$((1 - $(cat answer.txt)))")


def chained(lab: Lab) -> dict[str, list[dict[str, Any]]]:
    """``variant::task[slot]`` -> its records; each names the one before it."""
    chains: dict[str, list[dict[str, Any]]] = {}
    for record in lab.lines():
        chain = chains.setdefault(key(record), [])
        assert record["supersedes"] == (chain[-1]["trial_id"] if chain else None)
        chain.append(record)
    return chains


def first_run(lab: Lab, **changed: Any) -> dict[str, dict[str, Any]]:
    lab.make(**changed)
    ended = lab.run_here()
    assert ended.status == 0, ended
    before = lab.attempts()
    assert len(before) == ATTEMPTS
    lab.forget()
    return before


def change_script(lab: Lab) -> None:
    lab.write("verify.sh", OTHER_VERIFIER)


def change_argv(lab: Lab) -> None:
    lab.write("judge.sh", OTHER_VERIFIER)
    lab.define(runner={"verifier": ["/bin/sh", "judge.sh"]})


def change_argument(lab: Lab) -> None:
    lab.define(runner={"verifier": ["/bin/sh", "verify.sh", "strict"]})


@pytest.mark.parametrize("change", [change_script, change_argv, change_argument])
def test_a_changed_verifier_runs_no_agent(lab: Lab, change: Any) -> None:
    before = first_run(lab)
    change(lab)
    ended = lab.run_here()
    assert ended.status in (0, 1), ended
    no_fault(ended.out)
    assert lab.noted().total() == 0
    assert lab.noted("verified.txt").total() == SCORED
    after = lab.attempts()
    for name, old in before.items():
        new = after[name]
        if old["outcome"] == "died":
            assert new == old
            continue
        assert new["trial_id"] == new["supersedes"] == old["trial_id"]
        assert new["fingerprint"] == old["fingerprint"]
        assert new["verifier"] != old["verifier"]
        if change is not change_argument:
            assert new["scores"]["reward"] == 1 - old["scores"]["reward"]
        folder = lab.store / "attempts/c" / old["variant"] / old["task"] / new["folder"]
        assert (folder / "trace.txt").read_text() == "a trace of the agent\n"
        assert json.loads((folder / "request.json").read_text())["workspace"] == str(folder)
        kept = lab.store / "stale/c" / old["variant"] / old["task"] / old["trial_id"]
        assert json.loads((kept / "response.json").read_text())["scores"] == old["scores"]
        assert not (lab.store / "attempts/c" / old["variant"] / old["task"] / old["trial_id"]).exists()
    chained(lab)
    lab.forget()
    assert lab.run_here().status == ended.status
    assert (lab.noted() + lab.noted("verified.txt")).total() == 0
    assert lab.left("interrupted") == set()
    assert lab.summary()["counts"]["reused"] == ATTEMPTS


@pytest.mark.parametrize(
    "broken",
    ["exit 1\n", "echo no > response.json\n", ": it writes nothing\n", "echo '{\"scores\": {}}' > response.json\n"],
    ids=["exit status", "no json", "no file", "no score"],
)
def test_a_failed_verifier_that_was_mended(lab: Lab, broken: str) -> None:
    lab.make()
    lab.write("verify.sh", broken)
    ended = lab.run_here()
    assert ended.status == 1, ended
    executed = lab.noted()
    assert executed.total() == ATTEMPTS
    lab.write("verify.sh", VERIFIER)
    ended = lab.run_here()
    assert ended.status == 0, ended
    assert lab.noted() == executed
    assert lab.noted("verified.txt").total() == SCORED
    assert {record["outcome"] for record in lab.attempts().values()} == {"scored", "died"}
    chained(lab)


def test_a_verifier_that_failed_and_did_not_change_is_asked_again(lab: Lab) -> None:
    """A judge that was out of reach: nothing of the experiment changed, and only the judge is asked again."""
    lab.make()
    lab.write("verify.sh", '[ -f "${0%/*}/reachable" ] || exit 7\n' + VERIFIER)
    assert lab.run_here().status == 1
    executed = lab.noted()
    lab.write("reachable", "")
    assert lab.run_here().status == 0
    assert lab.noted() == executed


def test_retries_of_a_failing_verifier_run_no_agent(lab: Lab) -> None:
    """Every second call of the verifier for a workspace's trial fails."""
    flaky = 'here=${0%/*}; id=${PWD##*/}; id=${id%%.*}\nif mkdir "$here/asked-$id" 2>/dev/null; then exit 9; fi\n'
    lab.make(retries=2)
    lab.write("verify.sh", flaky + VERIFIER)
    ended = lab.run_here()
    assert ended.status == 0, ended
    assert lab.noted().total() == ATTEMPTS
    assert lab.noted("verified.txt").total() == SCORED
    chains = chained(lab)
    assert sorted({len(chain) for chain in chains.values()}) == [1, 2]
    assert all(chain[0]["trial_id"] == chain[-1]["trial_id"] for chain in chains.values())


def test_what_an_agent_can_run_can_still_be_run(lab: Lab) -> None:
    """Programs that an agent wrote are programs in the copy, too."""
    lab.make()
    lab.write("agent.sh", AGENT + "printf '#!/bin/sh\\necho 1\\n' > program; chmod +x program\n")
    calling = 'echo "{\\"scores\\": {\\"reward\\": $(./program)}}" > response.json\n'
    lab.write("verify.sh", calling)
    assert lab.run_here().status == 0
    lab.forget()
    lab.write("verify.sh", "true\n" + calling)
    assert lab.run_here().status == 0
    assert lab.noted().total() == 0


def test_no_verifier_any_more(lab: Lab) -> None:
    """Without one the agent must give the scores itself, so it runs."""
    first_run(lab)
    scores = 'echo \'{"scores": {"reward": 1}}\' > response.json\n'
    lab.write("agent.sh", AGENT.replace("exit 3", "echo 1 > answer.txt") + scores)
    lab.define(runner={"verifier": None})
    assert lab.run_here().status == 0
    assert lab.noted().total() == ATTEMPTS
    assert len(lab.left("stale")) == ATTEMPTS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "workers"),
    [
        (ATTEMPTS, 0),
        (ATTEMPTS + 9, 2),
        pytest.param(ATTEMPTS, 2, marks=pytest.mark.benchmark),
        pytest.param(ATTEMPTS + 9, 0, marks=pytest.mark.benchmark),
    ],
)
def test_killed_while_scoring_again(lab: Lab, point: int, workers: int) -> None:
    before = first_run(lab)
    lab.write("verify.sh", "sleep 0.02\n" + OTHER_VERIFIER)
    process = lab.start(f"-n{workers}")
    lab.kill_when(
        process,
        lambda: lab.count() >= point and lab.noted("verified.txt").total() > point - ATTEMPTS,
        lambda pid: os.killpg(pid, signal.SIGKILL),
    )
    lab.run("-n0")
    assert lab.noted().total() == 0
    after = lab.attempts()
    assert {name: record["trial_id"] for name, record in after.items()} == {
        name: record["trial_id"] for name, record in before.items()
    }
    for name, record in after.items():
        if record["outcome"] == "scored":
            assert record["scores"]["reward"] == 1 - before[name]["scores"]["reward"]
    chained(lab)
    assert lab.count() == ATTEMPTS + SCORED
    assert {record["trial_id"] for record in before.values() if record["outcome"] == "scored"} <= lab.left("stale")


# ---------------------------------------------------------------- python

PYTHON = {"kind": "python", "agent": "house.agent:act", "verifier": "house.judge:judge"}
ACT = """
import pathlib

def act(request):
    with open(pathlib.Path(__file__).with_name("ran.txt"), "a") as ran:
        ran.write(f"{request.variant.id}::{request.task.id}[{request.attempt}]\\n")
    return OUTPUT
"""
JUDGE = "def judge(request, output):\n    return {'reward': float(output['answer'] == 1)}\n"


def make_python(lab: Lab, output: str, judge: str = JUDGE) -> None:
    lab.write("house/__init__.py", "")
    lab.write("house/agent.py", ACT.replace("OUTPUT", output))
    lab.write("house/judge.py", judge)
    lab.make()
    whole = json.loads((lab.path / "experiment.yml").read_text())
    lab.write("experiment.yml", json.dumps({**whole, "runner": PYTHON, "coverage": []}))


def ran(lab: Lab) -> int:
    path = lab.path / "house/ran.txt"
    count = len(path.read_text().splitlines()) if path.exists() else 0
    path.unlink(missing_ok=True)
    return count


def test_a_changed_judge_in_python(lab: Lab) -> None:
    make_python(lab, "{'answer': 1}")
    assert lab.run_here().status == 0
    assert ran(lab) == ATTEMPTS
    lab.write("house/judge.py", JUDGE.replace("== 1", "== 2"))
    assert lab.run_here().status == 1  # no baseline passes
    assert ran(lab) == 0
    assert {record["scores"]["reward"] for record in lab.attempts().values()} == {0.0}
    assert all(len(chain) == 2 for chain in chained(lab).values())


def test_a_judge_in_python_that_raised(lab: Lab) -> None:
    make_python(lab, "{'answer': 1}", "def judge(request, output):\n    raise RuntimeError('out of reach')\n")
    assert lab.run_here().status == 1
    assert ran(lab) == ATTEMPTS
    lab.write("house/judge.py", JUDGE)
    assert lab.run_here().status == 0
    assert ran(lab) == 0


def test_output_that_is_no_json_needs_the_agent_again(lab: Lab) -> None:
    make_python(lab, "{'answer': 1, 'tools': {'a', 'b'}}")
    assert lab.run_here().status == 0
    assert ran(lab) == ATTEMPTS
    lab.write("house/judge.py", "# another word\n" + JUDGE)
    ended = lab.run_here()
    assert ended.status == 0, ended
    assert ran(lab) == ATTEMPTS
    assert not list(lab.store.rglob("*.pickle"))
    for chain in chained(lab).values():
        assert chain[0]["trial_id"] != chain[1]["trial_id"]


# ---------------------------------------------------------------- score


def test_another_primary_score_that_is_there_runs_nothing(lab: Lab) -> None:
    lab.make()
    two = VERIFIER.replace('\\"reward\\"', '\\"tone\\": 0.5, \\"reward\\"')
    lab.write("verify.sh", two)
    assert lab.run_here().status == 0
    lab.forget()
    lab.define(score={"primary": "tone", "pass_at_least": 0.5})
    ended = lab.run_here()
    assert ended.status == 0, ended
    assert (lab.noted() + lab.noted("verified.txt")).total() == 0
    assert lab.summary()["settings"]["primary"] == "tone"


def test_another_primary_score_that_is_not_there_asks_the_verifier_alone(lab: Lab) -> None:
    first_run(lab)
    lab.define(score={"primary": "tone"})
    ended = lab.run_here()
    assert ended.status == 1, ended
    assert "'tone' is missing" in ended.out
    assert lab.noted().total() == 0
    assert lab.noted("verified.txt").total() == SCORED
    lab.write("verify.sh", VERIFIER.replace("reward", "tone"))
    assert lab.run_here().status == 0
    assert lab.noted().total() == 0
