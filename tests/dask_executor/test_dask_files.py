"""What is sent to workers that do not see the experiment's folder."""

import json
from pathlib import Path

import pytest
import yaml

from pytest_metricbench import load_experiment
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.executors.dask_files import bundled_files, file_digests
from pytest_metricbench.executors.dask_packs import PackError
from tests.dask_executor.dask_lab import experiment
from tests.present import present


def bundled(path: Path) -> dict[str, Path]:
    loaded = load_experiment(path)
    return bundled_files(loaded, Fingerprints(loaded))


def test_everything_that_the_fingerprints_know_is_sent_and_nothing_else(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    (tmp_path / "notes.txt").write_text("nobody names this")
    assert sorted(bundled(path)) == ["agent.py", "experiment.yml", "outcomes.json"]


def test_files_of_the_definition_are_sent(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    form = yaml.safe_load(path.read_text())
    (case,) = form["cases"]
    case["subsets"], case["inputs"] = "subsets.yml", ["../outcomes.json"]
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "shop.yml").write_text(yaml.safe_dump(case))
    (tmp_path / "cases" / "subsets.yml").write_text("- {id: s1, tasks: [find]}\n")
    path.write_text(yaml.safe_dump({**form, "cases": ["cases/shop.yml"]}))
    names = {"agent.py", "experiment.yml", "cases/shop.yml", "cases/subsets.yml"}
    assert names <= set(bundled(path))


def test_the_lock_is_sent(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    form = yaml.safe_load(path.read_text())
    form["cases"][0]["subsets"] = {"sizes": [1], "per_size": 2}
    path.write_text(yaml.safe_dump(form))
    loaded = load_experiment(path)
    present(loaded.lock).path.write_text(present(loaded.lock).text)
    assert "experiment.lock.yml" in bundled(path)


def test_the_packages_of_a_module_are_sent(tmp_path: Path) -> None:
    path = experiment(tmp_path, runner={"kind": "python", "agent": "shop.agents.good:run"}, coverage=[])
    (tmp_path / "shop" / "agents").mkdir(parents=True)
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "agents" / "__init__.py").write_text("")
    (tmp_path / "shop" / "agents" / "good.py").write_text("def run(request):\n    return 1.0\n")
    names = ["experiment.yml", "outcomes.json", "shop/__init__.py", "shop/agents/__init__.py", "shop/agents/good.py"]
    assert sorted(bundled(path)) == names


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("import helper", "helper.py"),
        ("from helper import tool", "helper.py"),
        ("def later():\n    import tools.saw", "tools/saw.py"),
        ("from tools import saw", "tools/saw.py"),
        ("from . import helper", "helper.py"),
    ],
)
def test_a_neighbour_that_nothing_names_is_an_error_before_anything_runs(tmp_path: Path, line: str, file: str) -> None:
    path = experiment(tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / file).write_text("tool = 1\n")
    with (tmp_path / "agent.py").open("a") as agent:
        agent.write(f"\n{line}\n")
    with pytest.raises(PackError, match=rf"agent.py imports .*{file}.*add it to the inputs"):
        bundled(path)
    form = yaml.safe_load(path.read_text())
    form["cases"][0]["inputs"].append(file)
    path.write_text(yaml.safe_dump(form))
    assert file in bundled(path)


def test_what_is_elsewhere_is_not_sent(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("x")
    path = experiment(tmp_path / "here")
    form = yaml.safe_load(path.read_text())
    form["cases"][0]["inputs"].append(str(elsewhere))
    path.write_text(yaml.safe_dump(form))
    assert not [name for name in bundled(path) if "elsewhere" in name]


def test_digests_are_those_of_the_contents(tmp_path: Path) -> None:
    loaded = load_experiment(experiment(tmp_path))
    fingerprints = Fingerprints(loaded)
    digests = file_digests(bundled_files(loaded, fingerprints), fingerprints)
    assert digests["outcomes.json"] == fingerprints.files["case:shop:outcomes.json"]
    assert json.dumps(sorted(digests)) == json.dumps(["agent.py", "experiment.yml", "outcomes.json"])
