"""What it costs to prove that saved attempts are still what they were, beside what it costs to run them."""

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_metricbench import load_experiment, open_store
from pytest_metricbench.contracts import AttemptRecord
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.running.attempts import Attempts
from pytest_metricbench.store.records import attempt_to_json, seal, to_line
from tests.benchmarks.cost_lab import Cost

pytestmark = pytest.mark.benchmark

COUNT = 1000
LIMIT = 0.05

AGENT = """\
echo trace > trace.txt
echo '{"scores": {"reward": 1}}' > response.json
"""
PYTHON = """\
open("trace.txt", "w").write("trace")
open("response.json", "w").write('{"scores": {"reward": 1}}')
"""


@pytest.mark.parametrize(
    ("agent", "name"), [(["/bin/sh", "agent.sh"], "a shell script"), (["{python}", "agent.py"], "a Python script")]
)
def test_verifying_beside_running(
    tmp_path: Path,
    measured: Callable[..., Cost],
    experiment: Callable[..., None],
    bare_pytest: list[str],
    shown: Callable[[str], None],
    agent: list[str],
    name: str,
) -> None:
    """Attempts with five files each (the agent's two, the request and two logs), run once and then verified."""
    experiment(
        tmp_path / "bench",
        COUNT,
        json.dumps({"kind": "command", "agent": agent, "timeout": 60}),
        {"agent.sh": AGENT, "agent.py": PYTHON},
    )
    running = measured([*bare_pytest, "experiment.yml"], tmp_path / "bench").cpu
    loaded = load_experiment(tmp_path / "bench" / "experiment.yml")
    store = open_store(tmp_path / "bench" / ".metricbench" / "bench")
    records = list(store.attempts.values())
    assert len(records) == COUNT
    assert min(len(record.files) for record in records) >= 3
    costs = []
    for _ in range(3):
        desk = Attempts(loaded, Fingerprints(loaded), store.layout, lambda: store.attempts)
        began = time.process_time()
        reusable = sum(desk.reusable(*where) is not None for where in loaded.attempts())
        costs.append(time.process_time() - began)
        assert reusable == COUNT
    ratio = min(costs) / running
    shown(
        f"\nverifying ({name}): {min(costs) / COUNT * 1e6:.0f} us CPU an attempt of {len(records[0].files)} files, "
        f"running it {running / COUNT * 1000:.1f} ms: {ratio:.1%}"
    )
    assert ratio < LIMIT
    shutil.rmtree(tmp_path / "bench")


@pytest.mark.parametrize("files", [0, 3])
def test_reading_a_journal_beside_json(tmp_path: Path, shown: Callable[[str], None], files: int) -> None:
    """100,000 checked lines, checksum and all, beside what ``json.loads`` alone takes for them."""
    record = AttemptRecord(
        case="refunds",
        variant="skips-eligibility",
        task="late-purchase",
        attempt=1,
        trial_id="a" * 32,
        outcome="scored",
        scores={"reward": 1.0, "tokens": 1234},
        error=None,
        time_limit=None,
        fingerprint="sha256:" + "f" * 64,
        verifier="sha256:" + "e" * 64,
        seed=123456,
        started="2026-01-01T00:00:00.000+00:00",
        duration=1.25,
        files={f"trace/{number}.json": "sha256:" + "d" * 64 for number in range(files)},
        supersedes=None,
    )
    lines = (seal(to_line(attempt_to_json(replace(record, attempt=slot)))) for slot in range(1, 100_001))
    path = tmp_path / "attempts.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    plain, ours = [], []
    for _ in range(3):
        began = time.process_time()
        with path.open("rb") as file:
            values = [json.loads(text) for text in file]
        assert len(values) == 100_000
        del values
        plain.append(time.process_time() - began)
        began = time.process_time()
        open_store(tmp_path)
        ours.append(time.process_time() - began)
    ratio = min(ours) / min(plain)
    took = f"{min(ours):.2f} s, json.loads alone {min(plain):.2f} s: ratio {ratio:.2f}"
    shown(f"\nreading 100,000 lines of {files} files each: {took}")
    assert ratio <= 2
