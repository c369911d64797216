"""Sessions whose attempts are made by real workers of a real scheduler."""

import json
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_metricbench.executors import dask_pool
from pytest_metricbench.store.files import digest_folder
from tests.dask_executor.dask_lab import Processes, calls, experiment, records, until

pytestmark = pytest.mark.slow

SUMMARY = Path(".metricbench", "shop", "summary.json")
UNSEEN = "/proc/self/cwd/store"
"""For a worker, whose working directory is another, this is another folder than for the session."""
DIFFERS = {"check", "trial_id", "started", "duration", "supersedes", "files"}
"""What of a record is another one in every run. (The output, which is kept, says where the agent was.)"""

OTHERWISE = ("trial_id", "home", "reused")
"""Likewise of a summary."""


def session(pytester: pytest.Pytester, *arguments: str) -> pytest.HookRecorder:
    return pytester.inline_run("experiment.yml", "-p", "no:randomly", "-p", "no:cacheprovider", *arguments)


def told(pytester: pytest.Pytester, *arguments: str) -> tuple[pytest.RunResult, str]:
    """A session, and all that it printed."""
    result = pytester.runpytest_inprocess("experiment.yml", "-p", "no:randomly", "-p", "no:cacheprovider", *arguments)
    return result, result.stdout.str() + result.stderr.str()


def answer(path: Path) -> Any:
    """A summary without what is another one in every run."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without(entry) for name, entry in value.items() if name not in OTHERWISE}
        return [without(entry) for entry in value] if isinstance(value, list) else value

    summary = without(json.loads(path.read_text()))
    return {name: summary[name] for name in ("complete", "counts", "cases", "gates")}


def comparable(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = [{name: value for name, value in line.items() if name not in DIFFERS} for line in lines]
    for line in kept:
        line["scores"].pop("home", None)
    return sorted(kept, key=lambda line: (line["case"], line["variant"], line["task"], line["attempt"]))


def change(path: Path, **keys: object) -> None:
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **keys}, sort_keys=False))


def test_it_answers_what_a_local_run_answers_and_makes_what_was_selected(
    pytester: pytest.Pytester, folder: Path, cluster: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = {"quiet::refund": "du", "no-pay::refund": "m"}
    path = experiment(folder / "here", letters, executor={"kind": "dask", "scheduler": cluster.address})
    monkeypatch.chdir(path.parent)
    assert session(pytester, "-k", "find and not quiet").ret == 0
    assert len(calls(path.parent)) == 4
    assert {name.partition("[")[0] for name in calls(path.parent)} == {"baseline::find", "no-pay::find"}
    whole = session(pytester)
    made = calls(path.parent)
    (path.parent / "calls.txt").unlink()
    alone = session(pytester, "--metricbench-executor", "local", "--metricbench-store", "local")
    assert whole.ret == alone.ret == 1  # one attempt is unmeasured
    assert sorted(made) == sorted(calls(path.parent))
    stores = [path.parent / ".metricbench" / "shop", path.parent / "local" / "shop"]
    assert comparable(records(stores[0])) == comparable(records(stores[1]))
    assert answer(stores[0] / "summary.json") == answer(stores[1] / "summary.json")
    assert json.loads((stores[0] / "summary.json").read_text())["counts"]["reused"] == 4
    assert not [left.name for left in stores[0].iterdir() if left.name.startswith(".dask")]
    for record in records(stores[0]):
        left = stores[0] / "attempts" / record["case"] / record["variant"] / record["task"] / record["trial_id"]
        assert digest_folder(left) == record["files"]


LOOKING = '''\
"""A coverage command that writes down all it can see without looking for it."""

import json
import os
import pathlib
import sys

seen = {"argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ), "files": {}}
for path in sorted(pathlib.Path().rglob("*")):
    if path.is_file():
        seen["files"][str(path)] = path.read_text()
pathlib.Path("seen.json").write_text(json.dumps(seen))
tasks = {name.split("/")[1] for name in seen["files"] if name.startswith("evidence/")}
pathlib.Path("response.json").write_text(json.dumps({"value": len(tasks) / 3}))
'''


@pytest.mark.skipif(sys.platform != "linux", reason="a path that leads every process elsewhere needs /proc")
def test_workers_that_see_neither_folder_nor_store(
    pytester: pytest.Pytester, folder: Path, cluster: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files travel as a bundle, evidence travels back, and then to be scored again and to be measured."""
    looking = {"id": "looking", "kind": "command", "command": ["{python}", "looking.py"]}
    path = experiment(
        folder / "here",
        {"no-pay::pay": "pu"},
        executor={"kind": "dask", "scheduler": cluster.address, "files": "bundle"},
        coverage=[{"id": "goals", "kind": "python", "measure": "agent:measure"}, looking],
    )
    (path.parent / "looking.py").write_text(LOOKING)
    monkeypatch.chdir(path.parent)
    assert session(pytester, "--metricbench-store", UNSEEN).ret == 1
    store = path.parent / "store" / "shop"
    made = records(store)
    assert len(made) == 18
    for record in made:
        left = store / "attempts" / record["case"] / record["variant"] / record["task"] / record["trial_id"]
        assert digest_folder(left) == record["files"]
        assert {"trace.txt", "output.json"} <= set(record["files"])
    homes = {record["scores"]["home"] for record in made if record["outcome"] == "scored"}
    assert homes
    assert all(home.startswith(str(cluster.folder)) and home.endswith("/bundle") for home in homes)
    for subset, tasks in (("s1", ["find"]), ("s2", ["find", "pay"]), ("pool", ["find", "pay", "refund"])):
        kept = store / "coverage" / "shop" / "looking" / subset
        assert sorted(path.name for path in kept.iterdir()) == [
            *("command.stderr", "command.stdout", "receipt.json", "request.json", "response.json", "seen.json")
        ]
        seen = (kept / "seen.json").read_text()
        assert {name.split("/")[1] for name in json.loads(seen)["files"] if "/" in name} == set(tasks)
        assert not [word for word in ("no-pay", "quiet", "mutant") if word in seen]
    # The verifier changes: the agents' work, which lies here, is scored there.
    begun = len(calls(path.parent))
    text = (path.parent / "agent.py").read_text()
    (path.parent / "judge.py").write_text(text.replace("raise ValueError", "return {'reward': 1.0}; raise ValueError"))
    change(path, runner={**yaml.safe_load(path.read_text())["runner"], "verifier": "judge:verify"})
    again = session(pytester, "--metricbench-store", UNSEEN)
    assert again.ret == 0
    assert len(calls(path.parent)) == begun
    assert len(records(store)) == 36
    assert session(pytester, "--metricbench-store", UNSEEN, "--metricbench-cached-only").ret == 0


