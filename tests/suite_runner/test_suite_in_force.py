"""The mutant is what the test ran, and nothing else: proven in its process, or the attempt is unmeasured."""

import importlib.util
import py_compile
from pathlib import Path

from tests.present import present
from tests.suite_runner.suite_lab import PRICES, SuiteLab, diff, message, told

MINUS = {"patch": diff("shop/prices.py", 9, "        result += price", "        result -= price")}
TIMES = {"patch": diff("shop/prices.py", 9, "        result += price", "        result *= price")}


def test_two_mutants_of_equal_size_within_a_second(suite: SuiteLab) -> None:
    """As files on disk they would share a ``.pyc``, and the second would be the first."""
    suite.shop(tests="from shop import total\n\n\ndef test_total():\n    assert total([1, 2, 3]) != -6\n")
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)
    assert told(suite.attempt(runner, "test_total", MINUS)) == ("scored", 0)
    assert told(suite.attempt(runner, "test_total", TIMES)) == ("scored", 1)


def test_bytecode_beside_the_source_is_not_read(suite: SuiteLab) -> None:
    """It is fresh by the size and the second of the source, which are all that Python looks at."""
    suite.shop()
    source = suite.path / "shop/prices.py"
    cached = importlib.util.cache_from_source(str(source))
    py_compile.compile(str(source), cfile=cached, doraise=True)
    size, changed = source.stat().st_size, source.stat().st_mtime
    mutated = PRICES.replace("result += price", "result -= price")
    assert len(mutated) == size
    runner = suite.runner()
    suite.attempt(runner, "test_total")
    assert told(suite.attempt(runner, "test_total", MINUS)) == ("scored", 0)
    assert (source.stat().st_size, source.stat().st_mtime) == (size, changed)


def test_bytecode_of_a_mutant_is_not_written(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner()
    suite.attempt(runner, "test_total")
    bytecode = suite.path / present(runner.project._processes).scratch / "bytecode"

    def kept() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in bytecode.rglob("prices*.pyc")}

    before = kept()
    assert told(suite.attempt(runner, "test_total", MINUS)) == ("scored", 0)
    assert before == kept()
    assert not list(suite.path.rglob("*.pyc"))


def test_a_copy_that_a_conftest_puts_first_is_noticed(suite: SuiteLab) -> None:
    suite.shop()
    suite.write("vendor/shop/__init__.py", "from shop.prices import discount, total\n")
    suite.write("vendor/shop/prices.py", PRICES)
    suite.write("tests/conftest.py", "import sys\n\nsys.path.insert(0, 'vendor')\n")
    runner = suite.runner()
    said = f"the tests import shop from vendor/shop/__init__.py, not from {suite.path}/shop"
    for params in (None, MINUS):
        outcome = suite.attempt(runner, "test_total", params)
        assert told(outcome) == ("unmeasured", "ImportedElsewhere")
        assert message(outcome).replace(f"{suite.path}/vendor", "vendor") == said


def test_a_copy_that_the_test_itself_imports_is_noticed(suite: SuiteLab) -> None:
    suite.shop(
        tests="""
        import sys

        def test_total():
            sys.path.insert(0, "vendor")
            import shop
            assert shop.total([1]) == 1
        """
    )
    suite.write("vendor/shop/__init__.py", "total = sum\n")
    outcome = suite.attempt(suite.runner(), "test_total")
    assert told(outcome) == ("unmeasured", "ImportedElsewhere")


def test_a_module_that_was_made_past_the_import_system_is_noticed(suite: SuiteLab) -> None:
    suite.shop()
    suite.write(
        "tests/conftest.py",
        """
        import sys, types

        module = types.ModuleType("shop.prices")
        module.__file__ = "shop/prices.py"
        exec(open(module.__file__).read(), module.__dict__)
        sys.modules["shop.prices"] = module
        """,
    )
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)
    outcome = suite.attempt(runner, "test_total", MINUS)
    assert told(outcome) == ("unmeasured", "NotInForce")
    assert message(outcome) == "shop/prices.py was loaded as shop.prices past the mutant"


def test_a_module_that_is_made_of_another_one_is_no_stranger(suite: SuiteLab) -> None:
    """As ``tlz`` is made of ``toolz``: its modules say that they are of the other's files, and have its functions."""
    suite.shop(tests="import alias\n\n\ndef test_total():\n    assert alias.prices.total([1, 2]) == 3\n")
    suite.write(
        "alias.py",
        """
        import shop.prices
        import sys, types

        prices = types.ModuleType("alias.prices")
        prices.__dict__.update({k: v for k, v in vars(shop.prices).items() if k not in ("__name__", "__spec__")})
        sys.modules["alias.prices"] = prices
        """,
    )
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)
    assert told(suite.attempt(runner, "test_total", MINUS)) == ("scored", 0)
    half = diff("shop/prices.py", 17, "        return price", "        return percent")
    assert told(suite.attempt(runner, "test_total", {"patch": half}))[0] == "not_reached"


def test_a_second_copy_of_a_module_is_a_stranger(suite: SuiteLab) -> None:
    suite.shop()
    suite.write(
        "tests/conftest.py",
        """
        import shop.prices
        import sys, types

        module = types.ModuleType("second")
        module.__file__ = shop.prices.__file__
        exec(compile(open(module.__file__).read(), module.__file__, "exec"), module.__dict__)
        sys.modules["second"] = module
        """,
    )
    outcome = suite.attempt(suite.runner(), "test_total", MINUS)
    assert told(outcome) == ("unmeasured", "NotInForce")
    assert message(outcome) == "shop/prices.py was loaded as second past the mutant"


