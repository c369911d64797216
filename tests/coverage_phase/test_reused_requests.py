"""A second run takes coverage from the store as long as the request, the settings and every kept file are the same."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.session_lab import Lab, words

AGENT = """
from pathlib import Path

def act(request):
    (request.workspace / "trace.txt").write_text(request.task.id)
    return 1.0
"""
COMMAND = """
import json
from pathlib import Path

request = json.loads(Path("request.json").read_text())
calls = Path(request["settings"]["calls"])
with calls.open("a") as log:
    log.write(request["subset"] + " ")
Path("notes.md").write_text("observed")
Path("response.json").write_text(json.dumps({"value": len(request["tasks"]) / 4}))
"""


class Measured:
    """An experiment with two subsets and a command that says when it was called."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.calls = lab.path.parent / f"{lab.path.name}.calls"
        lab.write("cover.py", COMMAND)
        self.make()
        assert lab.run("experiment.yml").ret == 0
        assert self.called() == ["pool", "s1", "s2"]

    def make(self, *, settings: dict[str, Any] | None = None, **keys: Any) -> None:
        entry = {"id": "cover", "kind": "command", "command": ["{python}", "cover.py"], "timeout": 60}
        self.lab.make(
            AGENT,
            tasks=["t1", "t2", "t3"],
            subsets=[{"id": "s1", "tasks": ["t1"]}, {"id": "s2", "tasks": ["t1", "t2"]}],
            coverage=[{**entry, "settings": {"calls": str(self.calls), **(settings or {})}}],
            **keys,
        )

    def called(self) -> list[str]:
        """The subsets for which the command was called since this was asked last."""
        made = sorted(self.calls.read_text().split()) if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return made

    def again(self) -> dict[str, str]:
        result = self.lab.run("experiment.yml", "-v")
        assert result.ret == 0, result.stdout.str()
        return words(result.stdout.str())

    def folder(self, subset: str) -> Path:
        return self.lab.store / "coverage" / "c" / "cover" / subset


@pytest.fixture
def measured(lab: Lab) -> Measured:
    return Measured(lab)


def test_nothing_changed(measured: Measured) -> None:
    assert set(measured.again().values()) == {"REUSED"}
    assert measured.called() == []
    receipt = json.loads((measured.folder("s1") / "receipt.json").read_text())
    record = measured.lab.requests()["cover[s1]"]
    assert receipt["request"] == record["request_digest"]
    assert receipt["settings"] == record["settings_digest"]
    assert receipt["files"] == record["files"]
    assert {"notes.md", "request.json", "response.json"} <= receipt["files"].keys()


def _edit(path: Path) -> None:
    path.write_text(path.read_text() + " ")


def _link(path: Path) -> None:
    copy = path.with_name("copy")
    os.rename(path, copy)
    path.symlink_to(copy)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("how", [_edit, Path.unlink, _link, _folder], ids=["edited", "removed", "a link", "a folder"])
@pytest.mark.parametrize("name", ["notes.md", "response.json", "request.json"])
def test_a_kept_file_that_is_not_as_it_was(measured: Measured, name: str, how: Callable[[Path], None]) -> None:
    how(measured.folder("s2") / name)
    assert measured.again()["coverage::cover[s2]"] == "PASSED"
    assert measured.called() == ["s2"]
    assert set(measured.again().values()) == {"REUSED"}


def test_a_kept_folder_that_is_gone(measured: Measured) -> None:
    os.rename(measured.folder("s1"), measured.lab.path / "elsewhere")
    assert measured.again()["coverage::cover[s1]"] == "PASSED"
    assert measured.called() == ["s1"]


@pytest.mark.parametrize(
    "change",
    [{"settings": {"depth": 3}}, {"case": {"description": "Said otherwise."}}],
    ids=["settings", "description"],
)
def test_another_request_is_measured_and_no_attempt_is_run_for_it(measured: Measured, change: dict[str, Any]) -> None:
    before = measured.lab.attempts()
    measured.make(**change)
    shown = measured.again()
    assert measured.called() == ["pool", "s1", "s2"]
    assert {word for name, word in shown.items() if "coverage::" not in name} == {"REUSED"}
    assert measured.lab.attempts() == before


def test_a_changed_command_is_asked_again(measured: Measured) -> None:
    measured.lab.write("cover.py", COMMAND.replace("/ 4", "/ 8"))
    measured.again()
    assert measured.called() == ["pool", "s1", "s2"]
    assert measured.lab.requests()["cover[s2]"]["value"] == 2 / 8


def test_a_longer_timeout_is_no_other_request(measured: Measured) -> None:
    text = (measured.lab.path / "experiment.yml").read_text()
    measured.lab.write("experiment.yml", text.replace('"timeout": 60', '"timeout": 90'))
    assert '"timeout": 90' in (measured.lab.path / "experiment.yml").read_text()
    measured.again()
    assert measured.called() == []


def test_changed_evidence_runs_its_attempt_and_its_requests_again(measured: Measured) -> None:
    trace = measured.lab.workspace(measured.lab.attempts()["baseline::t2[1]"]) / "trace.txt"
    trace.write_text("tampered with")
    shown = measured.again()
    assert {name for name, word in shown.items() if word != "REUSED"} == {
        "baseline::t2[1]",
        "coverage::cover[s2]",
        "coverage::cover[pool]",
    }
    assert measured.called() == ["pool", "s2"]


def test_a_new_baseline_attempt_makes_new_requests(measured: Measured) -> None:
    measured.make(attempts=2)
    measured.again()
    assert measured.called() == ["pool", "s1", "s2"]


def test_a_changed_mutant_changes_no_request(measured: Measured) -> None:
    measured.make(mutants=[{"id": "m1", "params": {"other": True}}])
    shown = measured.again()
    assert measured.called() == []
    assert {name for name, word in shown.items() if word != "REUSED"} == {f"m1::t{number}[1]" for number in (1, 2, 3)}


def test_evidence_that_changes_while_the_run_goes_on(lab: Lab) -> None:
    """A later attempt tampers with what an earlier one left: the request fails and says whose evidence it was."""
    lab.write("cover.py", COMMAND)
    tampering = AGENT.replace(
        "    return 1.0",
        "    if request.variant.id == 'm1':\n"
        "        for trace in Path(request.workspace).parents[2].glob('baseline/t1/*/trace.txt'):\n"
        "            trace.write_text('tampered with')\n"
        "    return 1.0",
    )
    entry = {"id": "cover", "kind": "command", "command": ["{python}", "cover.py"]}
    calls = lab.path.parent / f"{lab.path.name}.calls"
    lab.make(tampering, tasks=["t1"], coverage=[{**entry, "settings": {"calls": str(calls)}}])
    result = lab.run("experiment.yml")
    assert result.ret == 1
    assert "trace.txt was changed, since its attempt ended" in lab.requests()["cover[pool]"]["error"]
    assert not calls.exists()
