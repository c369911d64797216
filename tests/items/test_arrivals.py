"""What reports carry to the controller and cannot be kept: it is named, and no exception reaches pytest."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_metricbench import load_experiment
from pytest_metricbench.contracts import AttemptKey
from pytest_metricbench.pytest_side.arrivals import Arrivals
from pytest_metricbench.pytest_side.items import LEARNED
from pytest_metricbench.running.bench import Bench

NODEID = "experiment.yml::c::baseline::t[1]"
KEY: AttemptKey = ("c", "baseline", "t", 1)
EXPERIMENT = """
metricbench: 1
name: e
runner: {kind: python, agent: "json:dumps"}
cases: [{id: c, tasks: [{id: t}]}]
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    path = tmp_path / "experiment.yml"
    path.write_text(EXPERIMENT)
    return Bench(load_experiment(path), tmp_path / "store")


def report_of(learned: object = None) -> pytest.TestReport:
    report = pytest.TestReport(NODEID, ("experiment.yml", 0, ""), {}, "failed", "the worker is gone", "call")
    if learned is not None:
        setattr(report, LEARNED, learned)
    return report


def arrivals(found: tuple[Bench, Sequence[AttemptKey]] | None) -> tuple[Arrivals, list[str]]:
    faults: list[str] = []
    return Arrivals({}, lambda nodeid: found, pytest.fail, faults), faults


def test_of_an_experiment_that_is_not_known(bench: Bench) -> None:
    for found in (None, (bench, [KEY])):
        keeper, faults = arrivals(found)
        keeper.receive(report_of('{"word": "measured"}'))
        assert faults == [f"{NODEID}: what arrived is not kept: its experiment is not known here"]


def test_a_report_that_carries_nothing_is_no_fault() -> None:
    keeper, faults = arrivals(None)
    keeper.receive(report_of())
    keeper.receive(report_of("left:the budget of 1 attempt"))
    assert faults == []


def test_a_crash_of_somebody_elses_test_is_left_as_it_is() -> None:
    keeper, faults = arrivals(None)
    report = report_of()
    keeper.crashed(NODEID, report)
    assert faults == []
    assert not hasattr(report, LEARNED)


def test_a_crash_that_cannot_be_recorded_is_told(bench: Bench) -> None:
    keeper, faults = arrivals((bench, [("no-such-case", "baseline", "t", 1)]))
    report = report_of()
    keeper.crashed(NODEID, report)
    (fault,) = faults
    assert fault.startswith(f"{NODEID}: its crash cannot be recorded:\nTraceback")
    assert not hasattr(report, LEARNED)


def test_a_crash_is_recorded_on_its_report(bench: Bench) -> None:
    keeper, faults = arrivals((bench, [KEY]))
    report = report_of()
    keeper.crashed(NODEID, report)
    assert faults == []
    assert "the worker is gone" in getattr(report, LEARNED)
