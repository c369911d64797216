"""The ``suite`` runner beside cosmic-ray and mutmut: all mutants of a module, each up to the first test that kills it.

The two are installed on request: ``pip install cosmic-ray==8.7.* mutmut==3.8.*``, or into an environment of their own
together with pytest and toolz, whose interpreter ``METRICBENCH_PEERS`` names.
"""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.cost_lab import Cost

pytestmark = pytest.mark.benchmark

AT_LEAST = {
    ("cosmic_ray", "dicttoolz"): 3,
    ("cosmic_ray", "itertoolz"): 5,
    ("mutmut", "dicttoolz"): 0.5,
    ("mutmut", "itertoolz"): 5,
}
"""How many times as fast a mutant is, by CPU: what holds with room to spare, so that a loss is noticed.

What is the same however many mutants there are is in it: dicttoolz has 73, of which that is the greater part; itertoolz
has 548, of which 19 loop for ever in some test.
"""
EVERY = {"dicttoolz": 1, "itertoolz": 12}
"""Of how many mutants of a module cosmic-ray runs one: for each it starts pytest anew, which takes minutes for all."""
VERSIONS = {"cosmic_ray": "8.7", "mutmut": "3.8"}
PEERS = os.environ.get("METRICBENCH_PEERS", sys.executable)

EXPERIMENT = """\
metricbench: 1
name: peers
items: variant
runner: {kind: suite, source: [toolz], tests: tests, kill: first, env: {PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1"}}
cases:
  - id: toolz
    tasks: {collect: tests}
    mutants: {generate: {from: cosmic-ray, modules: [toolz.MODULE]}}
"""
COSMIC_RAY = f"""\
[cosmic-ray]
module-path = "toolz/MODULE.py"
timeout = 5.0
excluded-modules = []
test-command = {json.dumps(f"{PEERS} -B -m pytest -q -x -p no:cacheprovider tests")}
[cosmic-ray.distributor]
name = "local"
"""
MUTMUT = """\
[project]
name = "toolz-copy"
version = "1"
[tool.mutmut]
source_paths = ["toolz"]
only_mutate = ["toolz/MODULE.py"]
pytest_add_cli_args_test_selection = ["tests"]
"""


def require(package: str) -> None:
    """Skip where a peer is not there, in the version that is meant."""
    ask = f"from importlib.metadata import version; print(version({package.replace('_', '-')!r}))"
    ended = subprocess.run([PEERS, "-c", ask], capture_output=True, text=True, check=False)
    found = ended.stdout.strip() or "none"
    if not found.startswith(VERSIONS[package]):
        pytest.skip(
            f"{package} {VERSIONS[package]} is needed, there is {found}: METRICBENCH_PEERS may name its interpreter"
        )


@pytest.fixture
def project(tmp_path: Path) -> Any:
    """Makes copies of toolz beside the tests of one module."""
    toolz = pytest.importorskip("toolz")
    home = Path(toolz.__file__).parent

    def make(name: str, module: str, **files: str) -> Path:
        folder = tmp_path / name
        shutil.copytree(home, folder / "toolz", ignore=shutil.ignore_patterns("__pycache__", "tests"))
        (folder / "tests").mkdir()
        shutil.copy(home / "tests" / f"test_{module}.py", folder / "tests")
        for file, text in files.items():
            (folder / file.replace("_", ".")).write_text(text.replace("MODULE", module))
        return folder

    return make


@dataclass(frozen=True)
class Ours:
    """What the runner took, start and coverage of the baseline included."""

    cpu: float
    mutants: int
    killed: int
    wall: float
    """Seconds with two processes; mutmut takes as many as there are cores."""

    @property
    def each(self) -> float:
        """CPU seconds a mutant."""
        return self.cpu / self.mutants


@pytest.fixture(scope="module")
def known() -> dict[str, Ours]:
    """What was measured already, by module."""
    return {}


