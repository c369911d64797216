"""Runs of many attempts at a time that are interrupted, killed, or stop early: nothing is lost or left behind."""

import os
import signal

import pytest

from tests.executors.executors_lab import Lab, lives, wait_until

pytestmark = pytest.mark.slow


def agents(lab: Lab) -> list[int]:
    """The processes of the agents that were started."""
    return [int(pid) for pid in lab.noted("agents.txt")]


def test_an_interrupt_ends_what_runs_and_starts_nothing_more(lab: Lab) -> None:
    """Its agents would run for five minutes."""
    lab.make_shell(300)
    process = lab.start("--metricbench-executor=threads:4")
    wait_until(lambda: len(agents(lab)) == 4)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(90) == 2
    assert len(agents(lab)) == 4
    assert not any(map(lives, agents(lab)))
    assert lab.journal() == []
    assert "Traceback" not in "\n".join(lab.noted("output.txt"))
    lab.write("seconds.txt", "0")
    result = lab.run()
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*4 attempts were in flight when a run ended*", "*18 passed*"])


def test_a_killed_run_goes_on_with_the_rest(lab: Lab) -> None:
    """Everything that had ended is in the journal, whatever its turn, and no agent outlives the run."""
    lab.make_shell(300)
    text = (lab.path / "agent.sh").read_text()
    lab.write("agent.sh", text.replace("sleep ", "grep -q baseline request.json && sleep "))
    process = lab.start("--metricbench-executor=threads:8")
    wait_until(lambda: len(lab.journal()) == 12 and len(agents(lab)) == 18)  # the mutants', behind six that go on
    process.kill()
    process.wait(10)
    wait_until(lambda: not any(map(lives, agents(lab))))
    kept = {line["trial_id"] for line in lab.journal()}
    assert kept < set(lab.noted("executed.txt"))
    lab.write("seconds.txt", "0")
    result = lab.run()
    assert result.ret == 0, result.stdout.str()
    assert result.parseoutcomes() == {"passed": 6, "reused": 12}
    executed = lab.noted("executed.txt")
    assert len(executed) == len(set(executed)) == 18 + 6
    assert len(lab.journal()) == 18


def test_a_run_that_stops_at_a_failure_ends_the_programs_of_others(lab: Lab) -> None:
    lab.make_shell(300, retries=1)
    text = (lab.path / "agent.sh").read_text()
    lab.write("agent.sh", "grep -q baseline request.json && grep -q find request.json && exit 0\n" + text)
    result = lab.run("-x", executor="threads:5")
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    assert not any(map(lives, agents(lab)))
    assert {line["outcome"] for line in lab.journal()} == {"unmeasured"}  # the response is missing


def test_agents_in_python_that_wait_do_not_keep_the_process(lab: Lab) -> None:
    """Neither one that heeds an exception nor one that nobody can end."""
    lab.make({"*": "w", "baseline::find[1]": "p"})
    agent = (lab.path / "agent.py").read_text()
    lab.write("agent.py", agent.replace('if letter == "w":', 'if letter == "w":\n            time.sleep(300)'))
    process = lab.start("--metricbench-executor=threads:4")
    wait_until(lambda: len(lab.noted("calls.txt")) == 5 and len(lab.journal()) == 1)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(90) == 2
    assert [line["outcome"] for line in lab.journal()] == ["scored"]
    assert "Traceback" not in "\n".join(lab.noted("output.txt"))
