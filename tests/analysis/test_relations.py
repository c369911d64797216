"""What subsets say beyond one coefficient: size, balance, reliability, choices, greedy order, several cases."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.analysis.correlation import pearson
from pytest_metricbench.analysis.over_cases import adjusted
from pytest_metricbench.analysis.reliability import stepped_up
from pytest_metricbench.analysis.size_control import (
    attainable_r,
    balance,
    partial_coefficient,
    size_control,
    size_model,
)
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import CaseSummary
from tests.analysis.goals_lab import GOALS, SUBSETS, TASKS, big_table, outcomes
from tests.analysis.reference_cases import CASES
from tests.analysis.results_builder import OUTSIDE, CaseTable, build


def analysed(table: CaseTable, **options: Any) -> CaseSummary:
    return summarize(build(table, **options)).cases["c"]


# ---------------------------------------------------------------- size


def test_size_is_controlled_in_the_summary() -> None:
    """The reference's numbers, with kills that make just these scores."""
    (data,) = [case["input"]["data"] for case in CASES if case["id"] == "partial-01"]
    (expected,) = [case["expected"] for case in CASES if case["id"] == "partial-01"]
    sizes = [int(size) for size in data["size"]]
    found = size_control(np.array(data["coverage"]), np.array(data["mutant"]), sizes, None)
    for name in ("pearson", "spearman", "kendall"):
        assert getattr(found, name).value == pytest.approx(expected[name], abs=1e-8)
    assert found.gain.value == pytest.approx(0.025500081314034806, abs=1e-9)


def test_one_size_has_nothing_to_control() -> None:
    case = analysed(CaseTable(outcomes(), {n: m for n, m in SUBSETS.items() if len(m) == 2}, goals={"sys": GOALS}))
    control = case.correlation["sys"]["kill_share"].size_control
    assert {figure.reason for figure in control.__dict__.values()} == {"all subsets with a pair have size 2"}


def test_a_coverage_that_is_the_size_adds_nothing() -> None:
    subsets = {f"s{n}": TASKS[: 1 + n % 5] for n in range(10)}
    coverage = {"sys": {name: len(members) / 10 for name, members in subsets.items()}}
    control = analysed(CaseTable(outcomes(), subsets, coverage)).correlation["sys"]["mean_drop"].size_control
    assert control.pearson.reason == "the size of the subsets determines their coverage or their mutation score"
    assert control.r2_log_size.value is not None, "log(size) alone still has its share"


@given(st.integers(0, 2**32))
def test_r2_is_that_of_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 9, 20).astype(float)
    coverage, score = rng.random(20) + size / 9, rng.random(20) + size / 5
    if size.min() == size.max():
        return
    found = size_model(coverage, score, size)
    assert found is not None
    design = np.stack([np.ones(20), np.log(size), coverage], axis=1)
    solution, residual, *_ = np.linalg.lstsq(design, score, rcond=None)
    assert found.r2_with_coverage == pytest.approx(1 - residual[0] / ((score - score.mean()) ** 2).sum(), abs=1e-9)
    assert found.slope == pytest.approx(solution[2], abs=1e-9)
    assert found.r2_log_size == pytest.approx(pearson(score, np.log(size)) ** 2)
    assert found.gain >= 0
    assert found.adjusted == pytest.approx(1 - (1 - found.r2_with_coverage) * 19 / 17, abs=1e-12)


def test_determined_sides_have_no_partial() -> None:
    assert partial_coefficient(0.5, 1.0, 0.5) is None
    assert partial_coefficient(0.5, 0.0, 0.0) == 0.5


# ---------------------------------------------------------------- balance


def test_one_mutant_makes_an_outcome_of_0_and_1() -> None:
    base = {task: [1] for task in TASKS}
    mutant = {task: [0 if task in ("t0", "t3") else 1] for task in TASKS}
    case = analysed(CaseTable({"baseline": base, "m": mutant}, SUBSETS, goals={"sys": GOALS}))
    balance = case.correlation["sys"]["kill_share"].overall.balance
    killed = [s.kill_share.value for s in case.subsets.values()]
    assert set(killed) == {0.0, 1.0}
    mean = sum(value or 0 for value in killed) / len(killed)
    assert balance.mean == pytest.approx(mean)
    assert balance.attainable.value == pytest.approx(attainable_r(mean))
    assert case.correlation["sys"]["kill_share"].overall.pearson.value is not None
    assert case.reliability["kill_share"].overall.reason == "fewer than 2 valid mutants make no halves"


def test_lopsided_scores_are_marked() -> None:
    base = {task: [1] for task in TASKS}
    mutants = {f"m{n}": {task: [int(n > 0 or task != "t0")] for task in TASKS} for n in range(20)}
    found = analysed(CaseTable({"baseline": base, **mutants}, SUBSETS, goals={"sys": GOALS})).correlation["sys"]
    assert found["kill_share"].overall.balance.lopsided
    assert not found["mean_drop"].overall.balance.lopsided, "a mean drop has no side"
    assert found["kill_share"].overall.balance.attainable.reason == "the outcome is not only 0 and 1"


