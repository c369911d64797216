"""Stores that are taken, cannot be written, or run full in the middle."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.session_lab import Lab, no_fault, wait_until
from tests.small_disk import file_system

AGENT = "def act(request):\n    return 1.0\n"
WAITING = """
import time
from pathlib import Path

def act(request):
    while request.task.id == "waits" and not Path(__file__).with_name("go").exists():
        time.sleep(0.02)
    return 1.0
"""
WORKERS = pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])


@pytest.mark.slow
def test_a_second_run_on_a_store_is_a_usage_error_that_names_the_first(lab: Lab) -> None:
    lab.make(WAITING, tasks=["t1", "waits"])
    first = lab.start("experiment.yml")
    first.await_that(lambda: lab.journal(), "the first attempt")
    for second in (lab.run_apart("experiment.yml"), lab.run_apart("experiment.yml", "-n2")):
        assert second.status == 4, second
        no_fault(second.out)
        assert f"another run is writing this store (pid {first.pid} on " in second.out
        assert "--metricbench-store" in second.out
    lab.write("go", "")
    ended = first.end()
    assert ended.status == 0, ended
    assert lab.counts() == {"declared": 4, "passed": 4}
    assert lab.run("experiment.yml").ret == 0  # and the lock is gone
    assert lab.counts() == {"declared": 4, "passed": 4, "reused": 4}


@pytest.mark.parametrize(
    ("place", "workers"),
    [
        (".metricbench", []),
        (".metricbench/lab", []),
        (".metricbench/lab/attempts.jsonl/", []),
        pytest.param(".metricbench", ["-n2"], marks=pytest.mark.slow),
    ],
)
def test_something_else_in_the_place_of_a_store(lab: Lab, place: str, workers: list[str]) -> None:
    lab.make(AGENT)
    if place.endswith("/"):
        (lab.path / place).mkdir(parents=True)
    else:
        lab.write(place, "a file")
    ended = lab.run_apart("experiment.yml", *workers)
    assert ended.status == 4, ended
    no_fault(ended.out)
    assert len(re.findall("cannot be (?:written|read)", ended.out)) == 1
    assert str(lab.path / place.rstrip("/")) in ended.out


def test_a_workspace_that_cannot_be_made(lab: Lab) -> None:
    """The attempt's folder is what fails: the attempt is unmeasured, and the store knows it."""
    lab.make("import sys\nsys.exit(0)\n", command=True, mutants=[])
    lab.write(".metricbench/lab/attempts", "a file in the place of the workspaces")
    result = lab.run("experiment.yml")
    assert result.ret == 1
    assert lab.counts() == {"declared": 2, "unmeasured": 2}
    assert {record["error"]["phase"] for record in lab.attempts().values()} == {"setup"}
    no_fault(result.stdout.str())
    assert "the workspace cannot be made" in result.stdout.str()


# ---------------------------------------------------------------- a full disk


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system that holds little."""
    with file_system(tmp_path / "small", "128k") as folder:
        yield folder


def make_room(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)


BABBLING = """
def act(request):
    raise RuntimeError("words " * 300)
