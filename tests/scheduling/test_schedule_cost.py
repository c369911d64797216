"""What scheduling costs the controller, an item: it has other things to do for each."""

import gc
import statistics
from collections import deque
from collections.abc import Callable
from time import process_time
from typing import Any

import pytest

from pytest_metricbench.pytest_side.ready_items import Slot
from pytest_metricbench.pytest_side.scheduling import ExperimentScheduling
from tests.scheduling.mock_nodes import MockNode
from tests.scheduling.slot_plans import Plan
from tests.scheduling.xdist_simulation import Config, World

pytestmark = pytest.mark.benchmark

MICROSECOND = 1e-6


def plain(count: int) -> Plan:
    return made(count, lambda number: Slot((1, -float(number % 97))))


def affinities(count: int) -> Plan:
    """An affinity for every ten items."""
    return made(count, lambda number: Slot((1, -float(number % 97)), f"m{number % (count // 10)}"))


def gates(count: int) -> Plan:
    """A gate for every five items, which its first opens."""
    tasks = count // 5

    def slot(number: int) -> Slot:
        gate = f"t{number % tasks}"
        return Slot((0, 0.0), opens=gate) if number < tasks else Slot((1, 0.0), gate=gate)

    return made(count, slot)


def one_gate(count: int) -> Plan:
    """Everything waits for one item."""
    return made(count, lambda number: Slot((1, 0.0), gate="t") if number else Slot((0, 0.0), opens="t"))


def foreign(count: int) -> Plan:
    """One attempt among other tests."""
    return made(count, lambda number: Slot((2, 0.0)) if number else Slot((0, 0.0)))


def made(count: int, slot: Callable[[int], Slot]) -> Plan:
    ids = [f"e.yml::c::v::t[{number}]" for number in range(count)]
    return Plan(ids, [slot(number) for number in range(count)], [0.0001] * count)


def seconds_per_item(plan: Plan, workers: int) -> float:
    """CPU of every call that ``DSession`` makes, with workers that end their items in turns."""
    config: Any = Config(World(plan.ids, (), workers=workers))
    scheduler = ExperimentScheduling(config, None, lambda ids: plan.slots)
    nodes: list[Any] = [MockNode(f"gw{number}") for number in range(workers)]
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, plan.ids)
    gc.collect()
    began = process_time()
    scheduler.schedule()
    turns = deque(nodes)
    done = idle = 0
    while idle < workers:
        node = turns[0]
        turns.rotate(-1)
        queue = scheduler.node2pending[node]
        if len(queue) < 2 and not (queue and node.told_to_end):
            idle += 1
            continue
        idle = 0
        scheduler.mark_test_complete(node, queue[0], 0.0001)
        done += 1
        for _ in range(6):  # DSession asks after every event, and there are six for each item
            if scheduler.tests_finished:
                break
    seconds = process_time() - began
    assert done == len(plan.ids)
    assert not scheduler.has_pending
    return seconds / done


@pytest.mark.parametrize("shape", [plain, affinities, gates, one_gate, foreign], ids=lambda shape: shape.__name__)
def test_an_item_costs_microseconds_however_many_there_are(
    shape: Callable[[int], Plan], record_property: Callable[[str, object], None]
) -> None:
    few = statistics.median(seconds_per_item(shape(5_000), workers=4) for _ in range(3))
    many = seconds_per_item(shape(100_000), workers=4)
    record_property("microseconds_per_item", round(many / MICROSECOND, 1))
    print(f"{shape.__name__}: {few / MICROSECOND:.1f} µs an item of 5,000, {many / MICROSECOND:.1f} µs of 100,000")
    assert many < 40 * MICROSECOND  # what the controller does for an item beside this takes 350 µs
    assert many < 3 * few, "it grows with the number of items"


def test_more_workers_do_not_cost_much_more() -> None:
    two = min(seconds_per_item(plain(5_000), workers=2) for _ in range(3))
    sixteen = min(seconds_per_item(plain(5_000), workers=16) for _ in range(3))
    assert sixteen < 6 * two
