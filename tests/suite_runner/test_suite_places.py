"""Where the source and the tests are: beside the experiment, in a source tree, or installed."""

import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_metricbench.runners.suite import SuiteRunner
from pytest_metricbench.sources import SourceError
from tests.suite_runner.suite_lab import QUICK, SuiteLab, diff, message, told


def complaint(folder: Path, **keys: Any) -> tuple[tuple[int | str, ...], str]:
    with pytest.raises(ValidationError) as refused:
        SuiteRunner.model_validate({"source": ["shop"], "tests": "tests", **keys}, context={"folder": folder})
    (error,) = refused.value.errors()
    return error["loc"], error["msg"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("shops", "'shops' is neither a file or folder beside the experiment nor a package that can be imported"),
        (
            "toolz.nothing",
            "'toolz.nothing' is neither a file or folder beside the experiment nor a package that can be imported",
        ),
        ("./shops", "'./shops' does not exist; it is looked for in {folder}"),
        (
            "../other",
            "'../other' leaves the experiment's folder; "
            "name it from the project's ({{project}}/...), absolutely, or as a package: name.of.it",
        ),
        (
            "{project}/shop",
            "'{{project}}/shop' needs a project around the experiment: "
            "no folder from {folder} upwards has pyproject.toml, setup.py, setup.cfg, pytest.ini, tox.ini",
        ),
        ("empty", "'empty' has no Python source"),
        ("fast.so", "'fast.so' is a compiled module; a mutant needs a module with Python source"),
        ("math", None),
        ("sys", "'sys' is compiled or built in; a mutant needs a module with Python source"),
        ("sh\0op", "'sh\\x00op' has a null character, which no name can hold"),
    ],
)
def test_source_that_cannot_be_mutated(suite: SuiteLab, source: str, said: str | None) -> None:
    suite.shop()
    suite.write("empty/readme.txt", "")
    suite.write("fast.so", b"\x7fELF")
    where, message = complaint(suite.path, source=[source])
    assert where == ("source", 0)
    if said is None:
        assert message.startswith("'math' is compiled or built in")
    else:
        assert message == said.format(folder=suite.path)


def test_an_experiment_deeper_in_its_project(suite: SuiteLab) -> None:
    suite.shop()
    suite.write("pyproject.toml", "")
    study = suite.path / "docs" / "study"
    study.mkdir(parents=True)
    runner = SuiteRunner.model_validate(
        {"source": ["{project}/shop"], "tests": "{project}/tests"}, context={"folder": study}
    )
    assert set(runner.project.source_files) == {"shop/__init__.py", "shop/prices.py"}
    assert runner.project.file_of("test_prices.py::test_total") == suite.path / "tests/test_prices.py"
    assert runner.model_dump(mode="json")["tests"] == "{project}/tests"
    assert complaint(study, source=["{project}/../other"], tests="{project}/tests") == (
        ("source", 0),
        f"'{{project}}/../other' leaves the project's folder, {suite.path}",
    )
    assert complaint(study, source=["{project}/shop"], tests="{project}/test") == (
        ("tests",),
        f"'{{project}}/test' does not exist; it is looked for in {suite.path}",
    )


def test_tests_that_are_not_there(suite: SuiteLab) -> None:
    suite.shop()
    assert complaint(suite.path, tests="./test") == (
        ("tests",),
        f"'./test' does not exist; it is looked for in {suite.path}",
    )


