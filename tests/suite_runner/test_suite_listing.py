"""``tasks: {collect: tests}``: what pytest collects becomes tasks, fixed in the lock."""

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.runners.suite import SuiteRunner
from pytest_metricbench.runners.suite_tests import SuiteTests
from pytest_metricbench.sources import SourceError
from tests.suite_runner.suite_lab import QUICK, SuiteLab

MORE = """\
import pytest

from shop import total


@pytest.mark.slow
def test_slow():
    assert total([1]) == 1


@pytest.mark.parametrize("x", [1, 2], ids=["one", "two [2]"])
def test_many(x):
    assert total([x]) == x


@pytest.mark.skip(reason="not now")
def test_skipped():
    pass


@pytest.mark.skipif("sys.version_info > (3,)")
def test_skipped_here():
    pass


@pytest.mark.skipif("sys.version_info < (3,)")
def test_not_skipped():
    pass


@pytest.mark.xfail
def test_expected_to_fail():
    assert False


class TestGroup:
    def test_in_group(self):
        pass
"""
CONFTEST = "def pytest_configure(config):\n    config.addinivalue_line('markers', 'slow: takes long')\n"
LISTED = [
    "tests/sub/test_more.py::test_slow",
    "tests/sub/test_more.py::test_many[one]",
    "tests/sub/test_more.py::test_many[two [2]]",
    "tests/sub/test_more.py::test_not_skipped",
    "tests/sub/test_more.py::TestGroup::test_in_group",
    "tests/test_prices.py::test_total",
    "tests/test_prices.py::test_discount",
    "tests/test_prices.py::test_no_discount",
    "tests/test_prices.py::test_too_much",
]


@pytest.fixture
def listed(suite: SuiteLab) -> SuiteLab:
    suite.shop()
    suite.write("tests/conftest.py", CONFTEST)
    suite.write("tests/sub/test_more.py", MORE)
    return suite


def source(suite: SuiteLab, runner: SuiteRunner | None = None, **keys: Any) -> SuiteTests:
    return SuiteTests.model_validate({"collect": "tests", **keys}).bound(runner or suite.runner())


def nodeids(suite: SuiteLab, runner: SuiteRunner | None = None, **keys: Any) -> list[str]:
    entries = source(suite, runner, **keys).expand(suite.path)
    return [entry["params"]["nodeid"] for entry in entries]


def test_all_tests_but_those_that_are_skipped_or_expected_to_fail(listed: SuiteLab) -> None:
    entries = source(listed).expand(listed.path)
    assert sorted(entry["params"]["nodeid"] for entry in entries) == sorted(LISTED)
    for entry in entries:
        assert entry["name"] == entry["params"]["nodeid"]
        assert re.fullmatch(r"[A-Za-z0-9._+-]+-[0-9a-f]{6}", entry["id"])
    assert len({entry["id"] for entry in entries}) == len(LISTED)


def test_a_part_of_them(listed: SuiteLab) -> None:
    assert nodeids(listed, select="slow") == ["tests/sub/test_more.py::test_slow"]
    assert "tests/sub/test_more.py::test_slow" not in nodeids(listed, select="not slow")
    assert nodeids(listed, marks="slow") == ["tests/sub/test_more.py::test_slow"]
    assert nodeids(listed, collect="tests/sub", select="group") == ["tests/sub/test_more.py::TestGroup::test_in_group"]
    assert nodeids(listed, collect="tests/test_prices.py", select="total") == ["tests/test_prices.py::test_total"]


def test_several_folders_and_files_in_the_order_of_the_list(listed: SuiteLab) -> None:
    found = nodeids(listed, collect=["tests/test_prices.py", "sub"], select="total or slow")
    assert found == ["tests/test_prices.py::test_total", "tests/sub/test_more.py::test_slow"]
    assert nodeids(listed, collect=["tests/test_prices.py", "tests"]).count("tests/test_prices.py::test_total") == 1
    one, both = (
        source(listed, collect=names).state(listed.path) for names in (["sub"], ["sub", "tests/test_prices.py"])
    )
    assert one != both == source(listed, collect="tests").state(listed.path)


