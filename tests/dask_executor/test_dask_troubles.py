"""What becomes of a session when its cluster fails, in sessions of their own process.

Each takes many seconds, since schedulers and workers have to start, go and come: .ci/full runs them.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import Signals

import pytest
import yaml

from tests.dask_executor.dask_lab import Processes, calls, experiment, records, until

pytest.importorskip("distributed")
pytestmark = pytest.mark.benchmark


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Processes]:
    """A cluster without workers, for one test."""
    (tmp_path / "cluster").mkdir()
    processes = Processes(tmp_path / "cluster")
    yield processes
    processes.close()


def start(path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", path.name, "-p", "no:randomly", "-p", "no:cacheprovider", *arguments]
    return subprocess.Popen(
        command, cwd=path.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def run(path: Path, *arguments: str) -> tuple[int, str]:
    process = start(path, *arguments)
    text, _ = process.communicate()
    return process.returncode, text


def waits_in(folder: Path, attempt: str) -> None:
    until(lambda: attempt in calls(folder), f"{attempt} to begin")


def children(folder: Path) -> set[str]:
    """The processes in which workers make attempts of the experiment in a folder, which they are started in."""
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    pids = {line.split()[0] for line in found.splitlines() if "executors.dask_child" in line}
    return {pid for pid in pids if _works_in(pid, folder)}


def _works_in(pid: str, folder: Path) -> bool:
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd")) == folder
    except PermissionError:  # another user's
        return False
    except FileNotFoundError:  # it has ended, or this system has no /proc
        return not Path("/proc/self/cwd").exists()


def test_a_local_cluster(tmp_path: Path) -> None:
    path = experiment(tmp_path / "here")
    code, text = run(path, "--metricbench-executor", "dask:2")
    assert code == 0, text
    assert "executor: dask, 2 workers on this machine" in text
    assert len(records(path.parent / ".metricbench" / "shop")) == 18
    assert not children(path.parent)


def test_a_scheduler_that_is_cut_ends_the_run_and_the_next_one_goes_on(own_cluster: Processes, tmp_path: Path) -> None:
    own_cluster.add_worker()
    path = experiment(tmp_path / "here", {"no-pay::find": "w"}, executor={"kind": "dask"})
    process = start(path, "--metricbench-executor", f"dask:{own_cluster.file}")
    waits_in(path.parent, "no-pay::find[1]")
    store = path.parent / ".metricbench" / "shop"
    until(lambda: len(records(store)) == 6, "the baseline's attempts to be kept")
    own_cluster.scheduler.kill()
    text, _ = process.communicate()
    assert process.returncode == 1
    assert f"the Dask scheduler at {own_cluster.address} is gone: 12 jobs have no answer" in text
    assert "12 of 18 attempts are missing" in text
    assert len(records(store)) == 6
    (path.parent / "gate").touch()
    code, text = run(path, "--metricbench-executor", "local")
    assert code == 0
    assert "6 reused" in text
    assert [name for name in calls(path.parent) if name.startswith("baseline")] == calls(path.parent)[:6]
    assert len(records(store)) == 18


def test_work_goes_on_with_workers_that_come_when_all_were_lost(own_cluster: Processes, tmp_path: Path) -> None:
    """The scheduler holds back what it has no worker for; a nanny brings a new worker under a new name."""
    number = own_cluster.add_worker(nanny=True)
    path = experiment(
        tmp_path / "here",
        {"no-pay::find": "w"},
        retries=1,
        executor={"kind": "dask", "scheduler": own_cluster.address},
    )
    process = start(path)
    waits_in(path.parent, "no-pay::find[1]")
    (line,) = [line for line in (path.parent / "calls.txt").read_text().splitlines() if line.startswith("no-pay")]
    before = children(path.parent)
    os.kill(int(line.split()[2]), signal.SIGKILL)  # the worker beneath the nanny
    until(lambda: not before & children(path.parent), "the processes of the lost worker to be gone")
    (path.parent / "gate").touch()
    text, _ = process.communicate()
    assert own_cluster.workers[number].poll() is None
    assert process.returncode == 0, text
    assert len(calls(path.parent)) == 19
    assert len(records(path.parent / ".metricbench" / "shop")) == 18


def test_no_worker_for_too_long_is_an_error_and_one_that_comes_in_time_is_none(
    own_cluster: Processes, tmp_path: Path
) -> None:
    path = experiment(tmp_path / "here", executor={"kind": "dask", "scheduler": own_cluster.address, "wait": 1})
    code, text = run(path)
    assert code == 1
    assert "has had no worker that can make attempts for 1 s: there is no worker; start some, or raise wait" in text
    form = yaml.safe_load(path.read_text())
    form["executor"]["wait"] = 60
    path.write_text(yaml.safe_dump(form))
    process = start(path)
    own_cluster.await_session()
    own_cluster.add_worker()
    text, _ = process.communicate()
    assert process.returncode == 0, text


def test_a_worker_of_another_version_is_left_alone(own_cluster: Processes, tmp_path: Path) -> None:
    fake = tmp_path / "fake" / "pytest_metricbench-9.9.9.dist-info"
    fake.mkdir(parents=True)
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-metricbench\nVersion: 9.9.9\n")
    own_cluster.add_worker(env={"PYTHONPATH": str(fake.parent)})
    own_cluster.await_workers(1)
    path = experiment(tmp_path / "here", executor={"kind": "dask", "scheduler": own_cluster.address})
    code, text = run(path)
    assert code == 4
    assert "pytest-metricbench 9.9.9 is installed there, and" in text
    own_cluster.add_worker()
    own_cluster.await_workers(2)
    code, text = run(path)
    assert code == 0
    assert "a worker cannot make attempts: tcp://" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupt_ends_what_runs_on_the_workers(own_cluster: Processes, tmp_path: Path, number: Signals) -> None:
    own_cluster.add_worker()
    runner = {"kind": "command", "agent": ["/bin/sh", "agent.sh"], "timeout": 100}
    path = experiment(
        tmp_path / "here", runner=runner, coverage=[], executor={"kind": "dask", "scheduler": own_cluster.address}
    )
    mark = f"30.{os.getpid()}"
    (path.parent / "agent.sh").write_text(f"touch {path.parent}/begun; sleep {mark}\n")
    form = yaml.safe_load(path.read_text())
    del form["score"]
    path.write_text(yaml.safe_dump(form))
    process = start(path)
    until((path.parent / "begun").exists, "an agent to begin")
    process.send_signal(number)
    text, _ = process.communicate()
    assert process.returncode == 2, text
    until(lambda: mark not in subprocess.check_output(["ps", "-eo", "args"], text=True), "the agent to be gone")
    assert not children(path.parent)
    assert own_cluster.workers[0].poll() is None


def test_a_budget_is_heeded(own_cluster: Processes, tmp_path: Path) -> None:
    own_cluster.add_worker()
    path = experiment(
        tmp_path / "here", budget={"attempts": 7}, executor={"kind": "dask", "scheduler": own_cluster.address}
    )
    code, text = run(path)
    assert "the budget of 7 attempts was reached" in text
    assert len(calls(path.parent)) == 7
    assert code not in (0, 1)
    run(path)
    assert len(calls(path.parent)) == 14


CONFTEST = """\
from typing import Literal

