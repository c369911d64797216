"""What it costs to prove that saved attempts are still what they were, beside what it costs to run them."""

import json
import shutil
import time

import pytest

from pytest_metricbench import load_experiment, open_store
from pytest_metricbench.attempts import Attempts
from pytest_metricbench.definition.fingerprints import Fingerprints

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
def test_verifying_beside_running(tmp_path, measured, experiment, bare_pytest, shown, agent, name):
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