def test_the_order_is_the_files_whatever_plugins_shuffle(listed: SuiteLab) -> None:
    pytest.importorskip("pytest_randomly")
    runner = listed.runner(env={})
    assert nodeids(listed, runner) == nodeids(listed, listed.runner(env={})) == nodeids(listed)


def test_tests_of_an_installed_package(suite: SuiteLab) -> None:
    pytest.importorskip("toolz")
    runner = suite.runner(source=["toolz"], tests="toolz.tests")
    found = nodeids(suite, runner, collect="toolz.tests", select="test_dicttoolz and merge")
    assert "toolz/tests/test_dicttoolz.py::TestDict::test_merge" in found
    runner.task_files({"nodeid": found[0]}, suite.path)


@pytest.mark.parametrize(
    ("keys", "said", "remedy"),
    [
        ({"collect": "nothing"}, "'nothing' does not exist", "it is looked for in {path}"),
        (
            {"collect": "shop"},
            "'shop' is outside the tests of the runner (tests)",
            "widen `tests` of the runner, or collect a part of them",
        ),
        ({"collect": ["tests", "nothing"]}, "'nothing' does not exist", "it is looked for in {path}"),
        (
            {"collect": ["sub", "tests/test_prices.py"], "select": "nowhere"},
            "there is no test in sub or tests/test_prices.py that -k and nowhere selects",
            "name a folder with tests",
        ),
        (
            {"select": "nowhere"},
            "there is no test in tests that -k and nowhere selects",
            "name a folder with tests",
        ),
        (
            {"select": "expected"},
            "there is no test in tests that -k and expected selects: all 1 are skipped or expected to fail",
            "name a folder with tests",
        ),
    ],
)
def test_what_cannot_be_collected(listed: SuiteLab, keys: dict[str, Any], said: str, remedy: str) -> None:
    with pytest.raises(SourceError) as refused:
        nodeids(listed, **keys)
    assert refused.value.message == said.replace("-k and", "-k")
    assert refused.value.remedy == remedy.replace("{path}", str(listed.path))


def test_tests_that_cannot_be_imported(listed: SuiteLab) -> None:
    listed.write("tests/test_broken.py", "import nothing_of_this_name\n\n\ndef test_it():\n    pass\n")
    with pytest.raises(SourceError) as refused:
        nodeids(listed)
    assert refused.value.message.startswith(f"collecting {listed.path}/tests fails: ")
    assert "No module named 'nothing_of_this_name'" in refused.value.message
    assert refused.value.remedy == "its tests must run without a mutant first"


def test_a_package_that_cannot_be_imported(listed: SuiteLab) -> None:
    listed.write("shop/__init__.py", "raise ImportError('no licence')\n")
    with pytest.raises(SourceError) as refused:
        nodeids(listed)
    assert "no licence" in refused.value.message


def test_an_expression_that_is_none(listed: SuiteLab) -> None:
    with pytest.raises(SourceError) as refused:
        nodeids(listed, select="not (")
    assert "Wrong expression passed to '-k'" in refused.value.message


def test_what_changes_the_list_and_what_does_not(listed: SuiteLab) -> None:
    def state() -> Any:
        return source(listed).state(listed.path)

    before = state()
    listed.write("tests/sub/test_more.py", MORE.replace("assert total([1]) == 1", "assert total([2]) == 2"))
    listed.write("tests/data.json", "{}")
    assert state() == before
    for name, text in (
        ("tests/sub/test_more.py", MORE.replace('ids=["one"', 'ids=["1"')),
        ("tests/sub/test_more.py", MORE + "\n\ndef test_new():\n    pass\n"),
        ("tests/test_new.py", "def test_new():\n    pass\n"),
        ("tests/conftest.py", CONFTEST.replace("slow", "fast")),
    ):
        kept = (listed.path / name).read_text() if (listed.path / name).exists() else None
        listed.write(name, text)
        assert state() != before, name
        if kept is None:
            (listed.path / name).unlink()
        else:
            listed.write(name, kept)
    assert state() == before


def test_nothing_is_left_running(listed: SuiteLab) -> None:
    runner = listed.runner()
    nodeids(listed, runner)
    assert runner.project._processes is None
    assert QUICK["env"]


def test_only_the_suite_runner_collects(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"^tests are collected by the runner suite only$"):
        SuiteTests(collect="tests").expand(tmp_path)
