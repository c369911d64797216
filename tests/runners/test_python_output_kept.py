"""The output of a python agent: kept as JSON where that keeps it whole, and scored again."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_metricbench.contracts import AttemptRequest, Outcome
from pytest_metricbench.runners.python import PythonRunner

Perform = Callable[..., Outcome]


KEEPING = """
    def agent(request):
        return {answer}
    def verify(request, output):
        return {{"reward": 1, "seen": repr(output)}}
"""


@pytest.mark.parametrize(
    "answer",
    ["{'a': [1, 2.5, None, True]}", "'text \\u2603'", "3", "[]", "None", "'half \\ud83d'", "{'k': {'deep': []}}"],
)
def test_output_that_is_json_is_kept_and_scored_again(
    build: Callable[..., PythonRunner], request_of: Callable[[], AttemptRequest], workspace: Path, answer: str
) -> None:
    runner = build(KEEPING.format(answer=answer))
    first = runner.run(request_of(), workspace)
    assert first.kind == "scored"
    assert json.loads((workspace / "output.json").read_bytes()) == eval(answer)
    assert runner.rescore(request_of(), workspace) == first


@pytest.mark.parametrize(
    "answer", ["(1, 2)", "{1: 2}", "{1}", "b'x'", "object()", "float('nan')", "10**5000", "[(1,)]", "print"]
)
def test_output_that_json_would_change_is_not_kept(
    build: Callable[..., PythonRunner], request_of: Callable[[], AttemptRequest], workspace: Path, answer: str
) -> None:
    runner = build(KEEPING.format(answer=answer).replace("repr(output)", "'x'"))
    assert runner.run(request_of(), workspace).kind == "scored"
    assert not (workspace / "output.json").exists()
    assert runner.rescore(request_of(), workspace) is None


def test_an_output_that_holds_itself_is_not_kept(perform: Perform, workspace: Path) -> None:
    outcome = perform("""
        def agent(request):
            output = []
            for _ in range(100_000):
                output = [output]
            return output
        def verify(request, output):
            return len(output)
    """)
    assert outcome == Outcome.scored({"reward": 1})
    assert not (workspace / "output.json").exists()


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder"])
def test_output_is_not_written_through_what_the_agent_planted(
    perform: Perform, tmp_path: Path, workspace: Path, kind: str
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    plant = {
        "link": f"symlink_to({str(precious)!r})",
        "hard link": f"hardlink_to({str(precious)!r})",
        "pipe": "name",
        "folder": "mkdir()",
    }[kind]
    outcome = perform(f"""
        import os
        def agent(request):
            path = request.workspace / "output.json"
            path.{plant}
            if {kind!r} == "pipe":
                os.mkfifo(path)
            return 1
        def verify(request, output):
            return output
    """)
    assert outcome == Outcome.scored({"reward": 1})
    assert precious.read_text() == "mine"


def test_what_is_scored_again_is_only_data(
    build: Callable[..., PythonRunner], request_of: Callable[[], AttemptRequest], workspace: Path, tmp_path: Path
) -> None:
    runner = build(KEEPING.format(answer="1"))
    assert runner.rescore(request_of(), workspace) is None
    workspace.mkdir(parents=True)
    output = workspace / "output.json"
    output.write_text("{torn")
    assert runner.rescore(request_of(), workspace) is None
    output.write_bytes(b"[" * 100_000)
    assert runner.rescore(request_of(), workspace) is None
    output.unlink()
    (tmp_path / "secret").write_text("1")
    output.symlink_to(tmp_path / "secret")
    assert runner.rescore(request_of(), workspace) is None
    output.unlink()
    os.mkfifo(output)
    assert runner.rescore(request_of(), workspace) is None


def test_the_agent_does_not_run_when_it_is_scored_again(
    build: Callable[..., PythonRunner], request_of: Callable[[], AttemptRequest], workspace: Path
) -> None:
    runner = build("def agent(request):\n    raise SystemExit\ndef verify(request, output):\n    return output * 2\n")
    workspace.mkdir(parents=True)
    (workspace / "output.json").write_text("2")
    assert runner.rescore(request_of(), workspace) == Outcome.scored({"reward": 4})
    without = build("def agent(request):\n    return 1\n")
    assert without.rescore(request_of(), workspace) is None


def test_a_full_disk_costs_only_the_kept_output(
    build: Callable[..., PythonRunner],
    request_of: Callable[[], AttemptRequest],
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = build(KEEPING.format(answer="[1, 2, 3]"))
    workspace.mkdir(parents=True)
    full = workspace.parent / "full"
    full.symlink_to("/dev/full")
    monkeypatch.setattr("pytest_metricbench.runners.python.replace_file", lambda path: os.open(full, os.O_RDWR))
    outcome = runner.run(request_of(), workspace)
    assert outcome == Outcome.scored({"reward": 1, "seen": "[1, 2, 3]"})
    assert not (workspace / "output.json").exists()
