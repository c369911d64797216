"""Whole sessions with the ``suite`` runner: what users see, what is kept, and what runs again."""

import json
import shutil
from typing import Any, Final

import pytest

from tests.suite_runner.suite_lab import PRICES, TESTS, diff

EXPERIMENT: Final = """\
metricbench: 1
name: shop
runner: {kind: suite, source: [shop], tests: tests, env: {PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1"}}
cases:
  - id: shop
    tasks: {collect: tests}
    mutants:
      - {id: minus, params: {patch: mutants/minus.patch}}
"""
MINUS: Final = diff("shop/prices.py", 9, "        result += price", "        result -= price")
OTHERS: Final = ("randomly", "sugar", "timeout", "rerunfailures", "html", "metadata", "pytest_cov")
OFF: Final = [f"-pno:{name}" for name in OTHERS]
USUAL: Final = "8 attempts: 4 passed, 1 missed, 3 not reached"


class Session:
    """An experiment in a folder, run with pytest."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        files = {
            "shop/__init__.py": "from shop.prices import discount, total\n",
            "shop/prices.py": PRICES,
            "tests/test_prices.py": TESTS,
            "mutants/minus.patch": MINUS,
            "experiment.yml": EXPERIMENT,
        }
        for name, text in files.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *args: str) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess(*OFF, "experiment.yml", *args)

    def case(self) -> Any:
        return json.loads((self.path / ".metricbench/shop/summary.json").read_text())["cases"]["shop"]


def ran(result: pytest.RunResult) -> str:
    """What became of the attempts, in the words of the report."""
    return next(line for line in result.outlines if " attempts: " in line)


def changed(result: pytest.RunResult) -> str:
    """What the report says has changed since the attempts were saved."""
    (line,) = [line for line in result.outlines if "no longer fit" in line]
    return line.partition("(changed: ")[2].partition(")")[0]


@pytest.fixture
def session(pytester: pytest.Pytester, unasked: None) -> Session:
    return Session(pytester)


def test_from_nothing_to_reuse(session: Session) -> None:
    result = session.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*mutation score  1 of 1 valid mutant killed*", "note: wrote *experiment.lock.yml*"])
    assert ran(result) == USUAL
    again = session.run()
    again.stdout.fnmatch_lines(["*8 reused in *"])
    assert not list(session.path.glob("**/__pycache__/*prices*"))


def test_a_changed_test_runs_again_and_a_new_one_asks_for_the_lock(session: Session) -> None:
    session.run()
    session.write("tests/test_prices.py", TESTS.replace("total([1, 2, 3]) == 6", "total([1, 2]) == 3"))
    assert ran(session.run()) == USUAL
    session.write("tests/test_more.py", "def test_new():\n    pass\n")
    result = session.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["ERROR: experiment.yml:6:12: cases?0?.tasks: experiment.lock.yml disagrees: the tests changed*"]
    )
    session.run("--metricbench-lock")
    assert "test_more.py::test_new" in (session.path / "experiment.lock.yml").read_text()
    assert ran(session.run()) == "10 attempts: 5 passed, 1 missed, 4 not reached (8 reused)"


def test_a_changed_helper_and_a_changed_source_run_all_again(session: Session) -> None:
    session.run()
    session.write("tests/helper.py", "X = 1\n")
    result = session.run()
    assert ran(result) == USUAL
    assert changed(result) == "inputs of shop"
    session.write("tests/helper.py", "X = 2\n")
    session.write("shop/prices.py", PRICES.replace("RATE = 10", "RATE = 11"))
    result = session.run()
    assert ran(result) == USUAL
    assert changed(result) == "shop/prices.py, helper.py"


def test_a_file_that_all_tests_share_is_told_once(session: Session) -> None:
    """Not once for each test and each mutant: a suite has thousands of tests and hundreds of such files."""
    names = [f"tests/data/{number}.json" for number in range(20)]
    for name in names:
        session.write(name, "{}")
    session.run()
    files = json.loads((session.path / ".metricbench/shop/experiment.json").read_text())["digests"]["files"]
    assert len([name for name in files if ".json" in name]) == len(names)
    assert len([name for name in files if "shop/prices.py" in name]) == 1


def test_a_suite_whose_baseline_fails(session: Session) -> None:
    session.write("tests/test_prices.py", "from shop import total\n\n\ndef test_total():\n    assert total([1]) == 2\n")
    result = session.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*baseline*"])
    assert session.case()["variants"]["baseline"]["verdicts"]["failed"] == 1


def test_a_patch_that_does_not_apply_stops_the_collection(session: Session) -> None:
    session.write("mutants/minus.patch", MINUS.replace("@@ -9 +9 @@", "@@ -8 +8 @@"))
    result = session.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        [
            "ERROR: experiment.yml:8:*mutants?0?*: mutants/minus.patch: hunk 1 (@@ -8 +8 @@) does not apply: line 8 of "
            "shop/prices.py is '    for price in prices:', the patch expects '        result += price' "
            "(it fits at line 9: make the patch again)"
        ]
    )
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "tasks: {collect: tests}",
            'tasks: [{id: t, params: {nodeid: "tests/test_prices.py::test_totl"}}]',
            "*tests/test_prices.py has no test test_totl; did you mean 'test_total'?*",
        ),
        (
            "tasks: {collect: tests}",
            "tasks: [{id: t, params: {nodeid: test_total}}]",
            "*nodeid*",
        ),
        ("params: {patch: mutants/minus.patch}", "params: {}", "*the mutant changes nothing; write params: *"),
        ("source: [shop]", "source: [shops]", "*'shops' is neither a file or folder beside the experiment nor a *"),
        ("source: [shop]", "source: shop", "*runner.source: is the text 'shop'; a list*"),
        ("source: [shop]", "source: [math]", "*'math' is compiled or built in*a mutant needs a module with Python*"),
    ],
)
def test_mistakes_are_told_when_the_file_is_collected(session: Session, old: str, new: str, said: str) -> None:
    session.write("experiment.yml", EXPERIMENT.replace(old, new))
    result = session.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines([said])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_a_package_that_cannot_be_imported_is_told_when_its_tests_are_collected(session: Session) -> None:
    session.write("shop/__init__.py", "import nothing_of_this_name\n")
    result = session.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*tasks: collecting *tests fails: *No module named 'nothing_of_this_name'*"])


def test_a_store_is_analysed_without_the_project(session: Session, tmp_path_factory: pytest.TempPathFactory) -> None:
    session.run()
    copy = tmp_path_factory.mktemp("copy")
    for name in ("experiment.yml", "experiment.lock.yml"):
        shutil.copy(session.path / name, copy)
    shutil.copytree(session.path / ".metricbench", copy / ".metricbench")
    before = session.case()["kills"]
    result = session.pytester.runpytest_inprocess(*OFF, str(copy / "experiment.yml"), "--metricbench-cached-only")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines(["*8 reused in *"])
    assert json.loads((copy / ".metricbench/shop/summary.json").read_text())["cases"]["shop"]["kills"] == before


def test_only_the_first_kill(session: Session) -> None:
    session.write("experiment.yml", EXPERIMENT.replace("kind: suite,", "kind: suite, kill: first, exhaustive: true,"))
    result = session.run()
    assert result.ret == 0
    assert session.case()["pool"]["kill_share"]["value"] == 1
    assert "not needed" in ran(result)
