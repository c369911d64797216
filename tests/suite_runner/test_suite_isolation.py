"""What a test or a mutant does to its process ends that attempt only."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from signal import Signals

import pytest

from pytest_metricbench.runners.suite import SuiteRunner
from tests.present import present
from tests.suite_runner.suite_lab import SuiteLab, diff, message, told

MINUS = {"patch": diff("shop/prices.py", 9, "        result += price", "        result -= price")}


def in_discount(new: str) -> dict[str, str]:
    """A mutant whose ``discount`` does something else first."""
    return {
        "patch": diff("shop/prices.py", 14, "    if percent > 100:", f"    {new}\n+    if percent > 100:").replace(
            "+14 @@", "+14,2 @@"
        )
    }


@pytest.fixture
def ready(suite: SuiteLab) -> tuple[SuiteLab, SuiteRunner]:
    """The usual project, its baseline known."""
    suite.shop()
    runner = suite.runner(slowdown=1, timeout=20)
    for name in ("test_total", "test_discount"):
        assert told(suite.attempt(runner, name)) == ("scored", 1)
    return suite, runner


def survives(suite: SuiteLab, runner: SuiteRunner) -> bool:
    """The next attempt of another test against the same mutant is as if nothing had happened."""
    return told(suite.attempt(runner, "test_total", MINUS)) == ("scored", 0)


@pytest.mark.parametrize(
    ("new", "kind", "text"),
    [
        ("import os; os._exit(3)", "Exited", "the test ended the process with exit status 3"),
        ("import os; os._exit(0)", "Exited", "the test ended the process with exit status 0"),
        ("import os; os.kill(os.getpid(), 11)", "Crashed", "the test was killed by SIGSEGV"),
        ("import os; os.kill(os.getpid(), 9)", "Crashed", "the test was killed by SIGKILL"),
        ("while True: pass", "TimeOut", "and was stopped"),
        ("raise KeyboardInterrupt('stop')", "Ended", "the test ended pytest: KeyboardInterrupt: stop"),
        ("import pytest; pytest.exit('enough')", "Ended", "the test ended pytest: Exit: enough"),
    ],
)
def test_ends_of_a_process(ready: tuple[SuiteLab, SuiteRunner], new: str, kind: str, text: str) -> None:
    suite, runner = ready
    outcome = suite.attempt(runner, "test_discount", in_discount(new))
    assert told(outcome) == ("died", kind)
    assert text in message(outcome)
    assert survives(suite, runner)


def test_a_test_that_sleeps_for_ever_runs_out_of_time(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner(timeout=1.5)
    suite.attempt(runner, "test_discount")
    began = time.monotonic()
    outcome = suite.attempt(runner, "test_discount", in_discount("import time; time.sleep(600)"))
    assert told(outcome) == ("died", "TimeOut")
    assert message(outcome) == "the test ran longer than 1.5 s and was stopped"
    assert outcome.time_limit == 1.5
    assert time.monotonic() - began < 30


def test_what_a_test_leaves_running_is_killed_and_threads_do_not_hold_it(suite: SuiteLab, tmp_path: Path) -> None:
    suite.shop(
        tests="""
        import pathlib, subprocess, sys, threading, time

        def test_it():
            threading.Thread(target=time.sleep, args=[600]).start()
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            pathlib.Path("child.txt").write_text(str(child.pid))
        """
    )
    assert told(suite.attempt(suite.runner(), "test_it")) == ("scored", 1)
    child = int((tmp_path / "child.txt").read_text())
    assert gone(child)


def gone(pid: int, seconds: float = 10) -> bool:
    """Whether a process ends, or is only waiting to be reaped by somebody else."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.02)
    return False


def test_leaked_file_handles_end_with_their_attempt(ready: tuple[SuiteLab, SuiteRunner]) -> None:
    suite, runner = ready
    leak = in_discount("import os; leaked = [os.dup(0) for _ in range(100000)]")
    outcome = suite.attempt(runner, "test_discount", leak)
    assert told(outcome) in {("scored", 0), ("died", "Exited"), ("unmeasured", "ServerFailed")}
    assert survives(suite, runner)


def test_closed_descriptors_do_not_hide_the_result(suite: SuiteLab) -> None:
    suite.shop(tests="import os\n\n\ndef test_it():\n    os.closerange(3, 1000)\n")
    assert told(suite.attempt(suite.runner(), "test_it")) == ("scored", 1)


@pytest.mark.skipif(sys.platform != "linux", reason="address space is bounded on Linux")
def test_memory_is_bounded(ready: tuple[SuiteLab, SuiteRunner]) -> None:
    suite, _ = ready
    runner = suite.runner(memory=64)
    hoard = in_discount("hoard = bytearray(80 << 20)")  # no more: its pages cost the test's CPU time
    outcome = suite.attempt(runner, "test_discount", hoard)
    assert told(outcome) == ("scored", 0)
    assert "MemoryError" in message(outcome)
    assert told(suite.attempt(suite.runner(memory=None), "test_discount", hoard)) == ("scored", 1)


