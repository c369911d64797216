"""Every case of the reference file that the figures of this package touch, at its tolerance."""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pytest_metricbench.analysis.correlation import coefficients, kendall, levels, pearson, spearman, why_undefined
from pytest_metricbench.analysis.detection import fisher_p
from pytest_metricbench.analysis.estimates import (
    bayes_at_n,
    beta_interval,
    clopper_pearson,
    clustered_error,
    detection_probability,
    paired_difference,
)
from pytest_metricbench.analysis.independent_pairs import (
    bca_interval,
    fisher_z_interval,
    jackknife_pairs,
    naive_p,
    percentile_interval,
    redrawn_pairs,
)
from pytest_metricbench.analysis.pass_at_k import mean_over_tasks, pass_at_k, pass_hat_k
from pytest_metricbench.analysis.proportions import wilson
from pytest_metricbench.analysis.reliability import stepped_up
from pytest_metricbench.analysis.size_control import attainable_r, partial_coefficient, size_model
from pytest_metricbench.analysis.strata import Side, coefficients_many
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.task_labels import Tail, tail
from pytest_metricbench.definition.experiment import KillRule, MutationScore
from tests.analysis.reference_cases import CASES
from tests.analysis.results_builder import CaseTable, build


def of_area(*areas: str) -> pytest.MarkDecorator:
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
    jeffreys = beta_interval(given["successes"], given["n"], 0.5, given["confidence"])
    assert list(jeffreys) == [close(case, bound) for bound in case["expected"]["jeffreys"]]
    exact = clopper_pearson(given["successes"], given["n"], given["confidence"])
    assert list(exact) == [close(case, bound) for bound in case["expected"]["clopper_pearson"]]


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
    scores: dict[str, MutationScore] = {"mean_difference": "mean_drop", "kill_share": "kill_share"}
    for rule, score in scores.items():
        wanted, got = expected["by_rule"][rule], found.correlation["goals"][score].overall
        assert got.pairs == wanted["n_pairs"]
        for name, figure in (("pearson", got.pearson), ("spearman", got.spearman), ("kendall_tau_b", got.kendall)):
            if wanted["available"]:
                assert figure.value == close(case, wanted[name])
            else:
                assert figure.value is None
                assert figure.reason
    check_largest_drops(case, subsets, covered)


def check_largest_drops(case: dict[str, Any], subsets: dict[str, list[str]], covered: dict[str, float]) -> None:
    """The largest clipped drop: a score that the product does not have, since an unchanged agent scores high in it."""
    given, expected = case["input"], case["expected"]

    def rate(row: list[float | None]) -> Fraction:
        return Fraction(sum(value == 1 for value in row), len(row))

    scores = []
    for tasks in subsets.values():
        drops = [
            max(max(Fraction(0), rate(given["baseline"][t]) - rate(mutant[t])) for t in tasks)
            for mutant in given["mutants"].values()
        ]
        scores.append(float(sum(drops) / len(drops)))
    assert scores == [close(case, value) for value in expected["mutant_max_drop"]]
    wanted = expected["by_rule"]["max_drop"]
    x, y = np.array(list(covered.values())), np.array([round(score, 12) for score in scores])
    check_coefficients(case, {name: wanted.get(name) for name in ("pearson", "spearman", "kendall_tau_b")}, x, y)


# ---------------------------------------------------------------- correlation, size, permutation


@of_area("naive p-values")
def test_naive_p(case: dict[str, Any]) -> None:
    found = naive_p(*pairs(case["input"]))
    names = {"pearson": "pearson_p", "spearman": "spearman_t_p", "kendall": "kendall_auto_p"}
    for name, wanted in (*names.items(), ("kendall_asymptotic", "kendall_asymptotic_p")):
        assert getattr(found, name) == pytest.approx(case["expected"][wanted], rel=case["rel_tol"], abs=1e-14)


@of_area("partial correlation")
def test_partial_correlation(case: dict[str, Any]) -> None:
    data = case["input"]["data"]
    x, y, z = (np.array(data[name], dtype=np.float64) for name in ("coverage", "mutant", "size"))
    for name, method in (("pearson", pearson), ("spearman", spearman), ("kendall", kendall)):
        found = partial_coefficient(method(x, y), method(x, z), method(y, z))
        expected = case["expected"][name]
        assert found is None if expected is None else found == close(case, expected)
    subsets = {f"s{row}": [f"t{number}" for number in range(int(size))] for row, size in enumerate(z)}
    coverage = {"sys": dict(zip(subsets, data["coverage"], strict=True))}
    tasks = {f"t{number}": [1] for number in range(8)}
    summary = summarize(build(CaseTable({"baseline": tasks, "m": tasks}, subsets, coverage)))
    control = summary.cases["c"].correlation["sys"]["kill_share"].size_control
    assert control.pearson.reason, "no kills: nothing to correlate"


