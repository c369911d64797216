"""Processes that misbehave: they hang, flood, fork, kill themselves, or plant things where their output goes."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench import process_groups, processes
from pytest_metricbench.orphans import WATCH
from pytest_metricbench.process_groups import kill_running
from pytest_metricbench.processes import (
    CannotStartError,
    Finished,
    MissingVariableError,
    bound_log,
    clean_environment,
    log_tail,
    run_process,
)

ENV = {"PATH": os.environ["PATH"]}
Run = Callable[..., Finished]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a shell text, or an argv, in a folder of its own."""

    def start(text: str | list[str], timeout: float | None = 20, **options: object) -> Finished:
        argv = ["/bin/sh", "-c", text] if isinstance(text, str) else text
        given: dict[str, Any] = {
            "cwd": tmp_path,
            "env": ENV,
            "stdout": tmp_path / "out",
            "stderr": tmp_path / "err",
        } | options
        return run_process(argv, timeout=timeout, **given | options)

    return start


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    with contextlib.suppress(OSError):
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    return not Path("/proc/self").exists()


@pytest.fixture(autouse=True)
def others() -> None:
    """Children that this process has already, such as the resource tracker of ``multiprocessing``."""
    OTHERS.clear()
    OTHERS.update(children())


OTHERS: set[int] = set()


def children() -> set[int]:
    """The pids of this process's children, zombies among them; the shell that watches for orphans is not meant."""
    found = set()
    watch = WATCH._shell.pid if WATCH._shell is not None else None
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(stat.parent.name))
    return found - {watch} - OTHERS


