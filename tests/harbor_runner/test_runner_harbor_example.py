"""The example's dataset and files, without Harbor; the whole of it runs in ``test_runner_harbor_real.py``."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from pytest_metricbench import load_experiment
from tests.harbor_runner.harbor_runner_lab import EXAMPLE, copy_example

TASKS = sorted(path.name for path in (EXAMPLE / "datasets" / "ledgers").iterdir())


def reward(task: Path, root: Path) -> str:
    """What the task's own script says of the answer below a root."""
    (root / "logs" / "verifier").mkdir(parents=True, exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "HARBOR_ROOT": str(root)}
    subprocess.run(["bash", task / "tests" / "test.sh"], env=environment, check=True)
    return (root / "logs" / "verifier" / "reward.txt").read_text().strip()


@pytest.mark.parametrize("name", TASKS)
def test_a_task_takes_its_solution_and_nothing_else(tmp_path: Path, name: str) -> None:
    task = EXAMPLE / "datasets" / "ledgers" / name
    (tmp_path / "app").mkdir()
    assert reward(task, tmp_path) == "0"
    (tmp_path / "app" / "answer.txt").write_text("something else\n")
    assert reward(task, tmp_path) == "0"
    environment = {"PATH": os.environ["PATH"], "HARBOR_ROOT": str(tmp_path)}
    subprocess.run(["bash", task / "solution" / "solve.sh"], env=environment, check=True)
    assert reward(task, tmp_path) == "1"


@pytest.mark.parametrize("file", ["experiment.yml", "with_docker.yml"])
def test_the_locks_are_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    copy_example(tmp_path)
    monkeypatch.setenv("METRICBENCH_HARBOR", "/bin/true")
    experiment = load_experiment(tmp_path / file)
    assert experiment.lock is not None
    assert not experiment.lock.missing
    (case,) = experiment.cases
    assert [task.id for task in case.tasks] == TASKS
    assert len(case.variants) == 8


def test_the_page_shows_what_there_is() -> None:
    page = (EXAMPLE / "README.md").read_text("utf-8")
    for name in re.findall(r"\]\(([^):]+)\)", page):
        assert (EXAMPLE / name).exists(), name
    case = yaml.safe_load((EXAMPLE / "case.yml").read_text("utf-8"))
    assert "Seven mutants" in page
    assert len(case["mutants"]) == 7
    assert "Six [Harbor]" in page
    assert len(TASKS) == 6
