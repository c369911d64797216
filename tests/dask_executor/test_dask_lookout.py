"""Workers as a session sees them: those that are there, and those that were greeted before."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pytest_metricbench import coverage, runners
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.executor_settings import DaskSettings
from pytest_metricbench.executors.dask_messages import Site
from pytest_metricbench.running.bench import Bench
from tests.dask_executor.dask_lab import Processes

pytest.importorskip("distributed")

from pytest_metricbench.executors import dask, dask_worker
from pytest_metricbench.executors.base import ExecutorError
from pytest_metricbench.executors.dask_connection import Cluster
from pytest_metricbench.executors.dask_lookout import Lookout, Watched
from pytest_metricbench.executors.dask_messages import AttemptJob, Failed, Home
from pytest_metricbench.executors.dask_pool import Pool
from pytest_metricbench.executors.dask_site import site_of
from tests.dask_executor.dask_lab import experiment

pytestmark = pytest.mark.slow


def site(folder: Path) -> Site:
    path = experiment(folder)
    loaded = load_experiment(path, runners=runners.BUILTIN, systems=coverage.BUILTIN)
    bench = Bench(loaded, folder / "store")
    (folder / "store").mkdir(exist_ok=True)
    return site_of(bench, DaskSettings())[0]


def test_workers_that_are_there_stay_there_while_the_client_looks_for_itself(cluster: Processes) -> None:
    """A client of Dask asks for the cluster too, without its workers; nobody may take that for the cluster."""
    import dask

    with dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}):
        connected = Cluster(DaskSettings(scheduler=cluster.address))
    try:
        lookout = Lookout(connected, list)
        seen = set()
        for _ in range(200):
            lookout.look()
            seen.add(len(lookout.workers))
        assert seen == {1}
    finally:
        connected.close()


def test_a_worker_that_is_greeted_again_goes_on_with_what_it_does(tmp_path: Path) -> None:
    told = site(tmp_path / "here")
    try:
        assert dask_worker._take_up(told, None, tmp_path / "first").problem is None
        post = dask_worker._posts[told.id]
        (child,) = post._idle
        assert dask_worker._take_up(told, None, tmp_path / "second").problem is None
        assert dask_worker._posts[told.id] is post
        assert child.lives
        assert not (tmp_path / "second").exists()
    finally:
        dask_worker._posts.pop(told.id).end()


def test_a_worker_in_the_place_of_another_is_greeted(cluster: Processes, tmp_path: Path) -> None:
    """A nanny starts a worker again under its name, and where its port is fixed under its address."""

    async def forget(site_id: str, resource: str, dask_worker: Any) -> None:
        from pytest_metricbench.executors.dask_worker import dismiss

        await dismiss(site_id)
        await dask_worker.set_resources(**{resource: 0})

    def knows(site_id: str) -> bool:
        from pytest_metricbench.executors.dask_worker import _posts

        return site_id in _posts

    connected = Cluster(DaskSettings(scheduler=cluster.address))
    told = site(tmp_path / "here")
    try:
        watched = Lookout(connected, list).watch(told, None)
        (former,) = watched.fit
        lookout = Lookout(connected, list)
        lookout.watched.append(watched)
        run = connected.client.run
        run(forget, told.id, told.resource)
        assert run(knows, told.id) == {former.split()[1]: False}
        lookout.look()
        assert list(watched.fit) == [former]
        assert run(knows, told.id) == {former.split()[1]: True}
    finally:
        connected.client.run(dask_worker.dismiss, told.id)
        connected.close()


def test_what_a_killed_run_left_in_the_store_is_removed_by_the_next(tmp_path: Path) -> None:
    store = tmp_path / "here" / "store"
    (store / ".dask-0123-answers").mkdir(parents=True)
    (store / ".dask-0123-answers" / "1").write_text("[]")
    (store / ".dask-0123").write_text(".dask-0123")
    told = site(tmp_path / "here")
    assert [left.name for left in store.iterdir()] == [told.token]


def test_an_experiment_that_does_not_load_makes_a_worker_unfit_and_does_not_hold_up_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = site(tmp_path / "here")
    (tmp_path / "here" / "conftest.py").write_text("import time\ntime.sleep(1000)\n")
    told = replace(told, runners=(Home("slow", "conftest", "Slow", "conftest.py"),))
    monkeypatch.setattr(dask_worker, "OPENING", 0.1)
    greeting = dask_worker._take_up(told, None, tmp_path / "scratch")
    assert greeting.problem == "the experiment was not loaded there within 0.1 s"
    assert not (tmp_path / "scratch").exists()


@pytest.fixture
def pool(cluster: Processes) -> Iterator[Pool]:
    made = Pool(DaskSettings(scheduler=cluster.address, wait=5))
    yield made
    made.stop([])
    made.close()


def test_answers_are_handed_out_before_it_is_said_that_nothing_can_be_sent(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was answered is paid for, whatever becomes of the job beside it."""
    told = site(tmp_path / "here")
    job = AttemptJob(("shop", "baseline", "find", 1), None)
    answered, lost = pool.send(told, job, 1), pool.send(told, job, 1)
    monkeypatch.setattr(pool, "_take_ended", lambda seconds: [lost, answered])
    monkeypatch.setattr(pool, "_read", lambda ticket, results: Failed("so") if ticket is answered else None)
    monkeypatch.setattr(pool._cluster, "submit", _refuses)
    assert [ticket for ticket, _ in pool.answered(0.0)] == [answered]
    with pytest.raises(ExecutorError, match="nothing can be sent to the Dask scheduler"):
        pool.answered(0.0)


def _refuses(*_: object, **__: object) -> NoReturn:
    raise OSError("the connection is closed")


def test_the_wait_for_workers_begins_when_the_last_was_lost(pool: Pool, tmp_path: Path) -> None:
    """However long ago somebody asked for answers, and whatever workers another experiment of the session has."""
    told = site(tmp_path / "here")
    watched = pool.take_up(told, None)
    pool._lookout.watched.append(Watched(replace(told, id="other"), None, fit={"0 tcp://there:1": 1}))
    pool.send(told, AttemptJob(("shop", "baseline", "find", 1), None), 1)
    pool._lookout.stop()
    pool._lookout.look()
    watched.fit.clear()
    pool._idle_since = time.monotonic() - 1000
    pool._refuse_without_workers()
    watched.served -= 1000
    with pytest.raises(ExecutorError, match=r"for 5 s: those there \(1\) have not answered that they can"):
        pool._refuse_without_workers()
    pool.stop([told])


def test_an_end_does_not_wait_for_workers_that_answer_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = dask.DaskExecutor(DaskSettings(workers=1))
    ended: list[Sequence[str]] = []

    class Busy:
        """A pool of workers that always have an answer ready."""

        def stop(self, sites: Sequence[str]) -> None:
            ended.append(sites)

    monkeypatch.setattr(executor, "_pool", Busy())
    monkeypatch.setattr(executor, "_collect", lambda pool, seconds: True)
    monkeypatch.setattr(dask, "_COLLECTING", 0.01)
    executor.stop()
    assert ended == [[]]
