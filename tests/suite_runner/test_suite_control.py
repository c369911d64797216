"""A small function, its mutants, and the kills of each of its tests, written out by hand: reproduced exactly."""

import json
from typing import Any, Final

import pytest
import yaml

CLAMP: Final = """\
def clamp(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x
"""
TESTS: Final = """\
import unittest

import pytest

from limits import clamp


@pytest.fixture(scope="module")
def bounds():
    return 0, 10


def test_below(bounds):
    assert clamp(-5, *bounds) == 0


def test_inside(bounds):
    assert clamp(5, *bounds) == 5


@pytest.mark.parametrize("x, expected", [(50, 10)], ids=["above"])
def test_above(x, expected, bounds):
    assert clamp(x, *bounds) == expected


class Edges(unittest.TestCase):
    def test_low(self):
        self.assertEqual(clamp(0, 0, 10), 0)

    def test_high(self):
        self.assertEqual(clamp(10, 0, 10), 10)
"""
NODES: Final = {
    "below": "test_below",
    "inside": "test_inside",
    "above": "test_above[above]",
    "low": "Edges::test_low",
    "high": "Edges::test_high",
}
ALL: Final = set(NODES)
PAST: Final = ALL - {"below"}
"""The tests that get past the first condition."""
LAST: Final = PAST - {"above"}

MUTANTS: Final[dict[str, tuple[int, str, set[str], set[str]]]] = {
    # mutant: line, what stands there then, the tests that kill it, the tests that run the line
    "low-equal": (2, "    if x <= low:", set(), ALL),  # equivalent: at the bound both are the bound
    "never-low": (2, "    if False:", {"below"}, ALL),
    "low-is-high": (3, "        return high", {"below"}, {"below"}),
    "high-equal": (4, "    if x >= high:", set(), PAST),  # equivalent
    "high-late": (4, "    if x > high + 1000:", {"above"}, PAST),
    "high-turned": (4, "    if x < high:", {"inside", "above", "low"}, PAST),
    "high-raises": (5, "        raise RuntimeError", {"above"}, {"above"}),
    "high-exits": (5, "        __import__('os')._exit(1)", {"above"}, {"above"}),
    "x-turned": (6, "    return -x", {"inside", "high"}, LAST),
    "x-loops": (6, "    while x == 5: pass", {"inside", "low", "high"}, LAST),  # and gives None for the others
    "no-high": (1, "def clamp(x, low, high=1 / 0):", ALL, ALL),  # breaks the import of everything
}


def experiment(**runner: Any) -> str:
    lines = CLAMP.splitlines()
    mutants = []
    for name, (line, new, _, _) in MUTANTS.items():
        head = f"--- a/limits.py\n+++ b/limits.py\n@@ -{line} +{line} @@\n"
        mutants.append({"id": name, "params": {"patch": f"{head}-{lines[line - 1]}\n+{new}\n"}})
    keys = {
        "metricbench": 1,
        "name": "limits",
        "runner": {"kind": "suite", "source": ["limits.py"], "tests": "test_limits.py", "slowdown": 1, **runner},
        "cases": [
            {
                "id": "clamp",
                "tasks": [
                    {"id": name, "params": {"nodeid": f"test_limits.py::{node}"}} for name, node in NODES.items()
                ],
                "mutants": mutants,
            }
        ],
    }
    return yaml.safe_dump(keys, sort_keys=False)


@pytest.fixture
def project(pytester: pytest.Pytester, unasked: None) -> pytest.Pytester:
    (pytester.path / "limits.py").write_text(CLAMP)
    (pytester.path / "test_limits.py").write_text(TESTS)
    return pytester


def summary_of(project: pytest.Pytester) -> Any:
    return json.loads((project.path / ".metricbench/limits/summary.json").read_text())["cases"]["clamp"]


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "exhaustive"), [("-n0", True), ("-n2", False)], ids=["exhaustive", "reached"])
def test_the_matrix(project: pytest.Pytester, exhaustive: bool, workers: str) -> None:
    (project.path / "experiment.yml").write_text(experiment(exhaustive=exhaustive))
    off = [f"-pno:{name}" for name in ("randomly", "sugar", "timeout", "rerunfailures", "html", "metadata")]
    result = project.runpytest_subprocess("experiment.yml", workers, *off)
    assert result.ret == 0, result.stdout.str()
    case = summary_of(project)
    cells = case["kills"]
    killed = {mutant: {task for task, cell in row.items() if cell == "killed"} for mutant, row in cells.items()}
    assert killed == {mutant: kills for mutant, (_, _, kills, _) in MUTANTS.items()}
    spared = {mutant: {task for task, cell in row.items() if cell == "not_reached"} for mutant, row in cells.items()}
    expected = {mutant: set() if exhaustive else ALL - reached for mutant, (_, _, _, reached) in MUTANTS.items()}
    assert spared == expected
    # Valid are all but the one whose every attempt died; of these ten the two equivalent ones are not killed.
    valid = {mutant for mutant, variant in case["variants"].items() if variant["kind"] == "mutant" and variant["valid"]}
    assert valid == set(MUTANTS) - {"no-high"}
    assert case["pool"]["kill_share"]["value"] == 0.8
