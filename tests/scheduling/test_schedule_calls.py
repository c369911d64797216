"""What the scheduler sends to whom, call by call."""

from itertools import pairwise

import pytest
from mock_nodes import Board, plain

from pytest_metricbench.scheduling import LONGEST_QUEUE, QUEUE_SECONDS, Slot


def gated(tasks: int, mutants: int, attempts: int = 1) -> dict[str, Slot]:
    """``b<task>`` opens the gate that ``m<mutant><task>`` wait for; ``b<task>.<attempt>`` when there are several."""
    slots = {}
    for task in range(tasks):
        for attempt in range(attempts):
            name = f"b{task}" if attempts == 1 else f"b{task}.{attempt}"
            slots[name] = Slot((0, task), opens=f"t{task}")
    for mutant in "xyz"[:mutants]:
        for task in range(tasks):
            slots[f"{mutant}{task}"] = Slot((1, task), gate=f"t{task}")
    return slots


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
    assert second.told_to_end
    assert not first.told_to_end
    assert not board.scheduler.tests_finished
    board.complete(first, "a")
    assert first.told_to_end
    assert board.scheduler.tests_finished
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


# ---------------------------------------------------------------- workers that die


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


# ---------------------------------------------------------------- affinity


def shared(**counts: int) -> dict[str, Slot]:
    """``<affinity><number>``, ranked in turns: without affinity each worker would get some of each."""
    turns = [(number, name) for name, count in counts.items() for number in range(count)]
    return {f"{name}{number}": Slot((1, number), affinity=name) for number, name in sorted(turns)}


def run_all(board: Board) -> list[list[str]]:
    """Let the workers take turns until everything has ended."""
    progress = True
    while progress:
        progress = False
        for node in board.nodes:
            queue = board.scheduler.node2pending[node]
            if len(queue) > 1 or (queue and node.told_to_end):
                board.complete(node, board.ids[queue[0]])
                progress = True
    assert not board.scheduler.has_pending
    return board.all_sent()


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