def test_a_stray_package_is_no_folder_of_tests(suite: SuiteLab, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.shop()
    suite.write("elsewhere/tests/__init__.py", "")
    monkeypatch.syspath_prepend(suite.path / "elsewhere")
    shutil.rmtree(suite.path / "tests")
    assert complaint(suite.path) == (("tests",), f"'tests' does not exist; it is looked for in {suite.path}")


def test_task_files(suite: SuiteLab) -> None:
    suite.shop()
    suite.write("tests/conftest.py", "")
    suite.write("tests/data/prices.json", "[]")
    suite.write("tests/test_other.py", "")
    runner = suite.runner()
    named = runner.task_files({"nodeid": "tests/test_prices.py::test_total"}, suite.path)
    assert set(named) == {"tests/test_prices.py"}
    assert set(runner.shared_files(suite.path)) == {
        *("source:shop/__init__.py", "source:shop/prices.py"),
        *("tests:conftest.py", "tests:data/prices.json"),
    }
    for nodeid, said in (
        ("tests/test_price.py::test_total", "the test file tests/test_price.py does not exist in the tests (tests)"),
        ("shop/prices.py::test_total", "the test file shop/prices.py does not exist in the tests (tests)"),
        (
            "tests/test_prices.py::test_totl[1]",
            "tests/test_prices.py has no test test_totl; did you mean 'test_total'?",
        ),
    ):
        with pytest.raises(SourceError) as refused:
            runner.task_files({"nodeid": nodeid}, suite.path)
        assert refused.value.message == said


def test_a_source_tree_that_is_not_installed(suite: SuiteLab) -> None:
    suite.write("src/shop/__init__.py", "")
    suite.write("src/shop/prices.py", "def double(x):\n    return x * 2\n")
    suite.write("src/tools.py", "def triple(x):\n    return x * 3\n")
    suite.write(
        "tests/test_all.py",
        "import tools\nfrom shop.prices import double\n\n\n"
        "def test_it():\n    assert double(2) == 4\n    assert tools.triple(1) == 3\n",
    )
    for source in (["src"], ["src/shop", "src/tools.py"]):
        suite.folders.clear()
        runner = suite.runner(source=source)
        nodeid = "tests/test_all.py::test_it"
        assert told(suite.attempt(runner, nodeid)) == ("scored", 1)
        double = diff("src/shop/prices.py", 2, "    return x * 2", "    return x + 3")
        triple = diff("src/tools.py", 2, "    return x * 3", "    return x * 2")
        assert told(suite.attempt(runner, nodeid, {"patch": double})) == ("scored", 0)
        assert told(suite.attempt(runner, nodeid, {"patch": triple})) == ("scored", 0)


def test_a_whole_checkout_with_an_environment_in_it(suite: SuiteLab) -> None:
    suite.shop()
    suite.write("conftest.py", "")
    suite.write("setup.py", "raise SystemExit('not to be imported')\n")
    suite.write("env/pyvenv.cfg", "")
    suite.write("env/lib/pytest/__init__.py", "raise SystemExit\n")
    suite.write("tests/__init__.py", "")
    runner = suite.runner(source=["."])
    assert set(runner.project._tops()) == {"shop"}
    assert set(runner.project.source_files) == {"shop/__init__.py", "shop/prices.py", "conftest.py", "setup.py"}
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)
    minus = diff("shop/prices.py", 9, "        result += price", "        result -= price")
    assert told(suite.attempt(runner, "test_total", {"patch": minus})) == ("scored", 0)


