"""What an experiment and the command line say of a Dask cluster."""

import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench import load_experiment
from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.executor_settings import DaskSettings, ExecutorTextError, settings_of_text
from pytest_metricbench.executors import dask_connection
from pytest_metricbench.executors.base import ExecutorError
from pytest_metricbench.executors.dask_connection import Cluster
from tests.dask_executor.dask_lab import experiment


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("dask", {}),
        ("dask:tcp://10.0.0.7:8786", {"scheduler": "tcp://10.0.0.7:8786"}),
        ("dask:tls://node:8786", {"scheduler": "tls://node:8786"}),
        ("dask:node:8786", {"scheduler": "node:8786"}),
        ("dask:run/scheduler.json", {"scheduler_file": "run/scheduler.json"}),
        ("dask:4", {"workers": 4}),
    ],
)
def test_the_short_form(text: str, settings: dict[str, Any]) -> None:
    assert settings_of_text(text) == DaskSettings(**settings)


@pytest.mark.parametrize("text", ["dask:0", "dask:node", "dask:1e3", "dask:9999", "dask:tcp//node:1", "dask:a b:1"])
def test_a_short_form_that_names_no_cluster(text: str) -> None:
    with pytest.raises(ExecutorTextError) as caught:
        settings_of_text(text)
    assert str(caught.value) == (
        f"{text.partition(':')[2]!r} names no Dask cluster; write dask:tcp://HOST:8786, dask:scheduler.json, or dask:N "
        "for N workers on this machine"
    )


def test_the_long_form(tmp_path: Path) -> None:
    given = {"kind": "dask", "scheduler": "tcp://node:8786", "files": "bundle", "wait": 60, "evidence_limit": 5}
    loaded = load_experiment(experiment(tmp_path, executor=given))
    assert loaded.executor == DaskSettings(scheduler="tcp://node:8786", files="bundle", wait=60, evidence_limit=5)
    assert loaded.executor.describe() == "dask at tcp://node:8786, files sent in a bundle"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"workers": 1}, "dask, 1 worker on this machine"),
        ({"workers": 3, "files": "bundle"}, "dask, 3 workers on this machine, files sent in a bundle"),
        ({"scheduler_file": "s.json"}, "dask at s.json"),
        ({}, "dask at the address that Dask is configured with"),
    ],
)
def test_how_a_cluster_is_called(settings: dict[str, Any], said: str) -> None:
    assert DaskSettings(**settings).describe() == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scheduler": "a:1", "workers": 2}, "scheduler and workers both say which cluster it is; keep one of them"),
        ({"workers": 0}, "executor.workers"),
        ({"files": "copied"}, "executor.files"),
        ({"wait": 0}, "executor.wait"),
        ({"schedular": "a:1"}, "did you mean 'scheduler'"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        load_experiment(experiment(tmp_path, executor={"kind": "dask", **given}))
    assert said in str(caught.value)


class TestReachingACluster:
    """Without one: everything is told in words."""

    @pytest.fixture(autouse=True)
    def _impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        dask = pytest.importorskip("dask")
        monkeypatch.setitem(dask.config.config["distributed"]["comm"]["timeouts"], "connect", "300ms")
        monkeypatch.setattr("pytest_metricbench.executors.dask_connection._HALF_WRITTEN", 0.05)

    def test_nothing_answers(self) -> None:
        with pytest.raises(
            ExecutorError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 \(waited up to 300ms\)"
        ):
            Cluster(DaskSettings(scheduler="tcp://127.0.0.1:9"))

    def test_the_address_that_dask_is_configured_with_is_taken(self) -> None:
        import dask

        with (
            dask.config.set({"scheduler-address": "tcp://127.0.0.1:11"}),
            pytest.raises(ExecutorError, match=r"answers at tcp://127.0.0.1:11 "),
        ):
            Cluster(DaskSettings())

    def test_no_scheduler_is_named(self) -> None:
        with pytest.raises(ExecutorError, match=r"no Dask scheduler is named: .*DASK_SCHEDULER_ADDRESS"):
            Cluster(DaskSettings())

    @pytest.mark.parametrize(
        ("content", "said"),
        [(None, "cannot be read .No such file"), ("{}", "is no scheduler file"), ("[1", "is no scheduler file")],
    )
    def test_a_scheduler_file_that_names_none(self, tmp_path: Path, content: str | None, said: str) -> None:
        path = tmp_path / "scheduler.json"
        if content is not None:
            path.write_text(content)
        with pytest.raises(ExecutorError, match=said):
            Cluster(DaskSettings(scheduler_file=str(path)))

    def test_an_address_that_is_none(self) -> None:
        with pytest.raises(ExecutorError, match="no Dask scheduler answers at nowhere://x:1"):
            Cluster(DaskSettings(scheduler="nowhere://x:1"))


REFUSED = """\
from typing import ClassVar, Literal

from pytest_metricbench import Outcome, Runner


class Refused(Runner):
    kind: Literal["refused"] = "refused"
    many: int = 0
    baseline_first: ClassVar[bool] = {baseline_first}

    @property
    def ahead(self):
        return self.many

    def run(self, request, workspace):
        return Outcome.scored({{"reward": 1.0}})


def pytest_metricbench_runners():
    return [Refused]
"""


@pytest.mark.parametrize(
    ("baseline_first", "many", "said"),
    [
        (
            True,
            0,
            "the runner 'refused' builds the attempts of mutants on those of the baseline, which it keeps in warm "
            "processes of this machine; run it with the executor local and pytest -n (pytest-xdist)",
        ),
        (
            False,
            3,
            "the runner 'refused' hands its attempts to a cluster of its own; run it with the executor local or "
            "threads",
        ),
    ],
)
def test_runners_that_need_another_executor_are_refused(
    pytester: pytest.Pytester, baseline_first: bool, many: int, said: str
) -> None:
    path = experiment(pytester.path, runner={"kind": "refused", "many": many}, coverage=[], score={})
    pytester.makeconftest(REFUSED.format(baseline_first=baseline_first))
    result = pytester.runpytest_inprocess(path.name, "-p", "no:cacheprovider", "--metricbench-executor", "dask:a:1")
    assert result.ret == 4
    assert said in result.stdout.str() + result.stderr.str()


def test_without_distributed_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ExecutorError) as caught:
        Cluster(DaskSettings(workers=1))
    said = "the executor dask needs distributed, which is not installed: pip install 'pytest-metricbench[dask]'"
    assert str(caught.value) == said


def test_no_scheduler_is_named() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(ExecutorError) as caught:
        Cluster(DaskSettings())
    assert str(caught.value) == (
        "no Dask scheduler is named: write dask:tcp://HOST:8786 or dask:scheduler.json, set DASK_SCHEDULER_ADDRESS, or "
        "write dask:4 for a cluster of four workers on this machine"
    )


def test_scheduler_files_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    path = tmp_path / "scheduler.json"
    with pytest.raises(ExecutorError) as caught:
        Cluster(DaskSettings(scheduler_file=str(path)))
    assert str(caught.value) == (
        f"the scheduler file {path} cannot be read (No such file or directory); dask scheduler --scheduler-file {path} "
        "writes it"
    )
    monkeypatch.setattr(dask_connection, "_HALF_WRITTEN", 0.0)
    for content in ("", "[]", "{}"):
        path.write_text(content)
        with pytest.raises(ExecutorError) as caught:
            Cluster(DaskSettings(scheduler_file=str(path)))
        assert str(caught.value) == (
            f"{path} is no scheduler file: it names no address; dask scheduler --scheduler-file writes one"
        )
