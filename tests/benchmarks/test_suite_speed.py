"""Attempts of the ``suite`` runner a second, beside a process of pytest for each: same mutants and tests."""

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pytest_metricbench.suite.patches import parse_patch
from tests.benchmarks.cost_lab import Cost

pytestmark = pytest.mark.benchmark

LOOP = """\
import json, pathlib, subprocess, sys
for source, nodeid in json.loads(pathlib.Path("plan.json").read_text()):
    pathlib.Path("toolz/{module}.py").write_text(source)
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-pno:cacheprovider", nodeid]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL)
    assert ended.returncode in (0, 1, 2), ended
"""
MODULE = "itertoolz"
MUTANTS = 24
PLAIN = 10
"""Attempts that are made with a process each: enough for a mean."""
ROUNDS = 2
TIMES = 30
"""How many times as many attempts a second are asked for."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of toolz with its tests, beside nothing else."""
    toolz = pytest.importorskip("toolz")
    home = Path(toolz.__file__).parent
    shutil.copytree(home, tmp_path / "toolz", ignore=shutil.ignore_patterns("__pycache__", "tests"))
    (tmp_path / "tests").mkdir()
    shutil.copy(home / "tests" / f"test_{MODULE}.py", tmp_path / "tests")
    return tmp_path


def patches(source: str) -> list[str]:
    """One patch for each of some statements, which then does something else."""
    lines = source.splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text.startswith("return ") and text.count("(") == text.count(")") and not text.endswith(","):
            indent = line[: len(line) - len(line.lstrip())]
            head = f"--- a/toolz/{MODULE}.py\n+++ b/toolz/{MODULE}.py\n@@ -{number} +{number} @@\n"
            found.append(f"{head}-{line}\n+{indent}return None\n")
    step = max(1, len(found) // MUTANTS)
    return found[::step][:MUTANTS]


def experiment(mutants: list[str]) -> str:
    keys = {
        "metricbench": 1,
        "name": "speed",
        # Every test against every mutant: what is measured is an attempt, not how many need not be made.
        "runner": {"kind": "suite", "source": ["toolz"], "tests": "tests", "exhaustive": True},
        "cases": [
            {
                "id": "toolz",
                "tasks": {"collect": "tests"},
                "mutants": [{"id": f"m{n}", "params": {"patch": patch}} for n, patch in enumerate(mutants)],
            }
        ],
    }
    return yaml.safe_dump(keys, sort_keys=False)


def in_processes(project: Path, mutants: list[str], nodeids: list[str]) -> list[str]:
    """The command that makes :data:`PLAIN` attempts with a process each, the mutant in the place of the original."""
    source = (project / "toolz" / f"{MODULE}.py").read_text()
    copy = project / "plain"
    shutil.copytree(project / "toolz", copy / "toolz")
    shutil.copytree(project / "tests", copy / "tests")
    plan = []
    for number in range(PLAIN):
        (part,) = parse_patch(mutants[number % len(mutants)])
        plan.append([part.apply(source, MODULE), nodeids[number * 7 % len(nodeids)]])
    (copy / "plan.json").write_text(json.dumps(plan))
    (copy / "loop.py").write_text(LOOP.format(module=MODULE))
    return [sys.executable, str(copy / "loop.py")]


def test_attempts_a_second(
    project: Path, bare_pytest: list[str], measured: Callable[..., Cost], shown: Callable[[str], None]
) -> None:
    """All tests of one module of toolz against some mutants of it, in turns with processes, the best of each."""
    mutants = patches((project / "toolz" / f"{MODULE}.py").read_text())
    (project / "experiment.yml").write_text(experiment(mutants))
    ours, plain = [], []
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    command: list[str] = []
    for _ in range(ROUNDS):
        shutil.rmtree(project / ".metricbench", ignore_errors=True)
        began = time.perf_counter()
        ours.append(measured([*bare_pytest, "experiment.yml"], project).cpu)
        seconds["ours"].append(time.perf_counter() - began)
        if not command:
            lock = yaml.safe_load((project / "experiment.lock.yml").read_text())
            nodeids = [entry["name"] for entry in lock["expansions"][0]["entries"]]
            command = in_processes(project, mutants, nodeids)
        began = time.perf_counter()
        plain.append(measured(command, project / "plain").cpu)
        seconds["plain"].append(time.perf_counter() - began)
    attempts = (len(mutants) + 1) * len(nodeids)
    one, other = min(ours) / attempts, min(plain) / PLAIN
    wall, other_wall = min(seconds["ours"]) / attempts, min(seconds["plain"]) / PLAIN
    shown(
        f"\nsuite: {attempts} attempts, start of pytest and collection included: {1 / wall:.0f} a second, "
        f"{one * 1000:.1f} ms CPU each; with a process of pytest each {1 / other_wall:.2f} a second, "
        f"{other * 1000:.0f} ms CPU: {other_wall / wall:.0f} times as many, {other / one:.0f} by CPU"
    )
    assert other / one >= TIMES  # by CPU: what else the machine does is in both sides of no clock
