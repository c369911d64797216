"""What becomes of a test: passed, failed, died with the phase, or unmeasured."""

import pytest

from tests.suite_runner.suite_lab import SuiteLab, diff, message, told

MINUS = {"patch": diff("shop/prices.py", 9, "        result += price", "        result -= price")}


def test_a_passing_test_scores_one_and_a_failing_one_zero(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)
    outcome = suite.attempt(runner, "test_total", MINUS)
    assert told(outcome) == ("scored", 0)
    assert "assert -6 == 6" in message(outcome)


def test_a_failing_baseline_says_why(suite: SuiteLab) -> None:
    suite.shop(tests="from shop import total\n\n\ndef test_total():\n    assert total([1]) == 2, 'the sum'\n")
    outcome = suite.attempt(suite.runner(), "test_total")
    assert told(outcome) == ("scored", 0)
    assert message(outcome).startswith("AssertionError: the sum")


def test_a_failing_tear_down_fails_the_test(suite: SuiteLab) -> None:
    suite.shop(
        tests="""
        import pytest

        @pytest.fixture
        def checked():
            yield
            assert False, "left open"

        def test_it(checked):
            pass
        """
    )
    outcome = suite.attempt(suite.runner(), "test_it")
    assert told(outcome) == ("scored", 0)
    assert "tear-down failed: AssertionError: left open" in message(outcome)


def test_a_failing_set_up_died(suite: SuiteLab) -> None:
    suite.shop(
        tests="""
        import pytest
        from shop import total

        @pytest.fixture
        def six():
            assert total([6]) == 6
            return 6

        def test_it(six):
            pass
        """
    )
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_it")) == ("scored", 1)
    outcome = suite.attempt(runner, "test_it", MINUS)
    assert told(outcome) == ("died", "SetUpFailed")
    assert message(outcome).startswith("set-up failed: ")


def test_a_mutant_that_breaks_the_import_died_in_collection(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)
    broken = {"patch": diff("shop/prices.py", 3, "RATE = 10", "RATE = 10 / 0")}
    for name in ("test_total", "test_discount"):
        outcome = suite.attempt(runner, name, broken)
        assert told(outcome) == ("died", "CollectionFailed")
        assert message(outcome).startswith("collection of tests/test_prices.py failed: ")
        assert "ZeroDivisionError" in message(outcome)


def test_a_mutant_that_is_no_python_died_in_collection(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner()
    suite.attempt(runner, "test_total")
    outcome = suite.attempt(runner, "test_total", {"patch": diff("shop/prices.py", 3, "RATE = 10", "RATE = = 10")})
    assert told(outcome) == ("died", "CollectionFailed")
    assert "SyntaxError" in message(outcome)


def test_a_mutant_that_ends_the_process_while_it_is_imported_died_in_collection(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner()
    suite.attempt(runner, "test_total")
    for new, how in (
        ("import os; os._exit(3)", "ended the process with exit status 3"),
        ("import os; os.kill(os.getpid(), 11)", "was killed by SIGSEGV"),
    ):
        outcome = suite.attempt(runner, "test_total", {"patch": diff("shop/prices.py", 3, "RATE = 10", new)})
        assert told(outcome) == ("died", "CollectionFailed")
        assert how in message(outcome)
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)


def test_a_mutant_that_loops_while_it_is_imported_ran_out_of_time_in_collection(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner(slowdown=1)
    suite.attempt(runner, "test_total")
    outcome = suite.attempt(runner, "test_total", {"patch": diff("shop/prices.py", 3, "RATE = 10", "while True: pass")})
    assert told(outcome) == ("died", "TimeOut")
    assert message(outcome).startswith("collection of tests/test_prices.py: ")
    assert outcome.time_limit == 60


@pytest.mark.parametrize("mark", ["skip(reason='not here')", "xfail(reason='not here')"])
def test_what_is_skipped_or_expected_to_fail_in_the_baseline_is_unmeasured(suite: SuiteLab, mark: str) -> None:
    suite.shop(tests=f"import pytest\n\n\n@pytest.mark.{mark}\ndef test_it():\n    assert False\n")
    outcome = suite.attempt(suite.runner(), "test_it")
    word = "Skipped" if "skip" in mark else "XFailed"
    assert told(outcome) == ("unmeasured", word)
    assert "not here" in message(outcome)


def test_a_test_that_steps_aside_under_a_mutant_does_not_find_it(suite: SuiteLab) -> None:
    suite.shop(
        tests="""
        import pytest
        from shop import total

        def test_it():
            if total([1]) != 1:
                pytest.skip("odd")
        """
    )
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_it")) == ("scored", 1)
    outcome = suite.attempt(runner, "test_it", MINUS)
    assert told(outcome) == ("scored", 1)
    assert message(outcome) == "under this mutant the test is skipped"


def test_a_test_that_is_not_there(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner()
    outcome = suite.attempt(runner, "test_totals")
    assert told(outcome) == ("unmeasured", "TestNotFound")
    assert message(outcome) == "tests/test_prices.py has no test test_totals; did you mean 'test_total'?"


def test_a_test_that_a_mutant_makes_go_away_died(suite: SuiteLab) -> None:
    suite.shop(
        tests="""
        import pytest
        from shop.prices import RATE

        @pytest.mark.parametrize("rate", [RATE])
        def test_rate(rate):
            assert rate
        """
    )
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_rate[10]")) == ("scored", 1)
    outcome = suite.attempt(runner, "test_rate[10]", {"patch": diff("shop/prices.py", 3, "RATE = 10", "RATE = 11")})
    assert told(outcome) == ("died", "TestNotFound")
    assert message(outcome) == "collection of tests/test_prices.py: under this mutant there is no test test_rate[10]"


def test_a_test_that_options_deselect(suite: SuiteLab) -> None:
    suite.shop()
    outcome = suite.attempt(suite.runner(pytest_args=["-k", "discount"]), "test_total")
    assert told(outcome) == ("unmeasured", "TestNotFound")
    assert message(outcome) == f"pytest's options (addopts, pytest_args) deselect {'tests/test_prices.py'}::test_total"


def test_a_conftest_that_cannot_be_loaded_says_so(suite: SuiteLab) -> None:
    suite.shop()
    suite.write("tests/conftest.py", "import nothing_of_this_name\n")
    outcome = suite.attempt(suite.runner(), "test_total")
    assert told(outcome) == ("died", "CollectionFailed")
    assert "No module named 'nothing_of_this_name'" in message(outcome)


def test_a_flaky_test_is_flaky(suite: SuiteLab) -> None:
    suite.shop(tests="import random\n\n\ndef test_it():\n    assert random.random() < 0.5\n")
    runner = suite.runner()
    outcomes = [told(suite.attempt(runner, "test_it", seed=seed))[1] for seed in range(12)]
    assert set(outcomes) == {0, 1}
    again = [told(suite.attempt(runner, "test_it", seed=seed))[1] for seed in range(12)]
    assert again == outcomes  # the attempt's seed decides, not the process it happens to be forked from


def test_a_warning_of_the_compiler_about_a_mutant_is_no_failure(suite: SuiteLab) -> None:
    """``x is 3`` is odd and no error: where warnings are errors, every test of the file would die of it."""
    suite.shop()
    suite.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")
    source = (suite.path / "shop/prices.py").read_text() + "\n\nODD = 3 is 3\n"
    suite.write("odd.py", source)
    outcome = suite.attempt(suite.runner(exhaustive=True), "test_total", {"replace": {"shop/prices.py": "odd.py"}})
    assert told(outcome) == ("scored", 1)
