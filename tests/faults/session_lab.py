"""A folder with an experiment, sessions of pytest in it, and what they left in the store."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

NEIGHBOURS: Final = {
    "randomly": ("randomly",),
    "rerunfailures": ("rerunfailures",),
    "repeat": ("repeat",),
    "timeout": ("timeout",),
    "html": ("html", "html_fixtures", "metadata"),
    "cov": ("pytest_cov",),
    "sugar": ("sugar",),
    "hypothesis": ("hypothesispytest",),
}
"""Other plugins -> the names that switch them off."""

LIMIT: Final = 60.0
"""Seconds that a session may take before its test fails."""


class Ended:
    """How a session in a process of its own ended."""

    def __init__(self, status: int, out: str, seconds: float) -> None:
        self.status = status
        self.out = out
        self.seconds = seconds

    @property
    def last_line(self) -> str:
        """The line with the counts, without its rule."""
        return self.out.rstrip().rpartition("\n")[2].strip("= ")

    def __repr__(self) -> str:
        return f"exit status {self.status} after {self.seconds:.1f} s:\n{self.out}"


class Running:
    """A session in a process of its own that still runs."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log
        self._began = time.monotonic()

    @property
    def pid(self) -> int:
        return self._process.pid

    def output(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def await_that(self, holds: Callable[[], object], what: str, seconds: float = 30) -> None:
        """Wait until something holds while the session runs."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert self._process.poll() is None or holds(), f"ended before {what}:\n{self.output()}"
            assert time.monotonic() < deadline, f"waited {seconds} s for {what}:\n{self.output()}"
            time.sleep(0.02)

    def signal(self, number: signal.Signals, seconds: float = LIMIT) -> Ended:
        """Send a signal to the controller alone, and wait for its end."""
        os.kill(self.pid, number)
        return self.end(seconds)

    def end(self, seconds: float = LIMIT) -> Ended:
        """Wait for the end."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            pytest.fail(f"the session did not end within {seconds:g} s:\n{self.output()}")
        return Ended(status, self.output(), time.monotonic() - self._began)

    def kill(self) -> None:
        """Kill the session and its workers, which are of its process group."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self._process.wait(10)


class Lab:
    """Makes experiments in a folder, runs pytest there, and reads what it left."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self._sessions: list[Running] = []

    # ------------------------------------------------ making

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def make(
        self,
        agent: str,
        *,
        tasks: Sequence[str | dict[str, Any]] = ("t1", "t2"),
        mutants: Sequence[str | dict[str, Any]] = ("m1",),
        subsets: Sequence[dict[str, Any]] = (),
        file: str = "experiment.yml",
        command: bool = False,
        runner: dict[str, Any] | None = None,
        case: dict[str, Any] | None = None,
        **keys: Any,
    ) -> Path:
        """Write an experiment of one case ``c`` and its agent, in ``agent.py``.

        Args:
            agent: source of the agent: ``act(request)``, or a script where ``command`` is true.
            tasks: ids, or mappings where there is more to say.
            mutants: likewise.
            subsets: of the case.
            file: the experiment's name.
            command: whether the agent is a program, run by the ``command`` runner.
            runner: more keys of the runner.
            case: more keys of the case.
            keys: more keys of the experiment.
        """
        kind: dict[str, Any] = {"kind": "python", "agent": "agent:act"}
        if command:
            kind = {"kind": "command", "agent": ["{python}", "agent.py"]}
        self.write("agent.py", agent)
        whole = {
            "metricbench": 1,
            "name": "lab",
            "runner": {**kind, **(runner or {})},
            "cases": [
                {
                    "id": "c",
                    "tasks": [_entry(task) for task in tasks],
                    "mutants": [_entry(mutant) for mutant in mutants],
                    **({"subsets": list(subsets)} if subsets else {}),
                    **(case or {}),
                }
            ],
            **keys,
        }
        return self.write(file, json.dumps(whole, indent=1))  # JSON is YAML

    # ------------------------------------------------ running

    def run(self, *args: str, beside: Sequence[str] = ()) -> pytest.RunResult:
        """A session in this process, with no other plugin than those of ``beside`` (and pytest-xdist)."""
        return self.pytester.runpytest_inprocess(*_without_others(beside), *args)

    def start(self, *args: str, beside: Sequence[str] = (), env: dict[str, str] | None = None) -> Running:
        """A session in a process, and a process group, of its own."""
        log = self.path.parent / f"{self.path.name}-session-{len(self._sessions) + 1}.log"
        unwanted = ("PYTEST", "CI", "BUILD_NUMBER")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *_without_others(beside), *args],
                cwd=self.path,
                env={**inherited, "PYTHONUNBUFFERED": "1", "COLUMNS": "80", **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        session = Running(process, log)
        self._sessions.append(session)
        return session

    def run_apart(self, *args: str, beside: Sequence[str] = (), env: dict[str, str] | None = None) -> Ended:
        """A session in a process of its own, to its end."""
        return self.start(*args, beside=beside, env=env).end()

    def kill_all(self) -> None:
        """Kill what a failed test left running."""
        for session in self._sessions:
            session.kill()

    # ------------------------------------------------ reading

    @property
    def store(self) -> Path:
        return self.path / ".metricbench" / "lab"

    def journal(self) -> list[dict[str, Any]]:
        """Every whole line of the attempts' journal."""
        return _lines(self.store / "attempts.jsonl")

    def attempts(self) -> dict[str, dict[str, Any]]:
        """``variant::task[slot]`` -> the record that counts; each names the one before it, and no two share an id."""
        last: dict[str, dict[str, Any]] = {}
        owners: dict[str, str] = {}
        for line in self.journal():
            slot = f"{line['variant']}::{line['task']}[{line['attempt']}]"
            assert line["supersedes"] == (last[slot]["trial_id"] if slot in last else None), slot
            assert owners.setdefault(line["trial_id"], slot) == slot
            last[slot] = line
        return last

    def requests(self) -> dict[str, dict[str, Any]]:
        """``system[subset]`` -> the record of a coverage request that counts."""
        return {f"{line['system']}[{line['subset']}]": line for line in _lines(self.store / "coverage.jsonl")}

    def workspace(self, record: dict[str, Any]) -> Path:
        """What an attempt left."""
        return self.store.joinpath("attempts", "c", record["variant"], record["task"], record["trial_id"])

    def summary(self, *, partial: bool = False) -> Any:
        return json.loads((self.store / ("summary.partial.json" if partial else "summary.json")).read_text("utf-8"))

    def counts(self, *, partial: bool = False) -> dict[str, int]:
        """What the summary counts, without what is zero."""
        counted: dict[str, int] = self.summary(partial=partial)["counts"]
        return {name: number for name, number in counted.items() if number}

    def entries(self, *, partial: bool = False) -> dict[str, int]:
        """``variant::task`` -> how many attempts the summary lists for the primary score."""
        summary = self.summary(partial=partial)
        primary = summary["settings"]["primary"]
        return {
            f"{variant}::{task}": len(scores.get(primary, ()))
            for variant, entry in summary["cases"]["c"]["variants"].items()
            for task, scores in entry["attempts"].items()
        }


@pytest.fixture
def lab(pytester: pytest.Pytester, unasked: None, compiled_anew: None) -> Iterator[Lab]:
    made = Lab(pytester)
    yield made
    made.kill_all()


def _entry(given: str | dict[str, Any]) -> dict[str, Any]:
    return {"id": given} if isinstance(given, str) else given


def _without_others(beside: Sequence[str]) -> list[str]:
    return [
        part
        for plugin, names in NEIGHBOURS.items()
        if plugin not in beside
        for name in names
        for part in ("-p", f"no:{name}")
    ]


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("ascii").splitlines(keepends=True) if line.endswith("\n")]


def words(output: str) -> dict[str, str]:
    """``variant::task[slot]`` or ``coverage::system[subset]`` -> word, from the lines of ``-v``, in order."""
    shown = {}
    for line in output.splitlines():
        plain = re.match(r"\S+\.yml::\w+::(\S+) (\w+)(?: +\[ *\d+%\])?\s*$", line)
        worker = re.match(r"\[gw\d+\] \[ *\d+%\] (\w+) \S+\.yml::\w+::(\S+)\s*$", line)
        if plain:
            shown[plain[1]] = plain[2]
        elif worker:
            shown[worker[2]] = worker[1]
    return shown


def wait_until(holds: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and waits to be reaped does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state not in "ZX"


def no_fault(output: str) -> None:
    """Nothing in a session's output is a fault of the plugin's own."""
    assert "INTERNALERROR" not in output, output
    assert "Traceback (most recent call last)" not in output, output
    assert "Exception ignored" not in output, output
