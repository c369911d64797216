"""A Dask cluster of real processes on loopback, and an experiment whose outcomes come from a table."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

PATIENCE: Final = 60.0
"""Seconds after which a test gives up waiting for something that happens in well under one on a free machine."""

AGENT: Final = '''\
"""Agent, verifier and coverage: every attempt has a letter in a table.

p passes, m misses, d dies, u is unmeasured; w waits until the file that the task names is there.
"""

import json
import os
import pathlib
import time


def run(request):
    where = f"{request.variant.id}::{request.task.id}"
    params = request.task.params
    (request.workspace / "trace.txt").write_text(f"{where}[{request.attempt}] " * params.get("words", 1))
    if "calls" in params:
        with open(params["calls"], "a") as calls:
            calls.write(f"{where}[{request.attempt}] {os.getpid()} {os.getppid()}\\n")
    letters = json.loads((pathlib.Path(__file__).parent / "outcomes.json").read_text()).get(where, "p")
    letter = letters[min(request.attempt, len(letters)) - 1]
    if letter == "w":
        while not os.path.exists(params["gate"]):
            time.sleep(0.01)
    if letter == "d":
        raise RuntimeError("the agent crashed")
    if letter == "k":
        os._exit(7)
    return {"letter": letter, "home": str(pathlib.Path(__file__).parent)}


def verify(request, output):
    if output["letter"] == "u":
        raise ValueError("the judge failed")
    return {"reward": 0.25 if output["letter"] == "m" else 1.0, "home": output["home"]}


def measure(request):
    return len(request.evidence) / 3
'''


class Processes:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(self.file))
        until(self._reads, "the scheduler to start")
        self.address: str = json.loads(self.file.read_text())["address"]
        self.workers: list[subprocess.Popen[bytes]] = []

    def _reads(self) -> bool:
        """Whether the scheduler file is there and written whole."""
        try:
            return bool(json.loads(self.file.read_text()))
        except (OSError, ValueError):
            return False

    def add_worker(self, *options: str, nanny: bool = False, env: dict[str, str] | None = None) -> int:
        """Start a worker; gives its position."""
        number = len(self.workers)
        kind = "--nanny" if nanny else "--no-nanny"
        local = str(self.folder / f"worker-{number}")
        arguments = (self.address, "--nthreads", "1", kind, "--local-directory", local, "--death-timeout", "60")
        self.workers.append(self._start("worker", *arguments, *options, env=env))
        return number

    def await_workers(self, count: int) -> None:
        """Wait until so many workers are known to the scheduler."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            until(lambda: len(client.nthreads()) == count, f"{count} workers to register")

    def await_session(self) -> None:
        """Wait until a session is connected to the scheduler."""
        from distributed import Client

        def others(dask_scheduler: Any) -> int:  # here, so that it is sent whole: the scheduler cannot import this file
            return len([name for name in dask_scheduler.clients if name.startswith("Client-")]) - 1

        with Client(self.address, set_as_default=False) as client:
            until(lambda: client.run_on_scheduler(others), "a session to connect")

    def kill_worker(self, number: int) -> None:
        self.workers[number].kill()
        self.workers[number].wait()

    def _start(self, what: str, *arguments: str, env: dict[str, str] | None = None) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", "-m", f"distributed.cli.dask_{what}"]
        log = (self.folder / f"{what}-{time.monotonic_ns()}.log").open("wb")
        with log:
            return subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--no-dashboard", *arguments],
                cwd=self.folder,
                env={
                    **os.environ,
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "DASK_TEMPORARY_DIRECTORY": str(self.folder),  # what is killed does not clear it
                    **(env or {}),
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def until(holds: Callable[[], Any], what: str) -> None:
    """Wait until something holds; give up after long."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


def experiment(folder: Path, letters: dict[str, str] | None = None, **changes: Any) -> Path:
    """An experiment of two mutants and three tasks, two attempts each, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.py").write_text(AGENT)
    (folder / "outcomes.json").write_text(json.dumps({"no-pay::pay": "m", "quiet::find": "pm", **(letters or {})}))
    gate = {"gate": str(folder / "gate"), "calls": str(folder / "calls.txt")}
    form = {
        "metricbench": 1,
        "name": "shop",
        "attempts": 2,
        "runner": {"kind": "python", "agent": "agent:run", "verifier": "agent:verify", "timeout": 60},
        "score": {"primary": "reward", "outputs": {"reward": "continuous", "home": "label"}},
        "cases": [
            {
                "id": "shop",
                "inputs": ["outcomes.json"],
                "tasks": [{"id": name, "params": gate} for name in ("find", "pay", "refund")],
                "mutants": [{"id": "no-pay"}, {"id": "quiet"}],
                "subsets": [{"id": "s1", "tasks": ["find"]}, {"id": "s2", "tasks": ["find", "pay"]}],
            }
        ],
        "coverage": [{"id": "goals", "kind": "python", "measure": "agent:measure"}],
        **changes,
    }
    path = folder / "experiment.yml"
    path.write_text(yaml.safe_dump(form, sort_keys=False))
    return path


def records(store: Path) -> list[dict[str, Any]]:
    """The lines of a store's journal of attempts."""
    return [json.loads(line) for line in (store / "attempts.jsonl").read_text().splitlines()]


def calls(folder: Path) -> list[str]:
    """The attempts that agents began, in order: ``baseline::find[1]``."""
    path = folder / "calls.txt"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.is_file() else []
