"""The ``suite`` runner beside cosmic-ray and mutmut: all mutants of a module, each up to the first test that kills it.

The two are installed on request: ``pip install cosmic-ray==8.7.* mutmut==3.8.*``, or into an environment of their own
together with pytest and toolz, whose interpreter ``METRICBENCH_PEERS`` names.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.benchmark

MODULE = "dicttoolz"
AT_LEAST = {"cosmic_ray": 1.4, "mutmut": 0.2}
"""How many times as fast a mutant is, by CPU: what holds with room to spare, so that a loss is noticed.

A mutant costs a process that imports the package and collects the tests anew, and an item for each of its tests, which
prove what they ran; mutmut has all mutants in one process behind switches, and proves nothing.
"""
VERSIONS = {"cosmic_ray": "8.7", "mutmut": "3.8"}
PEERS = os.environ.get("METRICBENCH_PEERS", sys.executable)

EXPERIMENT = f"""\
metricbench: 1
name: peers
runner: {{kind: suite, source: [toolz], tests: tests, kill: first, env: {{PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1"}}}}
cases:
  - id: toolz
    tasks: {{collect: tests}}
    mutants: {{generate: {{from: cosmic-ray, modules: [toolz.{MODULE}]}}}}
"""
COSMIC_RAY = f"""\
[cosmic-ray]
module-path = "toolz/{MODULE}.py"
timeout = 30.0
excluded-modules = []
test-command = {json.dumps(f"{PEERS} -B -m pytest -q -x -p no:cacheprovider tests")}
[cosmic-ray.distributor]
name = "local"
"""
MUTMUT = f"""\
[project]
name = "toolz-copy"
version = "1"
[tool.mutmut]
source_paths = ["toolz"]
only_mutate = ["toolz/{MODULE}.py"]
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

    def make(name: str, **files: str) -> Path:
        folder = tmp_path / name
        shutil.copytree(home, folder / "toolz", ignore=shutil.ignore_patterns("__pycache__", "tests"))
        (folder / "tests").mkdir()
        shutil.copy(home / "tests" / f"test_{MODULE}.py", folder / "tests")
        for file, text in files.items():
            (folder / file.replace("_", ".")).write_text(text)
        return folder

    return make


def ours(project: Any, bare_pytest: list[str], measured: Any) -> tuple[float, int, int]:
    """CPU seconds, start and coverage of the baseline included; mutants, and how many are killed."""
    pytest.importorskip("cosmic_ray")
    folder = project("ours", experiment_yml=EXPERIMENT)
    measured([*bare_pytest, "--metricbench-lock", "experiment.yml"], folder)
    cost = measured([*bare_pytest, "experiment.yml"], folder)
    kills = json.loads((folder / ".metricbench/peers/summary.json").read_text())["cases"]["toolz"]["kills"]
    return cost.cpu, len(kills), sum("killed" in cells.values() for cells in kills.values())


def test_beside_cosmic_ray(project, bare_pytest, measured, shown):
    """The same mutants, since they come from the same operators; the same of them are killed."""
    require("cosmic_ray")
    seconds, mutants, killed = ours(project, bare_pytest, measured)
    folder = project("cosmic-ray", config_toml=COSMIC_RAY)
    command = [PEERS, "-m", "cosmic_ray.cli"]
    measured([*command, "init", "config.toml", "s.sqlite"], folder)
    theirs = measured([*command, "exec", "config.toml", "s.sqlite"], folder).cpu
    rate = subprocess.run(
        [PEERS, "-c", "from cosmic_ray.tools.survival_rate import format_survival_rate as f; f()", "s.sqlite"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    survived = round(float(rate.stdout) / 100 * mutants)
    one, other = seconds / mutants, theirs / mutants
    shown(
        f"\nsuite: {one * 1000:.0f} ms CPU a mutant ({killed} of {mutants} killed), cosmic-ray "
        f"{other * 1000:.0f} ms ({mutants - survived} killed): {other / one:.1f} times as fast"
    )
    assert killed == mutants - survived
    assert other / one >= AT_LEAST["cosmic_ray"]


def test_beside_mutmut(project, bare_pytest, measured, shown):
    """Mutants of its own operators, so what is compared is the cost of one."""
    require("mutmut")
    seconds, mutants, _ = ours(project, bare_pytest, measured)
    folder = project("mutmut", pyproject_toml=MUTMUT)
    log = folder / "log"
    ask = f"[{PEERS!r}, '-m', 'mutmut', 'run']"
    script = f"import subprocess, sys; sys.exit(subprocess.call({ask}, stdout=open('log', 'w')))"
    theirs = measured([sys.executable, "-c", script], folder).cpu
    counts = re.findall(r"(\d+)/(\d+)", log.read_text())
    assert counts
    assert counts[-1][0] == counts[-1][1]
    one, other = seconds / mutants, theirs / int(counts[-1][1])
    shown(f"\nsuite: {one * 1000:.0f} ms CPU a mutant, mutmut {other * 1000:.0f} ms: {other / one:.2f} times as fast")
    assert other / one >= AT_LEAST["mutmut"]