from pytest_metricbench import Outcome, Runner


class Echo(Runner):
    kind: Literal["echo"] = "echo"
    factor: float = 1.0

    def run(self, request, workspace):
        (workspace / "said.txt").write_text(request.task.id)
        return Outcome.scored({"reward": self.factor})


def pytest_metricbench_runners():
    return [Echo]
"""


@pytest.mark.parametrize("files", ["shared", "bundle"])
def test_a_runner_of_a_conftest_works_on_workers(own_cluster: Processes, tmp_path: Path, files: str) -> None:
    own_cluster.add_worker()
    path = experiment(
        tmp_path / "here",
        runner={"kind": "echo", "factor": 2.0},
        executor={"kind": "dask", "scheduler": own_cluster.address, "files": files},
        coverage=[],
        score={"primary": "reward"},
    )
    (path.parent / "conftest.py").write_text(CONFTEST)
    code, text = run(path)
    assert code == 0, text
    assert {record["scores"]["reward"] for record in records(path.parent / ".metricbench" / "shop")} == {2.0}


def test_a_changed_agent_is_never_answered_for_by_a_worker_that_ran_the_former(
    own_cluster: Processes, tmp_path: Path
) -> None:
    own_cluster.add_worker()
    path = experiment(tmp_path / "here", executor={"kind": "dask", "scheduler": own_cluster.address})
    assert run(path)[0] == 0
    agent = path.parent / "agent.py"
    agent.write_text(agent.read_text().replace('== "m" else 1.0', '== "m" else 0.5'))
    run(path)
    store = path.parent / ".metricbench" / "shop"
    assert {record["scores"]["reward"] for record in records(store)[18:]} == {0.25, 0.5}
    counts = json.loads((store / "summary.json").read_text())["counts"]
    assert counts["passed"] == 0


def test_what_a_killed_run_left_on_the_workers_is_ended_and_the_next_run_goes_on(
    own_cluster: Processes, tmp_path: Path
) -> None:
    own_cluster.add_worker()
    path = experiment(
        tmp_path / "here", {"no-pay::find": "w"}, executor={"kind": "dask", "scheduler": own_cluster.address}
    )
    process = start(path)
    waits_in(path.parent, "no-pay::find[1]")
    store = path.parent / ".metricbench" / "shop"
    until(lambda: len(records(store)) == 6, "the baseline's attempts to be kept")
    before = children(path.parent)
    process.kill()
    process.communicate()
    until(lambda: before - children(path.parent), "the process that made the attempt to be gone")
    (path.parent / "gate").touch()
    code, text = run(path)
    assert code == 0
    assert "6 reused" in text
    assert len(calls(path.parent)) == 19


def test_another_session_of_the_same_cluster_is_not_disturbed(own_cluster: Processes, tmp_path: Path) -> None:
    """Two runs share the workers' processes; one is interrupted in the middle of the other."""
    own_cluster.add_worker("--nthreads", "2")
    chosen = {"kind": "dask", "scheduler": own_cluster.address}
    one = experiment(tmp_path / "one", {"no-pay::find": "w"}, executor=chosen)
    other = experiment(tmp_path / "other", {"no-pay::find": "w"}, executor=chosen)
    stays, goes = start(one), start(other)
    waits_in(one.parent, "no-pay::find[1]")
    waits_in(other.parent, "no-pay::find[1]")
    goes.send_signal(signal.SIGINT)
    goes.communicate()
    (one.parent / "gate").touch()
    text, _ = stays.communicate()
    assert stays.returncode == 0, text
    assert len(calls(one.parent)) == 18
