"""A job that the Harbor at hand runs here and now: read like any other, and its own figures met.

The newest Harbor may write what the samples do not show; that is noticed here.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from pytest_metricbench.interop.harbor.jobs import read
from pytest_metricbench.interop.harbor.stats import counted_trial, stats_by_group
from pytest_metricbench.interop.recordings import ReadOptions, Recordings
from tests.interop_harbor.harbor_lab import SAMPLES, kinds

pytestmark = pytest.mark.slow

JOB: Final = """\
job_name: live
n_attempts: 2
n_concurrent_trials: 2
quiet: true
environment: {import_path: "localenv:LocalProcessEnvironment"}
agents:
  - {import_path: "toyagent:ToyAgent"}
  - {import_path: "toyagent:ToyAgent", kwargs: {mutant: m1, break_words: [hello]}}
  - {import_path: "toyagent:ToyAgent", kwargs: {mutant: crash, boom: "out of luck"}}
  - {import_path: "toyagent:ToyAgent", kwargs: {mutant: slow, sleep: 20}, override_timeout_sec: 0.5}
datasets: [{path: ds}]
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    harbor = os.environ.get("METRICBENCH_HARBOR")
    if not harbor:
        pytest.skip("METRICBENCH_HARBOR names no executable of Harbor")
    if sys.platform != "linux":
        pytest.skip("the environment without Docker is for Linux")
    folder = tmp_path_factory.mktemp("live")
    shutil.copytree(SAMPLES.parent / "loop", folder, dirs_exist_ok=True)
    (folder / "job.yml").write_text(JOB)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        "PYTHONPATH": str(folder),
        "HOME": str(folder),
        "NO_COLOR": "1",
        "HARBOR_TELEMETRY": "off",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    command = [harbor, "run", "-c", "job.yml", "-o", "jobs", "-q", "-y"]
    said = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert said.returncode == 0, said.stderr[-2000:]
    yield folder / "jobs" / "live"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def recordings(job: Path) -> Recordings:
    return read({"jobs/live": job}, ReadOptions("case"))


def test_it_is_read_like_the_samples(recordings: Recordings) -> None:
    found = kinds(recordings)
    assert found["toy", "alpha"] == ["1.0"] * 2
    assert found["toy-mutant-m1", "alpha"] == ["0.0"] * 2
    assert found["toy-mutant-m1", "beta"] == ["1.0"] * 2
    assert found["toy-mutant-crash", "gamma"] == ["died RuntimeError"] * 2
    assert found["toy-mutant-slow", "gamma"] == ["0.0 AgentTimeoutError"] * 2
    assert len(recordings.attempts) == 24


def test_baselines_leave_traces(recordings: Recordings) -> None:
    assert all("agent/trajectory.json" in entry.files for entry in recordings.attempts if entry.variant == "toy")


def test_harbors_figures_are_met(job: Path) -> None:
    version = json.loads((job / "lock.json").read_text())["harbor"]["version"]
    trials = [counted_trial(json.loads(path.read_text())) for path in sorted(job.glob("*__*/result.json"))]
    found = {group: stats.to_json() for group, stats in stats_by_group(trials, version).items()}
    wanted = json.loads((job / "result.json").read_text())["stats"]["evals"]
    for stats in wanted.values():
        for values in stats["reward_stats"].values():
            values.update({value: sorted(names) for value, names in values.items()})
        stats["exception_stats"] = {name: sorted(names) for name, names in stats["exception_stats"].items()}
    assert found == wanted