@pytest.fixture
def ours(
    project: Any, known: dict[str, Ours], bare_pytest: list[str], measured: Callable[..., Cost]
) -> Callable[[str], Ours]:
    """Runs the mutants of a module, once for the CPU time and once for the wall time with two processes."""
    pytest.importorskip("cosmic_ray")

    def run(module: str) -> Ours:
        if module not in known:
            folder = project("ours", module, experiment_yml=EXPERIMENT)
            measured([*bare_pytest, "--metricbench-lock", "experiment.yml"], folder)
            cost = measured([*bare_pytest, "experiment.yml"], folder)
            summary = json.loads((folder / ".metricbench/peers/summary.json").read_text())
            kills = summary["cases"]["toolz"]["kills"]
            shutil.rmtree(folder / ".metricbench")
            began = time.perf_counter()
            measured([*bare_pytest, "-n2", "experiment.yml"], folder)
            wall = time.perf_counter() - began
            killed = sum("killed" in cells.values() for cells in kills.values())
            known[module] = Ours(cost.cpu, len(kills), killed, wall)
        return known[module]

    return run


def keep_every(database: Path, step: int) -> int:
    """Leave one of so many mutants in a session of cosmic-ray, even over its operators; gives how many are left."""
    with closing(sqlite3.connect(database)) as session, session:
        order = "operator_name, occurrence, start_pos_row, start_pos_col, job_id"
        jobs = [job for (job,) in session.execute(f"SELECT job_id FROM mutation_specs ORDER BY {order}")]
        left_out = [(job,) for number, job in enumerate(jobs) if number % step]
        for table in ("mutation_specs", "work_items"):
            session.executemany(f"DELETE FROM {table} WHERE job_id = ?", left_out)
    return len(jobs) - len(left_out)


@pytest.mark.parametrize("module", ["dicttoolz", "itertoolz"])
def test_beside_cosmic_ray(
    project: Any,
    ours: Callable[[str], Ours],
    measured: Callable[..., Cost],
    shown: Callable[[str], None],
    module: str,
) -> None:
    """The same mutants, since they come from the same operators; where it runs all, the same of them are killed."""
    require("cosmic_ray")
    mine = ours(module)
    folder = project("cosmic-ray", module, config_toml=COSMIC_RAY)
    command = [PEERS, "-m", "cosmic_ray.cli"]
    measured([*command, "init", "config.toml", "s.sqlite"], folder)
    count = keep_every(folder / "s.sqlite", EVERY[module])
    began = time.perf_counter()
    theirs = measured([*command, "exec", "config.toml", "s.sqlite"], folder).cpu / count
    wall = time.perf_counter() - began
    rate = subprocess.run(
        [PEERS, "-c", "from cosmic_ray.tools.survival_rate import format_survival_rate as f; f()", "s.sqlite"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    killed = count - round(float(rate.stdout) / 100 * count)
    shown(
        f"\nsuite, {module}: {mine.each * 1000:.0f} ms CPU a mutant ({mine.killed} of {mine.mutants} killed), "
        f"{mine.wall:.0f} s with -n2; cosmic-ray {theirs * 1000:.0f} ms ({killed} of {count} killed), "
        f"{wall:.0f} s: {theirs / mine.each:.1f} times as fast"
    )
    assert count == -(-mine.mutants // EVERY[module])
    if count == mine.mutants:
        assert mine.killed == killed
    assert theirs / mine.each >= AT_LEAST["cosmic_ray", module]


@pytest.mark.parametrize("module", ["dicttoolz", "itertoolz"])
def test_beside_mutmut(
    project: Any,
    ours: Callable[[str], Ours],
    measured: Callable[..., Cost],
    shown: Callable[[str], None],
    module: str,
) -> None:
    """Mutants of its own operators, so what is compared is the cost of one."""
    require("mutmut")
    mine = ours(module)
    folder = project("mutmut", module, pyproject_toml=MUTMUT)
    log = folder / "log"
    ask = f"[{PEERS!r}, '-m', 'mutmut', 'run']"
    script = f"import subprocess, sys; sys.exit(subprocess.call({ask}, stdout=open('log', 'w')))"
    began = time.perf_counter()
    cpu = measured([sys.executable, "-c", script], folder).cpu
    wall = time.perf_counter() - began
    counts = re.findall(r"(\d+)/(\d+)", log.read_text())
    assert counts
    assert counts[-1][0] == counts[-1][1]
    theirs = cpu / int(counts[-1][1])
    shown(
        f"\nsuite, {module}: {mine.each * 1000:.0f} ms CPU a mutant, {mine.wall:.0f} s with -n2 for {mine.mutants}; "
        f"mutmut {theirs * 1000:.0f} ms, {wall:.0f} s for {counts[-1][1]}: {theirs / mine.each:.2f} times as fast"
    )
    assert theirs / mine.each >= AT_LEAST["mutmut", module]