def wait_for(path: Path) -> str:
    """What a process writes to a file, once it did."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            if (text := path.read_text()).endswith("\n"):
                return text
        time.sleep(0.005)
    raise AssertionError(f"{path} was not written")


@pytest.fixture(params=["pidfd", "pidfd refused", "no pidfd", "neither pidfd nor waitid"])
def _every_watch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way to notice that a process ended; what the system lacks is taken away."""

    def refuse(pid: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    if request.param == "pidfd refused":
        monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    if request.param.startswith(("no ", "neither")):
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    if request.param.startswith("neither"):
        monkeypatch.delattr(os, "waitid", raising=False)


# ---------------------------------------------------------------- how it ends


@pytest.mark.parametrize("status", [0, 1, 42, 126, 127, 128, 255])
def test_the_exit_status_is_exact(run: Run, status: int) -> None:
    ended = run(f"exit {status}")
    assert (ended.returncode, ended.timed_out, ended.overflowed) == (status, False, False)
    assert ended.describe(20) == (f"ended with exit status {status}" if status else None)


@pytest.mark.parametrize(
    ("number", "words"),
    [("TERM", "was killed by SIGTERM"), ("SEGV", "was killed by SIGSEGV"), ("37", "was killed by signal 37")],
)
def test_a_signal_is_named(run: Run, number: str, words: str) -> None:
    ended = run(f"kill -{number} $$; sleep 20")
    assert ended.returncode < 0
    assert not ended.timed_out
    assert ended.describe(20) == words


def test_output_goes_to_the_files_and_input_is_empty(run: Run, tmp_path: Path) -> None:
    ended = run("cat; echo said; echo complained >&2")
    assert ended.returncode == 0
    assert (tmp_path / "out").read_text() == "said\n"
    assert (tmp_path / "err").read_text() == "complained\n"
    assert 0 < ended.duration < 20


def test_a_process_leads_a_session_of_its_own_and_inherits_no_descriptor(run: Run, tmp_path: Path) -> None:
    leak = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(leak, True)
    try:
        run([sys.executable, "-IS", "-c", "import os; print(os.getpid() == os.getsid(0), os.listdir('/proc/self/fd'))"])
    finally:
        os.close(leak)
    leads, _, open_there = (tmp_path / "out").read_text().strip().partition(" ")
    assert leads == "True"
    assert str(leak) not in open_there.replace("'", "").strip("[]").split(", ")[:-1]


def test_a_process_that_closes_its_output_is_waited_for(run: Run) -> None:
    ended = run("exec 1>&- 2>&-; sleep 0.2; exit 3")
    assert ended.returncode == 3
    assert ended.duration >= 0.2


# ---------------------------------------------------------------- what cannot start


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.write_text("#!/bin/sh\n"), "Permission denied"),
        (lambda path: path.mkdir(), "Permission denied"),
        (lambda path: (path.write_bytes(b"\0\1\2" * 50), path.chmod(0o755)), "Exec format error"),
        (lambda path: (path.write_text("#!/no/such/interpreter\n"), path.chmod(0o755)), "No such file"),
    ],
    ids=["missing", "not executable", "a folder", "bad format", "missing interpreter"],
)
def test_what_cannot_start_is_named_with_the_reason(
    run: Run, tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    executable = tmp_path / "agent"
    make(executable)
    with pytest.raises(CannotStartError, match=reason) as caught:
        run([str(executable)])
    assert str(executable) in str(caught.value)


def test_a_missing_folder_is_named(run: Run, tmp_path: Path) -> None:
    with pytest.raises(CannotStartError, match=r"/bin/sh cannot be started: .*nowhere"):
        run("true", cwd=tmp_path / "nowhere")


def test_an_output_that_cannot_be_opened_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    for path in (tmp_path / "nowhere" / "out", tmp_path / "taken"):
        with pytest.raises(CannotStartError, match=path.name):
            run("true", stdout=path)


def test_a_null_byte_in_an_argument_is_an_error_of_ours(run: Run) -> None:
    with pytest.raises(CannotStartError, match="null byte"):
        run(["/bin/echo", "a\0b"])


def test_an_impossible_variable_is_an_error_of_ours(run: Run) -> None:
    with pytest.raises(CannotStartError, match="environment variable name"):
        run("true", env={"A=B": "1"})


# ---------------------------------------------------------------- time, and what is left behind


@pytest.mark.usefixtures("_every_watch")
def test_at_the_timeout_a_stubborn_grandchild_goes_too(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.2)
    ended = run("trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $! > pid; wait", timeout=0.9)
    assert ended.timed_out
    assert ended.returncode == -signal.SIGKILL
    assert ended.describe(0.9) == "ran longer than 0.9 s and was stopped"
    assert 1.1 <= ended.duration < 15
    assert not alive(int(wait_for(tmp_path / "pid")))


def test_at_the_timeout_there_is_time_to_write_what_was_gathered(run: Run, tmp_path: Path) -> None:
    ended = run("trap 'sleep 0.1; echo trace > trace; exit 0' TERM; echo > up; while :; do sleep 0.05; done", timeout=1)
    assert ended.timed_out
    assert ended.returncode == 0
    assert ended.describe(1) is not None
    assert (tmp_path / "trace").read_text() == "trace\n"


def test_a_grandchild_that_outlives_an_obedient_leader_is_killed(run: Run, tmp_path: Path) -> None:
    ended = run("(trap '' TERM; while :; do sleep 1; done) & echo $! > pid; wait", timeout=0.9)
    assert ended.timed_out
    assert not alive(int(wait_for(tmp_path / "pid")))


@pytest.mark.usefixtures("_every_watch")
def test_children_left_behind_after_a_normal_exit_are_gone(run: Run, tmp_path: Path) -> None:
    ended = run("for i in 1 2 3; do (trap '' TERM HUP; sleep 30) & echo $! >> pids; done; exit 0")
    assert ended.returncode == 0
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 3
    assert not [pid for pid in pids if alive(pid)]


def test_nothing_writes_to_the_workspace_afterwards(run: Run, tmp_path: Path) -> None:
    run("(while :; do echo x >> late; done) & echo $! > pid; until [ -s late ]; do sleep 0.01; done")
    size = (tmp_path / "late").stat().st_size
    assert not alive(int(wait_for(tmp_path / "pid")))
    assert (tmp_path / "late").stat().st_size == size


def test_a_tiny_timeout_is_a_timeout(run: Run) -> None:
    assert run("sleep 20", timeout=1e-9).timed_out


def test_no_timeout_waits(run: Run) -> None:
    assert run("sleep 0.3; exit 4", timeout=None).returncode == 4


def test_an_enormous_timeout_is_fine(run: Run) -> None:
    assert run("exit 0", timeout=1e15).returncode == 0


def test_an_interrupt_kills_the_group(run: Run, tmp_path: Path) -> None:
    def interrupt() -> None:
        wait_for(tmp_path / "pid")
        os.kill(os.getpid(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        run("sleep 30 & echo $! > pid; wait")
    other.join()
    assert not alive(int(wait_for(tmp_path / "pid")))
    assert not process_groups._running
    assert not children()


def test_kill_running_ends_what_other_threads_wait_for(run: Run, tmp_path: Path) -> None:
    ended: list[Finished] = []
    threads = [
        threading.Thread(
            target=lambda name=name: ended.append(
                run(f"sleep 30 & echo $! > {name}; wait", stdout=tmp_path / f"{name}.o", stderr=tmp_path / f"{name}.e")
            )
        )
        for name in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    pids = [int(wait_for(tmp_path / name)) for name in ("one", "two")]
    kill_running()
    for thread in threads:
        thread.join(10)
    assert [finished.returncode for finished in ended] == [-signal.SIGKILL] * 2
    assert not [pid for pid in pids if alive(pid)]
    assert not process_groups._running


def test_kill_running_with_nothing_to_kill() -> None:
    kill_running()


@pytest.mark.usefixtures("_every_watch")
def test_no_descriptor_and_no_zombie_is_left(run: Run, tmp_path: Path) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("descriptors are counted under /proc")
    run("true")
    before, threads = len(os.listdir("/proc/self/fd")), set(threading.enumerate())
    for _ in range(50):
        run(["/bin/true"])
    for _ in range(5):
        with pytest.raises(CannotStartError):
            run([str(tmp_path / "missing")])
    assert len(os.listdir("/proc/self/fd")) == before
    assert set(threading.enumerate()) <= threads
    assert not children()


# ---------------------------------------------------------------- output


def test_a_hundred_megabytes_leave_a_bounded_log_with_both_ends(run: Run, tmp_path: Path) -> None:
    ended = run("echo begin; head -c 100000000 /dev/zero; echo end; echo quiet >&2")
    assert ended.returncode == 0
    content = (tmp_path / "out").read_bytes()
    assert content.startswith(b"begin\n")
    assert content.endswith(b"end\n")
    assert len(content) < processes.LOG_LIMIT + 100
    left_out = 100_000_010 - processes.LOG_LIMIT
    assert b"\n[... %d bytes left out ...]\n" % left_out in content
    assert (tmp_path / "err").read_text() == "quiet\n"


@pytest.mark.parametrize("channel", ["1", "2"])
def test_endless_output_is_stopped(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, channel: str) -> None:
    monkeypatch.setattr(processes, "OUTPUT_LIMIT", 3 << 20)
    ended = run(f"yes >&{channel}")
    assert ended.overflowed
    assert not ended.timed_out
    assert "more than 3 MiB" in (ended.describe(20) or "")
    assert (tmp_path / ("out" if channel == "1" else "err")).stat().st_size < processes.LOG_LIMIT + 100


def test_too_much_output_is_too_much_however_fast_it_came(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "OUTPUT_LIMIT", 1 << 20)
    ended = run("head -c 1500000 /dev/zero; exit 0")
    assert ended.overflowed
    assert ended.describe(20) is not None


def test_output_is_bounded_even_when_its_file_is_deleted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "OUTPUT_LIMIT", 3 << 20)
    ended = run("rm out; yes", timeout=5)
    assert ended.overflowed
    assert not ended.timed_out


def test_a_link_in_place_of_an_output_is_not_written_through(run: Run, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "out").symlink_to(precious)
    run("echo overwritten")
    assert precious.read_text() == "mine"
    assert (tmp_path / "out").read_text() == "overwritten\n"
    assert not (tmp_path / "out").is_symlink()


def test_a_hard_link_in_place_of_an_output_is_not_written_through(run: Run, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "err").hardlink_to(precious)
    run("echo overwritten >&2")
    assert precious.read_text() == "mine"


def test_a_pipe_in_place_of_an_output_does_not_hang(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "out")
    assert run("echo said").returncode == 0
    assert (tmp_path / "out").read_text() == "said\n"


def test_an_output_that_becomes_a_link_is_not_cut_where_it_leads(run: Run, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"x" * (3 << 20))
    run("head -c 3000000 /dev/zero; rm out; ln -s precious out")
    assert precious.read_bytes() == b"x" * (3 << 20)


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 5000])
def test_a_log_is_cut_only_above_the_limit(tmp_path: Path, size: int) -> None:
    log = tmp_path / "log"
    content = bytes(number % 251 for number in range(size))
    log.write_bytes(content)
    with log.open("r+b") as file:
        bound_log(file.fileno(), limit=1000)
    if size <= 1000:
        assert log.read_bytes() == content
    else:
        head, tail = content[:250], content[-750:]
        assert log.read_bytes() == head + b"\n[... %d bytes left out ...]\n" % (size - 1000) + tail


def test_the_tail_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert log_tail(log) == ""
    log.write_bytes(b"")
    assert log_tail(log) == ""
    log.write_bytes(b"x" * 5000 + b"\xff end\n")
    assert log_tail(log, 10) == "xxxx\N{REPLACEMENT CHARACTER} end"


def test_the_tail_of_something_else_is_empty(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("password")
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert [log_tail(tmp_path / name) for name in ("link", "pipe", "folder")] == ["", "", ""]


# ---------------------------------------------------------------- environments


def test_a_clean_environment_has_three_names_and_what_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PATH": "/bin", "HOME": "/root", "LANG": "C", "TOKEN": "s", "PYTEST_ADDOPTS": "-x"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert clean_environment({}) == {"PATH": "/bin", "HOME": "/root", "LANG": "C"}
    assert clean_environment({"TOKEN": None, "LANG": "de", "EMPTY": ""}) == {
        "PATH": "/bin",
        "HOME": "/root",
        "LANG": "de",
        "TOKEN": "s",
        "EMPTY": "",
    }


def test_absent_names_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATH", "HOME", "LANG"):
        monkeypatch.delenv(name, raising=False)
    assert clean_environment({}) == {}


def test_a_variable_to_be_taken_that_is_not_set_is_named_without_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER", "secret")
    monkeypatch.delenv("TOKEN", raising=False)
    with pytest.raises(MissingVariableError, match="TOKEN") as caught:
        clean_environment({"OTHER": None, "TOKEN": None})
    assert "secret" not in str(caught.value)