def test_recursion_is_bounded(suite: SuiteLab) -> None:
    suite.shop(
        tests="""
        def deep(n):
            return n and deep(n - 1)

        def test_it():
            assert deep(700) == 0
        """
    )
    assert told(suite.attempt(suite.runner(), "test_it")) == ("scored", 1)
    outcome = suite.attempt(suite.runner(recursion_limit=400), "test_it")
    assert told(outcome) == ("scored", 0)
    assert "RecursionError" in message(outcome)


def test_endless_recursion_fails_its_test_only(ready: tuple[SuiteLab, SuiteRunner]) -> None:
    suite, runner = ready
    outcome = suite.attempt(runner, "test_discount", in_discount("return discount(price, percent)"))
    assert told(outcome) == ("scored", 0)
    assert "RecursionError" in message(outcome)
    assert survives(suite, runner)


def test_endless_output_is_stopped_and_what_is_printed_is_kept(
    ready: tuple[SuiteLab, SuiteRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, runner = ready
    assert told(suite.attempt(runner, "test_discount", in_discount("print('seen', flush=True)"))) == ("scored", 1)
    assert suite.left() == {"agent.stdout"}
    assert (suite.workspace / "agent.stdout").read_text() == "seen\n"
    monkeypatch.setattr("pytest_metricbench.suite.attempt_maker.OUTPUT_LIMIT", 1 << 20)
    endless = in_discount("import os; [os.write(1, b'x' * 4096) for _ in range(10**9)]")
    outcome = suite.attempt(runner, "test_discount", endless)
    assert told(outcome) == ("died", "OutputLimit")
    assert (suite.workspace / "agent.stdout").stat().st_size <= (1 << 20) + 100
    assert survives(suite, runner)


def test_the_stack_of_a_crash_is_kept(ready: tuple[SuiteLab, SuiteRunner]) -> None:
    suite, runner = ready
    suite.attempt(runner, "test_discount", in_discount("import ctypes; ctypes.string_at(0)"))
    assert suite.left() == {"agent.stderr"}
    assert "Segmentation fault" in (suite.workspace / "agent.stderr").read_text()


def test_what_a_test_changes_around_it_is_gone_with_it(suite: SuiteLab, tmp_path: Path) -> None:
    suite.shop(
        tests="""
        import os
        import sys
        import tempfile

        HOME = os.getcwd()

        def clean():
            return os.getcwd() == HOME and "CHANGED" not in os.environ and "/nowhere" not in sys.path

        def test_changes():
            assert clean()
            os.chdir("/")
            os.environ["CHANGED"] = "1"
            sys.path.insert(0, "/nowhere")
            sys.modules["shop"] = None
            tempfile.mkdtemp()

        def test_is_clean():
            assert clean()
            import shop
            assert shop.total([1]) == 1
        """
    )
    runner = suite.runner()
    for name in ("test_changes", "test_is_clean", "test_changes", "test_is_clean"):
        assert told(suite.attempt(runner, name)) == ("scored", 1), name
    assert {path.name for path in tmp_path.iterdir()} == {"shop", "tests", "store"}


def test_the_source_tree_is_never_touched(suite: SuiteLab, tmp_path: Path) -> None:
    suite.shop()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    runner = suite.runner()
    suite.attempt(runner, "test_total")
    suite.attempt(runner, "test_total", MINUS)
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if "store" not in path.parts}
    assert after == before


CLIENT = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from tests.suite_runner.suite_lab import SuiteLab
suite = SuiteLab(Path({folder!r}))
suite.attempt(suite.runner(), "test_it")
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_killed_worker(suite: SuiteLab, tmp_path: Path, number: Signals) -> None:
    suite.shop(
        tests="""
        import os, pathlib, subprocess, sys, time

        def test_it():
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            pathlib.Path("pids.tmp").write_text(f"{os.getpid()} {os.getppid()} {child.pid}")
            os.rename("pids.tmp", "pids.txt")
            while True:
                time.sleep(0.1)
        """
    )
    script = CLIENT.format(path=[str(Path(__file__).parents[2])], folder=str(tmp_path))
    worker = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)])
    pids = tmp_path / "pids.txt"
    deadline = time.monotonic() + 60
    while not pids.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    processes = [int(pid) for pid in pids.read_text().split()]
    os.kill(worker.pid, number)
    worker.wait()
    assert all(map(gone, processes)), processes


def test_processes_that_are_gone_are_started_again(ready: tuple[SuiteLab, SuiteRunner]) -> None:
    suite, runner = ready
    processes = present(runner.project._processes)
    server = next(iter(processes._servers.values()))
    os.kill(server.pid, signal.SIGKILL)
    outcome = suite.attempt(runner, "test_total")
    assert told(outcome) == ("unmeasured", "SuiteError")
    assert message(outcome).startswith("the server of the tests ")
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)


def test_an_interrupted_attempt_leaves_nothing(
    ready: tuple[SuiteLab, SuiteRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C, or pytest-timeout, in the middle of a test."""
    suite, runner = ready
    pids = []

    class Stop(BaseException):
        pass

    def started(group: int) -> None:
        pids.append(group)
        if len(pids) > 1:  # a server, then the attempt
            raise Stop

    monkeypatch.setattr("pytest_metricbench.suite.processes.WATCH.started", started)
    with pytest.raises(Stop):
        suite.attempt(runner, "test_discount", in_discount("import time; time.sleep(600)"))
    assert len(pids) == 2
    assert all(map(gone, pids))
    monkeypatch.undo()
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)
