"""Tests as people write them: fixtures of every scope, parametrization, unittest, asyncio, doubles and subtests."""

import pytest

from pytest_metricbench import hookspecs
from pytest_metricbench.suite.inside_pytest import Extensions
from tests.suite_runner.suite_lab import SuiteLab, diff, told

MINUS = {"patch": diff("shop/prices.py", 9, "        result += price", "        result -= price")}

CONFTEST = """\
import pytest
from shop import total


@pytest.fixture(scope="session")
def session_sum():
    return total([1, 2])


@pytest.fixture(scope="package")
def package_sum(session_sum):
    return session_sum + total([0])


@pytest.fixture(autouse=True)
def around(monkeypatch):
    monkeypatch.setenv("AROUND", "yes")
"""
TESTS = """\
import asyncio
import os
import unittest

import pytest

from shop import total


@pytest.fixture(scope="module")
def module_sum(package_sum):
    return package_sum


class TestScopes:
    @pytest.fixture(scope="class")
    def class_sum(self, module_sum):
        yield module_sum

    def test_scopes(self, class_sum, tmp_path, capsys, request):
        assert os.environ["AROUND"] == "yes"
        print("seen")
        assert capsys.readouterr().out == "seen\\n"
        (tmp_path / "file").write_text("x")
        assert class_sum == 3


@pytest.mark.parametrize("prices, expected", [([1], 1), ([1, 2], 3), pytest.param([5], 5, id="five [5]/::x")])
def test_parametrized(prices, expected):
    assert total(prices) == expected


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sum = total([2, 2])

    def test_unit(self):
        self.assertEqual(self.sum, 4)

    def test_subtests(self):
        for prices in ([1], [2]):
            with self.subTest(prices=prices):
                self.assertEqual(total(prices), prices[0])


class AsyncCase(unittest.IsolatedAsyncioTestCase):
    async def test_async_unit(self):
        await asyncio.sleep(0)
        assert total([1]) == 1


@pytest.mark.anyio
async def test_anyio():
    await asyncio.sleep(0)
    assert total([3]) == 3


@pytest.fixture
def anyio_backend():
    return "asyncio"


def test_asyncio_run():
    async def main():
        return total([4])

    assert asyncio.run(main()) == 4


def test_threads():
    import threading

    found = []
    thread = threading.Thread(target=lambda: found.append(total([1])))
    thread.start()
    thread.join()
    assert found == [1]


def test_numpy_is_seeded():
    numpy = pytest.importorskip("numpy")
    assert 0 <= numpy.random.rand() < 1
    assert total([1]) == 1
"""
NAMES = (
    "TestScopes::test_scopes",
    "test_parametrized[prices0-1]",
    "test_parametrized[prices1-3]",
    "test_parametrized[five [5]/::x]",
    "Case::test_unit",
    "Case::test_subtests",
    "AsyncCase::test_async_unit",
    "test_anyio[asyncio]",
    "test_asyncio_run",
    "test_threads",
    "test_numpy_is_seeded",
)


def test_all_of_them_pass_and_find_the_mutant(suite: SuiteLab) -> None:
    pytest.importorskip("anyio")
    suite.shop(tests=TESTS)
    suite.write("tests/conftest.py", CONFTEST)
    runner = suite.runner(pytest_args=["-p", "anyio"])
    names = [name if name != "test_anyio[asyncio]" else "test_anyio" for name in NAMES]
    found = {name: told(suite.attempt(runner, f"tests/test_prices.py::{name}")) for name in names}
    assert found == dict.fromkeys(names, ("scored", 1))
    killed = {name: told(suite.attempt(runner, f"tests/test_prices.py::{name}", MINUS)) for name in names}
    expected = dict.fromkeys(names, ("scored", 0)) | {"TestScopes::test_scopes": ("scored", 0)}
    assert killed == expected


def test_subtests_of_pytest(suite: SuiteLab) -> None:
    if not hasattr(pytest, "Subtests"):
        pytest.skip("this pytest has no subtests")
    suite.shop(
        tests="""
        from shop import total

        def test_it(subtests):
            for prices in ([0], [1]):
                with subtests.test(prices=prices):
                    assert total(prices) == prices[0]
        """
    )
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_it")) == ("scored", 1)
    assert told(suite.attempt(runner, "test_it", MINUS)) == ("scored", 0)


def test_reruns_of_a_failed_test(suite: SuiteLab) -> None:
    pytest.importorskip("pytest_rerunfailures")
    suite.shop(
        tests="""
        TRIES = []

        def test_second_time():
            TRIES.append(1)
            assert len(TRIES) == 2

        def test_never():
            assert False
        """
    )
    runner = suite.runner(pytest_args=["-p", "rerunfailures", "--reruns", "2"])
    assert told(suite.attempt(runner, "test_second_time")) == ("scored", 1)
    assert told(suite.attempt(runner, "test_never")) == ("scored", 0)


def test_dependencies_are_imported_once(suite: SuiteLab) -> None:
    suite.shop(
        tests="""
        import os
        import wave

        from shop import total

        SERVER = os.getpid()

        def test_total():
            assert total([1]) == 1
            assert wave.__file__
            assert "wave" in PRELOADED
        """
    )
    suite.write("tests/conftest.py", "import builtins, sys\n\nbuiltins.PRELOADED = set(sys.modules)\n")
    assert told(suite.attempt(suite.runner(), "test_total")) == ("scored", 1)
    assert told(suite.attempt(suite.runner(preload=False), "test_total")) == ("scored", 0)


def test_a_project_that_sets_the_environment_first_imports_its_own_dependencies(suite: SuiteLab) -> None:
    suite.shop(tests="import wave\n\n\ndef test_it():\n    assert wave.SEEN == 'yes'\n")
    suite.write("tests/conftest.py", "import os\n\nos.environ['SEEN'] = 'yes'\nimport wave\n\nwave.SEEN = 'yes'\n")
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_it")) == ("scored", 1)


def test_a_conftest_that_extends_this_plugin(suite: SuiteLab) -> None:
    """pytest-metricbench is not loaded where the tests run, and pytest must still know its hooks."""
    suite.shop()
    suite.write(
        "conftest.py",
        "".join(f"def {name}(config):\n    return []\n\n\n" for name in vars(hookspecs) if name.startswith("pytest_")),
    )
    assert told(suite.attempt(suite.runner(), "test_total")) == ("scored", 1)
    ours = {name for name in vars(hookspecs) if name.startswith("pytest_metricbench")}
    assert {name for name in vars(Extensions) if name.startswith("pytest_")} == ours
