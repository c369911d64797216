"""What many attempts cost on a cluster of this machine: as much each, however many they are."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.dask_executor.dask_lab import records

pytest.importorskip("distributed")
pytestmark = pytest.mark.benchmark


def processor_seconds(folder: Path, tasks: int) -> float:
    """Of a run of ten variants, five attempts each, whose agent returns at once; over all processes."""
    folder.mkdir()
    (folder / "agent.py").write_text("def run(request):\n    return 1.0\n")
    form = {
        "metricbench": 1,
        "name": "many",
        "attempts": 5,
        "runner": {"kind": "python", "agent": "agent:run"},
        "cases": [
            {
                "id": "c",
                "tasks": [{"id": f"t{number}"} for number in range(tasks)],
                "mutants": [{"id": f"m{number}"} for number in range(9)],
            }
        ],
    }
    (folder / "experiment.yml").write_text(yaml.safe_dump(form))
    command = [sys.executable, "-m", "pytest", "experiment.yml", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        [*command, "--metricbench-executor", "dask:2"], cwd=folder, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.returncode == 0, ended.stdout
    assert {record["outcome"] for record in records(folder / ".metricbench" / "many")} == {"scored"}
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_attempts_cost_as_much_each_however_many_they_are(tmp_path: Path) -> None:
    few = processor_seconds(tmp_path / "few", 6)
    many = processor_seconds(tmp_path / "many", 30)
    print(f"{few:.1f} s for 300, {many:.1f} s for 1,500: {(many - few) / 1.2:.1f} ms for each further attempt")
    # The first 300 have the start of all processes among them. What grows with the square is five times as much.
    assert (many - few) / 1200 < 1.5 * few / 300
