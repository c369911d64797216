"""Experiments with the runner ``harbor``, collected: what a user is told, and where. Runs the stand-in, not Harbor."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_metricbench import load_experiment
from pytest_metricbench.runners.harbor import found as harbor_found
from pytest_metricbench.runners.harbor.runner import HarborRunner
from pytest_metricbench.runners.harbor.tasks import HarborTasks
from pytest_metricbench.runners.harbor.variants import HarborVariant
from tests.harbor_runner.harbor_runner_lab import TASK_TOML, copy_example, write_dataset, write_stand_in, write_task

OFF = ("randomly", "rerunfailures", "repeat", "timeout", "html", "pytest_cov", "sugar", "hypothesispytest")
REWARDS = """
import hashlib
name = pathlib.Path(config["tasks"][0]["path"]).name
bad = config["agents"][0].get("kwargs", {}).get("bad", [])
trial(name + "__abcdefg", task_name=name, verifier_result={"rewards": {"reward": 0.0 if name in bad else 1.0}})
"""


class Lab:
    """An experiment of three tasks and a mutant, in a folder."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester, self.path = pytester, pytester.path
        write_dataset(self.path / "ds", "alpha", "beta", "one__two")
        self.executable = write_stand_in(self.path, REWARDS)

    def write(self, *, runner: dict[str, Any] | None = None, **case: Any) -> None:
        keys = {"kind": "harbor", "harbor": str(self.executable), **(runner or {})}
        whole = {
            "id": "case",
            "tasks": {"harbor": "ds"},
            "baseline": {"params": {"agent": "oracle"}},
            "mutants": [{"id": "worse", "params": {"kwargs": {"bad": ["beta"]}}}],
            **case,
        }
        experiment = {
            "metricbench": 1,
            "name": "lab",
            "attempts": 2,
            "runner": {key: value for key, value in keys.items() if value is not None},
            "cases": [whole],
        }
        (self.path / "experiment.yml").write_text(yaml.safe_dump(experiment, sort_keys=False))

    def run(self, *args: str) -> pytest.RunResult:
        off = [part for plugin in OFF for part in ("-p", f"no:{plugin}")]
        return self.pytester.runpytest_inprocess("-p", "metricbench", *off, "experiment.yml", *args)

    def told(self, *args: str) -> str:
        """What is said of an experiment that is not right."""
        ended = self.run(*args)
        assert ended.ret == pytest.ExitCode.USAGE_ERROR
        text = ended.stderr.str() + ended.stdout.str()
        assert "Traceback" not in text
        return text

    def summary(self) -> Any:
        return json.loads((self.path / ".metricbench" / "lab" / "summary.json").read_text())


@pytest.fixture
def lab(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.delenv("METRICBENCH_HARBOR", raising=False)
    return Lab(pytester)


def test_a_dataset_is_run(lab: Lab) -> None:
    lab.write()
    ended = lab.run()
    assert ended.ret == 0
    assert ended.parseoutcomes() == {"passed": 10, "missed": 2}
    case = lab.summary()["cases"]["case"]
    assert set(case["kills"]["worse"]) == {"alpha", "beta", "one__two"}
    assert case["kills"]["worse"]["beta"] == "killed"
    assert case["pool"]["kill_share"]["value"] == 1.0
    shown = case["variants"]["baseline"]["attempts"]["one__two"]["reward"]
    assert [attempt["trial_id"] for attempt in shown] == ["one__two__abcdefg"] * 2  # Harbor's names, equal or not
    lock = (lab.path / "experiment.lock.yml").read_text()
    assert '{id: alpha, params: {path: "ds/alpha"}}' in lock


def test_a_changed_task_runs_again_and_no_other(lab: Lab) -> None:
    lab.write()
    lab.run()
    assert lab.run().parseoutcomes() == {"reused": 12}
    (lab.path / "ds" / "beta" / "instruction.md").write_text("Something else.")
    assert lab.run().parseoutcomes() == {"reused": 8, "passed": 2, "missed": 2}


def test_a_new_task_is_told(lab: Lab) -> None:
    lab.write()
    lab.run()
    write_task(lab.path / "ds" / "gamma")
    assert "experiment.lock.yml disagrees: the listing changed; renew it with --metricbench-lock" in lab.told()


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            {"tasks": {"harbor": "ds/alpha"}},
            "tasks: ds/alpha is a single task, not a dataset: it holds a task.toml; name the folder that it is in, as "
            "in {harbor: ds, include: [alpha]}",
        ),
        ({"tasks": {"harbor": "nope"}}, "tasks: the dataset 'nope' does not exist; it is looked for in "),
        ({"tasks": {"harbor": "ds", "inclde": ["a"]}}, "tasks.inclde: is an unknown key; did you mean 'include'?"),
        ({"tasks": [{"id": "a", "params": {"path": "ds/no"}}]}, "tasks[0].params: the task 'ds/no' does not exist; "),
        ({"tasks": [{"id": "a", "params": {}}]}, "tasks[0].params"),
        (
            {"baseline": {"params": {"model": "m"}}, "mutants": []},
            "baseline.params: no agent is named; params: {agent: ...} of the baseline names it, or module.path:Class",
        ),
        ({"baseline": {"params": {"agent": "a", "modle": "m"}}}, "baseline.params.modle: is an unknown key; did you"),
        (
            {"baseline": {"params": {"agent": "a", "env": {"API_KEY": "hello"}}}},
            "baseline.params.env: API_KEY has a value that Harbor takes for a secret",
        ),
    ],
)
def test_what_is_wrong_with_a_case(lab: Lab, case: dict[str, Any], message: str) -> None:
    lab.write(**case)
    assert message in lab.told()


