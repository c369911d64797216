"""Every case of the reference file that the figures of this package touch, at its tolerance."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from results_builder import CaseTable, build

from pytest_metricbench.analysis.correlation import coefficients, why_undefined
from pytest_metricbench.analysis.detection import fisher_p
from pytest_metricbench.analysis.pass_at_k import mean_over_tasks, pass_at_k, pass_hat_k
from pytest_metricbench.analysis.proportions import wilson
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.definition.experiment import KillRule

CASES = json.loads(Path(__file__).with_name("statistics_cases.json").read_text())


def of_area(*areas: str) -> Any:
    chosen = [case for case in CASES if case["area"] in areas]
    assert chosen
    return pytest.mark.parametrize("case", chosen, ids=[case["id"] for case in chosen])


def close(case: dict[str, Any], value: float) -> Any:
    return pytest.approx(value, abs=case["abs_tol"], rel=0)


def test_every_kept_case_is_driven() -> None:
    driven = {area for mark in _marks() for area in mark}
    assert {case["area"] for case in CASES} == driven


def _marks() -> Iterator[set[str]]:
    for function in list(globals().values()):
        for mark in getattr(function, "pytestmark", []):
            yield {case["area"] for case in mark.args[1]}


@of_area("pass@k")
def test_pass_at_k(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]["pass_at_k"]
    value = pass_at_k(given["n"], given["c"], given["k"])
    if expected is None:
        assert value is None
    else:
        assert value is not None
        assert float(value) == close(case, expected)


@of_area("pass@k bias")
def test_pass_at_k_is_unbiased(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    value = pass_at_k(given["n"], given["c"], given["k"])
    assert value is not None
    assert float(value) == close(case, expected["unbiased"])
    assert abs(float(value) - expected["plug_in_must_not_equal"]) > 0.01


@of_area("pass@k dead/unmeasured")
def test_pass_at_k_with_dead_and_unmeasured(case: dict[str, Any]) -> None:
    """Through the summary: an attempt that is not in the reference's list is an unmeasured one here."""
    given = case["input"]
    most = max(len(row) for row in given["attempts"].values())
    rows = {task: [*row, *["unmeasured"] * (most - len(row))] for task, row in given["attempts"].items()}
    summary = summarize(build(CaseTable({"baseline": rows}), ks=[given["k"]]))
    figure = summary.cases["c"].variants["baseline"].pass_at_k["reward"][str(given["k"])]
    assert figure.value == close(case, case["expected"]["mean"])
    assert (figure.count, figure.nan_count) == (case["expected"]["count"], case["expected"]["nan_count"])
    tallies = [(len(row), sum(v == 1.0 for v in row)) for row in given["attempts"].values()]
    mean = mean_over_tasks(pass_at_k, tallies, given["k"])
    assert mean.value is not None
    assert float(mean.value) == figure.value


@of_area("pass^k")
def test_pass_hat_k(case: dict[str, Any]) -> None:
    given = case["input"]
    value = pass_hat_k(given["n"], given["c"], given["k"])
    assert value is not None
    assert float(value) == close(case, case["expected"]["pass_hat_k"])


def pairs(given: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    kept = [(x, y) for x, y in zip(given["x"], given["y"], strict=True) if x is not None and y is not None]
    x, y = np.array(kept, dtype=np.float64).T
    return x, y


def check_coefficients(case: dict[str, Any], expected: dict[str, Any], x: np.ndarray, y: np.ndarray) -> None:
    if expected["pearson"] is None:
        assert why_undefined(x, y)
        return
    found = coefficients(x, y)
    assert found.pearson == close(case, expected["pearson"])
    assert found.spearman == close(case, expected["spearman"])
    assert found.kendall == close(case, expected["kendall_tau_b"])


@of_area("correlation", "undefined correlation")
def test_correlation(case: dict[str, Any]) -> None:
    x, y = pairs(case["input"])
    assert len(x) == case["expected"].get("n", len(x))
    check_coefficients(case, case["expected"], x, y)


@of_area("per-size strata")
def test_correlation_by_size(case: dict[str, Any]) -> None:
    data = {name: np.array(values, dtype=np.float64) for name, values in case["input"]["data"].items()}
    check_coefficients(case, case["expected"]["pooled"], data["coverage"], data["mutant"])
    for size, expected in case["expected"]["per_size"].items():
        chosen = data["size"] == int(size)
        assert chosen.sum() == expected["n"]
        check_coefficients(case, expected, data["coverage"][chosen], data["mutant"][chosen])


@of_area("proportion interval")
def test_wilson(case: dict[str, Any]) -> None:
    given = case["input"]
    low, high = wilson(given["successes"], given["n"], given["confidence"])
    assert [low, high] == [close(case, bound) for bound in case["expected"]["wilson"]]


@of_area("detection test")
def test_fisher_and_drop(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    sides = (given["baseline_pass"], given["baseline_n"], given["mutant_pass"], given["mutant_n"])
    assert float(fisher_p(*sides)) == close(case, expected["fisher_one_sided_p"])
    base = [1] * sides[0] + [0] * (sides[1] - sides[0])
    mutant = [1] * sides[2] + [0] * (sides[3] - sides[2])
    summary = summarize(build(CaseTable({"baseline": {"t": base}, "m": {"t": mutant}})))
    assert summary.cases["c"].pool.mean_drop.value == close(case, expected["drop"])


@of_area("end to end")
def test_end_to_end(case: dict[str, Any]) -> None:
    """Mean difference and kill share by Fisher at alpha, and their correlations, through the summary."""
    given, expected = case["input"], case["expected"]
    subsets = {f"s{number}": tasks for number, tasks in enumerate(given["subsets"])}
    goals = given["coverage_goals_by_task"]
    universe = set().union(*goals.values())
    covered = {s: len(set().union(*(goals[task] for task in tasks))) / len(universe) for s, tasks in subsets.items()}
    assert list(covered.values()) == [close(case, value) for value in expected["coverage_scores"]]
    table = CaseTable({"baseline": given["baseline"], **given["mutants"]}, subsets, {"goals": {**covered, "pool": 1.0}})
    found = summarize(build(table, rule=KillRule("fisher", given["alpha"]))).cases["c"]
    drops = [found.subsets[s].mean_drop.value for s in subsets]
    assert drops == [close(case, value) for value in expected["mutant_mean_difference"]]
    assert [found.subsets[s].kill_share.value for s in subsets] == [
        close(case, value) for value in expected["mutant_hard_kill"]
    ]
    for rule, score in (("mean_difference", "mean_drop"), ("kill_share", "kill_share")):
        wanted, got = expected["by_rule"][rule], found.correlation["goals"][score].overall
        assert got.pairs == wanted["n_pairs"]
        for name, figure in (("pearson", got.pearson), ("spearman", got.spearman), ("kendall_tau_b", got.kendall)):
            if wanted["available"]:
                assert figure.value == close(case, wanted[name])
            else:
                assert figure.value is None
                assert figure.reason
