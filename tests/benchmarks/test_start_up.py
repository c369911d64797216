"""What the plugin costs where nobody uses it, and how soon the first attempt of an experiment runs."""

import json
import os
import shutil
import statistics
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from tests.benchmarks.cost_lab import Cost

pytestmark = pytest.mark.benchmark

EXAMPLES = Path(__file__).parents[2] / "examples"
WITHOUT_OURS = "-pno:metricbench"
ROUNDS = 15
SHARE = 0.05
"""Of pytest's own cost, at which the plugin's is called none, where pytest itself does not vary by more."""
FIRST_WITHIN = {"support_agent": 1.0, "own_project": 1.0, "toolz": 2.0}
"""Seconds from the end of the collection to the first attempt; toolz's own tests have to be collected before it."""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["-pno:cacheprovider"]], ids=["help", "version", "tests"]
)
def test_no_cost_without_an_experiment(
    tmp_path: Path,
    measured: Callable[..., Cost],
    plain_tests: Callable[[Path, int], None],
    bare_pytest: list[str],
    shown: Callable[[str], None],
    arguments: list[str],
) -> None:
    """Beside pytest without the plugin, in turns: what it adds is lost in how much pytest varies, or nearly nothing.

    Two rows of the same command without it tell how much that is: the distance of their runs, of which half are nearer.
    """
    folder = tmp_path / "plain"
    plain_tests(folder, 3)
    (folder / "notes.yml").write_text("a: file of somebody else\n")
    costs = defaultdict(list)
    sides = {"without": [WITHOUT_OURS], "with": [], "again": [WITHOUT_OURS]}
    for _ in range(ROUNDS):
        for side, options in sides.items():
            costs[side].append(measured([*bare_pytest, *options, *arguments], folder).cpu)
    middle = {side: statistics.median(found) for side, found in costs.items()}
    spread = statistics.median(abs(one - other) for one, other in zip(costs["without"], costs["again"], strict=True))
    bare = min(middle["without"], middle["again"])
    added = middle["with"] - bare
    shown(
        f"\npytest {' '.join(arguments)}: {bare * 1000:.1f} ms CPU without the plugin, {added * 1000:+.1f} ms with it "
        f"({added / bare:+.1%}); two runs without it differ by {spread * 1000:.1f} ms"
    )
    assert added <= max(spread, SHARE * bare)


MOMENTS = """\
import json, os, time

import pytest

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "controller")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session):
    if not session.config.pluginmanager.has_plugin("dsession"):
        with open(os.environ["MOMENTS"], "a") as file:
            file.write(json.dumps([time.time(), time.process_time()]) + "\\n")


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if WORKER == "controller" and report.when == "call":
        raise KeyboardInterrupt
"""
"""A plugin that notes when the items were collected in each process that does it, and stops after the first report."""


@pytest.mark.parametrize("options", [[], ["-n2"]], ids=["one process", "-n 2"])
@pytest.mark.parametrize("example", FIRST_WITHIN)
def test_first_attempt_after_collection(
    tmp_path: Path,
    measured: Callable[..., Cost],
    bare_pytest: list[str],
    shown: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    example: str,
    options: list[str],
) -> None:
    """All of an experiment is collected, and the first attempt begins at once; the best of some runs counts."""
    if example == "toolz":
        pytest.importorskip("toolz")
    folder, moments = tmp_path / example, tmp_path / "moments.jsonl"
    shutil.copytree(EXAMPLES / example, folder, ignore=shutil.ignore_patterns(".metricbench", "__pycache__"))
    (tmp_path / "moments.py").write_text(MOMENTS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("MOMENTS", str(moments))
    waited, used = [], []
    for _ in range(3):
        moments.unlink(missing_ok=True)
        shutil.rmtree(folder / ".metricbench", ignore_errors=True)
        measured([*bare_pytest, "-pmoments", *options, "experiment.yml"], folder, expect=2)
        collected, cpu = map(max, zip(*map(json.loads, moments.read_text().splitlines()), strict=True))
        waited.append(first_start(folder) - collected)
        used.append(cpu)
    shown(
        f"\n{example} {' '.join(options)}: the first attempt begins {min(waited):.2f} s after the last item was "
        f"collected; until then a process that collects uses {min(used):.2f} s of CPU"
    )
    assert min(waited) < FIRST_WITHIN[example]


def first_start(folder: Path) -> float:
    """When the first attempt of the store below a folder began, in seconds of the clock."""
    (journal,) = folder.glob(".metricbench/*/attempts.jsonl")
    with journal.open() as lines:
        return min(datetime.fromisoformat(record["started"]).timestamp() for record in map(json.loads, lines))