def test_without_a_pair_no_side_is_favoured() -> None:
    found = balance(np.array([]), is_share=True)
    assert (found.mean, found.lopsided, found.attainable.reason) == (None, False, "there is no pair")


def test_even_shares_of_more_than_two_values_are_neither_lopsided_nor_binary() -> None:
    found = balance(np.array([0.0, 0.5, 1.0]), is_share=True)
    assert (found.mean, found.lopsided) == (0.5, False)
    assert found.attainable.reason == "the outcome is not only 0 and 1"
    assert balance(np.array([1.0, 1.0]), is_share=True).attainable.reason == "the outcome is constant"


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5])
def test_a_constant_outcome_attains_nothing(share: float) -> None:
    with pytest.raises(ValueError, match="constant"):
        attainable_r(share)


def test_attainable_is_symmetric_and_largest_in_the_middle() -> None:
    assert attainable_r(0.1) == pytest.approx(attainable_r(0.9)) == pytest.approx(0.585, abs=0.001)
    assert attainable_r(0.5) == pytest.approx(math.sqrt(2 / math.pi))


# ---------------------------------------------------------------- reliability


def test_halves_that_agree_are_reliable() -> None:
    base = {task: [1] for task in TASKS}
    mutants = {f"m{n}": {task: [int(task not in ("t0", "t1", "t4"))] for task in TASKS} for n in range(6)}
    found = analysed(CaseTable({"baseline": base, **mutants}, SUBSETS)).reliability["kill_share"].overall
    assert found.half == pytest.approx(1)
    assert found.value == pytest.approx(1)
    assert found.ceiling == pytest.approx(1)
    assert (found.splits, found.undefined) == (200, 0)


def test_halves_that_disagree_have_no_reliability() -> None:
    base = {task: [1] for task in TASKS}
    mutants = {
        f"m{n}": {task: [int(task != f"t{n}")] for task in TASKS} for n in range(6)
    }  # each killed by a task of its own
    subsets = {f"s{n}": [f"t{n}", f"t{(n + 2) % 6}", f"t{(n + 3) % 6}"] for n in range(6)}
    found = analysed(CaseTable({"baseline": base, **mutants}, subsets)).reliability
    share = found["kill_share"].overall
    assert share.half is not None
    assert share.half < 0
    assert share.reason == f"the halves of the mutants do not agree: their mean correlation is {share.half:.2g}"
    assert share.ceiling is None


def test_alike_subsets_have_no_reliability() -> None:
    base = {task: [1] for task in TASKS}
    mutants = {f"m{n}": {task: [0] for task in TASKS} for n in range(4)}
    found = analysed(CaseTable({"baseline": base, **mutants}, SUBSETS)).reliability["kill_share"].overall
    assert found.reason == "200 of 200 splits of the mutants give halves without a correlation"


def test_without_subsets_there_is_none() -> None:
    case = analysed(CaseTable(outcomes()))
    assert case.reliability == {}
    assert case.comparisons == ()
    assert case.choice == {}


@pytest.mark.parametrize("half", [0.0, -0.5, 1.5])
def test_stepping_up_needs_agreement(half: float) -> None:
    with pytest.raises(ValueError, match="no reliability"):
        stepped_up(half)


# ---------------------------------------------------------------- choices


def test_the_choice_by_coverage_is_measured_by_its_regret() -> None:
    base = {task: [1] for task in TASKS}
    mutants = {f"m{n}": {task: [int(task != f"t{n}")] for task in TASKS} for n in range(2)}
    subsets = {"a": ["t0", "t1"], "b": ["t0", "t2"], "c": ["t2", "t3"], "d": ["t3", "t4"]}
    coverage: dict[str, dict[str, float | str | None]] = {"sys": {"a": 0.5, "b": 0.7, "c": 0.7, "d": "no trace"}}
    found = analysed(CaseTable({"baseline": base, **mutants}, subsets, coverage)).choice["sys"]["kill_share"]["2"]
    assert found.subsets == ("b", "c")
    assert found.among == 3
    assert found.chosen == pytest.approx(0.25)
    assert found.best == 1.0
    assert found.value == pytest.approx(0.75)
    assert found.random == pytest.approx(0.5)
    assert found.random_regret == pytest.approx(0.5)


def test_a_single_subset_leaves_no_choice() -> None:
    found = analysed(CaseTable(outcomes(), {"s": ["t0"]}, {"sys": {"s": 0.5}})).choice["sys"]["mean_drop"]["1"]
    assert found.reason == "fewer than 2 subsets of this size have both values"


def test_a_choice_outside_this_part_is_not_made() -> None:
    variants = outcomes()
    variants["m0"]["t0"] = [OUTSIDE] * 3
    found = analysed(CaseTable(variants, SUBSETS, goals={"sys": GOALS}), part="x").choice["sys"]["kill_share"]
    assert any(figure.outside for figure in found.values())


