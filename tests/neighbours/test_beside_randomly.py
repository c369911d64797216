"""pytest-randomly shuffles what is collected; the order of a run is ours all the same."""

import re

import pytest

from tests.faults.session_lab import Lab, no_fault

pytest.importorskip("pytest_randomly")

AGENT = """
import time

def act(request):
    time.sleep(0.02 * request.attempt + (0.06 if request.variant.id == "slow" else 0))
    raise RuntimeError("dies, so that it can be asked for again")
"""


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.benchmark) for seed in (2, 3))])
def test_baselines_go_first_and_then_the_longest(lab: Lab, seed: int) -> None:
    lab.make(AGENT, mutants=["quick", "slow"], attempts=2)
    shuffled = ["experiment.yml", f"--randomly-seed={seed}"]
    lab.run(*shuffled, beside=["randomly"])
    first = lab.journal()
    lab.run(*shuffled, "--metricbench-retry-died", beside=["randomly"])
    second = lab.journal()[len(first) :]
    assert len(first) == len(second) == 12
    for run in (first, second):
        assert [line["variant"] == "baseline" for line in run] == [True] * 4 + [False] * 8
    took = {line["trial_id"]: line["duration"] for line in first}
    expected = [took[line["supersedes"]] for line in second]
    assert expected[:4] == sorted(expected[:4], reverse=True)
    assert expected[4:] == sorted(expected[4:], reverse=True)


def test_other_tests_are_shuffled_as_ever(lab: Lab) -> None:
    lab.make(AGENT)
    lab.write("test_plain.py", "\n".join(f"def test_{number}(): pass" for number in range(20)))
    result = lab.run("-v", "--randomly-seed=1", "test_plain.py", "experiment.yml", beside=["randomly"])
    order = re.findall(r"test_plain\.py::test_(\d+)", result.stdout.str())
    assert sorted(order) == sorted(map(str, range(20)))
    assert order != sorted(order, key=int)


@pytest.mark.slow
def test_with_workers_every_attempt_is_made_once_and_in_order(lab: Lab) -> None:
    lab.make(AGENT, mutants=["quick", "slow"], attempts=4)
    ended = lab.run_apart("experiment.yml", "-v", "-n2", "--randomly-seed=4", beside=["randomly"])
    assert ended.status == 1, ended  # no attempt of the baseline passes
    no_fault(ended.out)
    assert lab.counts() == {"declared": 24, "died": 24}
    assert set(lab.entries().values()) == {4}
    for worker in ("gw0", "gw1"):
        made = re.findall(rf"\[{worker}\] \[ *\d+%\] DIED experiment\.yml::c::(\w+)", ended.out)
        assert made
        assert made == sorted(made, key=lambda variant: variant != "baseline")