@of_area("incremental R2 over log(size)")
def test_gain_over_size(case: dict[str, Any]) -> None:
    data = case["input"]["data"]
    found = size_model(*(np.array(data[name], dtype=np.float64) for name in ("coverage", "mutant", "size")))
    assert found is not None
    expected = case["expected"]
    assert found.r2_log_size == close(case, expected["r2_log_size"])
    assert found.r2_with_coverage == close(case, expected["r2_log_size_and_coverage"])
    assert found.gain == close(case, expected["delta_r2"])
    assert found.adjusted == close(case, expected["adj_r2_full"])
    assert found.slope == close(case, expected["coverage_slope"])


@of_area("permutation p (exact)")
def test_tails_over_every_permutation(case: dict[str, Any]) -> None:
    x, y = pairs(case["input"])
    orders = np.array(list(itertools.permutations(range(len(x))))).T
    null = coefficients_many(Side(x[orders], levels(x)[orders]), Side(y[:, None], levels(y)[:, None]))
    observed = coefficients(x, y)
    for method, expected in case["expected"].items():
        assert len(null[method]) == expected["permutations"]
        value = getattr(observed, method)
        assert value == close(case, expected["statistic"])
        found = tail(value, null[method], exact=True)
        assert isinstance(found, Tail)
        assert found.greater == close(case, expected["greater"])
        assert found.less == close(case, expected["less"])
        far = np.mean(np.abs(null[method]) >= abs(value) - 1e-12)
        assert far == close(case, expected["two_sided_abs"])


@of_area("permutation p (Monte Carlo rule)")
def test_a_p_is_never_0(case: dict[str, Any]) -> None:
    given = case["input"]
    null = np.linspace(-0.5, 0.5, given["resamples"])
    assert np.count_nonzero(null >= 0.9) == given["count_at_least_as_extreme"]
    found = tail(0.9, null, exact=False)
    assert isinstance(found, Tail)
    assert found.greater == close(case, case["expected"]["p"])


@of_area("task-label permutation (exact)")
def test_task_labels(case: dict[str, Any]) -> None:
    """Through the summary: goals and kills as they stand there, one attempt a cell."""
    given, expected = case["input"], case["expected"]
    tasks = [f"t{number}" for number in range(len(given["kills_by_task"]))]
    kills = np.array(given["kills_by_task"])
    mutants = {
        f"m{number}": {task: [1 - kill] for task, kill in zip(tasks, column.tolist(), strict=True)}
        for number, column in enumerate(kills.T)
    }
    goals = {
        task: [f"g{number}" for number, has in enumerate(row) if has]
        for task, row in zip(tasks, given["coverage_goals_by_task"], strict=True)
    }
    subsets = {f"s{number}": [tasks[index] for index in members] for number, members in enumerate(given["subsets"])}
    table = CaseTable({"baseline": {t: [1] for t in tasks}, **mutants}, subsets, goals={"sys": goals})
    found = summarize(build(table)).cases["c"]
    assert [s.coverage["sys"].value for s in found.subsets.values()] == expected["coverage_scores"]
    assert [s.kill_share.value for s in found.subsets.values()] == expected["mutant_scores"]
    overall = found.correlation["sys"]["kill_share"].overall
    for method, wanted in (("spearman", expected["spearman"]), ("kendall", expected["kendall"])):
        figure = getattr(overall, method)
        assert figure.value == close(case, wanted["statistic"])
        assert figure.p.greater == close(case, wanted["greater"])
        assert figure.p.relabellings == expected["permutations"]
        assert figure.p.undefined == expected["undefined_permutations"]
        assert figure.p.exact
    assert overall.spearman.p.less == close(case, expected["spearman"]["less"])
    assert overall.spearman.random.value == close(case, expected["spearman"]["null_mean"])


# ---------------------------------------------------------------- redraws of pairs


@of_area("bootstrap (all n^n resamples)")
def test_every_redraw_of_the_pairs(case: dict[str, Any]) -> None:
    x, y = pairs(case["input"])
    drawn = np.array(list(itertools.product(range(len(x)), repeat=len(x)))).T
    found = coefficients_many(Side(x[drawn], levels(x)[drawn]), Side(y[drawn], levels(y)[drawn]))["pearson"]
    kept, expected = found[~np.isnan(found)], case["expected"]
    assert len(kept) == expected["kept"]
    assert len(found) - len(kept) == expected["dropped"]
    assert kept.mean() == close(case, expected["mean"])
    assert kept.std() == close(case, expected["sd_ddof0"])
    assert list(percentile_interval(found)) == [close(case, bound) for bound in expected["percentile95"]]


