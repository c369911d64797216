"""Mutants in place of functions, and each imported by a server of its own: the same kills, on a module of toolz."""

import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_metricbench.definition.scoring import Status, policy_at, status
from pytest_metricbench.runners.suite import SuiteRunner
from tests.suite_runner.suite_lab import Made

pytestmark = pytest.mark.benchmark

EXPERIMENT: Final = """\
metricbench: 1
name: both-ways
runner: {kind: suite, source: [toolz], tests: tests, kill: KILL, env: {PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1"}}
cases:
  - id: toolz
    tasks: {collect: tests}
    mutants: {generate: {from: cosmic-ray, modules: [toolz.dicttoolz]}}
"""


class Everything(dict[Any, str]):
    """What no fork of the baseline's server may become: every mutant."""

    def __contains__(self, key: object) -> bool:
        return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of toolz, with the tests of one module."""
    toolz, path = pytest.importorskip("toolz"), tmp_path_factory.mktemp("both")
    pytest.importorskip("cosmic_ray")
    home = Path(toolz.__file__).parent
    shutil.copytree(home, path / "toolz", ignore=shutil.ignore_patterns("__pycache__", "tests"))
    (path / "tests").mkdir()
    shutil.copy(home / "tests/test_dicttoolz.py", path / "tests")
    return path


def outcomes(folder: Path, kill: str, *, apart: bool) -> tuple[dict[Any, Status], int]:
    """What becomes of each attempt, and how many mutants got no server of their own."""
    file = folder / "experiment.yml"
    file.write_text(EXPERIMENT.replace("KILL", kill))
    made = Made(file, folder / f"store-{kill}-{apart}")
    runner = made.experiment.runner
    assert isinstance(runner, SuiteRunner)
    project = runner.project
    if apart:
        project._unfit = Everything()
    score, tasks = made.experiment.score, {task.id: task for task in made.experiment.cases[0].tasks}
    found = {key: status(policy_at(score, tasks[key[2]]), one.record) for key, one in made.make().items()}
    return found, len(made.experiment.cases[0].mutants) - len({name for name, _ in project._unfit})


def killed(found: dict[Any, Status]) -> set[str]:
    """The mutants that some test tells from the baseline, whose tests all pass."""
    assert {word for key, word in found.items() if key[1] == "baseline"} == {"passed"}
    return {key[1] for key, word in found.items() if word in ("missed", "died")}


def test_equal_matrices_and_equal_first_kills(folder: Path) -> None:
    in_place, many = outcomes(folder, "all", apart=False)
    apart, _ = outcomes(folder, "all", apart=True)
    assert {key: (apart[key], word) for key, word in in_place.items() if word != apart[key]} == {}
    assert many > 60
    first, _ = outcomes(folder, "first", apart=False)
    assert killed(first) == killed(in_place)
