"""More than one experiment, experiments in folders with a conftest.py, and outside the root folder."""

import pytest

from pytest_metricbench.pytest_side.session import Controller
from tests.plugin.plugin_lab import Lab, node_ids

EXTENSION = """
from typing import Literal

from pytest_metricbench import CoverageSystem, Outcome, Runner, Score


class Echo(Runner):
    kind: Literal["echo"] = "echo"
    loud: bool = False

    def run(self, request, workspace):
        (workspace / "said.txt").write_text(request.task.id)
        return Outcome.scored({"reward": 0.0 if request.variant.params.get("mute") else 1.0})


class Said(CoverageSystem):
    kind: Literal["said"] = "said"
    of: int

    def measure(self, request, workspace):
        said = {path.read_text() for files in request.evidence.values() for path in files}
        return Score(len(said) / self.of)


def pytest_metricbench_runners():
    return [Echo]


def pytest_metricbench_coverage_systems():
    return [Said]
"""


def make_extended(lab: Lab, file: str = "deep/experiment.yml") -> None:
    """An experiment whose runner and coverage system come from the conftest.py beside it."""
    mutants = [{"id": "silent", "params": {"mute": True}}, {"id": "quiet"}]
    lab.make(
        file,
        runner={"kind": "echo", "loud": True},
        coverage=[{"id": "said", "kind": "said", "of": 3}],
        case={"mutants": mutants},
    )
    lab.write(file.rpartition("/")[0] + "/conftest.py", EXTENSION)


def test_each_has_a_store_and_a_section(lab: Lab, workers: list[str]) -> None:
    lab.make()
    lab.make("b.experiment.yml", name="other", attempts=1)
    result = lab.run(*workers)
    assert result.ret == 0
    assert len(lab.calls()) == 27
    result.stdout.fnmatch_lines_random(["*= metricbench: shop =*", "*= metricbench: other =*"])
    assert lab.summary("shop")["counts"]["declared"] == 18
    assert lab.summary("other")["counts"]["declared"] == 9


def test_a_line_each_in_the_header(lab: Lab) -> None:
    lab.make()
    lab.make("b.experiment.yml", name="other", attempts=1)
    result = lab.run("experiment.yml", "b.experiment.yml", "--collect-only")
    result.stdout.fnmatch_lines(
        ["metricbench: other: 9 attempts, *, store: .metricbench/other", "metricbench: shop: 18 attempts, *"]
    )


def test_only_one_of_two_is_selected(lab: Lab) -> None:
    lab.make()
    lab.make("b.experiment.yml", name="other")
    assert lab.run("-k", "b.experiment.yml").ret == 0
    assert lab.summary("other")["complete"]
    assert not (lab.store("shop") / "summary.json").exists()


def test_one_is_not_green(lab: Lab) -> None:
    lab.make()
    lab.make("b.experiment.yml", name="other", gates=["baseline pass@1 >= 0.99"])
    assert lab.run().ret == pytest.ExitCode.TESTS_FAILED
    assert lab.summary("shop")["complete"]


NAMED = ["experiment.yml", "b.experiment.yml"]


@pytest.mark.parametrize(
    "args", [["."], NAMED, pytest.param([*NAMED, "-n2"], marks=pytest.mark.slow)], ids=["found", "named", "n2"]
)
def test_two_of_one_name_would_share_a_store(lab: Lab, args: list[str]) -> None:
    lab.make()
    lab.make("b.experiment.yml")
    result = lab.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.re_match_lines(
        [r"ERROR: metricbench: \S+/(b\.)?experiment\.yml and \S+/(b\.)?experiment\.yml .* 'shop' .*; rename one$"]
    )
    result.stdout.no_fnmatch_line("*metricbench: shop ==*")
    assert lab.calls() == []


def test_two_of_one_name_in_two_folders_do_not_clash(lab: Lab) -> None:
    lab.make("a/experiment.yml", module="agent_a")
    lab.make("b/experiment.yml", module="agent_b")
    assert lab.run().ret == 0
    for folder in "ab":
        assert (lab.path / folder / ".metricbench/shop/summary.json").exists()


def test_two_of_one_name_clash_in_one_store_folder(lab: Lab) -> None:
    lab.make("a/experiment.yml", module="agent_a")
    lab.make("b/experiment.yml", module="agent_b")
    result = lab.run("--metricbench-store=all")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: metricbench: *would share the store *all/shop; rename one"])


def test_two_agents_of_one_module_name_named(lab: Lab) -> None:
    lab.make("a/experiment.yml")
    lab.make("b/experiment.yml", name="other")
    result = lab.run("a/experiment.yml", "b/experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "*experiment.yml:*: runner.agent: the module agent of *b/agent.py is loaded already from "
            "*a/agent.py; rename *"
        ]
    )


