"""The toolz example: what its lock holds, that nothing is lost by not running all of it, and its page."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_metricbench.coverage.line import LineCoverage
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.generating.builtin import known_makers
from pytest_metricbench.runners.suite import SuiteRunner

EXAMPLE = Path(__file__).parents[2] / "examples" / "toolz"
README = (EXAMPLE / "README.md").read_text(encoding="utf-8")
MAKERS: dict[str, Any] = {
    "runners": {"suite": SuiteRunner},
    "systems": {"line": LineCoverage},
    "makers": known_makers(),
}
SIZES = ("5", "10", "20", "40")
NAMES = ("experiment", "twenty.experiment")


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the example without what runs left."""
    ignored = shutil.ignore_patterns(".metricbench", "__pycache__", ".pytest_cache")
    return Path(shutil.copytree(EXAMPLE, tmp_path / "toolz", ignore=ignored))


def run(folder: Path, *args: str, timeout: float = 600) -> str:
    argv = [sys.executable, "-m", "pytest", "-p", "metricbench", "-p", "no:randomly", *args]
    ended = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=timeout, check=False)
    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-5000:]
    return ended.stdout


def summary_of(folder: Path, name: str) -> Any:
    return json.loads((folder / ".metricbench" / name / "summary.json").read_text())


def lock_of(name: str) -> dict[str, Any]:
    document = yaml.load((EXAMPLE / f"{name}.lock.yml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    return {expansion["kind"]: expansion["entries"] for expansion in document["expansions"]}


# ---------------------------------------------------------------- what it consists of


def test_the_installed_toolz_is_the_required_one() -> None:
    requirement = re.search(r"^toolz==(.+)$", (EXAMPLE / "requirements.txt").read_text(), re.MULTILINE)
    assert requirement is not None
    assert importlib.metadata.version("toolz") == requirement[1]


@pytest.mark.parametrize(("name", "mutants", "subsets"), [("experiment", 320, 200), ("twenty.experiment", 20, 40)])
def test_every_patch_of_the_lock_fits(name: str, mutants: int, subsets: int) -> None:
    """Loading an experiment applies them all, and asks whether the lock agrees with what it was made from."""
    loaded = load_experiment(EXAMPLE / f"{name}.yml", **MAKERS)
    (case,) = loaded.cases
    assert len([variant for variant in case.variants if variant.kind == "mutant"]) == mutants
    assert len(case.subsets) == subsets
    assert {str(len(subset.tasks)) for subset in case.subsets} == set(SIZES)
    assert len(case.tasks) == 187


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name.startswith("twenty") else pytest.mark.benchmark) for name in NAMES],
)
def test_the_lock_is_what_is_generated_today(name: str, example: Path) -> None:
    pytest.importorskip("cosmic_ray")
    (example / f"{name}.lock.yml").unlink()
    fresh = load_experiment(example / f"{name}.yml", **MAKERS)
    assert fresh.lock is not None
    assert fresh.lock.text == (EXAMPLE / f"{name}.lock.yml").read_text(encoding="utf-8")


# ---------------------------------------------------------------- what it gives


@pytest.mark.benchmark
def test_what_is_not_reached_would_have_killed_nothing(tmp_path: Path) -> None:
    """A part of it with all attempts made, and without those that cannot matter: the same kills."""
    mutants = [entry for entry in lock_of("experiment")["mutants"] if "dicttoolz.py" in entry.get("description", "")]
    case = {
        "id": "toolz",
        "tasks": {"collect": "toolz.tests", "select": "test_dicttoolz"},
        "mutants": mutants[:: len(mutants) // 12],
    }
    kills = {}
    for exhaustive in (True, False):
        folder = tmp_path / str(exhaustive)
        folder.mkdir()
        runner = {
            "kind": "suite",
            "source": ["toolz"],
            "tests": "toolz.tests",
            "env": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            "exhaustive": exhaustive,
        }
        keys = {"metricbench": 1, "name": "part", "runner": runner, "cases": [case]}
        (folder / "experiment.yml").write_text(yaml.safe_dump(keys, sort_keys=False))
        run(folder, "experiment.yml", "-q", timeout=110)
        kills[exhaustive] = summary_of(folder, "part")["cases"]["toolz"]["kills"]
    every, reached = kills[True], kills[False]
    words = {word for cells in reached.values() for word in cells.values()}
    assert words == {"killed", "survived", "not_reached"}
    assert "not_reached" not in {word for cells in every.values() for word in cells.values()}
    for mutant, cells in every.items():
        for task, word in cells.items():
            assert (word == "killed") == (reached[mutant][task] == "killed"), (mutant, task)


@pytest.mark.benchmark
def test_twenty_of_it_in_a_session(example: Path) -> None:
    out = run(example, "twenty.experiment.yml", "-n", "2", "-q", timeout=240)
    summary = summary_of(example, "toolz-twenty")
    assert summary["complete"] is True
    assert summary["counts"]["unmeasured"] == summary["counts"]["missing"] == 0
    case = summary["cases"]["toolz"]
    assert len(case["kills"]) == 20
    assert case["correlation"]["line"]["kill_share"]["overall"]["pairs"] == 40
    assert "tau-b line" in out


@pytest.mark.benchmark
def test_the_page_says_what_it_gives(example: Path) -> None:
    """The whole example: minutes. Which lines are executable differs a little between Python versions."""
    run(example, "experiment.yml", "-n", "2", "-q", timeout=1800)
    summary = summary_of(example, "toolz")
    case = summary["cases"]["toolz"]
    assert summary["complete"] is True
    assert summary["counts"]["unmeasured"] == summary["counts"]["missing"] == 0
    share = case["pool"]["kill_share"]
    said = re.search(r"kill \*\*(\d+) of (\d+)\*\* mutants", README)
    assert said is not None
    assert share["value"] == pytest.approx(int(said[1]) / int(said[2]), abs=0.02)
    for system in ("line", "branch"):
        figures = case["correlation"][system]["kill_share"]
        scopes = [*(figures["by_size"][size] for size in SIZES), figures["overall"]]
        for method, name in (("kendall", "Kendall tau-b"), ("spearman", "Spearman"), ("pearson", "Pearson")):
            expected = readme_row(system, name)
            assert [scope[method]["value"] for scope in scopes] == pytest.approx(expected, abs=0.08), (system, name)


def readme_row(system: str, name: str) -> list[float]:
    """The figures of one row of the page's table of a system: the sizes, and all of them."""
    table = README.partition(f"**{system} coverage")[2]
    match = re.search(rf"^\| {re.escape(name)} \|(.*)\|$", table, re.MULTILINE)
    assert match is not None
    return [float(cell) for cell in match[1].split("|")]
