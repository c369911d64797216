"""A folder with a small experiment whose outcomes come from a table, and what tests ask of a session in it."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

OTHER_PLUGINS: Final = (
    *("randomly", "rerunfailures", "repeat", "timeout", "html", "html_fixtures", "metadata", "pytest_cov", "sugar"),
    "hypothesispytest",
)
"""Plugins that may be installed beside ours and have tests of their own."""

AGENT: Final = '''\
"""Agent, verifier and coverage of the tests: every attempt has a letter in a table.

p passes, m misses, d dies, u is unmeasured.
"""

import json
import pathlib
import time

HERE = pathlib.Path(__file__).parent


def run(request):
    where = f"{request.variant.id}::{request.task.id}"
    with open(HERE / "calls.txt", "a") as calls:
        calls.write(f"{where}[{request.attempt}]\\n")
    time.sleep(request.task.params.get("seconds", 0))
    letters = json.loads((HERE / "outcomes.json").read_text()).get(where, "p")
    letter = letters[min(request.attempt, len(letters)) - 1]
    if letter == "d":
        raise RuntimeError("the agent crashed")
    return ("u",) if letter == "u" else letter  # a tuple is no JSON: it is not kept, and the agent runs again


def verify(request, output):
    if output == ("u",):
        raise ValueError("the judge failed")
    return {"reward": 1.0 if output == "p" else 0.25, "tone": "dry"}


def measure(request):
    return len(request.tasks) / 3
'''

TASKS: Final[list[dict[str, Any]]] = [{"id": "find", "tags": ["quick"]}, {"id": "pay"}, {"id": "refund"}]
MUTANTS: Final[list[dict[str, Any]]] = [
    {"id": "no-pay", "description": "Never takes the money.", "tags": ["money"]},
    {"id": "quiet", "description": "Says nothing."},
]
SUBSETS: Final = [
    {"id": "s1", "tasks": ["find"]},
    {"id": "s2", "tasks": ["find", "pay"]},
    {"id": "s3", "tasks": ["find", "refund"]},
]
COVERAGE: Final = [{"id": "goals", "kind": "python", "measure": "agent:measure"}]
USUAL: Final = {"baseline::refund": "pm", "no-pay::pay": "m", "no-pay::refund": "md", "quiet::refund": "pm"}
"""Of 18 attempts 12 pass, 5 miss and 1 dies; no-pay is killed by pay, quiet survives."""


class Lab:
    """Makes experiments in a folder, runs pytest there, and reads what it left."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path

    # ------------------------------------------------ making

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def make(
        self,
        file: str = "experiment.yml",
        *,
        outcomes: dict[str, str] | None = None,
        agent: str = AGENT,
        module: str = "agent",
        case: dict[str, Any] | None = None,
        **keys: Any,
    ) -> Path:
        """Write an experiment and its agent: one case of 3 tasks, 2 mutants and 3 subsets, 2 attempts each.

        Args:
            file: its name; the agent and the table go beside it.
            outcomes: ``variant::task`` -> a letter for each attempt, the last for all that follow; ``p`` where it
                says nothing.
            agent: the source of the agent's module.
            module: the name of that module.
            case: keys of the case that are different or more.
            keys: keys of the experiment that are different or more; None takes one away.
        """
        coverage = [{**COVERAGE[0], "measure": f"{module}:measure"}]
        usual_case = {"id": "shop", "description": "A shop.", "tasks": TASKS, "mutants": MUTANTS, "subsets": SUBSETS}
        experiment: dict[str, Any] = {
            "metricbench": 1,
            "name": "shop",
            "attempts": 2,
            "runner": {"kind": "python", "agent": f"{module}:run", "verifier": f"{module}:verify"},
            "cases": [_without_none({**usual_case, **(case or {})})],
            "coverage": coverage,
            **keys,
        }
        folder = (self.path / file).parent
        path = self.write(file, yaml.safe_dump(_without_none(experiment), sort_keys=False))
        (folder / f"{module}.py").write_text(agent, encoding="utf-8")
        (folder / "outcomes.json").write_text(json.dumps(USUAL if outcomes is None else outcomes), encoding="utf-8")
        return path

    # ------------------------------------------------ running

    def run(self, *args: str, apart: bool = False) -> pytest.RunResult:
        """Run pytest in the folder, without the plugins that have tests of their own."""
        off = [part for plugin in OTHER_PLUGINS for part in ("-p", f"no:{plugin}")]
        if apart:
            return self.pytester.runpytest_subprocess(*off, *args)
        return self.pytester.runpytest_inprocess(*off, *args, no_reraise_ctrlc=True)

    # ------------------------------------------------ reading

    def calls(self) -> list[str]:
        """The attempts for which the agent was called since this was asked last, in order."""
        path = self.path / "calls.txt"
        called = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return called

    def store(self, name: str = "shop", folder: str = ".metricbench") -> Path:
        return self.path / folder / name

    def summary(self, name: str = "shop", folder: str = ".metricbench", *, partial: bool = False) -> Any:
        file = "summary.partial.json" if partial else "summary.json"
        return json.loads((self.store(name, folder) / file).read_text())

    def journal(self, name: str = "shop") -> list[dict[str, Any]]:
        """Every line of the attempts' journal."""
        return [json.loads(line) for line in (self.store(name) / "attempts.jsonl").read_text().splitlines()]


def _without_none(mapping: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value is not None}


def node_ids(result: pytest.RunResult) -> list[str]:
    """The ids that ``--collect-only -q`` lists."""
    return [line for line in result.outlines if re.match(r"\S+::\S+$", line)]


def words(result: pytest.RunResult) -> dict[str, str]:
    """Node id -> word, from the lines of ``-v``, in order."""
    shown = {}
    for line in result.outlines:
        if found := re.match(r"(?:\[gw\d+\] \[ *\d+%\] (\w+) (\S+)|(\S+::\S+) (\w+) +\[ *\d+%\])\s*$", line):
            shown[found[2] or found[3]] = found[1] or found[4]
    return shown


def without(summary: Any, *keys: str) -> Any:
    """A summary without what may differ between two runs of one experiment."""
    if isinstance(summary, dict):
        return {key: without(value, *keys) for key, value in summary.items() if key not in keys}
    return [without(entry, *keys) for entry in summary] if isinstance(summary, list) else summary