@of_area("bootstrap (seeded)")
def test_seeded_redraws_of_the_pairs(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    x, y = pairs(given)
    observed = spearman(x, y)
    assert observed == close(case, expected["estimate"])
    found = redrawn_pairs(x, y, given["B"], given["seed"])["spearman"]
    assert list(percentile_interval(found)) == [close(case, bound) for bound in expected["percentile95"]]
    assert found.std(ddof=1) == close(case, expected["se_ddof1"])
    bca = bca_interval(observed, found, jackknife_pairs(x, y, "spearman"))
    assert bca is not None
    assert bca.bias == close(case, expected["bca_z0"])
    assert bca.acceleration == close(case, expected["bca_acceleration"])
    assert list(bca.interval) == [close(case, bound) for bound in expected["bca95"]]
    assert list(bca.interval) == [close(case, bound) for bound in expected["scipy_bca95_same_seed"]]


@of_area("Fisher z interval")
def test_fisher_z(case: dict[str, Any]) -> None:
    found = fisher_z_interval(case["input"]["r"], case["input"]["n"])
    assert list(found) == [close(case, bound) for bound in case["expected"]["ci95"]]


# ---------------------------------------------------------------- versions, mutants, halves


@of_area("clustered SE")
def test_clustered_error(case: dict[str, Any]) -> None:
    found, expected = clustered_error(case["input"]["scores"], case["input"]["cluster"]), case["expected"]
    assert found.mean == close(case, expected["mean"])
    assert found.naive == close(case, expected["naive_se"])
    assert found.clustered == close(case, expected["clustered_se_paper"])
    assert found.finite == close(case, expected["clustered_se_finite_G"])


@of_area("paired difference SE")
def test_paired_difference(case: dict[str, Any]) -> None:
    found, expected = paired_difference(case["input"]["a"], case["input"]["b"]), case["expected"]
    assert found.mean == close(case, expected["mean_difference"])
    assert found.error == close(case, expected["paired_se"])
    assert found.unpaired == close(case, expected["unpaired_se"])


@of_area("Bayes@N")
def test_bayes_at_n(case: dict[str, Any]) -> None:
    mean, sigma = bayes_at_n([(len(row), sum(row)) for row in case["input"]["outcomes"]])
    assert mean == close(case, case["expected"]["mu"])
    assert sigma == close(case, case["expected"]["sigma"])


@of_area("Beta(1,1) credible interval")
def test_beta_interval(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    found = beta_interval(given["successes"], given["n"], 1.0, given["confidence"])
    assert list(found) == [close(case, expected["lower"]), close(case, expected["upper"])]


@of_area("detection probability of a subset")
def test_detection_probability(case: dict[str, Any]) -> None:
    found = detection_probability(case["input"]["per_task_detection_probability"])
    assert found == close(case, case["expected"]["any_detects"])


@of_area("max point-biserial r")
def test_attainable_r(case: dict[str, Any]) -> None:
    assert attainable_r(case["input"]["p"]) == close(case, case["expected"]["r_max"])


@of_area("split-half reliability")
def test_halves(case: dict[str, Any]) -> None:
    half = pearson(np.array(case["input"]["half_a"]), np.array(case["input"]["half_b"]))
    assert half == close(case, case["expected"]["r_half"])
    assert stepped_up(half) == close(case, case["expected"]["spearman_brown"])


@of_area("dynamic subsumption")
def test_subsumption(case: dict[str, Any]) -> None:
    """Through the summary: a subset of the first task alone."""
    rows, expected = case["input"]["kill_rows_by_mutant"], case["expected"]
    tasks = [f"t{number}" for number in range(case["input"]["tests"])]
    mutants = {m: {t: [1 - kill] for t, kill in zip(tasks, row, strict=True)} for m, row in rows.items()}
    table = CaseTable({"baseline": {t: [1] for t in tasks}, **mutants}, {"first": [tasks[0]]})
    found = summarize(build(table)).cases["c"]
    assert list(found.mutants.undetected) == expected["unkilled"]
    assert [list(group) for group in found.redundancy.identical] == expected["duplicates"]
    assert list(found.redundancy.minimal) == expected["minimal"]
    share, scores = found.subsets["first"].kill_share, expected["scores_for_subset_test0"]
    assert share.value == close(case, scores["raw_over_all"])
    assert share.over_detected.value == close(case, scores["raw_over_killable"])
    assert share.over_minimal.value == close(case, scores["minimal"])
