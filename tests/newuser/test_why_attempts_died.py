"""An agent that crashes is the first thing that goes wrong: the section and the summary say why."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

AGENT = """
def act(request):
    if request.variant.params.get("broken"):
        raise KeyError("lost")
    if request.task.id == "hard" or request.variant.id == "flat":
        import no_such_module
    return 1.0
"""
CASE = {
    "id": "c",
    "tasks": [{"id": "easy"}, {"id": "hard"}],
    "mutants": [{"id": "flat"}, {"id": "broken", "params": {"broken": True}}],
}


def run(folder: Path, runner: dict[str, object], *arguments: str) -> tuple[str, list[dict[str, Any]]]:
    (folder / "crashing_agent.py").write_text(AGENT)
    experiment = {"metricbench": 1, "name": "e", "attempts": 2, "runner": runner, "cases": [CASE]}
    (folder / "experiment.yml").write_text(yaml.safe_dump(experiment))
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "experiment.yml", *arguments]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return ended.stdout, json.loads((folder / ".metricbench/e/summary.json").read_text())["cases"]["c"]["deaths"]


@pytest.mark.slow
def test_exceptions_of_a_python_agent(tmp_path: Path) -> None:
    shown, deaths = run(tmp_path, {"kind": "python", "agent": "crashing_agent:act"})
    missing, lost = deaths
    assert (missing["type"], missing["attempts"], missing["variants"]) == (
        "ModuleNotFoundError",
        6,
        ["baseline", "flat"],
    )
    assert (lost["type"], lost["attempts"], lost["variants"]) == ("KeyError", 4, ["broken"])
    assert missing["first"] == "baseline::hard[1]"
    said = " ".join(shown.split())
    assert "died baseline, flat: 6 attempts, ModuleNotFoundError: No module named 'no_such_module'" in said
    assert "(baseline::hard[1])" in said


@pytest.mark.slow
def test_the_last_line_of_a_command_that_failed(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("import sys\nsys.exit('first\\nsecond\\n\\x1b[31mthe key is missing')\n")
    shown, deaths = run(tmp_path, {"kind": "command", "agent": ["{python}", "fails.py"]}, "-n0")
    assert [(death["type"], death["attempts"]) for death in deaths] == [("AgentFailed", 12)]
    said = " ".join(shown.split())
    assert "baseline, flat, broken: 12 attempts, AgentFailed: the agent" in said
    assert "the key is missing (baseline::easy[1])" in said
    assert "\x1b" not in shown
    brief = " ".join(run(tmp_path, {"kind": "command", "agent": ["{python}", "fails.py"]}, "-q")[0].split())
    assert "none of 4 attempts of the baseline passes" in brief
    assert "the key is missing (baseline::easy[1])" in brief
