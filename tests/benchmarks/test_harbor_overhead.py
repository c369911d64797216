"""What an attempt costs in process, beside ``harbor run`` with the same trials as one job. Needs Harbor installed."""

import shutil
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from tests.benchmarks.cost_lab import Cost

EXAMPLE = Path(__file__).parents[2] / "examples" / "harbor"
BOUND = 1.5
ATTEMPTS = 15  # of six tasks: 90 trials


def is_installed() -> bool:
    try:
        return sys.version_info >= (3, 12) and bool(metadata.version("harbor"))
    except metadata.PackageNotFoundError:
        return False


EXPERIMENT = f"""\
metricbench: 1
name: bench
attempts: {ATTEMPTS}
runner: {{kind: harbor, environment: "local_environment:LocalEnvironment"}}
cases:
  - id: ledgers
    tasks: {{harbor: datasets/ledgers}}
    baseline: {{params: {{agent: "ledger_agent:LedgerAgent"}}}}
"""

JOB = f"""\
job_name: bench
jobs_dir: jobs
n_attempts: {ATTEMPTS}
n_concurrent_trials: 1
quiet: true
environment: {{import_path: "local_environment:LocalEnvironment"}}
agents: [{{import_path: "ledger_agent:LedgerAgent"}}]
datasets: [{{path: datasets/ledgers}}]
"""


@pytest.mark.benchmark
@pytest.mark.skipif(not is_installed(), reason="Harbor is not installed in this environment")
def test_an_attempt_costs_little_more_than_harbors_own_trial(
    tmp_path: Path,
    measured: Callable[..., Cost],
    bare_pytest: list[str],
    shown: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CPU of both whole processes, their start included; the cheaper of two runs of each, in turns."""
    for name, value in (("HARBOR_TELEMETRY", "off"), ("PYTHONPATH", str(tmp_path)), ("HOME", str(tmp_path))):
        monkeypatch.setenv(name, value)
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".metricbench", "*.yml"))
    (tmp_path / "experiment.yml").write_text(EXPERIMENT)
    (tmp_path / "job.yaml").write_text(JOB)
    ours, harbors = [], []
    for _ in range(2):
        shutil.rmtree(tmp_path / "jobs", ignore_errors=True)
        job = [sys.executable, "-m", "harbor.cli.main", "run", "-c", "job.yaml", "-y"]
        harbors.append(measured(job, tmp_path).cpu)
        assert len(list((tmp_path / "jobs" / "bench").glob("*__*/result.json"))) == 6 * ATTEMPTS
        session = [*bare_pytest, "-p", "metricbench", "experiment.yml", "--metricbench-fresh"]
        ours.append(measured(session, tmp_path).cpu)
    each = 1000 / (6 * ATTEMPTS)
    ratio = min(ours) / min(harbors)
    shown(f"\nCPU of a trial: {min(ours) * each:.1f} ms here, {min(harbors) * each:.1f} ms as a job, ratio {ratio:.2f}")
    assert ratio <= BOUND
