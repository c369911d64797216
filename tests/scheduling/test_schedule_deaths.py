"""What becomes of a dead worker's items, and of replacements that collect something else."""

import pytest

from pytest_metricbench.pytest_side.ready_items import Slot
from tests.scheduling.mock_nodes import Board, gated, plain


def test_what_a_dead_worker_had_not_started_goes_to_others() -> None:
    board = Board(plain("abcdef"))
    first, second = board.nodes
    board.collect()
    assert board.die(first) == "a"
    assert board.scheduler.has_pending
    board.complete(second, "b")
    assert board.sent(second) == ["b", "d", "c"]
    for name in "dc":
        board.complete(second, name)
    assert board.sent(second) == ["b", "d", "c", "e", "f"]


def test_a_replacement_gets_work() -> None:
    board = Board(plain("abcd"), nodes=1)
    board.collect()
    assert board.die(board.nodes[0]) == "a"
    assert not board.scheduler.tests_finished
    node = board.add("gw1")
    board.collect(node)
    assert board.sent(node) == ["b", "c"]


def test_a_replacement_gets_no_work_before_it_has_collected() -> None:
    board = Board(plain("abcdefgh"))
    first, second = board.nodes
    board.collect()
    board.die(first)
    node = board.add("gw2")
    board.complete(second, "b")
    assert not node.sent
    board.collect(node)
    assert board.sent(node) == ["e", "f"]


def test_a_worker_that_only_held_an_item_did_not_run_it() -> None:
    """It never learned of an item to follow: the item is nobody's crash, and it is sent again."""
    board = Board(gated(tasks=1, mutants=1) | {"b1": Slot((0, 1), opens="t0")})
    first, second = board.nodes
    board.collect()
    assert board.all_sent() == [["b0", "x0"], ["b1"]]
    board.complete(first, "b0")
    assert board.die(first) is None
    node = board.add("gw2")
    board.collect(node)
    assert not board.scheduler.tests_finished
    board.complete(second, "b1")
    assert board.sent(node) == ["x0"]


def test_the_item_that_a_shutdown_released_was_running() -> None:
    board = Board(plain("ab"))
    first, second = board.nodes
    board.collect()
    assert first.told_to_end
    assert board.die(first) == "a"
    assert board.scheduler.tests_finished
    board.complete(second, "b")
    assert not board.scheduler.has_pending


def test_a_worker_that_ended_in_order_had_nothing() -> None:
    board = Board(plain("a"))
    board.collect()
    board.complete(board.nodes[0], "a")
    assert [board.scheduler.remove_node(node) for node in board.nodes] == [None, None]
    assert board.scheduler.nodes == []
    with pytest.raises(KeyError):
        board.scheduler.remove_node(board.nodes[0])


def test_a_crash_settles_a_gate_too() -> None:
    board = Board(gated(tasks=1, mutants=2))
    first, second = board.nodes
    board.collect()
    assert board.die(first) == "b0"
    assert board.sent(second) == ["x0", "y0"] or board.sent(second) == ["y0", "x0"]


def test_a_look_ahead_of_a_dead_worker_still_waits_for_its_gate() -> None:
    board = Board(gated(tasks=1, mutants=2, attempts=2), nodes=3)
    first, second, third = board.nodes
    board.collect()
    assert board.all_sent() == [["b0.0", "x0"], ["b0.1", "y0"], []]
    assert board.die(first) == "b0.0"
    assert not third.sent
    board.complete(second, "b0.1")
    assert board.sent(third) == ["x0"]


def test_a_crashed_item_may_be_sent_again() -> None:
    """As pytest-rerunfailures asks for."""
    board = Board(plain("abcd"))
    first, second = board.nodes
    board.collect()
    assert board.die(first) == "a"
    board.scheduler.mark_test_pending("a")
    board.complete(second, "b")
    board.complete(second, "d")
    assert board.sent(second) == ["b", "d", "a", "c"]


def test_a_crashed_item_that_is_sent_again_goes_to_a_worker_that_is_idle() -> None:
    board = Board(gated(tasks=2, mutants=2), nodes=5)
    board.collect()
    assert board.die(board.nodes[0]) == "b0"
    idle = board.nodes[4]
    assert not idle.sent
    assert not idle.told_to_end
    board.scheduler.mark_test_pending("b0")
    assert board.sent(idle) == ["b0"]


def test_sending_to_a_worker_that_has_just_died_loses_nothing() -> None:
    """The pipe breaks before pytest-xdist notices; an exception here would end the whole session."""
    board = Board(plain("abcdef"))
    first, second = board.nodes
    board.collect()
    first.gone = True
    board.scheduler.mark_test_complete(first, 0, 1.0)  # arrived before the end
    assert not board.scheduler.tests_finished
    assert board.die(first) == "c"
    for name in "bde":
        board.complete(second, name)
    assert board.sent(second) == ["b", "d", "e", "f"]


def test_a_replacement_that_collects_something_else_gets_nothing() -> None:
    board = Board(plain("abcdef"))
    first, second = board.nodes
    board.collect()
    board.die(first)
    node = board.add("gw2")
    board.collect(node, ids=list("abc"))
    assert node.told_to_end
    assert not node.sent
    (report,) = board.hooks.reports
    assert report.failed
    assert "Different tests were collected between gw0 and gw2" in report.longrepr
    for name in "bdcef":
        board.complete(second, name)
    assert sorted(board.sent(second)) == list("bcdef")
    assert board.scheduler.tests_finished


def test_a_session_ends_when_nobody_is_left_who_collected_the_same() -> None:
    board = Board(plain("a") | gated(tasks=3, mutants=2), nodes=1)
    board.collect()
    board.die(board.nodes[0])
    node = board.add("gw1")
    assert board.scheduler.blocked
    board.collect(node, ids=["a"])
    assert board.scheduler.tests_finished
    assert not board.scheduler.has_pending
    assert board.die(node) is None


def test_a_worker_that_waits_for_what_nobody_will_run_goes_on() -> None:
    """What opens its gate was on a worker that died, and the replacement is no use."""
    board = Board(gated(tasks=1, mutants=2, attempts=3))
    first, second = board.nodes
    board.collect()
    assert board.all_sent() == [["b0.0", "b0.2"], ["b0.1", "x0"]]
    board.complete(second, "b0.1")
    assert board.die(first) == "b0.0"
    assert board.sent(second) == ["b0.1", "x0"]  # b0.2 would release x0, and a replacement is to come
    node = board.add("gw2")
    board.collect(node, ids=["b0.0"])
    assert board.sent(second) == ["b0.1", "x0", "b0.2"]
    board.complete(second, "x0")
    assert board.sent(second) == ["b0.1", "x0", "b0.2", "y0"]


def test_different_collections_at_the_start_are_reported_once() -> None:
    board = Board(plain("abc"))
    board.collect(board.nodes[0])
    board.collect(board.nodes[1], ids=list("acb"))
    assert len(board.hooks.reports) == 1
    assert board.all_sent() == [[], []]
    assert board.scheduler.tests_finished
