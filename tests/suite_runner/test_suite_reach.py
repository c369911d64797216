"""What a test runs of the source, and that nothing is left out that may tell a mutant from the baseline."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_metricbench.contracts import ContractError
from pytest_metricbench.suite.reach import Memory, read_reach
from tests.suite_runner.suite_lab import FILE, SuiteLab, diff, message, told

MINUS = {"patch": diff("shop/prices.py", 9, "        result += price", "        result -= price")}
HALF = {
    "patch": diff(
        "shop/prices.py", 18, "    return price - price * percent / 100", "    return price + price * percent / 100"
    )
}


def reach_of(suite: SuiteLab, name: str) -> Any:
    return json.loads((suite.folders[f"{FILE}::{name}"][-1] / "reach.json").read_text())


def lines(arcs: Iterable[tuple[int, int]]) -> set[int]:
    return {line for arc in arcs for line in arc if line > 0}


def test_what_a_baseline_attempt_leaves(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_no_discount")) == ("scored", 1)
    assert suite.left() == {"reach.json", "output.json"}
    reach = reach_of(suite, "test_no_discount")
    assert set(reach) == {"metricbench", "key", "complete", "passed", "files"}
    assert (reach["metricbench"], reach["complete"], reach["passed"]) == (1, True, True)
    assert set(reach["files"]) == {"shop/__init__.py", "shop/prices.py"}
    file = reach["files"]["shop/prices.py"]
    assert lines(file["test"]) == {13, 14, 16, 17} - {13}
    assert lines(file["imported"]) == {1, 3, 6, 13}
    assert [14, 16] in file["test"]
    assert file["digest"] == reach_of(suite, "test_no_discount")["files"]["shop/prices.py"]["digest"]


def test_the_same_lines_are_the_same_bytes(suite: SuiteLab) -> None:
    suite.shop()
    kept = []
    for _ in range(2):
        suite.attempt(suite.runner(), "test_discount")
        kept.append((suite.workspace / "reach.json").read_bytes())
    assert kept[0] == kept[1]


def test_a_test_is_not_run_where_it_cannot_tell(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner()
    for name in ("test_total", "test_discount", "test_no_discount"):
        suite.attempt(runner, name)
    outcome = suite.attempt(runner, "test_total", HALF)
    assert told(outcome) == ("not_reached", "NotReached")
    assert message(outcome) == "the test never runs what leads to the change (shop/prices.py:18)"
    assert suite.left() == set()
    assert told(suite.attempt(runner, "test_no_discount", HALF)) == ("not_reached", "NotReached")
    assert told(suite.attempt(runner, "test_discount", HALF)) == ("scored", 0)


def test_exhaustive_runs_it_all_the_same(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner(exhaustive=True)
    suite.attempt(runner, "test_total")
    assert told(suite.attempt(runner, "test_total", HALF)) == ("scored", 1)


def test_without_the_baseline_it_runs(suite: SuiteLab) -> None:
    suite.shop()
    assert told(suite.attempt(suite.runner(), "test_total", HALF)) == ("scored", 1)


def test_what_runs_on_import_is_reached_by_all(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner()
    suite.attempt(runner, "test_total")
    rate = {"patch": diff("shop/prices.py", 3, "RATE = 10", "RATE = 11")}
    assert told(suite.attempt(runner, "test_total", rate)) == ("scored", 1)


UNSEEN = {
    "a process that it starts": """
        import subprocess, sys
        from shop import discount

        def test_it():
            subprocess.run([sys.executable, "-c", "pass"], check=True)
        """,
    "a fork": """
        import os
        from shop import discount

        def test_it():
            pid = os.fork()
            if not pid:
                os._exit(0 if discount(100, 50) == 50 else 1)
            assert os.waitpid(pid, 0)[1] == 0
        """,
    "a pool of processes": """
        import multiprocessing
        from shop import discount

        def test_it():
            with multiprocessing.get_context("fork").Pool(1) as pool:
                assert pool.starmap(discount, [(100, 50)]) == [50]
        """,
    "tracing that it takes away": """
        import sys
        from shop import discount

        def test_it():
            before = sys.gettrace()
            sys.settrace(None)
            assert discount(100, 50) == 50
        """,
    "tracing that its file takes away": """
        import sys
        from shop import discount

        sys.settrace(None)
        HALF = discount(100, 50)

        def test_it():
            assert HALF == 50
        """,
    "a thread that it leaves": """
        import threading, time
        from shop import discount

        def test_it():
            threading.Thread(target=lambda: (time.sleep(60), discount(100, 50)), daemon=True).start()
        """,
}


@pytest.mark.parametrize("name", UNSEEN)
def test_lines_that_may_run_unseen_count_as_run(suite: SuiteLab, name: str) -> None:
    suite.shop(tests=UNSEEN[name])
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_it")) == ("scored", 1)
    assert reach_of(suite, "test_it")["complete"] is False
    outcome = suite.attempt(runner, "test_it", HALF)
    alive = name in ("a process that it starts", "a thread that it leaves")
    assert told(outcome) == ("scored", 1 if alive else 0)


def test_threads_that_are_joined_are_seen(suite: SuiteLab) -> None:
    suite.shop(
        tests="""
        import threading
        from shop import discount

        def test_it():
            found = []
            thread = threading.Thread(target=lambda: found.append(discount(100, 50)))
            thread.start()
            thread.join()
            assert found == [50]
        """
    )
    runner = suite.runner()
    suite.attempt(runner, "test_it")
    assert reach_of(suite, "test_it")["complete"] is True
    assert told(suite.attempt(runner, "test_it", HALF)) == ("scored", 0)


def test_lines_are_complete_although_the_process_ends_without_exit_handlers(suite: SuiteLab) -> None:
    """Nothing waits for ``atexit``: neither of ours nor of coverage.py."""
    suite.shop(
        tests="""
        import atexit, os
        from shop import discount

        def test_it():
            atexit.register(os._exit, 7)
            assert discount(100, 50) == 50
        """
    )
    assert told(suite.attempt(suite.runner(), "test_it")) == ("scored", 1)
    assert lines(reach_of(suite, "test_it")["files"]["shop/prices.py"]["test"]) == {14, 16, 18}


def test_what_another_day_left_says_nothing(suite: SuiteLab) -> None:
    suite.shop()
    suite.attempt(suite.runner(), "test_total")
    source = (suite.path / "shop/prices.py").read_text()
    suite.write("shop/prices.py", source.replace("RATE = 10", "RATE = 12"))
    assert told(suite.attempt(suite.runner(), "test_total", HALF)) == ("scored", 1)  # it runs
    suite.write("shop/prices.py", source)
    assert told(suite.attempt(suite.runner(), "test_total", HALF))[0] == "not_reached"
    suite.write("tests/helper.py", "")
    assert told(suite.attempt(suite.runner(), "test_total", HALF)) == ("scored", 1)


def test_several_baseline_attempts_count_together(suite: SuiteLab) -> None:
    """A flaky test may reach what it did not reach the first time."""
    suite.shop(
        tests="""
        import random
        from shop import discount

        def test_it():
            if random.random() < 0.5:
                assert discount(100, 50) == 50
        """
    )
    runner = suite.runner()
    for seed in range(8):
        suite.attempt(runner, "test_it", seed=seed)
    reached = []
    for folder in suite.folders[f"{FILE}::test_it"]:
        files = json.loads((folder / "reach.json").read_text())["files"]
        reached.append(18 in lines(files["shop/prices.py"]["test"]))
    assert set(reached) == {True, False}
    assert told(suite.attempt(runner, "test_it", HALF))[0] == "scored"


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"metricbench": 2}', '{"metricbench": 1, "key": "k", "files": {"a": {"digest": "d"}}}']
)
def test_a_damaged_file_is_as_none(suite: SuiteLab, text: str) -> None:
    suite.shop()
    runner = suite.runner()
    suite.attempt(runner, "test_total")
    (suite.workspace / "reach.json").write_text(text)
    with pytest.raises(ContractError):
        read_reach(suite.workspace)
    assert Memory().of([suite.workspace, suite.path / "nowhere"], "") == []
    assert told(suite.attempt(runner, "test_total", HALF)) == ("scored", 1)


def test_the_first_kill_is_enough(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner(kill="first", exhaustive=True)
    for name in ("test_total", "test_discount", "test_no_discount"):
        suite.attempt(runner, name)
    assert told(suite.attempt(runner, "test_total", HALF, variant="half")) == ("scored", 1)
    assert told(suite.attempt(runner, "test_discount", HALF, variant="half")) == ("scored", 0)
    outcome = suite.attempt(runner, "test_no_discount", HALF, variant="half")
    assert told(outcome) == ("not_needed", "NotNeeded")
    assert message(outcome) == "tests/test_prices.py::test_discount has killed the mutant"
    assert told(suite.attempt(runner, "test_total", MINUS, variant="minus")) == ("scored", 0)


def test_a_test_that_fails_for_the_baseline_kills_nothing(suite: SuiteLab) -> None:
    suite.shop(tests="from shop import total\n\n\ndef test_total():\n    assert total([1]) == 2\n")
    runner = suite.runner(kill="first", exhaustive=True)
    suite.attempt(runner, "test_total")
    for _ in range(2):
        assert told(suite.attempt(runner, "test_total", HALF)) == ("scored", 0)


@pytest.mark.slow
def test_a_slow_mutant_has_ten_times_as_long_and_some_seconds(suite: SuiteLab) -> None:
    suite.shop(tests="import time\nfrom shop import total\n\n\ndef test_it():\n    total([1])\n    time.sleep(0.2)\n")
    runner = suite.runner(timeout=3)
    suite.attempt(runner, "test_it")
    sleep = {"patch": diff("shop/prices.py", 9, "        result += price", "        __import__('time').sleep(600)")}
    outcome = suite.attempt(runner, "test_it", sleep)
    assert told(outcome) == ("died", "TimeOut")
    assert message(outcome) == "the test ran longer than 3 s and was stopped"
