"""Whole sessions of pytest whose attempts are jobs on a server of our own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helix.helix_lab import without_others
from tests.helix.helix_server import ENDED, HelixServer

AGENT = """\
import json, pathlib, time

request = json.loads(pathlib.Path("request.json").read_text())
time.sleep(request["task"]["params"].get("seconds", 0))
if request["variant"]["params"].get("break") == request["task"]["id"]:
    raise SystemExit("broken on purpose")
pathlib.Path("trace.txt").write_text(request["task"]["id"])
pathlib.Path("said.txt").write_text("yes")
"""
VERIFIER = """\
import json, pathlib

reward = float(pathlib.Path("said.txt").read_text() == "yes")
pathlib.Path("response.json").write_text(json.dumps({"scores": {"reward": reward}}))
"""
ATTEMPTS = 8
"""Two variants, two tasks, two slots."""


class Lab:
    """A folder with an experiment, sessions in it, and what they left."""

    def __init__(self, pytester: pytest.Pytester, server: HelixServer) -> None:
        self.pytester, self.server, self.path = pytester, server, pytester.path
        self.started: list[subprocess.Popen[bytes]] = []

    def make(self, seconds: tuple[float, float] = (0, 0), **runner: Any) -> None:
        """Write the experiment, whose tasks take some seconds; its mutant cannot do the second one."""
        named = zip(("find", "pay"), seconds, strict=True)
        tasks = [{"id": task, "params": {"seconds": duration}} for task, duration in named]
        experiment = {
            "metricbench": 1,
            "name": "lab",
            "attempts": 2,
            "runner": {
                "kind": "helix",
                "base_url": self.server.url,
                "executor": {"provider": "subprocess"},
                "command": ["python3", "agent.py"],
                "verifier": ["{python}", "verify.py"],
                "poll": 0.05,
                **runner,
            },
            "cases": [{"id": "c", "tasks": tasks, "mutants": [{"id": "no-pay", "params": {"break": "pay"}}]}],
        }
        (self.path / "experiment.yml").write_text(json.dumps(experiment))
        (self.path / "agent.py").write_text(AGENT)
        (self.path / "verify.py").write_text(VERIFIER)

    def run(self, *args: str) -> pytest.RunResult:
        """A session in this process."""
        return self.pytester.runpytest_inprocess(*without_others(), "experiment.yml", *args)

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        """A session in a process group of its own."""
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *without_others(), "experiment.yml", *args]
        unwanted = ("PYTEST", "CI", "BUILD_NUMBER")
        env = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        with (self.path.parent / f"{self.path.name}.log").open("wb") as log:
            streams: Any = {"stdout": log, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
            process = subprocess.Popen(command, cwd=self.path, env=env, start_new_session=True, **streams)
        self.started.append(process)
        return process

    def output(self) -> str:
        """What the last session in a process of its own printed."""
        return (self.path.parent / f"{self.path.name}.log").read_text()

    @property
    def store(self) -> Path:
        return self.path / ".metricbench" / "lab"

    def records(self) -> dict[str, dict[str, Any]]:
        """``variant::task[slot]`` -> the record that counts."""
        lines = [json.loads(line) for line in (self.store / "attempts.jsonl").read_text().splitlines()]
        return {f"{line['variant']}::{line['task']}[{line['attempt']}]": line for line in lines}

    def summary(self) -> Any:
        return json.loads((self.store / "summary.json").read_text())


@pytest.fixture
def lab(pytester: pytest.Pytester, server: HelixServer, unasked: None) -> Iterator[Lab]:
    made = Lab(pytester, server)
    yield made
    for process in made.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@pytest.fixture
def active(server: HelixServer) -> Callable[[int], None]:
    """Waits until so many jobs run their agents."""

    def wait(number: int) -> None:
        def is_so_far() -> bool:
            return sum(job.status == "active" for job in list(server.jobs.values())) >= number

        server.wait_until(is_so_far, 20)

    return wait


# ---------------------------------------------------------------- a whole run


def test_an_experiment_on_a_cluster(lab: Lab, server: HelixServer) -> None:
    lab.make(max_in_flight=3)
    result = lab.run("--junit-xml=junit.xml")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*6 passed, 2 died in*"])
    records = lab.records()
    assert {name: record["outcome"] for name, record in records.items() if record["outcome"] != "scored"} == {
        "no-pay::pay[1]": "died",
        "no-pay::pay[2]": "died",
    }
    assert "broken on purpose" in records["no-pay::pay[1]"]["error"]["message"]
    assert len(server.deleted) == ATTEMPTS
    assert not server.jobs
    assert server.busiest == 3
    found = {
        entry["trial_id"] for entry in lab.summary()["cases"]["c"]["variants"]["baseline"]["attempts"]["find"]["reward"]
    }
    assert found == {records[f"baseline::find[{slot}]"]["trial_name"] for slot in (1, 2)}
    assert found <= set(server.deleted)
    assert lab.summary()["cases"]["c"]["kills"] == {"no-pay": {"find": "survived", "pay": "killed"}}
    kept = lab.store / "attempts/c/baseline/find" / records["baseline::find[1]"]["trial_id"]
    assert (kept / "trace.txt").read_text() == "find"


def test_what_is_in_the_store_needs_no_server(lab: Lab, server: HelixServer) -> None:
    lab.make()
    assert lab.run().ret == 0
    server.requests.clear()
    again = lab.run()
    again.stdout.fnmatch_lines(["*8 reused in*"])
    cached = lab.run("--metricbench-cached-only")
    assert cached.ret == 0
    assert not server.requests


@pytest.mark.slow
def test_another_verifier_scores_again_what_came_back(lab: Lab, server: HelixServer) -> None:
    lab.make()
    assert lab.run().ret == 0
    server.requests.clear()
    (lab.path / "verify.py").write_text(VERIFIER.replace('== "yes"', '== "no"'))
    lab.run().stdout.fnmatch_lines(["*6 missed, 2 died*"])
    assert not server.requests


@pytest.mark.slow
@pytest.mark.benchmark
def test_moving_to_another_server_makes_nothing_stale(lab: Lab, server: HelixServer) -> None:
    lab.make()
    assert lab.run().ret == 0
    lab.make(base_url="http://127.0.0.1:9", workspace="other", timeout=30, max_in_flight=2, keep_jobs=True)
    lab.run().stdout.fnmatch_lines(["*8 reused in*"])
    lab.make(env={"MODE": "fast"})
    lab.run().stdout.fnmatch_lines(["*6 passed, 2 died in*"])


@pytest.mark.slow
@pytest.mark.benchmark
def test_two_workers(lab: Lab, server: HelixServer) -> None:
    lab.make(seconds=(0.3, 0.3), max_in_flight=2)
    result = lab.run("-n2")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*6 passed, 2 died in*"])
    assert len(server.deleted) == server.count("POST", "/jobs$") == ATTEMPTS
    assert not server.jobs
    assert server.busiest <= 4


def test_a_failed_attempt_is_told_with_its_job(lab: Lab, server: HelixServer) -> None:
    lab.make()
    server.fail("PUT", "-1/-/results", "status", value=403)
    result = lab.run("-k", "baseline and find")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*JobFailed*the job mb-*-1 ended as error (Job exited with code 70)*"])
    result.stdout.fnmatch_lines(["*1 failed, 1 passed*"])


# ---------------------------------------------------------------- ended, and resumed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "number"),
    [("0", signal.SIGINT), ("2", signal.SIGINT), pytest.param("0", signal.SIGTERM, marks=pytest.mark.benchmark)],
)
def test_ctrl_c_cancels_what_runs(
    lab: Lab, server: HelixServer, active: Callable[[int], None], workers: str, number: signal.Signals
) -> None:
    lab.make(seconds=(60, 60), max_in_flight=3)
    session = lab.start("-n", workers)
    active(3)
    jobs = dict(server.jobs)
    os.killpg(session.pid, number)
    assert session.wait(60) == 2, lab.output()
    server.wait_until(lambda: all(job.status in ENDED for job in server.jobs.values()))
    assert {job.status for job in jobs.values()} == {"cancelled"}, lab.output()
    assert "INTERNALERROR" not in lab.output()
    lab.make()  # with less to wait for: other tasks
    assert lab.run().ret == 0


@pytest.mark.slow
def test_a_killed_run_is_resumed_with_the_jobs_that_it_left(
    lab: Lab, server: HelixServer, active: Callable[[int], None]
) -> None:
    lab.make(seconds=(1.5, 1.5), max_in_flight=4)
    session = lab.start()
    active(4)
    os.killpg(session.pid, signal.SIGKILL)
    session.wait(10)
    left = set(server.jobs)
    assert len(left) == 4
    result = lab.run()
    assert result.ret == 0, result.stdout.str()
    assert {record["trial_name"] for record in lab.records().values()} == set(server.deleted)
    assert left <= set(server.deleted)
    assert len(server.deleted) == ATTEMPTS, "nothing was submitted twice"


@pytest.mark.slow
def test_a_run_that_stops_early_cancels_what_it_began(lab: Lab, server: HelixServer) -> None:
    lab.make(seconds=(0, 5))
    server.fail("PUT", "-1/-/results", "status", times=1, value=400)
    result = lab.run("-x")
    assert result.ret == 1
    server.wait_until(lambda: all(job.status in ENDED for job in server.jobs.values()))
    assert any(job.status == "cancelled" for job in server.jobs.values())


# ---------------------------------------------------------------- secrets, and errors of the file


@pytest.mark.parametrize("right", [True, False])
def test_a_token_stands_nowhere(lab: Lab, server: HelixServer, monkeypatch: pytest.MonkeyPatch, right: bool) -> None:
    token = "t0ken-of-mine"
    monkeypatch.setenv("HELIX_TOKEN", token)
    server.token = token if right else "another"
    lab.make(token_env="HELIX_TOKEN")
    result = lab.run("--junit-xml=junit.xml", "-v")
    assert result.ret == (0 if right else 1)
    if not right:
        result.stdout.fnmatch_lines(["*refuses the token in the variable HELIX_TOKEN*"])
    assert token not in result.stdout.str() + result.stderr.str()
    written = [path for path in lab.path.rglob("*") if path.is_file()]
    assert len(written) > 10
    assert not [path for path in written if token.encode() in path.read_bytes()]
    assert any(token in headers.get("Authorization", "") for headers in server.headers)


def test_a_broken_file_is_told_at_collection(lab: Lab) -> None:
    lab.make(executor={"provider": "slurm"}, command=["{python}", "agent.py"], base_url="localhost")
    result = lab.run()
    assert result.ret == 4
    said = result.stderr.str() + result.stdout.str()
    assert "runner.executor.provider" in said
    assert "runner.command: {python} is the interpreter here, and this runs in the job; write python3" in said
    assert "runner.base_url" in said


@pytest.mark.slow
def test_a_script_that_changes_makes_attempts_stale(lab: Lab, server: HelixServer) -> None:
    lab.make()
    assert lab.run("-k", "baseline").ret == 0
    (lab.path / "agent.py").write_text(AGENT + "\n# changed\n")
    assert lab.run("-k", "baseline").ret == 0
    assert server.count("POST", "/jobs$") == 8
    assert len({name[:19] for name in server.deleted}) == 4, "two tasks, before and after"