def test_greedy_order_and_only_killers() -> None:
    base = {"a": [1], "b": [1], "c": [1], "idle": [1]}
    mutants = {
        "m1": {**base, "a": [0], "b": [0]},
        "m2": {**base, "a": [0]},
        "m3": {**base, "b": [0], "c": [0]},
        "m4": {**base, "c": [0]},
        "survivor": base,
    }
    case = analysed(CaseTable({"baseline": base, **mutants}))
    assert [(step.task, step.killed, step.mutants, step.kill_share) for step in case.greedy] == [
        ("a", 2, 5, 0.4),
        ("c", 4, 5, 0.8),
    ]
    assert {task: found.only_killer_of for task, found in case.tasks.items() if found.only_killer_of} == {
        "a": ("m2",),
        "c": ("m4",),
    }


def test_greedy_order_ends_at_the_score_of_the_pool() -> None:
    case = analysed(big_table())
    last = case.greedy[-1]
    assert last.kill_share == case.pool.kill_share.value
    assert (last.killed, last.mutants) == (case.pool.kill_share.killed, case.pool.kill_share.mutants)
    gains = [
        step.killed - before for step, before in zip(case.greedy, [0, *(s.killed for s in case.greedy)], strict=False)
    ]
    assert gains == sorted(gains, reverse=True)


# ---------------------------------------------------------------- several cases


def many(number: int) -> dict[str, CaseTable]:
    return {f"case-{seed}": big_table(seed, tasks=9, subsets=12) for seed in range(number)}


def test_few_cases_have_a_mean_and_no_interval() -> None:
    summary = summarize(build(many(3), permutation=49, bootstrap=50))
    figure = summary.over_cases["one"]["kill_share"].spearman
    values = [case.correlation["one"]["kill_share"].overall.spearman.value for case in summary.cases.values()]
    assert figure.value == pytest.approx(np.mean([value for value in values if value is not None]))
    assert (figure.defined, figure.cases) == (3, 3)
    assert figure.interval_reason == "3 cases with this coefficient: an interval needs 10; see each case"
    assert summarize(build(many(1), permutation=9, bootstrap=9)).over_cases == {}


def test_ten_cases_have_an_interval() -> None:
    figure = summarize(build(many(10), permutation=19, bootstrap=100)).over_cases["two"]["mean_drop"].pearson
    assert figure.interval is not None
    assert figure.value is not None
    assert figure.interval[0] < figure.value < figure.interval[1]
    assert figure.interval_reason is None


def test_undefined_cases_are_counted() -> None:
    tables = many(2)
    steady = {task: [1] * 4 for task in tables["case-0"].outcomes["baseline"]}
    tables["none"] = replace(tables["case-0"], outcomes={"baseline": steady, "m": steady})
    figure = summarize(build(tables, permutation=9, bootstrap=9)).over_cases["one"]["kill_share"].kendall
    assert (figure.defined, figure.cases) == (2, 3)
    alone = dict.fromkeys(("x", "y"), tables["none"])
    nothing = summarize(build(alone, permutation=9, bootstrap=9)).over_cases["one"]["kill_share"].kendall
    assert nothing.reason == "none of 2 cases has this coefficient"


def test_a_case_outside_this_part_takes_the_mean_with_it() -> None:
    """The mean of the others would be that of other cases than the whole run's."""
    tables = many(2)
    variants = {name: dict(rows) for name, rows in tables["case-1"].outcomes.items()}
    variants["m0"] = {task: [OUTSIDE] * len(row) for task, row in variants["m0"].items()}
    tables["case-1"] = replace(tables["case-1"], outcomes=variants)
    figure = summarize(build(tables, permutation=9, bootstrap=9, part="x")).over_cases["one"]["kill_share"].pearson
    assert (figure.value, figure.outside) == (None, True)
    assert (figure.defined, figure.cases) == (1, 2)
    assert "outside this part" in (figure.reason or "")


def test_families_are_all_tests_of_the_run() -> None:
    summary = summarize(build(many(2), permutation=199, bootstrap=20))
    for family in ("overall", "by size"):
        figures = []
        for case in summary.cases.values():
            for by_score in case.correlation.values():
                found = by_score["kill_share"]
                strata = [found.overall] if family == "overall" else list(found.by_size.values())
                figures += [correlation.spearman.p for correlation in strata]
        known = [(figure.value, figure.holm) for figure in figures if figure.value is not None]
        assert len(known) == (4 if family == "overall" else 8)
        least = min(known)
        assert least[1] == pytest.approx(min(1, len(known) * (least[0] or 0)))
        assert all(p is not None and holm is not None and p <= holm <= 1 for p, holm in known)
    comparisons = [case.comparisons[0].overall.kendall for case in summary.cases.values()]
    least_p = min(figure.p.value or 1 for figure in comparisons)
    assert min(figure.holm or 1 for figure in comparisons) == pytest.approx(min(1, 2 * least_p))
    assert adjusted(summary.cases) == dict(summary.cases), "adjusting again changes nothing"


def test_progress_names_each_case() -> None:
    told: list[str] = []
    summarize(build(many(2), permutation=9, bootstrap=9), told.append)
    assert told == ["analysing case 1 of 2: case-0", "analysing case 2 of 2: case-1"]
