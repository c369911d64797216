"""Which worker gets the items that share a set-up."""

from itertools import pairwise

from pytest_metricbench.pytest_side.ready_items import Slot
from tests.scheduling.mock_nodes import Board, run_all, shared


def test_each_worker_keeps_its_affinity() -> None:
    board = Board(shared(x=6, y=6))
    board.collect()
    sent = run_all(board)
    assert [{name[0] for name in names} for names in sent] == [{"x"}, {"y"}]


def test_a_worker_without_items_of_its_own_takes_a_free_affinity_before_it_helps() -> None:
    board = Board(shared(x=9, y=2, z=7))
    board.collect()
    first, second = run_all(board)
    assert first[:9] == [f"x{number}" for number in range(9)]
    assert second[:9] == ["y0", "y1"] + [f"z{number}" for number in range(7)]


def test_helping_sticks_to_one_affinity() -> None:
    """Two workers with equally much left: a third that took from each in turn would pay both set-ups."""
    board = Board(shared(x=12, y=12, z=2), nodes=3)
    board.collect()
    third = run_all(board)[2]
    assert third[:2] == ["z0", "z1"]
    helped = [name[0] for name in third[2:]]
    assert len(helped) > 2
    assert sum(a != b for a, b in pairwise(helped)) <= 1


def test_helping_goes_where_most_is_left() -> None:
    board = Board(shared(x=9, y=20, z=2), nodes=3)
    board.collect()
    assert {name[0] for name in run_all(board)[2][2:5]} == {"y"}


def test_an_affinity_that_its_worker_has_left_is_free() -> None:
    slots = shared(x=2, y=2) | {f"z{number}": Slot((1, 100 + number), "z") for number in range(20)}
    board = Board(slots)
    first, second = board.nodes
    board.collect()
    assert board.all_sent() == [["x0", "x1"], ["y0", "y1"]]
    board.complete(first, "x0")
    board.scheduler.mark_test_pending("x0")
    board.complete(second, "y0")
    assert board.all_sent() == [["x0", "x1", "z0"], ["y0", "y1", "x0"]]


def test_no_affinity_keeps_a_worker_from_baselines() -> None:
    """The baseline's items share an affinity too; a worker that is free helps with them before any mutant starts."""
    slots = {f"b{number}": Slot((0, number), affinity="baseline") for number in range(8)}
    slots |= {f"x{number}": Slot((1, number), affinity="x") for number in range(8)}
    board = Board(slots)
    board.collect()
    first, second = run_all(board)
    assert {name[0] for name in first[:4] + second[:4]} == {"b"}


def test_the_affinity_of_a_dead_worker_is_free() -> None:
    """Its items keep their rank among the affinities that no worker has."""
    slots = shared(x=20, y=3) | {f"z{number}": Slot((1, 100 + number), "z") for number in range(20)}
    board = Board(slots)
    first, second = board.nodes
    board.collect()
    board.die(first)
    assert board.sent(second) == ["y0", "y1"]
    node = board.add("gw2")
    board.collect(node)
    assert board.sent(node) == ["x1", "x2"]


def test_no_affinity_keeps_a_worker_from_a_baseline_that_is_to_run_again() -> None:
    slots = {f"b{number}": Slot((0, number), "baseline") for number in range(2)}
    board = Board(slots | shared(x=9), nodes=1)
    (node,) = board.nodes
    board.collect()
    for name in ("b0", "b1", "x0"):
        board.complete(node, name)
    board.scheduler.mark_test_pending("b0")
    board.complete(node, "x1")
    assert board.sent(node)[-2:] == ["x2", "b0"]


def test_items_without_affinity_go_by_rank() -> None:
    slots = {"x0": Slot((1, 0), "x"), "p": Slot((1, 1)), "x1": Slot((1, 2), "x"), "q": Slot((1, 3))}
    board = Board(slots)
    board.collect()
    assert board.all_sent() == [["x0", "x1"], ["p", "q"]]
    board = Board({"p": Slot((1, 0)), "x": Slot((1, 1), "x"), "q": Slot((1, 2))}, nodes=1)
    board.collect()
    assert board.all_sent() == [["p", "x"]]
