"""What a killed process leaves running is killed too."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from pytest_metricbench.orphans import OrphanWatch
from tests.present import present

PARENT = """\
import sys, pathlib
from pytest_metricbench.processes import run_process
folder = pathlib.Path(sys.argv[1])
run_process(
    ["/bin/sh", "-c", "trap '' TERM; sleep 0.3; echo $$ > pid; sleep 60 & wait"],
    cwd=folder, env={"PATH": "/usr/bin:/bin"}, stdout=folder / "out", stderr=folder / "err", timeout=None,
)
"""


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return not Path("/proc/self").exists()
    return state not in "ZX"


def wait_until(condition: Callable[[], object], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("whole_group", [False, True], ids=["the process", "its group"])
def test_what_a_killed_process_ran_is_killed(tmp_path: Path, whole_group: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], start_new_session=True) as parent:
        assert wait_until(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text().strip() != "")
        agent = int((tmp_path / "pid").read_text())
        assert alive(agent)
        (os.killpg if whole_group else os.kill)(parent.pid, signal.SIGKILL)
    assert wait_until(lambda: not alive(agent))


def test_groups_that_ended_are_left_alone(tmp_path: Path) -> None:
    watch = OrphanWatch()
    with subprocess.Popen(["/bin/sleep", "60"], start_new_session=True) as other:
        watch.started(other.pid)
        watch.started(other.pid + 100_000_000)
        watch.ended(other.pid)
        watch.close()
        assert other.poll() is None
        other.kill()


def test_a_watch_that_cannot_start_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise FileNotFoundError("/bin/sh")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    watch = OrphanWatch()
    watch.started(1)
    watch.ended(1)
    watch.close()


def test_a_shell_that_died_is_no_fault() -> None:
    watch = OrphanWatch()
    watch.started(999_999_999)
    shell = present(watch._shell)
    shell.kill()
    shell.wait()
    for _ in range(3):
        watch.started(999_999_999)
    watch.close()
