"""docs/testing.md lists what is marked: slow, benchmark, upstream, harbor. METRICBENCH_WRITE_DOCS=1 writes it."""

import importlib.util
import os
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/testing.md"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_slow_parts", ROOT / "docs/make_slow_parts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_lists_what_is_marked(maker: ModuleType) -> None:
    text = PAGE.read_text("utf-8")
    now = maker.page(text, [])
    if os.environ.get("METRICBENCH_WRITE_DOCS"):
        PAGE.write_text(now, encoding="utf-8")
    assert now == text, "python docs/make_slow_parts.py writes it anew"
    assert "`tests/plugin/test_reuse.py` | some" in now  # by a parameter of a fixture of its folder
    assert "`tests/faults/test_dying_workers.py` | all" in now


def test_it_knows_the_markers_of_the_project(maker: ModuleType) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    known = {entry.partition(":")[0] for entry in project["tool"]["pytest"]["ini_options"]["markers"]}
    assert known == set(maker.MARKERS)
    assert known <= set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text("utf-8"), re.M))


def test_seconds_come_from_a_report_and_stay_where_none_is_given(maker: ModuleType, tmp_path: Path) -> None:
    report = tmp_path / "tests.xml"
    cases = [("tests.faults.test_dying_workers", 1.5), ("tests.faults.test_dying_workers.TestOne", 2.25), ("gone", 9)]
    written = "".join(f'<testcase classname="{name}" name="test_it" time="{time}"/>' for name, time in cases)
    report.write_text(f"<testsuites><testsuite>{written}</testsuite></testsuites>")
    once = maker.page(PAGE.read_text("utf-8"), [report])
    assert "| `tests/faults/test_dying_workers.py` | all | 3.8 | A worker that dies" in once
    assert maker.page(once, []) == once


def test_a_page_without_a_place_for_a_table_is_told(maker: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"docs/testing\.md has 0 places <!-- slow -->"):
        maker.page("# The tests\n", [])
