"""Bundles of ours, held against NVIDIA's own SDK.

``METRICBENCH_NEMO_PYTHON`` names an interpreter that has ``nhx_evals_sdk`` (in nemo-helix-plugin) or
``nemo_evaluator_sdk`` (in nemo-platform-plugin); without it, this interpreter is asked.
"""

import importlib.util
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.analysis.outcomes import passes
from pytest_metricbench.analysis.pass_at_k import mean_over_tasks, pass_at_k
from pytest_metricbench.interop.harbor import jobs as harbor_jobs
from pytest_metricbench.interop.nemo import bundles as nemo_bundles
from pytest_metricbench.interop.nemo.writing import write_bundles
from pytest_metricbench.interop.recordings import ReadOptions, Recording
from tests.interop_nemo.bundle_lab import SAMPLES, told
from tests.interop_nemo.record_lab import AGENT, DIED, JUDGE, UNMEASURED, Given, experiment_of, scored

pytestmark = [pytest.mark.upstream, pytest.mark.slow]
CHECK = Path(__file__).parent / "check_with_sdk.py"
OUTPUTS: Any = {
    "m.c": "continuous", "m.e": "continuous", "n.i": "discrete", "o.b": "boolean", "p.l": "label",
    "reward": "continuous",
}  # fmt: skip


@pytest.fixture(scope="module")
def python() -> str:
    named = os.environ.get("METRICBENCH_NEMO_PYTHON")
    if named:
        return named
    if not any(map(importlib.util.find_spec, ("nhx_evals_sdk", "nemo_evaluator_sdk"))):
        pytest.skip("the evaluator SDK is not installed; METRICBENCH_NEMO_PYTHON names an interpreter that has it")
    return sys.executable


@pytest.fixture(scope="module")
def today(python: str) -> str:
    """An interpreter with the SDK under its present name; what this one writes, older ones refuse."""
    if subprocess.run([python, "-c", "import nhx_evals_sdk"], capture_output=True, check=False).returncode:
        pytest.skip("the SDK is from before nemo-helix-plugin 0.7")
    return python


