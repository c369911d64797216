"""A folder with an experiment whose attempts can wait for each other, sessions in it, and what they left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

QUIET: Final = (
    *("randomly", "rerunfailures", "repeat", "timeout", "html", "html_fixtures", "metadata", "pytest_cov", "sugar"),
    "hypothesispytest",
)
"""Plugins that may be installed beside ours and have tests of their own."""

AGENT: Final = '''\
"""Every attempt has a letter: p passes, m misses, d dies, u is unmeasured, e ends its thread with SystemExit.

w waits for the file go, t until as many attempts have begun as the file together says, j until as many are in the
journal as the file journaled says; none of them longer than a minute.
"""

import json
import pathlib
import threading
import time

HERE = pathlib.Path(__file__).parent
LOCK = threading.Lock()


def until(holds):
    end = time.monotonic() + 60
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("nobody came")
        time.sleep(0.005)


def lines(name):
    path = HERE / name
    return path.read_text().count("\\n") if path.exists() else 0


def note(name, text):
    with LOCK, open(HERE / name, "a") as file:
        file.write(text + "\\n")


def run(request):
    where = f"{request.variant.id}::{request.task.id}"
    note("calls.txt", f"{where}[{request.attempt}]")
    letters = json.loads((HERE / "outcomes.json").read_text())
    letter = letters.get(f"{where}[{request.attempt}]", letters.get(where, letters.get("*", "p")))
    try:
        if letter == "w":
            until((HERE / "go").exists)
        if letter == "t":
            until(lambda: lines("calls.txt") >= int((HERE / "together").read_text()))
        if letter == "j":
            until(lambda: lines(".metricbench/shop/attempts.jsonl") >= int((HERE / "journaled").read_text()))
    finally:
        note("ended.txt", f"{where}[{request.attempt}]")
    if letter == "d":
        raise RuntimeError("the agent crashed")
    if letter == "e":
        raise SystemExit(3)
    (request.workspace / "trace.txt").write_text(where)
    return ("u",) if letter == "u" else letter


def verify(request, output):
    if output == ("u",):
        note("judged.txt", "u")
        raise ValueError("the judge failed")
    return {"reward": 0.25 if output == "m" else 1.0}


def measure(request):
    return len(request.tasks) / 3
'''

SHELL_AGENT: Final = """\
echo "$$" >> "$1/agents.txt"
sed -n 's/.*"trial_id": "\\(.*\\)".*/\\1/p' request.json >> "$1/executed.txt"
sleep "$(cat "$1/seconds.txt")"
echo '{"scores": {"reward": 1}}' > response.json
"""


class Lab:
    """Makes an experiment in a folder, runs sessions there, and reads what they left."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester, self.path = pytester, pytester.path
        self.started: list[subprocess.Popen[bytes]] = []

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.write_text(text, encoding="utf-8")
        return path

    def make(self, letters: dict[str, str] | None = None, **keys: Any) -> None:
        """Write the experiment: 3 tasks, baseline and 2 mutants, 2 attempts each, an agent that threads may call.

        Args:
            letters: ``variant::task`` with or without ``[slot]``, or ``*`` for all others -> a letter of the agent.
            keys: keys of the experiment that are different or more; None takes one away.
        """
        experiment: dict[str, Any] = {
            "metricbench": 1,
            "name": "shop",
            "attempts": 2,
            "runner": {"kind": "python", "agent": "agent:run", "verifier": "agent:verify", "thread_safe": True},
            "cases": [
                {
                    "id": "c",
                    "tasks": [{"id": "find"}, {"id": "pay"}, {"id": "refund"}],
                    "mutants": [{"id": "m1"}, {"id": "m2"}],
                    "subsets": [{"id": "s1", "tasks": ["find"]}, {"id": "s2", "tasks": ["find", "pay"]}],
                }
            ],
            **keys,
        }
        given = {key: value for key, value in experiment.items() if value is not None}
        self.write("experiment.yml", yaml.safe_dump(given, sort_keys=False))
        self.write("agent.py", AGENT)
        self.write("outcomes.json", json.dumps(letters or {}))

    def make_shell(self, seconds: float, **keys: Any) -> None:
        """Write the experiment with an agent that is a shell script and takes so many seconds."""
        command = ["/bin/sh", "agent.sh", str(self.path)]
        self.make(runner={"kind": "command", "agent": command}, **keys)
        self.write("agent.sh", SHELL_AGENT)
        self.write("seconds.txt", str(seconds))

    # ------------------------------------------------ running

    def run(self, *args: str, executor: str | None = "threads:4") -> pytest.RunResult:
        """A session in this process; ``executor`` None: no option says one."""
        chosen = [] if executor is None else [f"--metricbench-executor={executor}"]
        return self.pytester.runpytest_inprocess(*off(), "experiment.yml", *chosen, *args, no_reraise_ctrlc=True)

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        """A session in a process of its own, in a process group of its own."""
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *off(), "experiment.yml", *args]
        unwanted = ("PYTEST", "CI", "BUILD_NUMBER")
        env = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        with (self.path / "output.txt").open("wb") as log:
            streams: Any = {"stdout": log, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
            process = subprocess.Popen(command, cwd=self.path, env=env, start_new_session=True, **streams)
        self.started.append(process)
        return process

    def end_all(self) -> None:
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)

    # ------------------------------------------------ reading

    def noted(self, name: str) -> list[str]:
        path = self.path / name
        return path.read_text().splitlines() if path.exists() else []

    def calls(self) -> list[str]:
        """The attempts for which the agent was called since this was asked last, in order."""
        found = self.noted("calls.txt")
        (self.path / "calls.txt").unlink(missing_ok=True)
        return found

    @property
    def store(self) -> Path:
        return self.path / ".metricbench" / "shop"

    def journal(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.noted(".metricbench/shop/attempts.jsonl")]

    def summary(self, name: str = "summary.json") -> Any:
        return json.loads((self.store / name).read_text())


def off() -> list[str]:
    return [part for plugin in QUIET for part in ("-p", f"no:{plugin}")]


def wait_until(holds: Callable[[], bool], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody reaps does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def comparable(summary: Any) -> Any:
    """A summary without what differs between two runs of one experiment; attempts have no order."""
    left_out = ("trial_id", "reused", "seconds", "started", "created")
    if isinstance(summary, dict):
        return {key: comparable(value) for key, value in summary.items() if key not in left_out}
    return sorted(map(comparable, summary), key=json.dumps) if isinstance(summary, list) else summary