def test_a_lost_worker_leaves_its_attempt_unmeasured_or_has_it_made_elsewhere(
    pytester: pytest.Pytester, folder: Path, cluster: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = experiment(folder / "here", {"no-pay::find": "w"}, executor={"kind": "dask", "scheduler": cluster.address})
    monkeypatch.chdir(path.parent)
    killer = threading.Thread(target=_kill_who_makes, args=(cluster, path.parent, "no-pay::find[1]"))
    killer.start()
    result, text = told(pytester)
    killer.join()
    store = path.parent / ".metricbench" / "shop"
    lost = [record for record in records(store) if record["outcome"] == "unmeasured"]
    assert result.ret == 1
    assert [(record["task"], record["attempt"]) for record in lost] == [("find", 1)]
    assert {record["error"]["type"] for record in lost} == {"WorkerLost"}
    assert {record["error"]["phase"] for record in lost} == {"setup"}
    assert "was lost while it ran; retries: 1 or more has it run again elsewhere" in text
    assert len(records(store)) == 18
    assert calls(path.parent).count("no-pay::find[1]") == 1
    # The same again with a retry: the attempt moves to another worker, and only it is made.
    (path.parent / "gate").unlink()
    change(path, retries=1)
    killer = threading.Thread(target=_kill_who_makes, args=(cluster, path.parent, "no-pay::find[1]", 2))
    killer.start()
    assert session(pytester).ret == 0
    killer.join()
    assert calls(path.parent).count("no-pay::find[1]") == 3
    assert len(calls(path.parent)) == 20
    assert len(records(store)) == 19
    interrupted = list((store / "interrupted").rglob("trace.txt"))
    assert len(interrupted) == 1  # of the first run; what the second lost is set aside by a third


def _kill_who_makes(cluster: Processes, folder: Path, attempt: str, times: int = 1) -> None:
    """Kill the worker that makes an attempt for that time, have another one in its place, and open the gate."""
    until(lambda: calls(folder).count(attempt) == times, f"{attempt} to begin")
    line = [line for line in (folder / "calls.txt").read_text().splitlines() if line.startswith(attempt)][-1]
    worker = int(line.split()[2])
    number = next(number for number, process in enumerate(cluster.workers) if process.pid == worker)
    cluster.kill_worker(number)
    cluster.add_worker()
    (folder / "gate").touch()


def test_a_worker_with_a_stale_copy_makes_nothing(
    pytester: pytest.Pytester, folder: Path, cluster: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = experiment(folder / "here", executor={"kind": "dask", "scheduler": cluster.address})
    cluster.await_workers(1)
    experiment(cluster.folder)
    (cluster.folder / "outcomes.json").write_text("{}")
    monkeypatch.chdir(path.parent)
    result = pytester.runpytest_inprocess("/proc/self/cwd/experiment.yml", "-p", "no:cacheprovider")
    text = result.stdout.str() + result.stderr.str()
    assert result.ret == 4
    assert "no worker of tcp://" in text
    assert "experiment.yml has another content there; bring it up to date, or say files: bundle" in text
    assert calls(path.parent) == []


def test_workers_that_cannot_go_on_in_the_middle_end_the_run_and_spoil_no_attempt(
    pytester: pytest.Pytester, folder: Path, cluster: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent changes an input of its experiment and takes its process along; the next one sees the change."""
    monkeypatch.setattr(dask_pool, "_WAIT_BESIDE_UNFIT", 1.0)
    chosen = {"kind": "dask", "scheduler": cluster.address}
    path = experiment(folder / "here", {"no-pay::find": "k"}, executor=chosen)
    agent = path.parent / "agent.py"
    spoil = f'pathlib.Path("{path.parent}/outcomes.json").open("a").write(" "); os._exit(7)'
    agent.write_text(agent.read_text().replace("os._exit(7)", spoil))
    monkeypatch.chdir(path.parent)
    result, text = told(pytester)
    made = records(path.parent / ".metricbench" / "shop")
    assert [line["outcome"] for line in made] == ["scored"] * 6 + ["unmeasured"]
    assert made[-1]["error"]["type"] == "WorkerCrashed"
    assert result.ret == 1
    assert "has had no worker that can make attempts for 1 s: the workers there cannot: tcp://" in text
    assert "outcomes.json has another content there" in text
    assert len(calls(path.parent)) == 7
