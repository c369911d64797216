"""Coverage systems that are Python: functions, and classes that a conftest.py gives through the hook."""

from typing import Any

import pytest

from tests.faults.session_lab import Lab, no_fault, words

AGENT = """
from pathlib import Path

def act(request):
    (request.workspace / "trace.txt").write_text("a b" if request.task.id == "t1" else "b c")
    return 1.0
"""
FUNCTIONS = """
import os, sys
from pathlib import Path

import numpy
import pytest

def measure(request):
    answer = request.settings["answer"]
    if answer == "raises":
        raise ValueError("no idea")
    if answer == "exits":
        sys.exit(0)
    if answer == "fails":
        pytest.fail("as a test would")
    if answer == "wordless":
        raise Wordless
    if answer == "slow":
        import time
        time.sleep(30)
    if answer == "changes":
        for files in request.evidence.values():
            for path in files:
                path.write_text("nicer")
    if answer == "changes and is wrong":
        request.evidence["t1"][0].unlink()
        return True
    return ANSWERS.get(answer, 0.25)

class Wordless(Exception):
    def __str__(self):
        raise RuntimeError("no words")

ANSWERS = {
    "true": True, "text": "0.5", "nan": float("nan"), "above": 1.5, "below": -0.01, "none": None,
    "infinity": float("inf"), "list": [0.5], "empty": {}, "other": {"value": 0.5, "score": 1},
    "null alone": {"value": None}, "bad goals": {"value": 0.5, "goals": {"universe": ["a"]}}, "object": object(),
    "numpy": numpy.float32(0.5), "numpy bool": numpy.bool_(True), "numpy array": numpy.array([0.5]),
    "one": 1, "zero": 0.0, "null": {"value": None, "reason": "nothing to count"},
    "goals": {"value": 0.5, "goals": {"universe": ["b", "a"], "by_task": {"t1": ["a"], "t2": []}}},
}
"""
FAILED = {
    "raises": "ValueError: no idea",
    "exits": "SystemExit",
    "fails": "as a test would",
    "wordless": "Wordless",
    "slow": "ran longer than 0.5 s",
    "changes": "trace.txt was changed",
    "changes and is wrong": "the boolean true",
    "true": "the boolean true",
    "text": 'the text "0.5"',
    "nan": "a number from 0 to 1",
    "above": "value is 1.5",
    "below": "value is -0.01",
    "none": "null",
    "infinity": "a number from 0 to 1",
    "list": "a list",
    "empty": 'has no "value"',
    "other": '"score" is no key',
    "null alone": "no reason is given",
    "bad goals": "goals are",
    "object": "of type object",
    "numpy bool": "a number from 0 to 1",
    "numpy array": "a number from 0 to 1",
}
MEASURED: dict[str, tuple[float | None, str | None]] = {
    "numpy": (0.5, None),
    "one": (1.0, None),
    "zero": (0.0, None),
    "null": (None, "nothing to count"),
    "goals": (0.5, None),
}


def ident(answer: str) -> str:
    return answer.replace(" ", "-")


def test_what_a_function_returns_or_raises(lab: Lab) -> None:
    lab.write("functions.py", FUNCTIONS)
    lab.make(
        AGENT,
        tasks=["t1", "t2"],
        mutants=[],
        coverage=[
            {
                "id": ident(answer),
                "kind": "python",
                "measure": "functions:measure",
                "timeout": 0.5,
                "settings": {"answer": answer},
            }
            for answer in (*FAILED, *MEASURED)
        ],
    )
    result = lab.run("experiment.yml", "-v")
    output = result.stdout.str()
    assert result.ret == 1
    no_fault(output)
    requests = lab.requests()
    assert len(requests) == len(FAILED) + len(MEASURED)
    for answer, said in FAILED.items():
        record = requests[f"{ident(answer)}[pool]"]
        assert record["outcome"] == "failed", answer
        assert said in record["error"], answer
        assert words(output)[f"coverage::{ident(answer)}[pool]"] == "FAILED"
    for answer, (value, reason) in MEASURED.items():
        record = requests[f"{ident(answer)}[pool]"]
        assert (record["outcome"], record["value"], record["reason"]) == ("measured", value, reason), answer
    assert "trace.txt is gone" in requests["changes-and-is-wrong[pool]"]["error"]  # both problems
    assert "function.stderr" in {path.name for path in (lab.store / "coverage/c/raises/failed-pool-1").iterdir()}
    assert requests["goals[pool]"]["goals"] == {"universe": ["a", "b"], "by_task": {"t1": ["a"], "t2": []}}
    traces = {lab.workspace(record) / "trace.txt" for record in lab.attempts().values()}
    assert {trace.read_text() for trace in traces} == {"a b", "b c"}


CONFTEST = """
import sys
from typing import ClassVar, Literal

from pytest_metricbench import CoverageError, CoverageSystem, Score

class Words(CoverageSystem):
    '''Share of a vocabulary that the traces say.'''

    kind: Literal["words"] = "words"
    vocabulary: list[str]
    concurrent: ClassVar[bool] = True

    def measure(self, request, workspace):
        said = {word for files in request.evidence.values() for path in files for word in path.read_text().split()}
        (workspace / "said.txt").write_text(" ".join(sorted(said)))
        return Score(len(said & set(self.vocabulary)) / len(self.vocabulary))

class Odd(CoverageSystem):
    kind: Literal["odd"] = "odd"
    how: str
    concurrent: ClassVar[bool] = True

    def measure(self, request, workspace):
        if self.how == "float":
            return 0.5
        if self.how == "error":
            raise CoverageError("the judge is out")
        if self.how == "bug":
            return {}["nothing"]
        if self.how == "exit":
            sys.exit(1)
        if self.how == "no-reason":
            return Score(None)
        return Score({"true": True, "above": 2, "text": "1"}[self.how])

def pytest_metricbench_coverage_systems():
    return [Words, Odd]
"""
ODD = {
    "float": "returned float; a Score is expected",
    "error": "the judge is out",
    "bug": "raised KeyError: 'nothing'",
    "exit": "raised SystemExit: 1",
    "no-reason": "no value and no reason",
    "true": "the boolean true",
    "above": "value is 2",
    "text": 'the text "1"',
}


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.benchmark)], ids=["plain", "n2"])
def test_classes_from_a_conftest(lab: Lab, workers: list[str]) -> None:
    lab.write("conftest.py", CONFTEST)
    systems: list[dict[str, Any]] = [{"id": "said", "kind": "words", "vocabulary": ["a", "b", "c", "d"]}]
    systems += [{"id": how, "kind": "odd", "how": how} for how in ODD]
    subsets = [{"id": "s1", "tasks": ["t1"]}]
    lab.make(AGENT, tasks=["t1", "t2"], mutants=[], subsets=subsets, coverage=systems)
    ended = lab.run_apart("experiment.yml", "-v", *workers)
    assert ended.status == 1, ended
    no_fault(ended.out)
    requests = lab.requests()
    assert requests["said[s1]"]["value"] == 0.5
    assert requests["said[pool]"]["value"] == 0.75
    assert "said.txt" in requests["said[pool]"]["files"]
    for how, said in ODD.items():
        for subset in ("s1", "pool"):
            record = requests[f"{how}[{subset}]"]
            assert record["outcome"] == "failed", how
            assert said in record["error"], how
    assert (lab.store / "coverage/c/bug/failed-pool-1/system.stderr").is_file()