def test_a_broken_task_is_an_error_that_names_it(lab: Lab) -> None:
    lab.write()
    (lab.path / "ds" / "beta" / "task.toml").write_text("[agent\n")
    assert "tasks: ds/beta/task.toml is broken: Expected ']'" in lab.told()


def test_no_harbor(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harbor_found, "installed_version", lambda: None)
    lab.write(runner={"harbor": None})
    assert "runner: Harbor " in lab.told()


def test_the_example_says_what_to_do_where_there_is_no_harbor(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harbor_found, "installed_version", lambda: None)
    lab.write()
    copy_example(lab.path)
    (lab.path / "experiment.lock.yml").unlink()
    assert lab.told().count("ERROR: ") == 1
    assert "experiment.yml:14:3: runner: Harbor " in lab.told()


def test_a_store_is_read_where_there_is_no_harbor_and_no_dataset(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.write()
    lab.run()
    lab.executable.unlink()
    for name in ("alpha", "beta"):
        for path in sorted((lab.path / "ds" / name).rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
    ended = lab.run("--metricbench-cached-only")
    assert ended.parseoutcomes() == {"reused": 12}


def test_a_kwarg_with_a_slip_is_told_before_anything_runs(lab: Lab) -> None:
    lab.path.joinpath("toy.py").write_text(
        "from harbor.agents.base import BaseAgent\n\n\nclass Toy(BaseAgent):\n"
        "    def __init__(self, logs_dir, depth=1):\n        pass\n"
    )
    lab.write(
        baseline={"params": {"agent": "toy:Toy", "kwargs": {"depth": 1}}},
        mutants=[{"id": "worse", "params": {"kwargs": {"dpth": 2}}}],
    )
    assert (
        "mutants[0].params: toy:Toy takes no kwarg 'dpth': Harbor would refuse it; did you mean 'depth'?" in lab.told()
    )


def test_rewards_that_differ_between_tasks(lab: Lab) -> None:
    body = """
    name = pathlib.Path(config["tasks"][0]["path"]).name
    rewards = {"quality": 0.75} if name == "beta" else {"reward": 1}
    trial(name + "__abcdefg", task_name=name, verifier_result={"rewards": rewards})
    """
    write_stand_in(lab.path, body)
    lab.write(mutants=[])
    text = (lab.path / "experiment.yml").read_text()
    (lab.path / "experiment.yml").write_text(text + "score: {primary: reward}\n")
    ended = lab.run()
    assert ended.ret == 1
    assert ended.parseoutcomes() == {"passed": 4, "failed": 2}
    assert "ContractError: the primary score 'reward' is missing; the verifier gave quality" in ended.stdout.str()
    assert lab.summary()["counts"]["unmeasured"] == 2


def test_rewards_that_are_neither_0_nor_1(lab: Lab) -> None:
    write_stand_in(lab.path, 'trial(task_name="t", verifier_result={"rewards": {"reward": 0.5}})')
    lab.write(mutants=[])
    text = (lab.path / "experiment.yml").read_text()
    (lab.path / "experiment.yml").write_text(text + "score: {primary: reward, pass_at_least: 0.5}\n")
    assert lab.run().ret == 0
    (lab.path / "experiment.yml").write_text(text + "score: {primary: reward, pass_at_least: 0.75}\n")
    ended = lab.run()
    assert ended.parseoutcomes()["reused"] == 6
    assert lab.summary()["counts"]["missed"] == 6


def test_a_score_that_was_named_wrongly_is_put_right_without_running(lab: Lab) -> None:
    write_stand_in(lab.path, 'trial(task_name="t", verifier_result={"rewards": {"quality": 1.0, "style": 0.0}})')
    lab.write(mutants=[])
    text = (lab.path / "experiment.yml").read_text()
    (lab.path / "experiment.yml").write_text(text + "score: {primary: qualty}\n")
    assert lab.run().ret == 1
    lab.executable.write_text("#!/bin/sh\nexit 1\n")
    (lab.path / "experiment.yml").write_text(text + "score: {primary: quality}\n")
    assert lab.run().ret == 0
    assert lab.summary()["counts"]["passed"] == 6


@pytest.mark.slow
def test_workers_share_no_folder(lab: Lab) -> None:
    lab.write()
    assert lab.run("-n2").ret == 0
    folders = sorted((lab.path / ".metricbench" / "lab" / "attempts").glob("*/*/*/*"))
    jobs = {json.loads((folder / "harbor.json").read_text())["job"] for folder in folders}
    assert len(folders) == len(jobs) == 12


def test_the_experiment_on_the_page_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "harbor.md").read_text("utf-8")
    (tmp_path / "experiment.yml").write_text(re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S)[0])
    write_dataset(tmp_path / "datasets" / "refund", "late")
    (tmp_path / "refund_agent.py").write_text(
        "from harbor.agents.base import BaseAgent\n\n\nclass RefundAgent(BaseAgent):\n"
        "    def __init__(self, *args, policy='strict', **kwargs):\n        super().__init__(*args, **kwargs)\n"
    )
    monkeypatch.setenv("METRICBENCH_HARBOR", "/bin/true")
    experiment = load_experiment(tmp_path / "experiment.yml")
    lenient = experiment.cases[0].variants[1]
    assert lenient.params["kwargs"] == {"policy": "lenient"}
    assert lenient.params["env"] == {"MODEL_KEY": "${MODEL_KEY}"}


def test_the_docs_table_of_keys_is_whole() -> None:
    """Every key of the runner, of a variant and of a dataset stands on the page."""
    page = (Path(__file__).parents[2] / "docs" / "harbor.md").read_text("utf-8")
    missing = [
        name
        for model in (HarborRunner, HarborVariant, HarborTasks)
        for name in model.model_fields
        if f"`{name}`" not in page and name != "kind"
    ]
    assert missing == []
    assert TASK_TOML.strip() in page