def test_two_agents_of_one_module_name_found(lab: Lab) -> None:
    lab.make("a/experiment.yml")
    lab.make("b/experiment.yml", name="other")
    result = lab.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*ERROR collecting b/experiment.yml*", "*module agent of *b/agent.py *a/agent.py;*"])


def test_two_experiments_may_share_an_agent(lab: Lab) -> None:
    lab.make()
    lab.make("b.experiment.yml", name="other")
    assert lab.run("experiment.yml", "b.experiment.yml").ret == 0


# ---------------------------------------------------------------- runners and systems of a conftest.py


@pytest.mark.parametrize("args", [["."], ["deep"], ["deep/experiment.yml"]], ids=["root", "folder", "named"])
def test_kinds_from_a_conftest_in_a_sub_folder(lab: Lab, args: list[str]) -> None:
    make_extended(lab)
    result = lab.run(*args)
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 16, "missed": 6}


@pytest.mark.slow
@pytest.mark.parametrize("args", [["."], ["deep/experiment.yml"]], ids=["root", "named"])
def test_kinds_from_a_conftest_that_only_workers_collected(lab: Lab, args: list[str]) -> None:
    make_extended(lab, "very/deep/experiment.yml")
    result = lab.run(*[arg.replace("deep", "very/deep") for arg in args], "-n2")
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 16, "missed": 6}


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])
def test_kinds_do_not_reach_beyond_their_folder(lab: Lab, workers: list[str]) -> None:
    make_extended(lab)
    lab.make("other.experiment.yml", name="other", runner={"kind": "echo"}, coverage=None)
    result = lab.run("deep/experiment.yml", "other.experiment.yml", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*other.experiment.yml:*: runner.kind: there is no runner 'echo'; *"])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "def pytest_metricbench_runners(): return [int]",
            "*hook pytest_metricbench_runners of conftest.py gave <class 'int'>; a subclass of Runner is *",
        ),
        (
            "from pytest_metricbench import Runner\n"
            "class Mine(Runner):\n    kind: str\n    def run(self, request, workspace): ...\n"
            "def pytest_metricbench_runners(): return [Mine]",
            "*conftest.py gave Mine, which names no kind; *",
        ),
        (
            "from typing import Literal\nfrom pytest_metricbench import Runner\n"
            "class Mine(Runner):\n    kind: Literal['python'] = 'python'\n    def run(self, request, workspace): ...\n"
            "def pytest_metricbench_runners(): return [Mine]",
            "*conftest.py gave Mine the kind 'python', which is taken by *PythonRunner; rename one",
        ),
    ],
    ids=["no-runner", "no-kind", "taken"],
)
def test_hooks_that_give_something_wrong(lab: Lab, source: str, said: str) -> None:
    lab.make()
    lab.write("conftest.py", source + "\n")
    result = lab.run("experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])


# ---------------------------------------------------------------- outside the root folder


def test_outside_the_root_folder(lab: Lab, workers: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lab.make("elsewhere/experiment.yml")
    lab.write("project/pytest.ini", "[pytest]\n")
    monkeypatch.chdir(lab.path / "project")
    listed = node_ids(lab.run("../elsewhere/experiment.yml", "--rootdir=.", "--collect-only", "-q"))
    assert len(listed) == 18
    assert listed[0] == "../elsewhere/experiment.yml::shop::baseline::find[1]"
    result = lab.run("../elsewhere/experiment.yml", "--rootdir=.", *workers)
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 16, "missed": 5, "died": 1}
    assert (lab.path / "elsewhere/.metricbench/shop/summary.json").exists()


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])
def test_a_folder_outside_the_root_folder(lab: Lab, workers: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lab.make("elsewhere/deep/experiment.yml")
    lab.write("project/pytest.ini", "[pytest]\n")
    monkeypatch.chdir(lab.path / "project")
    result = lab.run("../elsewhere", "--rootdir=.", *workers)
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 16, "missed": 5, "died": 1}


@pytest.mark.slow
@pytest.mark.parametrize("args", [["../elsewhere"], ["../elsewhere/very/deep/experiment.yml"]], ids=["folder", "named"])
def test_kinds_from_a_conftest_outside_the_root_folder(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    make_extended(lab, "elsewhere/very/deep/experiment.yml")
    lab.write("project/pytest.ini", "[pytest]\n")
    monkeypatch.chdir(lab.path / "project")
    result = lab.run(*args, "--rootdir=.", "-n2")
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 16, "missed": 6}


@pytest.mark.slow
def test_attempts_whose_experiment_the_controller_does_not_know_are_never_lost_in_silence(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Controller, "find", lambda self, nodeid: None)
    lab.make()
    result = lab.run("experiment.yml", "-n2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["metricbench: experiment.yml::shop::baseline::find[[]1[]]: *not kept*"])