def test_a_project_that_takes_the_hook_out_is_noticed(suite: SuiteLab) -> None:
    suite.shop()
    suite.write(
        "tests/conftest.py",
        """
        from importlib.machinery import SourceFileLoader

        for name in ("get_code", "get_data"):
            if name in vars(SourceFileLoader):
                delattr(SourceFileLoader, name)
        """,
    )
    runner = suite.runner(exhaustive=True)
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)
    assert told(suite.attempt(runner, "test_total", MINUS)) == ("unmeasured", "NotInForce")


def test_a_file_that_is_loaded_by_its_path(suite: SuiteLab) -> None:
    suite.shop(
        tests="""
        import importlib.util
        import runpy

        def test_path():
            spec = importlib.util.spec_from_file_location("anything", "shop/prices.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            assert module.total([1, 2]) == 3

        def test_module():
            assert runpy.run_module("shop.prices")["total"]([1, 2]) == 3

        def test_reload():
            import importlib, shop.prices
            assert importlib.reload(shop.prices).total([1, 2]) == 3
        """
    )
    runner = suite.runner()
    for name in ("test_path", "test_module", "test_reload"):
        assert told(suite.attempt(runner, name)) == ("scored", 1), name
        assert told(suite.attempt(runner, name, MINUS)) == ("scored", 0), name


def test_a_plugin_that_pytest_rewrites(suite: SuiteLab) -> None:
    """pytest reads such a module past Python's loader."""
    suite.write("plug.py", "import pytest\n\n\n@pytest.fixture\ndef six():\n    return 6\n")
    suite.write("tests/conftest.py", "pytest_plugins = ['plug']\n")
    suite.write("tests/test_six.py", "def test_six(six):\n    assert six == 6\n")
    runner = suite.runner(source=["plug.py"])
    nodeid = "tests/test_six.py::test_six"
    assert told(suite.attempt(runner, nodeid)) == ("scored", 1)
    assert told(suite.attempt(runner, nodeid, {"patch": diff("plug.py", 6, "    return 6", "    return 7")})) == (
        "scored",
        0,
    )


def test_a_module_that_nobody_imports_would_have_been_the_mutant(suite: SuiteLab) -> None:
    suite.shop()
    suite.write("shop/unused.py", "X = 1\n")
    runner = suite.runner(exhaustive=True)
    assert told(suite.attempt(runner, "test_total", {"patch": diff("shop/unused.py", 1, "X = 1", "X = 2")})) == (
        "scored",
        1,
    )


def test_tracebacks_show_the_mutant(suite: SuiteLab) -> None:
    suite.shop(
        tests="""
        import inspect, traceback
        from shop.prices import discount

        def test_it():
            try:
                discount(1, 101)
            except ValueError:
                assert "too much" in traceback.format_exc()
            assert '"too much"' in inspect.getsource(discount)
        """
    )
    runner = suite.runner(exhaustive=True)
    assert told(suite.attempt(runner, "test_it")) == ("scored", 1)
    moved = PRICES.replace("RATE = 10\n", "RATE = 10\n\n\nMORE = 1\n\n")
    suite.write("moved.py", moved)
    assert told(suite.attempt(runner, "test_it", {"replace": {"shop/prices.py": "moved.py"}})) == ("scored", 1)


def test_pytest_itself_is_no_source(suite: SuiteLab) -> None:
    suite.shop()
    outcome = suite.attempt(suite.runner(source=["pluggy"]), "test_total")
    assert told(outcome) == ("unmeasured", "SuiteError")
    assert message(outcome) == "pluggy cannot be tested with mutants: pytest itself imports it"


def test_a_package_that_a_plugin_imports_can_be_mutated(suite: SuiteLab) -> None:
    """Nothing of it is imported before the mutant is in place, though every server then loads the plugins itself."""
    suite.write("lib/shop.py", "def double(x):\n    return x * 2\n")
    suite.write("lib/plug.py", "import shop\n")
    suite.write("lib/plug-1.dist-info/entry_points.txt", "[pytest11]\nplug = plug\n")
    suite.write("lib/plug-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: plug\nVersion: 1\n")
    suite.write("lib/plug-1.dist-info/RECORD", "plug.py,,\n")
    suite.write("tests/test_it.py", "from shop import double\n\n\ndef test_it():\n    assert double(2) == 4\n")
    env = {"PYTHONPATH": str(suite.path / "lib")}
    runner = suite.runner(source=["lib/shop.py"], env=env)
    nodeid = "tests/test_it.py::test_it"
    assert told(suite.attempt(runner, nodeid)) == ("scored", 1)
    patch = diff("lib/shop.py", 2, "    return x * 2", "    return x * 3")
    assert told(suite.attempt(runner, nodeid, {"patch": patch})) == ("scored", 0)


def test_this_package_can_be_the_source(suite: SuiteLab) -> None:
    """The tested project's pytest-metricbench is another one than the one that runs its tests."""
    import pytest_metricbench.score_values as module

    suite.write(
        "tests/test_self.py",
        "from pytest_metricbench.score_values import value_type\n\n\n"
        "def test_it():\n    assert value_type(None) == 'missing'\n",
    )
    runner = suite.runner(source=["pytest_metricbench"])
    nodeid = "tests/test_self.py::test_it"
    assert told(suite.attempt(runner, nodeid)) == ("scored", 1)
    lines = Path(module.__file__).read_text("utf-8").splitlines()
    number = next(i for i, line in enumerate(lines, 1) if 'return "missing"' in line)
    patch = diff("pytest_metricbench/score_values.py", number, lines[number - 1], '        return "label"')
    assert told(suite.attempt(runner, nodeid, {"patch": patch})) == ("scored", 0)
