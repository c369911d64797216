"""Disks that are full or turn read-only: one clear error, and a store that goes on when there is room again."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durability.durability_lab import AGENT, Lab, no_fault
from tests.small_disk import file_system

pytestmark = pytest.mark.slow
ATTEMPTS = 24
HUNGRY = AGENT + 'head -c "$(cat "$here/bytes")" /dev/zero > large.bin || exit 9\n'


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own; it needs the right to mount one."""
    with file_system(tmp_path / "disk", "1m") as folder:
        yield folder


def on_disk(lab: Lab, disk: Path) -> str:
    (lab.path / ".metricbench").symlink_to(disk)
    return f"--metricbench-store={disk}"


def errors(output: str) -> list[str]:
    return re.findall(r"^metricbench: .*cannot be (?:written|measured).*$", output, re.M)


@pytest.mark.parametrize(
    ("size", "workers"), [("16k", 0), pytest.param("96k", 0, marks=pytest.mark.benchmark), ("256k", 0), ("192k", 2)]
)
def test_a_disk_that_is_full(lab: Lab, disk: Path, size: str, workers: int) -> None:
    """At different moments: while the first attempts run, in the middle, near the end."""
    lab.make()
    option = on_disk(lab, disk)
    remount(disk, f"size={size}")
    ended = lab.run(f"-n{workers}", option)
    assert ended.status in (3, 4), ended
    no_fault(ended.out)
    assert "cannot be written: No space left on device" in ended.out.replace("\n", " ")
    assert "make room" in ended.out.replace("\n", " ")
    if ended.status == 3:
        assert len(errors(ended.out)) == 1, ended
    finished = {name: record for name, record in lab.attempts().items() if record["outcome"] == "scored"}
    remount(disk, "size=64m")
    ended = lab.run(f"-n{workers}", option)
    assert ended.status == 0, ended
    assert finished.items() <= lab.attempts().items()
    assert set(lab.noted().values()) == {1}
    assert lab.summary()["complete"] is True
    assert lab.summary()["counts"]["declared"] == ATTEMPTS


def test_an_agent_that_fills_the_disk(lab: Lab, disk: Path) -> None:
    """An agent that fails since there is no room has not died: nothing is known of it."""
    lab.make()
    lab.write("agent.sh", HUNGRY)
    lab.write("bytes", "80000")
    option = on_disk(lab, disk)
    ended = lab.run(option)
    assert ended.status == 3, ended
    no_fault(ended.out)
    assert len(errors(ended.out)) == 1
    remount(disk, "size=64m")
    ended = lab.run(option)
    assert ended.status == 0, ended
    died = {name for name, record in lab.attempts().items() if record["outcome"] == "died"}
    assert died == {"m2::t3[1]", "m2::t3[2]"}


def test_a_disk_that_is_read_only(lab: Lab, disk: Path) -> None:
    """Said before anything runs."""
    lab.make()
    option = on_disk(lab, disk)
    assert lab.run(option, "-k", "t1").status == 0
    remount(disk, "ro")
    lab.forget()
    for workers in (0, 2):
        ended = lab.run(option, f"-n{workers}")
        assert ended.status == 3, ended
        no_fault(ended.out)
        assert "cannot be written: Read-only file system" in ended.out
    assert lab.noted().total() == 0
    remount(disk, "rw,size=64m")
    ended = lab.run(option)
    assert ended.status == 0, ended
    assert lab.noted().total() == ATTEMPTS - 6


def test_an_answer_from_a_store_that_is_read_only(lab: Lab, disk: Path) -> None:
    """The stages only read."""
    from pytest_metricbench import analyze, load_experiment, open_store

    lab.make()
    assert lab.run(on_disk(lab, disk)).status == 0
    remount(disk, "ro")
    summary = analyze(load_experiment(lab.path / "experiment.yml"), open_store(lab.store))
    assert summary.complete
