"""A coverage request sees the baseline's evidence and nothing of any mutant."""

import json
import os
from pathlib import Path

import pytest

from tests.faults.session_lab import Lab

AGENT = """
import json
from pathlib import Path

request = json.loads(Path("request.json").read_text())
Path("trace.json").write_text(json.dumps({"said": request["task"]["id"], "by": request["variant"]["id"]}))
Path("sub").mkdir()
Path("sub/more.txt").write_text("more")
if request["variant"]["params"].get("switch") == "quokka":
    raise SystemExit("mutants may die")
Path("response.json").write_text('{"scores": {"reward": 1}}')
"""
SPY = """
import json, os, sys
from pathlib import Path

seen = {"environment": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv, "files": {}, "names": []}
for folder, folders, files in os.walk("."):
    seen["names"] += [os.path.join(folder, name) for name in folders + files]
    for name in files:
        path = Path(folder, name)
        if path.is_file():
            seen["files"][str(path)] = path.read_text()
opened = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
seen["open"] = [os.readlink(path) for path in opened if os.path.exists(path)]
request = json.loads(Path("request.json").read_text())
Path(request["settings"]["to"], request["subset"]).write_text(json.dumps(seen))
Path("response.json").write_text('{"value": 1}')
"""
MUTANTS = [
    {"id": "wombat-mutant", "description": "Forgets the marsupial policy.", "params": {"switch": "quokka"}},
    {"id": "numbat-mutant", "description": "Answers in Esperanto.", "params": {"switch": "bilby"}, "tags": ["potoroo"]},
]
TRACES_OF_MUTANTS = ("wombat", "numbat", "marsupial", "esperanto", "quokka", "bilby", "potoroo")


@pytest.mark.slow
def test_nothing_of_a_mutant_is_reachable(lab: Lab, tmp_path: Path) -> None:
    seen_folder = tmp_path / "seen"
    seen_folder.mkdir()
    lab.write("spy.py", SPY)
    lab.make(
        AGENT,
        command=True,
        tasks=["t1", "t2"],
        mutants=MUTANTS,
        attempts=2,
        controls=1,
        subsets=[{"id": "s1", "tasks": ["t1"]}],
        case={"description": "The case in words."},
        coverage=[
            {"id": "spy", "kind": "command", "command": ["{python}", "spy.py"], "settings": {"to": str(seen_folder)}}
        ],
    )
    environment = {"PYTEST_CURRENT_TEST": "m[wombat]", "WOMBAT": "quokka", "HOME": str(tmp_path)}
    ended = lab.run_apart("experiment.yml", env=environment)
    assert ended.status == 0, ended
    attempts = lab.attempts()
    assert set(os.listdir(seen_folder)) == {"s1", "pool"}
    for subset in ("s1", "pool"):
        text = (seen_folder / subset).read_text()
        seen = json.loads(text)
        for trace in TRACES_OF_MUTANTS:
            assert trace not in text.lower(), trace
        for record in attempts.values():
            if record["variant"] != "baseline":
                assert record["trial_id"] not in text
        assert str(lab.path) not in json.dumps([seen["cwd"], seen["environment"], seen["open"]])
        assert set(seen["environment"]) <= {"PATH", "HOME", "LANG", "LC_CTYPE"}

        tasks = ["t1"] if subset == "s1" else ["t1", "t2"]
        request = json.loads(seen["files"]["request.json"])
        assert request["case"] == {"id": "c", "description": "The case in words."}
        assert request["tasks"] == tasks
        expected = {
            f"evidence/{task}/{attempts[f'baseline::{task}[{slot}]']['trial_id']}/{name}"
            for task in tasks
            for slot in (1, 2)
            for name in ("trace.json", "sub/more.txt")
        }
        given = {file["path"] for files in request["evidence"].values() for file in files}
        assert given == expected
        assert expected | {"request.json", "command.stdout", "command.stderr"} == set(seen["files"])
        assert all('"by": "baseline"' in seen["files"][name] for name in expected if name.endswith("trace.json"))
    kept = "".join(path.read_text() for path in (lab.store / "coverage").rglob("*") if path.is_file())
    assert not any(trace in kept.lower() for trace in TRACES_OF_MUTANTS)
