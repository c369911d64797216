"""What an attempt of the ``command`` runner costs beside the two processes that it must start."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.cost_lab import Cost

pytestmark = pytest.mark.benchmark

COUNT = 200
REPEATS = 3

AGENT = """\
import json
request = json.load(open("request.json"))
json.dump({"task": request["task"]["id"]}, open("answer.json", "w"))
"""
VERIFIER = """\
import json
json.load(open("answer.json"))
json.dump({"scores": {"reward": 1}}, open("response.json", "w"))
"""
BARE_LOOP = """\
import os, subprocess, sys
folder, python, agent, verifier, request, count = sys.argv[1:]
for number in range(int(count)):
    workspace = os.path.join(folder, str(number))
    os.makedirs(workspace)
    with open(os.path.join(workspace, "request.json"), "w") as file:
        file.write(request)
    for step in (agent, verifier):
        with open(os.path.join(workspace, "out"), "wb") as out, open(os.path.join(workspace, "err"), "wb") as err:
            subprocess.run([python, step], cwd=workspace, stdout=out, stderr=err, stdin=subprocess.DEVNULL, check=True)
"""


def test_cpu_of_a_command_attempt(
    tmp_path: Path,
    measured: Callable[..., Cost],
    experiment: Callable[..., None],
    bare_pytest: list[str],
    shown: Callable[[str], None],
) -> None:
    """200 attempts, agent and verifier both Python scripts that write one file, beside a bare loop of the same."""
    ours, bare = [], []
    experiment(
        tmp_path / "ours",
        COUNT,
        '{kind: command, agent: ["{python}", agent.py], verifier: ["{python}", verify.py], timeout: 60}',
        {"agent.py": AGENT, "verify.py": VERIFIER},
    )
    loop = tmp_path / "loop.py"
    loop.write_text(BARE_LOOP)
    request = json.dumps({"task": {"id": "t000", "params": {}}, "seed": 1, "attempt": 1})
    for _ in range(REPEATS):
        shutil.rmtree(tmp_path / "ours" / ".metricbench", ignore_errors=True)
        shutil.rmtree(tmp_path / "bare", ignore_errors=True)
        ours.append(measured([*bare_pytest, "experiment.yml"], tmp_path / "ours").cpu)
        scripts = [str(tmp_path / "ours" / name) for name in ("agent.py", "verify.py")]
        argv = [sys.executable, str(loop), str(tmp_path / "bare"), sys.executable, *scripts, request, str(COUNT)]
        bare.append(measured(argv, tmp_path).cpu)
    ratio = min(ours) / min(bare)
    without = (min(ours) - min(bare)) / COUNT * 1000
    shown(
        f"\ncommand: {min(ours) / COUNT * 1000:.1f} ms CPU an attempt, "
        f"{min(bare) / COUNT * 1000:.1f} ms in a bare loop, "
        f"ratio {ratio:.2f}; without the processes an attempt costs {without:.2f} ms (start-up of pytest included)"
    )
    assert ratio <= 1.5