def test_the_runner_as_its_keys(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner()
    assert runner.model_dump(mode="json")["source"] == ["shop"]
    assert runner.model_dump(mode="json")["tests"] == "tests"
    schema = SuiteRunner.model_json_schema()
    assert schema["required"] == ["source", "tests"]
    assert runner.affinity("case", "baseline", "t") is None
    assert runner.affinity("case", "m1", "t") == "case:m1"
    assert runner.time_limit == 60


def test_an_installed_package_with_its_tests(suite: SuiteLab) -> None:
    pytest.importorskip("toolz")
    runner = suite.runner(source=["toolz"], tests="toolz.tests")
    nodeid = "toolz/tests/test_itertoolz.py::test_first"
    assert told(suite.attempt(runner, nodeid)) == ("scored", 1)
    source = {name: path for name, path in runner.project.source_files.items() if name == "toolz/itertoolz.py"}
    lines = source["toolz/itertoolz.py"].read_text().splitlines()
    place = lines.index("    return next(iter(seq))") + 1
    patch = diff("toolz/itertoolz.py", place, lines[place - 1], "    return None")
    assert told(suite.attempt(runner, nodeid, {"patch": patch})) == ("scored", 0)
    assert told(suite.attempt(runner, nodeid)) == ("scored", 1)
    assert "toolz/tests/test_itertoolz.py" not in runner.project.source_files
    assert nodeid.partition("::")[0] in runner.task_files({"nodeid": nodeid}, suite.path)


def test_an_editable_installation(suite: SuiteLab, tmp_path: Path) -> None:
    """As setuptools makes one: a finder that knows the folder of the package."""
    suite.write("checkout/shop/__init__.py", "def double(x):\n    return x * 2\n")
    suite.write("tests/test_it.py", "import shop\n\n\ndef test_it():\n    assert shop.double(2) == 4\n")
    suite.write(
        "site/editable_finder.py",
        f"""
        import importlib.util, pathlib, sys

        HOME = pathlib.Path({str(tmp_path / "checkout/shop")!r})

        class Finder:
            @classmethod
            def find_spec(cls, name, path=None, target=None):
                if name == "shop":
                    return importlib.util.spec_from_file_location(
                        name, HOME / "__init__.py", submodule_search_locations=[str(HOME)]
                    )

        sys.meta_path.append(Finder)
        """,
    )
    suite.write("tests/conftest.py", "import editable_finder\n")
    env = {**QUICK["env"], "PYTHONPATH": str(tmp_path / "site")}
    runner = suite.runner(source=[str(tmp_path / "checkout/shop")], env=env)
    nodeid = "tests/test_it.py::test_it"
    assert told(suite.attempt(runner, nodeid)) == ("scored", 1)
    patch = diff("checkout/shop/__init__.py", 2, "    return x * 2", "    return x * 3")
    assert told(suite.attempt(runner, nodeid, {"patch": patch})) == ("scored", 0)


def test_options_and_plugins_of_the_project(suite: SuiteLab) -> None:
    """What the project's own configuration asks of plugins that would measure, distribute or capture is overruled."""
    suite.shop()
    suite.write(
        "pyproject.toml",
        textwrap.dedent(
            """
            [tool.pytest.ini_options]
            addopts = "-ra --strict-markers --cov=shop --cov-fail-under=100 -n 2 --dist loadfile -p randomly"
            filterwarnings = ["error"]
            markers = ["slow"]
            """
        ),
    )
    runner = suite.runner(env={})
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)
    minus = diff("shop/prices.py", 9, "        result += price", "        result -= price")
    assert told(suite.attempt(runner, "test_total", {"patch": minus})) == ("scored", 0)
    assert not (suite.path / ".coverage").exists()


def test_a_variable_that_is_not_set(suite: SuiteLab, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.shop()
    monkeypatch.delenv("SHOP_KEY", raising=False)
    outcome = suite.attempt(suite.runner(env={"SHOP_KEY": None}), "test_total")
    assert told(outcome) == ("unmeasured", "MissingVariableError")
    assert message(outcome) == "env takes SHOP_KEY from the environment, and it is not set there"


def test_without_coverage_py(suite: SuiteLab, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.shop()
    monkeypatch.setattr("pytest_metricbench.runners.suite.find_spec", lambda name: None)
    with pytest.raises(ValidationError) as refused:
        suite.runner()
    assert refused.value.errors()[0]["msg"] == (
        "the runner suite needs coverage.py to know which lines a test runs; "
        "pip install 'pytest-metricbench[suite]', or write exhaustive: true and kill: all"
    )
    runner = suite.runner(exhaustive=True)
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)
    assert suite.left() == set()
    minus = diff("shop/prices.py", 9, "        result += price", "        result -= price")
    assert told(suite.attempt(runner, "test_total", {"patch": minus})) == ("scored", 0)
