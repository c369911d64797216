"""What the scheduler sends to whom, call by call."""

import pytest

from pytest_metricbench.pytest_side.ready_items import Slot
from pytest_metricbench.pytest_side.scheduling import LONGEST_QUEUE, QUEUE_SECONDS
from tests.scheduling.mock_nodes import Board, gated, plain

# ---------------------------------------------------------------- order


def test_nothing_is_sent_before_every_worker_has_collected() -> None:
    board = Board(plain("abcdef"))
    board.collect(board.nodes[0])
    assert board.all_sent() == [[], []]
    assert not board.scheduler.tests_finished
    board.collect(board.nodes[1])
    assert board.all_sent() == [["a", "c"], ["b", "d"]]


def test_the_rank_decides_and_not_the_collection() -> None:
    ranks = {"short": -1.0, "long": -9.0, "middle": -5.0, "unknown": float("-inf")}
    board = Board({name: Slot((1, rank)) for name, rank in ranks.items()})
    board.collect()
    assert board.all_sent() == [["unknown", "middle"], ["long", "short"]]


def test_equal_ranks_keep_the_order_of_the_collection() -> None:
    board = Board({name: Slot((1, 0.0)) for name in "qwertz"}, nodes=1)
    board.collect()
    for name in "qwert":
        board.complete(board.nodes[0], name)
    assert board.sent(board.nodes[0]) == list("qwertz")


def test_a_worker_is_sent_one_item_for_each_that_ends() -> None:
    board = Board(plain("abcdefgh"))
    first, second = board.nodes
    board.collect()
    board.complete(second, "b")
    assert board.sent(second) == ["b", "d", "e"]
    board.complete(first, "a")
    assert board.sent(first) == ["a", "c", "f"]
    assert not board.scheduler.tests_finished


def test_the_last_items_are_flushed_by_a_shutdown() -> None:
    board = Board(plain("abc"))
    first, second = board.nodes
    board.collect()
    assert board.all_sent() == [["a", "c"], ["b"]]
    assert [node.told_to_end for node in (first, second)] == [False, True]
    finished = [board.scheduler.tests_finished]
    board.complete(first, "a")
    assert first.told_to_end
    assert [*finished, board.scheduler.tests_finished] == [False, True]
    assert board.scheduler.has_pending
    board.complete(first, "c")
    board.complete(second, "b")
    assert not board.scheduler.has_pending


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_workers_without_an_item_are_told_to_end(nodes: int) -> None:
    board = Board(plain("a"), nodes=nodes)
    board.collect()
    assert board.all_sent() == [["a"]] + [[]] * (nodes - 1)
    assert all(node.told_to_end for node in board.nodes)
    assert board.scheduler.tests_finished


# ---------------------------------------------------------------- how much at a time


