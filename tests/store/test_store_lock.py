"""One writer at a time, told by name, and free as soon as it is gone."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.locking import StoreLock

HOLDER = """
import os, sys, time
from pathlib import Path
from pytest_metricbench.store.locking import StoreLock
lock = StoreLock(Path(sys.argv[1]))
if "fork" in sys.argv:
    child = os.fork()
    if not child:
        os.setsid()
        time.sleep(60)
        os._exit(0)
    print("child", child, flush=True)
if "release" in sys.argv:
    lock.release()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "lock"


@pytest.fixture
def holder(path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts another process that holds the lock."""
    path.parent.mkdir()
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-B", "-c", HOLDER, str(path), *arguments], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def said(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


def test_the_holder_is_named(path: Path, holder: Callable[..., subprocess.Popen[str]]) -> None:
    process = holder()
    assert said(process) == ["held"]
    for _ in range(2):
        with pytest.raises(StoreError, match=f"pid {process.pid} on ") as caught:
            StoreLock(path)
        assert str(path.parent) in str(caught.value)
        assert "--metricbench-store" in str(caught.value)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_holder_lets_go(path: Path, holder: Callable[..., subprocess.Popen[str]], number: int) -> None:
    process = holder()
    assert said(process) == ["held"]
    process.send_signal(number)
    process.wait()
    StoreLock(path).release()


def test_a_child_that_the_holder_forked_does_not_hold_it(
    path: Path, holder: Callable[..., subprocess.Popen[str]]
) -> None:
    """A python agent may fork, and its child may outlive the run."""
    process = holder("fork")
    _, child = said(process)
    assert said(process) == ["held"]
    try:
        process.kill()
        process.wait()
        os.kill(int(child), 0)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                StoreLock(path).release()
                break
            except StoreError:
                time.sleep(0.01)
        else:
            pytest.fail("the child holds the lock")
    finally:
        os.kill(int(child), signal.SIGKILL)


def test_a_lock_that_was_let_go_is_free_while_its_process_lives(
    path: Path, holder: Callable[..., subprocess.Popen[str]]
) -> None:
    process = holder("release")
    assert said(process) == ["held"]
    StoreLock(path).release()
    assert process.poll() is None


def test_the_same_process_cannot_hold_it_twice(path: Path) -> None:
    path.parent.mkdir()
    lock = StoreLock(path)
    with pytest.raises(StoreError, match=f"pid {os.getpid()} on "):
        StoreLock(path)
    lock.release()
    StoreLock(path).release()
    assert path.read_bytes() == b""


def test_a_holder_that_has_not_said_who_it_is(path: Path) -> None:
    """Between its lock and its name."""
    path.parent.mkdir()
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(
            StoreError,
            match=(
                r"another run is writing this store \(unknown\); wait for it, or use --metricbench-store for a store "
                "of your own$"
            ),
        ):
            StoreLock(path)


def test_the_name_of_the_last_holder_is_replaced_whole(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("pid 4000000000 on a-machine-with-a-long-name, which was killed\n")
    lock = StoreLock(path)
    assert path.read_text() == f"pid {os.getpid()} on {socket.gethostname()}\n"
    lock.release()


def test_letting_go_twice_lets_go_of_nothing_else(path: Path) -> None:
    path.parent.mkdir()
    first = StoreLock(path)
    first.release()
    second = StoreLock(path)
    first.release()
    with pytest.raises(StoreError):
        StoreLock(path)
    second.release()


def test_a_started_process_does_not_inherit_it(path: Path) -> None:
    path.parent.mkdir()
    lock = StoreLock(path)
    child = subprocess.Popen(["/bin/sleep", "60"], close_fds=False)
    try:
        lock.release()
        StoreLock(path).release()
    finally:
        child.kill()
        child.wait()


def test_no_descriptor_is_left_open(path: Path) -> None:
    path.parent.mkdir()
    before = len(os.listdir("/dev/fd"))
    for _ in range(10):
        lock = StoreLock(path)
        for _ in range(3):
            with pytest.raises(StoreError):
                StoreLock(path)
        lock.release()
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_something_else_in_its_place_is_an_error(path: Path, tmp_path: Path, kind: str) -> None:
    path.parent.mkdir()
    (tmp_path / "secret").write_text("password")
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="lock"):
        StoreLock(path)
    assert (tmp_path / "secret").read_text() == "password"
