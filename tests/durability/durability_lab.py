"""A folder with an experiment of real processes, sessions of pytest in it, and what is left of them.

The agent is a shell script that notes every execution in ``ran.txt`` under the name of its workspace, so that what ran
is known from the outside and not from the store.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_metricbench.store.records import seal

OTHERS: Final = (
    *("randomly", "rerunfailures", "repeat", "timeout", "html", "html_fixtures", "metadata", "pytest_cov", "sugar"),
    *("hypothesispytest", "cacheprovider"),
)
"""Plugins that may be installed beside ours."""

AGENT: Final = """\
here=${0%/*}
echo "$PWD" >> "$here/ran.txt"
[ -f "$here/slow" ] && sleep "$(cat "$here/slow")"
echo "a trace of the agent" > trace.txt
case $PWD in
  */m1/t2/*) echo 0 > answer.txt ;;
  */m2/t3/*) exit 3 ;;
  *) echo 1 > answer.txt ;;
esac
"""
VERIFIER: Final = """\
echo "$PWD" >> "${0%/*}/verified.txt"
echo "{\\"scores\\": {\\"reward\\": $(cat answer.txt)}}" > response.json
"""
COVER: Final = """\
echo "$PWD" >> "${0%/*}/covered.txt"
ls -R evidence > seen.txt
echo '{"value": 0.5}' > response.json
"""
TASKS: Final = ("t1", "t2", "t3", "t4")
SUBSETS: Final = [
    {"id": "s1", "tasks": ["t1", "t2"]},
    {"id": "s2", "tasks": ["t2", "t3"]},
    {"id": "s3", "tasks": ["t3"]},
]
VARYING: Final = frozenset({"trial_id", "trial_ids", "reused", "seconds", "duration", "started"})
"""Keys of a summary that may differ between two runs of one experiment."""


def definition(**changed: Any) -> dict[str, Any]:
    """One case of four tasks, a baseline and two mutants, two attempts each; what is given changes it."""
    case = {
        "id": "c",
        "tasks": [{"id": task} for task in TASKS],
        "mutants": [{"id": "m1"}, {"id": "m2"}],
        "subsets": SUBSETS,
        **changed.pop("case", {}),
    }
    runner = {
        "kind": "command",
        "agent": ["/bin/sh", "agent.sh"],
        "verifier": ["/bin/sh", "verify.sh"],
        **changed.pop("runner", {}),
    }
    return {
        "metricbench": 1,
        "name": "lab",
        "attempts": 2,
        "runner": runner,
        "cases": [case],
        "coverage": [{"id": "share", "kind": "command", "command": ["/bin/sh", "cover.sh"]}],
        **changed,
    }


class Ended:
    """How a session ended."""

    def __init__(self, status: int, out: str) -> None:
        self.status = status
        self.out = out

    def __repr__(self) -> str:
        return f"exit status {self.status}:\n{self.out}"


class Lab:
    """An experiment in a folder."""

    def __init__(self, path: Path, pytester: pytest.Pytester | None = None) -> None:
        self.path = path
        self._pytester = pytester
        self._running: list[subprocess.Popen[bytes]] = []

    # ------------------------------------------------ making

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def make(self, **changed: Any) -> None:
        """Write the experiment and its three scripts."""
        for name, text in (("agent.sh", AGENT), ("verify.sh", VERIFIER), ("cover.sh", COVER)):
            self.write(name, text)
        self.define(**changed)

    def define(self, **changed: Any) -> None:
        """Write the experiment alone."""
        self.write("experiment.yml", json.dumps(definition(**changed), indent=1))

    def copy(self, name: str) -> "Lab":
        """Another folder with the same content."""
        shutil.copytree(self.path, self.path.parent / name, symlinks=True)
        return Lab(self.path.parent / name, self._pytester)

    # ------------------------------------------------ running

    def start(self, *args: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """A session in a process group of its own."""
        off = [part for plugin in OTHERS for part in ("-p", f"no:{plugin}")]
        # CI makes pytest print messages a second time, whole, in its short summary.
        unwanted = ("PYTEST", "COV", "CI", "BUILD_NUMBER")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        with (self.path.parent / f"{self.path.name}.log").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *off, "experiment.yml", *args],
                cwd=self.path,
                env={**inherited, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "80", **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running.append(process)
        return process

    @property
    def pid(self) -> int:
        """The process of the session that was started last."""
        return self._running[-1].pid

    def end(self, process: "subprocess.Popen[bytes]", seconds: float = 60) -> Ended:
        """Wait for the end of a session."""
        status = process.wait(seconds)
        return Ended(status, (self.path.parent / f"{self.path.name}.log").read_text("utf-8", "replace"))

    def run(self, *args: str, env: dict[str, str] | None = None) -> Ended:
        """A session to its end, in a process of its own."""
        return self.end(self.start(*args, env=env))

    def run_here(self, *args: str) -> Ended:
        """A session to its end, in this process."""
        assert self._pytester is not None
        off = [part for plugin in OTHERS for part in ("-p", f"no:{plugin}")]
        before = Path.cwd()
        os.chdir(self.path)
        try:
            result = self._pytester.runpytest_inprocess(*off, f"--rootdir={self.path}", "experiment.yml", *args)
        finally:
            os.chdir(before)
        return Ended(int(result.ret), result.stdout.str() + result.stderr.str())

    def kill_when(
        self, process: "subprocess.Popen[bytes]", holds: Callable[[], bool], kill: Callable[[int], object]
    ) -> None:
        """Wait until something holds, or the session ends by itself, and then kill."""
        deadline = time.monotonic() + 60
        while not holds() and process.poll() is None:
            assert time.monotonic() < deadline, "what was waited for never came"
            time.sleep(0.001)
        if process.poll() is None:
            kill(process.pid)
        process.wait(30)

    def kill_all(self) -> None:
        """End what a failed test left running."""
        for process in self._running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)

    # ------------------------------------------------ reading

    @property
    def store(self) -> Path:
        return self.path / ".metricbench" / "lab"

    def lines(self, name: str = "attempts.jsonl") -> list[dict[str, Any]]:
        """The whole lines of a journal."""
        path = self.store / name
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def count(self, name: str = "attempts.jsonl") -> int:
        """How many whole lines a journal has."""
        path = self.store / name
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def noted(self, name: str = "ran.txt") -> Counter[str]:
        """Names of the workspaces in which a script was executed, and how often."""
        path = self.path / name
        return Counter(Path(line).name for line in path.read_text().splitlines()) if path.exists() else Counter()

    def forget(self) -> None:
        """Take the notes of what was executed away."""
        for name in ("ran.txt", "verified.txt", "covered.txt"):
            (self.path / name).unlink(missing_ok=True)

    def attempts(self) -> dict[str, dict[str, Any]]:
        """``variant::task[slot]`` -> the record that counts."""
        return {key(line): line for line in self.lines()}

    def rewrite(self, records: list[dict[str, Any]], name: str = "attempts.jsonl") -> None:
        """Let a journal hold these records, each with its checksum."""
        lines = [{field: value for field, value in record.items() if field != "check"} for record in records]
        texts = [seal(json.dumps(line, separators=(",", ":"))) + "\n" for line in lines]
        (self.store / name).write_text("".join(texts))

    def summary(self, name: str = "summary.json") -> Any:
        return json.loads((self.store / name).read_text())

    def answer(self, name: str = "summary.json") -> Any:
        """The summary without what may differ between two runs."""
        return lasting(self.summary(name))

    def left(self, folder: str) -> set[str]:
        """Names of the workspaces below ``attempts``, ``stale`` or ``interrupted``."""
        return {path.name for path in (self.store / folder).glob("*/*/*/*")}


def key(record: dict[str, Any]) -> str:
    return f"{record['variant']}::{record['task']}[{record['attempt']}]"


def lasting(value: Any) -> Any:
    """A summary without what may differ between two runs of one experiment."""
    if isinstance(value, dict):
        return {name: lasting(entry) for name, entry in value.items() if name not in VARYING}
    return [lasting(entry) for entry in value] if isinstance(value, list) else value


def no_fault(output: str) -> None:
    """Nothing in a session's output is a fault of the plugin's own."""
    for sign in ("INTERNALERROR", "Traceback (most recent call last)", "Exception ignored"):
        assert sign not in output, output