def test_short_items_are_sent_many_at_a_time() -> None:
    board = Board(plain(str(number) for number in range(1000)), nodes=1)
    (node,) = board.nodes
    board.collect()
    for number in range(400):
        board.complete(node, str(number), 0.0002)
    assert len(node.batches) < 400 / (LONGEST_QUEUE // 2) + 5
    assert len(node.sent) - 400 <= LONGEST_QUEUE


def test_the_first_item_already_says_how_long_items_are() -> None:
    """An average that starts at nothing would take the first item for a fifth of what it is."""
    board = Board(plain(str(number) for number in range(1000)), nodes=1)
    (node,) = board.nodes
    board.collect()
    board.complete(node, "0", QUEUE_SECONDS)
    assert len(node.sent) == 3


def test_a_long_item_shortens_the_queue_at_once() -> None:
    board = Board(plain(str(number) for number in range(1000)), nodes=1)
    (node,) = board.nodes
    board.collect()
    for number in range(100):
        board.complete(node, str(number), 0.0002)
    board.complete(node, "100", 2 * QUEUE_SECONDS)
    sent = len(node.sent)
    for number in range(101, sent - 2):
        board.complete(node, str(number), 0.0002)
    assert len(node.sent) == sent, "more was sent while two items were left"
    board.complete(node, str(sent - 2), 0.0002)
    assert len(node.sent) == sent + 1


def test_maxschedchunk_is_heeded() -> None:
    board = Board(plain(str(number) for number in range(1000)), nodes=1, maxschedchunk=5)
    (node,) = board.nodes
    board.collect()
    for number in range(400):
        board.complete(node, str(number), 0.0002)
    assert max(map(len, node.batches)) <= 5
    assert len(node.sent) - 400 <= 5


def test_what_one_phase_took_says_nothing_about_the_next() -> None:
    """Each phase starts with its longest: a queue that was right for the last phase's shortest is wrong for it."""
    slots = {f"b{number}": Slot((0, number)) for number in range(200)}
    slots |= {f"m{number}": Slot((1, number)) for number in range(200)}
    board = Board(slots, nodes=1)
    (node,) = board.nodes
    board.collect()
    for number in range(200):
        board.complete(node, f"b{number}", 0.0002)
    assert board.sent(node)[200:] == ["m0", "m1"]


def test_an_earlier_phase_that_comes_back_is_sent_first_and_by_its_own_measure() -> None:
    """Long items that are to run again do not pile up in a queue that was made for short ones."""
    slots = {f"b{number}": Slot((0, number)) for number in range(8)}
    slots |= {f"m{number}": Slot((1, number)) for number in range(200)}
    board = Board(slots, nodes=1)
    (node,) = board.nodes
    board.collect()
    for number in range(8):
        board.complete(node, f"b{number}", 60.0)
    for number in range(40):
        board.complete(node, f"m{number}", 0.0002)
    queued = len(node.sent) - 48
    assert queued > 4
    for number in range(8):
        board.scheduler.mark_test_pending(f"b{number}")
    for number in range(40, 40 + queued - 2):
        board.complete(node, f"m{number}", 0.0002)
    assert len(node.sent) == 48 + queued
    board.complete(node, f"m{40 + queued - 2}", 0.0002)
    assert board.sent(node)[48 + queued :] == ["b0"]


# ---------------------------------------------------------------- gates


def test_a_gated_item_waits_as_a_look_ahead_and_nothing_follows_it() -> None:
    board = Board(gated(tasks=1, mutants=3), nodes=1)
    (node,) = board.nodes
    board.collect()
    assert board.sent(node) == ["b0", "x0"]  # x0 is held: it starts when something follows
    assert not board.scheduler.tests_finished
    board.complete(node, "b0")
    assert board.sent(node) == ["b0", "x0", "y0"]


def test_the_look_ahead_is_one_that_the_running_item_opens() -> None:
    """A worker that waits for another's baseline could run nothing that opens meanwhile."""
    board = Board(gated(tasks=2, mutants=2))
    board.collect()
    assert board.all_sent() == [["b0", "x0"], ["b1", "x1"]]
    board.complete(board.nodes[1], "b1")
    assert board.all_sent() == [["b0", "x0"], ["b1", "x1", "y1"]]


def test_the_look_ahead_otherwise_lacks_little() -> None:
    slots = gated(tasks=2, mutants=1, attempts=2)
    board = Board({name: slot for name, slot in slots.items() if name != "b1.1"}, nodes=3)
    board.collect()
    # b0.0 and b0.1 both have to end for x0; b1.0 alone opens x1, and is all that its worker waits for.
    assert [ids[0] for ids in board.all_sent()] == ["b0.0", "b0.1", "b1.0"]
    assert board.sent(board.nodes[0]) == ["b0.0", "x1"]


def test_a_gate_opens_when_all_of_its_items_have_ended() -> None:
    board = Board(gated(tasks=1, mutants=2, attempts=3), nodes=2)
    first, second = board.nodes
    board.collect()
    assert board.all_sent() == [["b0.0", "b0.2"], ["b0.1", "x0"]]
    board.complete(second, "b0.1")
    board.complete(first, "b0.0")
    assert board.all_sent() == [["b0.0", "b0.2", "y0"], ["b0.1", "x0"]]
    assert not second.told_to_end
    board.complete(first, "b0.2")
    assert first.told_to_end
    assert second.told_to_end


def test_a_gate_whose_items_are_not_collected_is_open() -> None:
    board = Board({name: slot for name, slot in gated(tasks=2, mutants=1).items() if name != "b1"}, nodes=1)
    board.collect()
    board.complete(board.nodes[0], "b0")
    assert board.sent(board.nodes[0]) == ["b0", "x1", "x0"]
    board = Board({"x0": Slot((1, 0), gate="t0")})
    board.collect()
    assert board.scheduler.tests_finished


def test_a_held_item_is_not_flushed_before_its_gate_opens() -> None:
    """``DSession`` shuts everything down as soon as the scheduler calls itself finished."""
    board = Board(gated(tasks=1, mutants=1))
    first, second = board.nodes
    board.collect()
    assert board.all_sent() == [["b0", "x0"], []]
    assert not second.told_to_end
    assert not board.scheduler.tests_finished
    board.complete(first, "b0")
    assert board.scheduler.tests_finished


def test_opened_items_come_in_their_rank() -> None:
    """Not behind everything that was ready before: they may be longer."""
    slots = {"b": Slot((0, 0), opens="g"), "long": Slot((1, -9.0), gate="g")}
    slots |= {f"short{number}": Slot((1, -1.0)) for number in range(5)} | {"foreign": Slot((2, 0.0))}
    board = Board(slots, nodes=1)
    (node,) = board.nodes
    board.collect()
    board.complete(node, "b")
    assert board.sent(node) == ["b", "short0", "long"]
