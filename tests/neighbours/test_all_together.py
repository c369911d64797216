"""Every plugin at once, as in an environment that has them all."""

import html
import json
import xml.etree.ElementTree as ElementTree

import pytest

from tests.faults.session_lab import NEIGHBOURS, Lab, no_fault

for module in ("randomly", "rerunfailures", "repeat", "timeout", "html", "cov", "sugar"):
    pytest.importorskip(f"pytest_{module}")
pytestmark = pytest.mark.slow

AGENT = """
def act(request):
    if request.task.id == "dies":
        raise RuntimeError("out of cheese")
    if request.task.id == "breaks":
        return "no score at all"
    return 1.0 if request.variant.id == "baseline" else 0.0
"""
COVER = "def measure(request):\n    return len(request.tasks) / 3\n"
ALL = (
    *("-v", "--randomly-seed=7", "--reruns=1", "--count=2", "--timeout=60", "--html=report.html", "--force-sugar"),
    *("--cov=agent", "--cov-report=json:cov.json", "--junit-xml=junit.xml"),
)


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["plain", "n2"])
def test_one_attempt_a_slot_and_nothing_lost(lab: Lab, workers: list[str]) -> None:
    lab.write("cover.py", COVER)
    coverage = [{"id": "share", "kind": "python", "measure": "cover:measure"}]
    subsets = [{"id": "s1", "tasks": ["t1"]}]
    lab.make(AGENT, tasks=["t1", "dies", "breaks"], attempts=2, subsets=subsets, coverage=coverage)
    ended = lab.run_apart("experiment.yml", *ALL, *workers, beside=list(NEIGHBOURS))
    assert ended.status == 1, ended
    no_fault(ended.out)
    assert lab.counts() == {"declared": 12, "passed": 2, "missed": 2, "died": 4, "unmeasured": 4}
    entries = {"t1": 2, "dies": 2, "breaks": 0}
    assert lab.entries() == {f"{variant}::{task}": entries[task] for variant in ("baseline", "m1") for task in entries}
    kept = lab.attempts()
    assert len(kept) == 12
    assert len(lab.journal()) == 16  # four of them twice, by --reruns
    assert lab.requests()["share[s1]"]["value"] == 1 / 3
    files = json.loads((lab.path / "cov.json").read_text("utf-8"))["files"]
    assert files["agent.py"]["executed_lines"] == [2, 3, 4, 5, 6, 7]
    page = html.unescape((lab.path / "report.html").read_text("utf-8"))
    junit = ElementTree.parse(lab.path / "junit.xml").getroot()[0]
    for nodeid in (*(f"c::{slot}" for slot in kept), "c::coverage::share[s1]", "c::coverage::share[pool]"):
        assert f'"experiment.yml::{nodeid}": [' in page
    assert {case.get("name") for case in junit.iter("testcase")} >= {"share[s1]", "share[pool]", "dies[2]"}

    again = lab.run_apart("experiment.yml", *ALL, beside=list(NEIGHBOURS))
    assert again.status == 1, again
    assert lab.counts() == {"declared": 12, "passed": 2, "missed": 2, "died": 4, "unmeasured": 4, "reused": 8}
    assert {slot: record for slot, record in lab.attempts().items() if record["task"] != "breaks"} == {
        slot: record for slot, record in kept.items() if record["task"] != "breaks"
    }