"""


@WORKERS
def test_a_journal_that_cannot_grow_ends_the_run_and_the_next_one_goes_on(
    lab: Lab, small: Path, workers: list[str]
) -> None:
    lab.make(BABBLING, tasks=["t1", "t2"], mutants=["m1"], attempts=50)
    ended = lab.run_apart("experiment.yml", f"--metricbench-store={small}", *workers)
    assert ended.status == 3, ended
    no_fault(ended.out)
    said = f"metricbench: {small}/lab/attempts.jsonl: cannot be written: No space left on device; make room"
    assert said in ended.out
    kept = (small / "lab" / "attempts.jsonl").read_text()
    assert kept.endswith("\n")
    assert 10 < kept.count("\n") < 190

    make_room(small)
    again = lab.run("experiment.yml", f"--metricbench-store={small}")
    assert again.ret == 1  # no baseline attempt passes
    no_fault(again.stdout.str())
    whole = (small / "lab" / "attempts.jsonl").read_text()
    assert whole.startswith(kept)
    without_room = kept.count('"type":"NoRoom"')  # who dies while the disk is full may have died of that
    assert whole.count("\n") == 200 + without_room
    counts = json.loads((small / "lab" / "summary.json").read_text())["counts"]
    assert (counts["died"], counts["reused"]) == (200, kept.count("\n") - without_room)


def test_a_coverage_result_that_has_no_room(lab: Lab, small: Path) -> None:
    lab.write("cover.py", "open('big', 'w').write('x' * 300_000)\nopen('response.json', 'w').write('{\"value\": 1}')\n")
    coverage = [{"id": "big", "kind": "command", "command": ["{python}", "cover.py"]}]
    lab.make(AGENT, coverage=coverage)
    result = lab.run("experiment.yml", f"--metricbench-store={small}")
    output = result.stdout.str()
    assert result.ret == 3, output
    no_fault(output)
    assert "cannot be written: No space left on device; make room" in output
    assert (small / "lab" / "attempts.jsonl").read_text().count("\n") == 4

    make_room(small)
    again = lab.run("experiment.yml", f"--metricbench-store={small}")
    assert again.ret == 0, again.stdout.str()
    assert "4 reused" in again.stdout.str()


def test_no_room_to_score_kept_work_again(lab: Lab, small: Path) -> None:
    """What the agent did is paid for: it is not lost where it cannot be copied."""
    agent = "open('work', 'w').write('x' * 60_000)\n"
    lab.write("verify.py", "raise SystemExit('out of order')\n")
    lab.make(agent, command=True, tasks=["t1"], mutants=[], runner={"verifier": ["{python}", "verify.py"]})
    arguments = ("experiment.yml", f"--metricbench-store={small}")
    assert lab.run(*arguments).ret == 1
    lab.write("verify.py", "open('response.json', 'w').write('{\"scores\": {\"reward\": 1}}')\n")
    result = lab.run(*arguments)
    assert result.ret == 1
    no_fault(result.stdout.str())
    assert "what the attempt left cannot be copied to score it again: [Errno 28]" in result.stdout.str()
    make_room(small)
    assert lab.run(*arguments).ret == 0
    lines = [json.loads(line) for line in (small / "lab" / "attempts.jsonl").read_text().splitlines()]
    assert [line["outcome"] for line in lines] == ["unmeasured", "unmeasured", "scored"]
    assert len({line["trial_id"] for line in lines}) == 1  # the agent ran once
    assert "work" in lines[-1]["files"]


@pytest.mark.slow
def test_no_folder_for_coverage_requests(lab: Lab, tmp_path: Path) -> None:
    lab.write("cover.py", "open('response.json', 'w').write('{\"value\": 1}')\n")
    coverage = [{"id": "any", "kind": "command", "command": ["{python}", "cover.py"]}]
    lab.make(AGENT, coverage=coverage)
    lab.write(".metricbench/lab/coverage", "a file in the place of the results")
    ended = lab.run_apart("experiment.yml")
    assert ended.status == 3, ended
    no_fault(ended.out)
    assert "cannot be written" in ended.out
    (lab.store / "coverage").unlink()
    assert lab.run("experiment.yml").ret == 0


@pytest.mark.slow
def test_a_lock_of_a_killed_run_is_free(lab: Lab) -> None:
    lab.make(WAITING, tasks=["t1", "waits"])
    first = lab.start("experiment.yml")
    first.await_that(lambda: lab.journal(), "the first attempt")
    first.signal(signal.SIGKILL)
    lab.write("go", "")
    wait_until(lambda: (lab.store / "lock").exists(), "the lock file")
    assert lab.run("experiment.yml").ret == 0
