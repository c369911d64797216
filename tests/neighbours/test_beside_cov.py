"""pytest-cov measures the agent's own module; for workers see the test of all plugins together."""

import json

import pytest

from tests.faults.session_lab import Lab, no_fault

pytest.importorskip("pytest_cov")
pytestmark = pytest.mark.slow

AGENT = """
def act(request):
    if request.variant.id == "baseline":
        return 1.0
    return 0.0

def never(request):
    return 0.5
"""


def test_the_lines_of_the_agent(lab: Lab) -> None:
    lab.make(AGENT, attempts=2)
    arguments = ("experiment.yml", "--cov=agent", "--cov-report=json:cov.json")
    ended = lab.run_apart(*arguments, beside=["cov"])
    assert ended.status == 0, ended
    no_fault(ended.out)
    assert lab.counts() == {"declared": 8, "passed": 4, "missed": 4}
    files = json.loads((lab.path / "cov.json").read_text("utf-8"))["files"]
    assert files["agent.py"]["executed_lines"] == [2, 3, 4, 5, 7]
    assert files["agent.py"]["missing_lines"] == [8]
