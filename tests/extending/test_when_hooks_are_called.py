"""What the page of the hooks says about when each is called: how often, in which process, for which files."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

EXPERIMENT = """
metricbench: 1
name: {name}
runner: {{kind: {kind}, agent: "agent:agent"}}
cases:
  - id: c
    tasks: [{{id: t1}}, {{id: t2}}]
    mutants: [{{id: m, description: A mutant.}}]
    subsets: [{{id: s, tasks: [t1]}}]
coverage: [{{id: half, kind: half}}]
"""
CONFTEST = """
import os
from pathlib import Path
from typing import Literal

from pytest_metricbench import CoverageSystem, Score
from pytest_metricbench.runners.python import PythonRunner

CALLS = Path(__file__).with_name("calls.txt")

def note(what):
    with CALLS.open("a") as file:
        file.write(f"{os.environ.get('PYTEST_XDIST_WORKER', 'controller')} {what}\\n")

class Mine(PythonRunner):
    kind: Literal["mine"] = "mine"

class Half(CoverageSystem):
    kind: Literal["half"] = "half"

    def measure(self, request, workspace):
        note(f"measure {request.subset}")
        return Score(0.5)

def pytest_metricbench_runners():
    note("runners")
    return [Mine]

def pytest_metricbench_coverage_systems(config, /):
    assert config.rootpath in CALLS.parents
    note("coverage_systems")
    return [Half]

def pytest_metricbench_generators(config=None, mine=()):
    assert config is not None and mine == ()
    note("generators")
    return []

def pytest_metricbench_text_operators():
    note("text_operators")
    return []
"""
HOOKS = ("runners", "coverage_systems", "generators", "text_operators")


def once_each(processes: Iterable[str], files: int) -> Counter[str]:
    """Each hook once for each file in each of these processes."""
    return Counter({f"{process} {hook}": files for process in processes for hook in HOOKS})


@pytest.fixture
def calls(folder: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two experiments whose conftest.py notes every call in this file."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # of the session that tests this
    for name in ("one", "two"):
        (folder.path / f"{name}.experiment.yml").write_text(EXPERIMENT.format(name=name, kind="mine"), encoding="utf-8")
    (folder.path / "agent.py").write_text("def agent(request):\n    return 1.0\n", encoding="utf-8")
    folder.makeconftest(CONFTEST)
    return folder.path / "calls.txt"


@pytest.mark.parametrize(
    ("arguments", "processes"),
    [
        pytest.param([], ["controller"], id="alone"),
        pytest.param(["-n2"], ["controller", "gw0", "gw1"], id="n2", marks=pytest.mark.slow),
    ],
)
def test_each_hook_is_called_once_a_file_in_every_process_and_systems_measure_on_the_controller(
    folder: pytest.Pytester, calls: Path, arguments: list[str], processes: list[str]
) -> None:
    result = folder.runpytest_inprocess("one.experiment.yml", "two.experiment.yml", *arguments)
    assert result.ret == 0
    measured = Counter({f"controller measure {subset}": 2 for subset in ("s", "pool")})
    assert Counter(calls.read_text(encoding="utf-8").splitlines()) == once_each(processes, files=2) + measured


def test_a_folder_without_experiments_calls_none(folder: pytest.Pytester, calls: Path) -> None:
    folder.makepyfile(test_plain="def test_plain():\n    pass\n")
    assert folder.runpytest_inprocess("test_plain.py").ret == 0
    assert not calls.exists()


def test_a_conftest_serves_the_experiments_of_its_folder_alone(folder: pytest.Pytester, calls: Path) -> None:
    other = folder.mkdir("other")
    (other / "experiment.yml").write_text(EXPERIMENT.format(name="other", kind="theirs"), encoding="utf-8")
    theirs = CONFTEST.replace('"mine"', '"theirs"').replace("return [Half]", "return []")
    (other / "conftest.py").write_text(theirs, encoding="utf-8")
    (folder.path / "one.experiment.yml").write_text(EXPERIMENT.format(name="one", kind="theirs"), encoding="utf-8")
    (folder.path / "two.experiment.yml").unlink()
    result = folder.runpytest_inprocess("other")
    assert result.ret == 0
    ended = folder.runpytest_inprocess("one.experiment.yml", "other")
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines(["*one.experiment.yml:*: runner.kind: there is no runner 'theirs'*"])
