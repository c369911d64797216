"""Extensions that break their contract in the coverage phase cost a result, and never the session."""

import pytest

from tests.faults.session_lab import Lab, words

AGENT = "def act(request):\n    return 1.0\n"
CONFTEST = """
from typing import Literal

from pytest_metricbench import CoverageSystem, Score

class Plain(CoverageSystem):
    kind: Literal["plain"] = "plain"

    def measure(self, request, workspace):
        return Score(0.5)

class NoJson(Plain):
    kind: Literal["no-json"] = "no-json"

    @property
    def request_settings(self):
        return {"model": object()}

class Raising(Plain):
    kind: Literal["raising"] = "raising"

    @property
    def request_settings(self):
        raise RuntimeError("settings are elsewhere")

def pytest_metricbench_coverage_systems():
    return [Plain, NoJson, Raising]
"""


@pytest.mark.parametrize(
    ("kind", "said"),
    [("no-json", "the request of no-json cannot be made"), ("raising", "RuntimeError: settings are elsewhere")],
)
def test_a_request_that_cannot_be_made(lab: Lab, kind: str, said: str) -> None:
    lab.write("conftest.py", CONFTEST)
    lab.make(AGENT, coverage=[{"id": "plain", "kind": "plain"}, {"id": kind, "kind": kind}])
    result = lab.run("experiment.yml", "-v")
    output = result.stdout.str()
    assert "INTERNALERROR" not in output
    assert result.ret == 1, output
    assert words(output)["coverage::plain[pool]"] == "PASSED"
    pool = lab.summary(partial=True)["cases"]["c"]["pool"]["coverage"]
    assert pool["plain"]["value"] == 0.5
    assert pool[kind]["value"] is None
    assert said in pool[kind]["reason"]
    assert lab.counts(partial=True) == {"declared": 4, "passed": 4}
