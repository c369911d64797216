"""Coverage requests under the executor ``threads``."""

import shutil
from pathlib import Path

import pytest

from tests.executors.executors_lab import Lab, comparable

COVERAGE = [{"id": "goals", "kind": "python", "measure": "agent:measure"}]
WAITING = """\
touch "$1/asked-$$"
while [ "$(ls "$1" | grep -c asked-)" -lt 3 ]; do sleep 0.02; done
echo '{"value": 0.5}' > response.json
"""


def shell_system(folder: Path) -> dict[str, object]:
    return {"id": "own", "kind": "command", "command": ["/bin/sh", "measure.sh", str(folder)], "timeout": 30}


def test_requests_are_measured_at_a_time(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three that all wait until the last has begun, on what is told to be one processor."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    lab.write("measure.sh", WAITING)
    lab.make(coverage=[shell_system(lab.path)])
    result = lab.run()
    assert result.ret == 0, result.stdout.str()
    subsets = lab.summary()["cases"]["c"]["subsets"]
    assert {subset: found["coverage"]["own"]["value"] for subset, found in subsets.items()} == {"s1": 0.5, "s2": 0.5}


def test_the_answer_is_that_of_a_local_run(lab: Lab) -> None:
    """Also where the attempts come from the store, and where a system is used by one thread at a time."""
    lab.make({"baseline::find[2]": "d", "m1::pay": "m"}, coverage=COVERAGE)
    assert lab.run().ret == 0
    made = comparable(lab.summary())
    (lab.store / "coverage.jsonl").unlink()
    assert lab.run("--metricbench-cached-attempts").ret == 0
    again = comparable(lab.summary())
    shutil.rmtree(lab.store)
    assert lab.run(executor="local").ret == 0
    local = comparable(lab.summary())
    for name in ("cases", "gates"):
        assert made[name] == local[name]
    assert again["cases"]["c"]["subsets"] == local["cases"]["c"]["subsets"]


def test_a_request_that_fails_is_a_failed_test(lab: Lab) -> None:
    lab.write("measure.sh", "echo oops >&2; exit 3")
    lab.make(coverage=[shell_system(lab.path)])
    result = lab.run()
    result.assert_outcomes(passed=18, failed=3)
    result.stdout.fnmatch_lines(["*oops*"])
