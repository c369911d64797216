"""The line coverage system: what counts, of what data, and when there is no score."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import ValidationError

from pytest_metricbench.contracts import CoverageError, CoverageRequest, Score
from pytest_metricbench.coverage import line as line_module
from pytest_metricbench.coverage import line_data
from pytest_metricbench.coverage.line import LineCoverage
from pytest_metricbench.digests import digest_bytes
from tests.present import present

PRICES: Final = b"""\
RATE = 10


def total(prices):
    result = 0
    for price in prices:
        result += price
    return result


def discount(
    price,
    percent,
):
    if percent > 100:
        raise ValueError("too much")
    return (
        price
        - price * percent / 100
    )


def debug():  # pragma: no cover
    return RATE
"""
TAX: Final = b"VAT = 19\n"
LINES: Final = {1, 4, 5, 6, 7, 8, 11, 15, 16, 17}
IMPORTED: Final = [[-1, 1], [1, 4], [4, 11], [11, 23], [23, -1]]
TOTAL: Final = [[-4, 5], [5, 6], [6, 7], [7, 6], [6, 8], [8, -4]]
DISCOUNT: Final = [[-11, 15], [15, 17], [17, 18], [18, 19], [19, 17], [17, -11]]


def reach(test: list[list[int]], source: bytes = PRICES, **files: Any) -> bytes:
    """What the runner suite leaves of a test."""
    prices = {"digest": digest_bytes(source), "imported": IMPORTED, "test": test}
    document = {"metricbench": 1, "key": "k", "complete": True, "passed": True}
    return json.dumps({**document, "files": {"shop/prices.py": prices, **files}}).encode()


@pytest.fixture
def shop(folder: Path) -> Path:
    (folder / "shop").mkdir()
    (folder / "shop/__init__.py").write_bytes(b"")
    (folder / "shop/prices.py").write_bytes(PRICES)
    (folder / "shop/tax.py").write_bytes(TAX)
    return folder


Measure = Callable[..., Score]


@pytest.fixture
def measure(
    shop: Path, make: Callable[..., Any], request_for: Callable[..., CoverageRequest], workspace: Path
) -> Measure:
    def run(evidence: dict[str, dict[str, bytes]], **keys: Any) -> Score:
        score: Score = make(LineCoverage, source=["shop"], **keys).measure(request_for(evidence), workspace)
        return score

    return run


def prices(*lines: int | str) -> tuple[str, ...]:
    return tuple(sorted(f"shop/prices.py:{line}" for line in lines))


# ---------------------------------------------------------------- lines and branches


def test_the_lines_that_tests_run(measure: Measure) -> None:
    score = measure({"a": {"reach.json": reach(TOTAL)}, "b": {"reach.json": reach(DISCOUNT)}})
    assert score.goals is not None
    assert set(score.goals.universe) == {*prices(*LINES), "shop/tax.py:1"}
    assert score.goals.by_task == {"a": prices(1, 4, 11, 5, 6, 7, 8), "b": prices(1, 4, 11, 15, 17)}
    assert score.value == 9 / 11


def test_data_of_any_size_is_not_read(measure: Measure, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b" " * (1 << 20) + reach(TOTAL)
    measure({"a": {"reach.json": content}})
    monkeypatch.setattr(line_data, "_LIMIT", 1 << 20)
    with pytest.raises(CoverageError) as caught:
        measure({"a": {"reach.json": content}})
    assert str(caught.value) == f"{workspace}/evidence/a/trial1/reach.json has more than 1 MiB"


def test_the_figure_is_that_of_coverage_py(measure: Measure, shop: Path, tmp_path: Path) -> None:
    """A real run, measured by coverage.py and by us: the same share, from each form of its data."""
    data, report = _run_coverage(shop, "from shop.prices import total; total([1])", "--branch")
    expected = report["totals"]
    lines = measure({"a": {".coverage": data}}, omit=["shop/tax.py", "shop/__init__.py"])
    assert lines.value == expected["covered_lines"] / expected["num_statements"] == 7 / 10
    branches = measure({"b": {".coverage": data}}, measure="branch")
    assert branches.value == expected["covered_branches"] / expected["num_branches"] == 2 / 4
    assert branches.goals is not None
    assert set(branches.goals.universe) == set(prices("6->7", "6->8", "15->16", "15->17"))
    text = json.dumps(report).encode()
    assert measure({"c": {"coverage.json": text}}, omit=["shop/tax.py"]).value == lines.value
    assert measure({"d": {"cov/coverage.json": text}}, measure="branch").value == branches.value


def _run_coverage(folder: Path, code: str, *options: str) -> tuple[bytes, dict[str, Any]]:
    scratch = folder.parent / "scratch"
    scratch.mkdir()
    (scratch / "run.py").write_text(f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}\n")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    argv = [sys.executable, "-m", "coverage"]
    run = [*argv, "run", *options, f"--include={folder}/shop/prices.py", "run.py"]
    subprocess.run(run, cwd=scratch, env=environment, check=True)
    shutil.copy(scratch / ".coverage", scratch / "kept")
    subprocess.run([*argv, "json", "-q", "-o", "out.json"], cwd=scratch, env=environment, check=True)
    return (scratch / "kept").read_bytes(), json.loads((scratch / "out.json").read_text())


def test_branches_of_reached_lines(measure: Measure) -> None:
    score = measure({"a": {"reach.json": reach(TOTAL)}, "b": {"reach.json": reach(DISCOUNT)}}, measure="branch")
    assert score.goals is not None
    assert score.goals.by_task == {"a": prices("6->7", "6->8"), "b": prices("15->17")}
    assert score.value == 3 / 4


def test_branches_that_leave_are_named_so(measure: Measure, shop: Path) -> None:
    source = b"def f(x):\n    if x:\n        print(x)\n"
    (shop / "shop/prices.py").write_bytes(source)
    score = measure({"a": {"reach.json": reach([[-1, 2], [2, -1]], source)}}, measure="branch")
    assert score.goals is not None
    assert set(score.goals.universe) == set(prices("2->3", "2->exit"))
    assert score.goals.by_task == {"a": prices("2->exit")}


def test_several_attempts_and_several_files_count_together(measure: Measure) -> None:
    evidence = {"a": {"1/reach.json": reach(TOTAL), "2/reach.json": reach(DISCOUNT)}}
    assert measure(evidence).value == 9 / 11


def test_data_of_another_machine_is_known_by_the_ends_of_its_paths(measure: Measure) -> None:
    recorded = {
        "/home/a/work/shop/prices.py": {"executed_lines": [1, 4]},
        "C:\\b\\shop\\tax.py": {"executed_lines": [1]},
    }
    text = json.dumps({"files": recorded}).encode()
    score = measure({"a": {"coverage.json": text}})
    assert score.goals is not None
    assert score.goals.by_task["a"] == (*prices(1, 4), "shop/tax.py:1")


def test_a_file_that_stands_there_goes_before_one_of_that_name(measure: Measure, shop: Path) -> None:
    recorded = {
        "/elsewhere/shop/prices.py": {"executed_lines": [5]},
        str(shop / "shop/prices.py"): {"executed_lines": [1]},
    }
    score = measure({"a": {"coverage.json": json.dumps({"files": recorded}).encode()}})
    assert score.goals is not None
    assert score.goals.by_task["a"] == prices(1)


def test_a_test_that_runs_nothing_covers_nothing(measure: Measure) -> None:
    empty = json.dumps({"metricbench": 1, "key": "k", "complete": True, "passed": True, "files": {}}).encode()
    assert measure({"a": {"reach.json": empty}}).value == 0


# ---------------------------------------------------------------- scopes and files


@pytest.mark.parametrize(
    ("scope", "universe", "covered"),
    [
        ("function", ("shop/prices.py:total", "shop/prices.py:discount"), ("shop/prices.py:total",)),
        ("file", ("shop/prices.py", "shop/tax.py"), ("shop/prices.py",)),
        ("package", ("shop",), ("shop",)),
    ],
)
def test_larger_goals(measure: Measure, scope: str, universe: tuple[str, ...], covered: tuple[str, ...]) -> None:
    score = measure({"a": {"reach.json": reach(TOTAL)}}, scope=scope)
    assert score.goals is not None
    assert (score.goals.universe, score.goals.by_task["a"]) == (universe, covered)
    assert score.value == len(covered) / len(universe)


def test_what_is_only_imported_covers_no_function_and_no_file_with_functions(measure: Measure) -> None:
    tax: dict[str, Any] = {"shop/tax.py": {"digest": digest_bytes(TAX), "imported": [[-1, 1], [1, -1]], "test": []}}
    evidence = {"a": {"reach.json": reach([], **tax)}}
    assert measure(evidence, scope="function").value == 0
    score = measure(evidence, scope="file")
    assert score.goals is not None
    assert score.goals.by_task["a"] == ("shop/tax.py",)  # there is nothing in it but what is run on import


def test_functions_of_one_name_are_two(measure: Measure, shop: Path) -> None:
    setter = b"    @x.setter\n    def x(self, v):\n        pass\n"
    source = b"class A:\n    @property\n    def x(self):\n        return 1\n\n" + setter
    (shop / "shop/prices.py").write_bytes(source)
    score = measure({"a": {"reach.json": reach([[-3, 4]], source)}}, scope="function")
    assert score.goals is not None
    assert len(score.goals.universe) == 2
    assert score.value == 0.5


def test_files_are_chosen_by_patterns(measure: Measure, shop: Path) -> None:
    (shop / "shop/tests").mkdir()
    (shop / "shop/tests/test_prices.py").write_text("A = 1\n")
    (shop / "shop/conftest.py").write_text("A = 1\n")
    evidence = {"a": {"reach.json": reach(TOTAL)}}
    names = {goal.partition(":")[0] for goal in present(measure(evidence).goals).universe}
    assert names == {"shop/prices.py", "shop/tax.py"}  # tests are no source
    assert measure(evidence, include=["shop/prices.py"]).value == 7 / 10
    assert measure(evidence, omit=["*/tax.py", "*/tests/*", "*/conftest.py"]).value == 7 / 10


# ---------------------------------------------------------------- null and failures


@pytest.mark.parametrize(
    ("evidence", "keys", "reason"),
    [
        ({"a": {}}, {}, "task a left no reach.json, .coverage or coverage.json"),
        (
            {"c": {"x.json": b"{}"}, "b": {}, "a": {"reach.json": reach([])}},
            {},
            "task b left no reach.json, .coverage or coverage.json (and 1 more task)",
        ),
        (
            {"a": {"coverage.json": b'{"files": {"shop/prices.py": {"executed_lines": [1]}}}'}},
            {"measure": "branch"},
            "task a left lines without branches; run coverage with --branch",
        ),
        (
            {"a": {"reach.json": reach([])}},
            {"measure": "branch", "include": ["*/tax.py"]},
            "the source has no branches",
        ),
        (
            {"a": {"reach.json": reach([])}},
            {"scope": "function", "include": ["*/tax.py"]},
            "the source has no functions with lines",
        ),
    ],
)
def test_no_score_with_its_reason(measure: Measure, evidence: Any, keys: dict[str, Any], reason: str) -> None:
    assert measure(evidence, **keys) == Score(None, reason)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("reach.json", b"", "it is not of the expected form"),
        ("reach.json", b"[]", "it is not of the expected form"),
        ("reach.json", b'{"metricbench": 2, "files": {}}', "it is of format version 2"),
        ("reach.json", b'{"metricbench": 1, "files": {"a.py": {}}}', "it is not of the expected form"),
        ("reach.json", b"[" * 100_000, "it is not of the expected form"),
        ("coverage.json", b'{"files": {"shop/prices.py": {}}}', "it is not of the expected form"),
        ("coverage.json", b'{"totals": {}}', "it is not of the expected form"),
        (".coverage", b"not a database", "coverage.py cannot read it"),
        (".coverage.host.1", b"SQLite format 3\0" + b"x" * 100, "coverage.py cannot read it"),
    ],
)
def test_damaged_data_fails_the_request_and_is_named(measure: Measure, name: str, content: bytes, words: str) -> None:
    with pytest.raises(CoverageError, match=words) as caught:
        measure({"a": {name: content}})
    assert f"evidence/a/trial1/{name}" in str(caught.value)


def test_half_a_file_of_a_died_attempt_is_none(
    shop: Path, make: Callable[..., Any], request_for: Callable[..., CoverageRequest], workspace: Path
) -> None:
    request = request_for({"a": {"1/reach.json": reach(TOTAL), "2/reach.json": reach(TOTAL)[:40]}})
    files = tuple(replace(file, outcome="died") if file.name.startswith("2") else file for file in request.files["a"])
    score = make(LineCoverage, source=["shop"]).measure(replace(request, files={"a": files}), workspace)
    assert score.value == 7 / 11
    alone = make(LineCoverage, source=["shop"]).measure(replace(request, files={"a": files[1:]}), workspace)
    assert alone == Score(None, "task a left no reach.json, .coverage or coverage.json")


def test_attempts_of_another_source_are_refused(measure: Measure, shop: Path) -> None:
    (shop / "shop/prices.py").write_bytes(PRICES + b"# changed\n")
    with pytest.raises(CoverageError) as caught:
        measure({"a": {"reach.json": reach(TOTAL)}})
    assert str(caught.value) == "shop/prices.py has changed since the attempts ran; run them again"


def test_evidence_that_changed_fails_the_request(
    shop: Path, make: Callable[..., Any], request_for: Callable[..., CoverageRequest], workspace: Path
) -> None:
    request = request_for({"a": {"reach.json": reach(TOTAL)}})
    request.files["a"][0].path.write_bytes(reach(DISCOUNT))
    with pytest.raises(CoverageError, match="has changed since its attempt ended"):
        make(LineCoverage, source=["shop"]).measure(request, workspace)


def test_reading_leaves_the_evidence_as_it_is(measure: Measure, shop: Path, workspace: Path) -> None:
    data, _ = _run_coverage(shop, "from shop.prices import total; total([1])")
    measure({"a": {".coverage": data}})
    left = {path.name: path.read_bytes() for path in (workspace / "evidence/a/trial1").iterdir()}
    assert left == {".coverage": data}


# ---------------------------------------------------------------- the report


def test_an_html_report_of_a_subset(measure: Measure, workspace: Path) -> None:
    measure({"only-total": {"reach.json": reach(TOTAL)}, "only-discount": {"reach.json": reach(DISCOUNT)}}, html=True)
    assert "refunds: s1" in (workspace / "html/index.html").read_text()
    (page,) = (workspace / "html").glob("*prices_py.html")
    text = page.read_text()
    contexts = json.loads(re.findall(r"contexts = (\{.*?\})", text, re.DOTALL)[0])
    assert sorted(contexts.values()) == ["only-discount", "only-total"]
    rows = dict(re.findall(r'<p class="(?:run|mis|par)[^"]*">.*?id="t(\d+)".*?class="ctxs">\d+(\w+)<', text))
    assert {line: contexts[key] for line, key in rows.items() if key in contexts} == {
        "5": "only-total",
        "6": "only-total",
        "7": "only-total",
        "8": "only-total",
        "15": "only-discount",
        "17": "only-discount",
    }
    assert re.search(r'<p class="mis[^"]*"><span class="n"><a id="t16"', text)


def test_a_report_of_tasks_that_ran_nothing(measure: Measure, workspace: Path) -> None:
    empty = json.dumps({"metricbench": 1, "key": "k", "complete": True, "passed": True, "files": {}}).encode()
    assert measure({"a": {"reach.json": empty}}, html=True).value == 0
    assert "refunds: s1" in (workspace / "html/index.html").read_text()


def test_a_report_that_cannot_be_written_fails_the_request(measure: Measure, workspace: Path) -> None:
    (workspace / "html").write_text("in the way")
    with pytest.raises(CoverageError, match=r"^the HTML report cannot be written: .*html"):
        measure({"a": {"reach.json": reach(TOTAL)}}, html=True)


@pytest.mark.parametrize(("html", "written"), [(["s1"], True), (["pool"], False), (False, False)])
def test_the_report_is_for_those_subsets_that_are_named(
    measure: Measure, workspace: Path, html: Any, written: bool
) -> None:
    measure({"a": {"reach.json": reach(TOTAL)}}, html=html)
    assert (workspace / "html").exists() is written


# ---------------------------------------------------------------- its keys


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"source": []}, "at least 1"),
        ({"source": ["nowhere"]}, "is neither a file or folder"),
        ({"source": ["shop"], "measure": "statement"}, "line"),
        ({"source": ["shop"], "scope": "class"}, "function"),
        (
            {"source": ["shop"], "include": ["shop/price.py"]},
            "include: 'shop/price.py' matches no file of the source; its files are shop/",
        ),
        ({"source": ["shop"], "omit": ["*"]}, "leave no file of the source"),
        ({"source": ["shop"], "x": 1}, "Extra"),
    ],
)
def test_wrong_keys_are_refused(shop: Path, make: Callable[..., Any], keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        make(LineCoverage, **keys)


def test_without_coverage_py_the_extra_is_named(
    shop: Path, make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_module, "find_spec", lambda name: None)
    with pytest.raises(ValidationError) as caught:
        make(LineCoverage, source=["shop"])
    said = "the coverage system line needs coverage.py; pip install 'pytest-metricbench[suite]'"
    assert caught.value.errors()[0]["msg"] == said


def test_a_changed_source_is_another_request(shop: Path, make: Callable[..., Any]) -> None:
    before = make(LineCoverage, source=["shop"]).request_settings
    assert before == make(LineCoverage, source=["shop"]).request_settings
    (shop / "shop/tax.py").write_bytes(b"VAT = 7\n")
    assert before != make(LineCoverage, source=["shop"]).request_settings
