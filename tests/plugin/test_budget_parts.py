"""The parts of a budget on their own: what an attempt cost, what a run has spent, what may still start."""

import math
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.budget import Allowance, AllowanceError, Budget, Spending, cost_of
from pytest_metricbench.contracts import AttemptError, AttemptRecord, OutcomeKind, Phase
from tests.plugin.cluster_lab import CONFTEST
from tests.plugin.plugin_lab import Lab


def record(
    trial_id: str, outcome: OutcomeKind = "scored", phase: Phase = "agent", **scores: float | bool | str | None
) -> AttemptRecord:
    error = None if outcome == "scored" else AttemptError("E", "e", phase)
    return AttemptRecord(
        "c", "v", "t", 1, trial_id, outcome, scores, error, None, "f", "v", 0, "2026-01-01", 1.0, {}, None
    )  # fmt: skip


# ---------------------------------------------------------------- what an attempt cost


@pytest.mark.parametrize(
    ("scores", "names", "found"),
    [
        ({"cost_usd": 0.5}, [], ("cost_usd", 0.5)),
        ({"cost_usd": 0.5, "cost": 7}, [], ("cost_usd", 0.5)),
        ({"cost": 7}, [], ("cost", 7.0)),
        ({"agent.cost_usd": 0.5, "judge.cost_usd": 0.25}, [], ("cost_usd", 0.75)),
        ({"cost_usd": math.nan, "cost": 2}, [], ("cost", 2.0)),
        ({"low_cost": 2, "cost_usd_limit": 3, "costs": 4}, [], None),
        ({"cost": -1}, [], None),
        ({"cost": True}, [], None),
        ({"cost": "2"}, [], None),
        ({"cost": None}, [], None),
        ({"cost": math.inf}, [], None),
        ({"cost": 10**400}, [], None),
        ({"cost": 0}, [], ("cost", 0.0)),
        ({"cost_usd": 99, "a": 1, "b": 2}, ["a", "b"], ("cost", 3.0)),
        ({"b": 2}, ["a", "b"], ("cost", 2.0)),
        ({"cost_usd": 99}, ["a"], None),
        ({"x.cost_usd": 1}, ["x.cost_usd"], ("cost_usd", 1.0)),
    ],
)
def test_cost_of(scores: dict[str, Any], names: list[str], found: tuple[str, float] | None) -> None:
    assert cost_of(scores, names) == found


def test_spending_counts_each_agent_once() -> None:
    spending = Spending()
    spending.add(record("a", "unmeasured", "verifier"))
    assert (spending.total, spending.silent, spending.assumed) == (None, 1, 0.0)
    spending.add(record("a", cost=2.0), ran_before=True)  # its score came with the second try of the verifier
    spending.add(record("b", cost=4.0))
    spending.add(record("c", "died"))
    spending.add(record("d", "unmeasured", "setup"))
    spending.add(record("e", "not_reached"))
    spending.add(record("f", cost=100.0), ran_before=True)  # ran in an earlier run
    assert (spending.total, spending.silent, spending.unit) == (6.0, 1, "cost")
    assert spending.assumed == 9.0


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e6)), max_size=20))
def test_what_is_assumed_is_never_less_than_what_is_said(costs: list[float | None]) -> None:
    spending = Spending()
    for number, cost in enumerate(costs):
        spending.add(record(f"t{number}", "died") if cost is None else record(f"t{number}", cost_usd=cost))
    said = [cost for cost in costs if cost is not None]
    assert spending.silent == len(costs) - len(said)
    assert spending.assumed >= math.fsum(said) * (1 - 1e-9)
    if said:
        assert spending.assumed == pytest.approx(math.fsum(said) / len(said) * len(costs))


# ---------------------------------------------------------------- what may still start


def test_an_allowance_of_attempts(tmp_path: Path) -> None:
    allowance = Allowance(tmp_path / "budget")
    allowance.open(Budget(attempts=2))
    assert [allowance.take() for _ in range(4)] == [None, None, "2 attempts", "2 attempts"]
    allowance.give_back()
    assert [allowance.take() for _ in range(2)] == [None, "2 attempts"]
    allowance.open(Budget(attempts=1))
    assert [allowance.take() for _ in range(2)] == [None, "1 attempt"]
    allowance.close()
    allowance.close()
    assert list(tmp_path.iterdir()) == []


def test_an_allowance_that_was_ended_keeps_the_first_reason(tmp_path: Path) -> None:
    allowance = Allowance(tmp_path / "budget")
    allowance.open(Budget(cost=3))
    assert allowance.take() is None
    allowance.end("cost 3")
    allowance.end("cost 4")
    allowance.give_back()
    assert allowance.take() == "cost 3"


def _take_all(path: Path, tries: int, answers: "multiprocessing.Queue[int]") -> None:
    allowance = Allowance(path)
    answers.put(sum(allowance.take() is None for _ in range(tries)))


@pytest.mark.slow
def test_many_processes_get_no_more_than_there_is(tmp_path: Path) -> None:
    Allowance(tmp_path / "budget").open(Budget(attempts=500))
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    processes = [context.Process(target=_take_all, args=(tmp_path / "budget", 200, answers)) for _ in range(4)]
    for process in processes:
        process.start()
    taken = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
    assert sum(taken) == 500


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"\xff", b'{"over": null}', b'{"over": null, "until": "x", "left": 1}']
)
def test_a_damaged_allowance_lets_nothing_start(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "budget").write_bytes(content)
    with pytest.raises(AllowanceError, match="the budget of this run cannot be read"):
        Allowance(tmp_path / "budget").take()


def test_an_absent_allowance_lets_nothing_start(tmp_path: Path) -> None:
    with pytest.raises(AllowanceError, match="every process of a run needs the folder of the store"):
        Allowance(tmp_path / "budget").take()
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- attempts begun before their turn


@pytest.mark.parametrize("attempts", [1, 2, 4, 5])
def test_no_more_are_begun_than_the_budget_has(lab: Lab, attempts: int) -> None:
    lab.make(runner={"kind": "cluster", "flight": 3}, attempts=1, coverage=None, budget={"attempts": attempts})
    lab.write("conftest.py", CONFTEST)
    result = lab.run("experiment.yml")
    assert result.ret == 6
    log = (lab.path / "log.txt").read_text().splitlines()
    begun = [line.removeprefix("begin ") for line in log if line.startswith("begin ")]
    run = [line.removeprefix("run ") for line in log if line.startswith("run ")]
    assert sorted(begun) == sorted(run)
    assert len(run) == len(set(run)) == attempts
    if attempts > 1:
        assert log.index(f"begin {run[1]}") < log.index(f"run {run[0]}"), "the second was not begun before its turn"


@pytest.mark.slow
def test_nor_with_workers(lab: Lab) -> None:
    lab.make(runner={"kind": "cluster", "flight": 3}, attempts=1, coverage=None, budget={"attempts": 4})
    lab.write("conftest.py", CONFTEST)
    assert lab.run("experiment.yml", "-n2").ret == 6
    log = (lab.path / "log.txt").read_text().splitlines()
    assert sum(line.startswith("run ") for line in log) == len(lab.journal()) <= 4
    assert sum(line.startswith("begin ") for line in log) <= 4
