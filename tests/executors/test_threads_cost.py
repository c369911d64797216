"""What many attempts at a time take: measured, on request only."""

import re
import resource
import signal
import time

import pytest

from tests.executors.executors_lab import Lab, lives, wait_until

pytestmark = pytest.mark.benchmark

ATTEMPTS = 200


def processor_seconds(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def make_two_hundred(lab: Lab, seconds: float) -> None:
    tasks = [{"id": f"t{number}"} for number in range(ATTEMPTS // 2)]
    lab.make_shell(seconds, attempts=1, cases=[{"id": "c", "tasks": tasks, "mutants": [{"id": "m"}]}])


def test_two_hundred_attempts_of_a_second_take_less_than_four(lab: Lab) -> None:
    make_two_hundred(lab, 1)
    own, children = processor_seconds(resource.RUSAGE_SELF), processor_seconds(resource.RUSAGE_CHILDREN)
    result = lab.run(executor="threads:100")
    own = processor_seconds(resource.RUSAGE_SELF) - own
    children = processor_seconds(resource.RUSAGE_CHILDREN) - children
    assert result.ret == 0
    found = re.search(r"200 passed in ([\d.]+)s", result.stdout.str())
    assert found is not None
    print(
        f"{ATTEMPTS} attempts of 1 s, 100 at a time: {found[1]} s; processor time an attempt: "
        f"{1000 * own / ATTEMPTS:.1f} ms here, {1000 * children / ATTEMPTS:.1f} ms in its processes"
    )
    assert float(found[1]) < 4


def test_an_attempt_costs_little_more_than_where_its_item_makes_it(lab: Lab) -> None:
    """Processor time of this process an attempt, that returns at once, in one run each: the best of three."""
    costs: dict[str, float] = {}
    for executor in ("local", "threads:32") * 3:
        make_two_hundred(lab, 0)
        before = processor_seconds(resource.RUSAGE_SELF)
        assert lab.run("--metricbench-fresh", executor=executor).ret == 0
        used = processor_seconds(resource.RUSAGE_SELF) - before
        costs[executor] = min(used, costs.get(executor, used))
    local, threads = costs["local"], costs["threads:32"]
    print(
        f"ms of this process an attempt: {1000 * local / ATTEMPTS:.2f} local, {1000 * threads / ATTEMPTS:.2f} threads"
    )
    assert threads < 2 * local


def test_ctrl_c_is_answered_in_two_seconds(lab: Lab) -> None:
    """Of a hundred agents that would run for five minutes none is left."""
    make_two_hundred(lab, 300)
    process = lab.start("--metricbench-executor=threads:100")
    wait_until(lambda: len(lab.noted("agents.txt")) == 100)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 2
    took = time.monotonic() - began
    assert not any(lives(int(pid)) for pid in lab.noted("agents.txt"))
    print(f"Ctrl-C with 100 agents: {took:.2f} s")
    assert took < 2
