"""The stages as functions: a script gets from a store what the run printed."""

import json
import subprocess
import sys
from typing import Any

import pytest

import pytest_metricbench
from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.analysis.summary_json import summary_to_json
from pytest_metricbench.definition.problems import DefinitionError
from tests.plugin.plugin_lab import Lab, without

SCRIPT = """
import sys
from pytest_metricbench import analyze, load_experiment, measure_coverage, open_store

experiment = load_experiment("experiment.yml")
store = open_store(sys.argv[1])
measured = measure_coverage(experiment, store)
summary = analyze(experiment, store)
print(len(measured), summary.counts.passed, summary.cases["shop"].pool.kill_share.value)
print("pytest" in sys.modules)
"""


@pytest.fixture
def stages(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.delitem(sys.modules, "agent", raising=False)
    monkeypatch.syspath_prepend(lab.path)
    return lab


def as_json(summary: Summary) -> Any:
    return json.loads(summary_to_json(summary))


def test_the_same_summary_as_the_run(stages: Lab) -> None:
    stages.make(gates=["baseline pass@1 >= 0.5"], controls=1)
    stages.run("experiment.yml")
    experiment = pytest_metricbench.load_experiment("experiment.yml")
    store = pytest_metricbench.open_store(".metricbench/shop")
    summary = as_json(pytest_metricbench.analyze(experiment, store))
    assert without(summary, "reused") == without(stages.summary(), "reused")


def test_the_same_summary_as_a_run_with_unmeasured_attempts(stages: Lab) -> None:
    stages.make(outcomes={"quiet::pay": "pu", "baseline::find": "u"})
    stages.run("experiment.yml")
    experiment = pytest_metricbench.load_experiment("experiment.yml")
    summary = as_json(pytest_metricbench.analyze(experiment, pytest_metricbench.open_store(".metricbench/shop")))
    assert without(summary, "reused") == without(stages.summary(), "reused")


def test_coverage_measured_by_a_script_is_what_the_run_would_have_measured(stages: Lab) -> None:
    stages.make()
    stages.run("experiment.yml")
    whole = stages.summary()
    journal = stages.store() / "coverage.jsonl"
    journal.unlink()
    experiment = pytest_metricbench.load_experiment("experiment.yml")
    store = pytest_metricbench.open_store(".metricbench/shop")
    before = pytest_metricbench.analyze(experiment, store)
    assert before.cases["shop"].pool.coverage["goals"].value is None
    measured = pytest_metricbench.measure_coverage(experiment, store)
    assert {key: record.value for key, record in measured.items()}["shop", "goals", "pool"] == 1.0
    assert without(as_json(pytest_metricbench.analyze(experiment, store)), "reused") == without(whole, "reused")
    assert len(journal.read_text().splitlines()) == 4
    assert stages.run("experiment.yml").parseoutcomes() == {"reused": 22}


def test_coverage_that_is_there_is_not_measured_again(stages: Lab) -> None:
    stages.make()
    stages.run("experiment.yml")
    before = (stages.store() / "coverage.jsonl").read_bytes()
    experiment = pytest_metricbench.load_experiment("experiment.yml")
    assert len(pytest_metricbench.measure_coverage(experiment, pytest_metricbench.open_store(stages.store()))) == 4
    assert (stages.store() / "coverage.jsonl").read_bytes() == before


def test_a_store_of_a_part(stages: Lab) -> None:
    stages.make()
    stages.run("experiment.yml", "-k", "baseline")
    experiment = pytest_metricbench.load_experiment("experiment.yml")
    summary = as_json(pytest_metricbench.analyze(experiment, pytest_metricbench.open_store(".metricbench/shop")))
    partial = stages.summary(partial=True)
    assert without(summary, "reused", "part") == without(partial, "reused", "part")
    assert not summary["complete"]


def test_an_absent_store_is_an_empty_one(stages: Lab) -> None:
    stages.make()
    experiment = pytest_metricbench.load_experiment("experiment.yml")
    summary = pytest_metricbench.analyze(experiment, pytest_metricbench.open_store("nowhere"))
    assert summary.counts.outside == 18
    assert not (stages.path / "nowhere").exists()


def test_a_broken_experiment(stages: Lab) -> None:
    stages.make(atempts=1)
    with pytest.raises(DefinitionError, match=r"experiment\.yml:\d+:\d+: atempts: is an unknown key"):
        pytest_metricbench.load_experiment("experiment.yml")


@pytest.mark.slow
def test_a_script_needs_no_pytest(stages: Lab) -> None:
    stages.make()
    stages.run("experiment.yml")
    script = [sys.executable, "-c", SCRIPT, ".metricbench/shop"]
    ended = subprocess.run(script, cwd=stages.path, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["4", "12", "0.5", "False"]
