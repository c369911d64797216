"""Sessions in a process that is not laid out as usual."""

import threading

import pytest

from tests.faults.session_lab import Lab, no_fault

AGENT = "def act(request):\n    return 1.0\n"


def test_a_session_in_a_thread_that_is_not_the_main_one(lab: Lab) -> None:
    """As an editor or a notebook may start it: signals are then not ours to handle."""
    lab.make(AGENT, runner={"timeout": 20}, mutants=["m1"])
    results: list[pytest.RunResult] = []
    thread = threading.Thread(target=lambda: results.append(lab.run("experiment.yml", "-p", "no:faulthandler")))
    thread.start()
    thread.join(30)
    assert len(results) == 1
    assert results[0].ret == 0, results[0].stdout.str()
    no_fault(results[0].stdout.str())
    assert lab.counts() == {"declared": 4, "passed": 4}