def accepted(python: str, *folders: Path) -> str:
    command = [python, str(CHECK), *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_check_accepts_what_the_sdk_wrote(today: str) -> None:
    assert accepted(today, SAMPLES / "geo") == f"{SAMPLES / 'geo'}: 4 tasks, 12 trials, 6 aggregates\n"


def test_the_check_finds_a_wrong_figure(python: str, tmp_path: Path) -> None:
    """It can fail: one changed digit of one aggregate."""
    experiment, records = experiment_of({"baseline": {"t": [scored(reward=0.5)]}})
    (folder,) = write_bundles(tmp_path, experiment, records)
    summary = folder / "summary.json"
    summary.write_text(summary.read_text().replace('"mean": 0.5', '"mean": 0.25', 1))
    with pytest.raises(AssertionError, match="the SDK has"):
        accepted(python, folder)


def test_the_sdk_accepts_every_kind_of_attempt(python: str, tmp_path: Path) -> None:
    row = [
        scored(reward=1.0, m__c=1, m__e=0.5, n__i=3, o__b=True, p__l="NaN"),
        scored(AGENT, reward=math.nan, m__c=math.inf, m__e=-math.inf, n__i=0, o__b=False, p__l="\ud800"),
        scored(JUDGE, name="same", reward=2),
        scored(name="same", reward=None, n__i=1),
        scored(reward=0.0, m__e=0.25),
        DIED,
        UNMEASURED,
    ]
    outcomes = {"baseline": {"t": row, "u": row[:2]}, "m1": {"t": [DIED] * 3, "u": [UNMEASURED]}}
    experiment, records = experiment_of(outcomes, OUTPUTS)
    assert accepted(python, *write_bundles(tmp_path, experiment, records)).count("2 tasks") == 2


def test_the_sdk_computes_the_same_from_random_attempts(python: str, tmp_path: Path) -> None:
    rng = random.Random(20240101)
    folders: list[Path] = []
    for number in range(25):
        outcomes = {"baseline": {f"t{task}": [anything(rng) for _ in range(rng.randint(1, 6))] for task in range(5)}}
        experiment, records = experiment_of(outcomes, OUTPUTS)
        folders.extend(write_bundles(tmp_path / str(number), experiment, records))
    assert accepted(python, *folders).count("aggregates") == 25


def anything(rng: random.Random) -> Given:
    kind = rng.random()
    if kind < 0.15:
        return DIED
    if kind < 0.25:
        return UNMEASURED

    def number() -> float:
        return rng.choice([0.0, 1.0, 1, rng.random(), rng.gauss(0, 1e6), math.nan, math.inf, 0.1, 1 / 3])

    values = {
        "reward": number(), "m.c": number(), "m.e": number(), "n.i": rng.randint(0, 9), "o.b": rng.random() < 0.5,
        "p.l": rng.choice(["ok", "bad", "NaN"]),
    }  # fmt: skip
    kept = {name: value for name, value in values.items() if rng.random() < 0.85}
    return Given("scored", kept, rng.choice([None, AGENT, JUDGE]), rng.choice([None, "same"]))


def test_random_bundles_of_the_sdk_give_its_own_figures(today: str, tmp_path: Path) -> None:
    """pass@k, count and nan_count of what is read are those that stand in the bundle, whatever happened to trials."""
    script = Path(__file__).parent / "make_with_sdk.py"
    done = subprocess.run([today, str(script), str(tmp_path), "60"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    compared = 0
    for number in range(60):
        folder = tmp_path / str(number)
        summary = json.loads((folder / "summary.json").read_text())
        stated = {score["name"]: score for score in summary["scores"]["scores"]}
        found = nemo_bundles.read({"b": folder}, ReadOptions("c"))
        for name in ("checks.ratio", "checks.tidy"):
            tallies = [tally(found.attempts, task, name) for task in ("t1", "t2", "t3")]
            for k in (1, 2, 3):
                if f"{name}.pass@{k}" in stated:
                    mean = mean_over_tasks(pass_at_k, tallies, k)
                    said = stated[f"{name}.pass@{k}"]
                    assert (mean.count, mean.nan_count) == (said["count"], said["nan_count"])
                    value = None if mean.value is None else float(mean.value)
                    assert value == (said["mean"] if said["mean"] is None else pytest.approx(said["mean"]))
                    compared += 1
    assert compared > 200


def tally(attempts: Sequence[Recording], task: str, name: str) -> tuple[int, int]:
    """Entries and passes of a score at a task."""
    values = [
        None if one.outcome.kind == "died" else one.outcome.scores[name]
        for one in attempts
        if one.task == task and (one.outcome.kind == "died" or name in one.outcome.scores)
    ]
    return len(values), sum(passes(value, 1.0) for value in values)


JOBS = Path(__file__).parents[1] / "interop_harbor" / "samples" / "jobs"


@pytest.mark.parametrize("job", ["errors-0.25", "errors-0.26", "oracle-0.25", "variants-0.25", "variants-0.26"])
def test_a_job_of_harbor_is_read_alike_from_its_files_and_from_a_bundle(today: str, tmp_path: Path, job: str) -> None:
    """By the same table: what the SDK makes of a crash in between does not matter."""
    if not (JOBS / job).is_dir():
        pytest.skip(f"the sample {job} is not there")
    if subprocess.run([today, "-c", "import harbor"], capture_output=True, check=False).returncode:
        pytest.skip("Harbor is not installed beside the SDK")
    make = Path(__file__).parent / "make_from_harbor.py"
    done = subprocess.run(
        [today, str(make), str(JOBS / job), str(tmp_path / job)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    from_bundle = nemo_bundles.read({job: tmp_path / job}, ReadOptions("c"))
    from_files = harbor_jobs.read({job: JOBS / job}, ReadOptions("c"))
    expected = {one.trial: as_in_harbor(one) for one in from_files.attempts if one.trial}
    assert {one.trial: as_in_harbor(one) for one in from_bundle.attempts} == expected


def as_in_harbor(one: Recording) -> tuple[str, str | None, dict[str, Any]]:
    """What became of an attempt, its rewards called as Harbor calls them."""
    kind, error, scores = told(one)
    rewards = {name.removeprefix("harbor_reward."): value for name, value in scores.items()}
    return kind, None if error == "NoReward" else error, rewards
