"""pytest-sugar draws its own progress; the session and its end are the same."""

import re

import pytest

from tests.faults.session_lab import Lab, no_fault

pytest.importorskip("pytest_sugar")
pytestmark = pytest.mark.slow

AGENT = """
def act(request):
    if request.task.id == "breaks":
        return "no score at all"
    return 1.0 if request.variant.id == "baseline" else 0.0
"""
COVER = "def measure(request):\n    return 0.5\n"


def test_drawn_with_sugar(lab: Lab) -> None:
    lab.write("cover.py", COVER)
    coverage = [{"id": "half", "kind": "python", "measure": "cover:measure"}]
    lab.make(AGENT, tasks=["t1", "breaks"], attempts=2, coverage=coverage)
    ended = lab.run_apart("experiment.yml", "--force-sugar", beside=["sugar"])
    assert ended.status == 1, ended
    no_fault(ended.out)
    assert lab.counts() == {"declared": 8, "passed": 2, "missed": 2, "unmeasured": 4}
    assert "case c: 2 tasks, baseline + 1 mutant, 2 attempts each" in ended.out
    assert "no score at all" in ended.out
    assert re.search(r"5 passed.*\n.*4 failed", ended.out), ended
    shares = [int(share) for share in re.findall(r" (\d+)% ", ended.out)]
    assert max(shares) == shares[-1] == 100
