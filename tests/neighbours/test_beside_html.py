"""pytest-html makes its report: it knows no outcomes but pytest's, and gets no others."""

import html
import json
import re
from typing import Any

import pytest

from tests.faults.session_lab import Lab, no_fault

pytest.importorskip("pytest_html")

AGENT = """
def act(request):
    if request.task.id == "dies":
        raise RuntimeError("out of cheese")
    if request.task.id == "breaks":
        return "no score at all"
    return 1.0 if request.task.id == "solves" else 0.0
"""
TASKS = ["solves", "misses", "dies", "breaks"]
COVERAGE = [{"id": "fair", "kind": "python", "measure": "cover:fair"}]
COVER = "def fair(request):\n    return 0.5 if request.subset == 'pool' else 7\n"
SUBSETS = [{"id": "s1", "tasks": ["solves"]}]


def rows(lab: Lab) -> dict[str, list[dict[str, Any]]]:
    """Node id -> the rows of the report that are about it."""
    page = (lab.path / "report.html").read_text("utf-8")
    blob = re.search(r'data-jsonblob="([^"]*)"', page)
    assert blob is not None
    found: dict[str, list[dict[str, Any]]] = json.loads(html.unescape(blob[1]))["tests"]
    return found


def test_the_report_has_every_attempt_and_request_once(lab: Lab) -> None:
    lab.write("cover.py", COVER)
    lab.make(AGENT, tasks=TASKS, subsets=SUBSETS, coverage=COVERAGE)
    result = lab.run("experiment.yml", "--html=report.html", "--self-contained-html", beside=["html"])
    assert result.ret == 1
    no_fault(result.stdout.str())
    found = {nodeid.removeprefix("experiment.yml::c::"): made for nodeid, made in rows(lab).items()}
    assert {nodeid: [row["result"] for row in made] for nodeid, made in found.items()} == {
        **{f"{variant}::{task}[1]": ["Passed"] for variant in ("baseline", "m1") for task in TASKS[:3]},
        **{f"{variant}::breaks[1]": ["Failed"] for variant in ("baseline", "m1")},
        "coverage::fair[s1]": ["Failed"],
        "coverage::fair[pool]": ["Passed"],
    }
    last_cells = {nodeid: made[0]["resultsTableRow"][-1] for nodeid, made in found.items()}
    words = {nodeid: cell.removeprefix("<td>").removesuffix("</td>") for nodeid, cell in last_cells.items()}
    expected = {"solves": "passed", "misses": "missed", "dies": "died", "breaks": "unmeasured"}
    assert words == {
        **{f"{variant}::{task}[1]": word for variant in ("baseline", "m1") for task, word in expected.items()},
        "coverage::fair[s1]": "failed",
        "coverage::fair[pool]": "measured",
    }
    assert "<th>Outcome</th>" in (lab.path / "report.html").read_text("utf-8")
    assert "no score at all" in html.unescape(found["m1::breaks[1]"][0]["log"])
    assert "value is 7" in html.unescape(found["coverage::fair[s1]"][0]["log"])


def test_experiments_that_are_found_in_a_folder(lab: Lab) -> None:
    """The table's header is made before they are found: they have no column of their own then."""
    lab.make(AGENT, tasks=["solves"], mutants=[])
    result = lab.run(".", "--html=report.html", "--self-contained-html", beside=["html"])
    assert result.ret == 0
    no_fault(result.stdout.str())
    assert "<th>Outcome</th>" not in (lab.path / "report.html").read_text("utf-8")
    assert [len(made[0]["resultsTableRow"]) for made in rows(lab).values()] == [4]


def test_reruns_are_shown_as_those_of_any_test(lab: Lab) -> None:
    pytest.importorskip("pytest_rerunfailures")
    lab.make(AGENT, tasks=["solves", "breaks"], mutants=[])
    lab.write("test_plain.py", "def test_one(): assert False")
    report = ("--html=report.html", "--self-contained-html", "--reruns=1")
    result = lab.run("experiment.yml", "test_plain.py", *report, beside=["html", "rerunfailures"])
    assert result.ret == 1
    no_fault(result.stdout.str())
    found = {nodeid.rpartition("::")[2]: [row["result"] for row in made] for nodeid, made in rows(lab).items()}
    assert found["breaks[1]"] == found["test_one"]
    assert found["breaks[1]"][-1] == "Failed"
    assert found["solves[1]"] == ["Passed"]
