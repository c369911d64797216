"""Inputs that statistics stumble over: each ends in figures with values, or with the reason why there is none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.analysis.figures import Coefficient, Correlation
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import CaseSummary
from pytest_metricbench.analysis.summary_json import summary_from_json, summary_to_json
from pytest_metricbench.definition.experiment import KillRule, MutationScore
from pytest_metricbench.reporting.terminal import section_lines
from tests.analysis.goals_lab import GOALS, SUBSETS, TASKS, outcomes
from tests.analysis.results_builder import UNMEASURED, CaseTable, build

PAIRS = {name: members for name, members in SUBSETS.items() if len(members) == 2}


def analysed(table: CaseTable, **options: Any) -> CaseSummary:
    summary = summarize(build(table, **options))
    assert summary_from_json(summary_to_json(summary)) == summary
    assert all(len(line.text) <= 80 for line in section_lines(summary))
    return summary.cases["c"]


def with_goals(
    subsets: Mapping[str, Sequence[str]] = SUBSETS, variants: Mapping[str, Mapping[str, Sequence[Any]]] | None = None
) -> CaseTable:
    return CaseTable(variants or outcomes(), subsets, goals={"sys": GOALS})


def overall(case: CaseSummary, score: MutationScore = "kill_share") -> Correlation:
    return case.correlation["sys"][score].overall


def check_unavailable(found: Correlation, words: str) -> None:
    for figure in (found.pearson, found.spearman, found.kendall):
        assert figure.value is None
        assert words in (figure.reason or "")
        assert figure.p.reason == figure.random.reason == figure.reason
        assert figure.interval is None


@pytest.mark.parametrize("number", [0, 1, 2])
def test_fewer_than_3_subsets(number: int) -> None:
    case = analysed(with_goals(dict(list(SUBSETS.items())[:number])))
    check_unavailable(overall(case), "at least 3 are needed")
    assert case.correlation["sys"]["kill_share"].size_control.gain.reason == overall(case).kendall.reason


def test_one_size_only() -> None:
    case = analysed(with_goals(PAIRS))
    assert overall(case).pairs == len(PAIRS)
    assert case.correlation["sys"]["kill_share"].by_size["2"] == overall(case)
    assert overall(case).kendall.p.value is not None


def test_all_subsets_equal() -> None:
    case = analysed(with_goals({f"s{n}": ["t0", "t1"] for n in range(5)}))
    check_unavailable(overall(case), "the coverage is 0.5 in every pair")


def test_a_subset_that_is_the_pool() -> None:
    case = analysed(with_goals({**SUBSETS, "everything": TASKS}))
    assert overall(case).pairs == 7
    assert case.subsets["everything"].kill_share == case.pool.kill_share
    assert overall(case).kendall.p.value is not None
    check_unavailable(
        analysed(with_goals({f"s{n}": TASKS for n in range(4)})).correlation["sys"]["mean_drop"].overall, "in"
    )


def test_constant_coverage() -> None:
    same = {task: ["x"] for task in TASKS}
    check_unavailable(
        overall(analysed(CaseTable(outcomes(), SUBSETS, goals={"sys": same}))), "the coverage is 1 in every"
    )


def test_constant_scores() -> None:
    base = {task: [1] for task in TASKS}
    case = analysed(with_goals(variants={"baseline": base, "m": {task: [0] for task in TASKS}}))
    check_unavailable(overall(case), "the kill share is 1 in every pair")
    check_unavailable(overall(case, "mean_drop"), "the mean drop is 1 in every pair")
    assert case.choice["sys"]["kill_share"]["2"].value == 0


def test_nearly_constant_coverage() -> None:
    """0.3 and 0.1 + 0.2 differ in the last bit: they are one value, not a rank."""
    values = [0.3, 0.1 + 0.2] * 3
    table = CaseTable(outcomes(), SUBSETS, {"sys": dict(zip(SUBSETS, values, strict=True))})
    check_unavailable(overall(analysed(table)), "the coverage is 0.3 in every pair")
    mixed = CaseTable(outcomes(), SUBSETS, {"sys": dict(zip(SUBSETS, [*values[:5], 0.7], strict=True))})
    assert overall(analysed(mixed)).distinct_coverage == 2


def test_equal_drops_are_equal() -> None:
    """Drops of 1/3 and 2/3 that add up differently in floats: the mean drop of all subsets is one value."""
    base = {task: [1, 1, 1] for task in TASKS}
    mutants = {
        "a": {task: [0, 1, 1] for task in TASKS}, "b": {task: [0, 0, 1] for task in TASKS},
        "c": {task: [0, 1, 1] for task in TASKS},
    }  # fmt: skip
    check_unavailable(
        overall(analysed(with_goals(variants={"baseline": base, **mutants})), "mean_drop"), "0.444444444444"
    )


def test_coverage_missing_for_some_subsets() -> None:
    given = build(with_goals(), permutation=99, bootstrap=50)
    coverage = {key: record for key, record in given.coverage.items() if key[2] != "s2"}
    coverage["c", "sys", "s3"] = replace(coverage["c", "sys", "s3"], value=None, reason="no judge", goals=None)
    case = summarize(replace(given, coverage=coverage)).cases["c"]
    found = overall(case)
    assert found.pairs == 4
    assert found.dropped == {"no result of this coverage request arrived": ("s2",), "no judge": ("s3",)}
    assert found.kendall.p.value is not None
    assert found.kendall.p.exact


def test_one_attempt() -> None:
    variants = {name: {task: row[:1] for task, row in by_task.items()} for name, by_task in outcomes().items()}
    case = analysed(with_goals(variants=variants))
    assert case.against_itself.pool.false_kills.reason == "no task has two attempts of the baseline to compare"
    assert overall(case).kendall.p.value is not None
    assert case.redundancy.redraws == 0


def test_unequal_attempts() -> None:
    variants: dict[str, dict[str, list[Any]]] = {
        name: {
            task: [*row, *row][: 1 + (index * 2 + len(name)) % 5] for index, (task, row) in enumerate(by_task.items())
        }
        for name, by_task in outcomes().items()
    }
    sizes = {task: max(len(by_task[task]) for by_task in variants.values()) for task in TASKS}
    for by_task in variants.values():
        for task, row in by_task.items():
            row += [UNMEASURED] * (sizes[task] - len(row))
    case = analysed(with_goals(variants=variants))
    assert overall(case, "mean_drop").pairs == 6
    assert overall(case, "mean_drop").kendall.p.value is not None


def test_tasks_that_nobody_measured() -> None:
    variants: dict[str, dict[str, list[Any]]] = outcomes()
    for by_task in variants.values():
        by_task["t0"] = [UNMEASURED] * 3
    case = analysed(with_goals({**SUBSETS, "nothing": ["t0"]}, variants))
    assert list(overall(case).dropped) == ["no cell of a valid mutant is measured here"]
    assert overall(case).pairs == 6
    assert overall(case).kendall.value is not None


@pytest.mark.parametrize(
    ("mutants", "words"),
    [
        (lambda base: {"m": {task: [None] * 3 for task in base}}, "all mutants are invalid"),
        (lambda base: {}, "the case has no mutants"),
    ],
    ids=["all invalid", "none"],
)
def test_mutants_that_say_nothing(mutants: Callable[[Any], Any], words: str) -> None:
    base = {task: [1, 1, 1] for task in TASKS}
    case = analysed(with_goals(variants={"baseline": base, **mutants(base)}))
    assert overall(case).pairs == 0
    check_unavailable(overall(case), "there is no pair")
    assert next(iter(overall(case).dropped)).startswith(words)
    assert case.greedy == ()
    assert case.redundancy.minimal == ()
    assert (case.reliability["kill_share"].overall.reason or "").startswith(words)
    assert case.variants["baseline"].pass_at_k["reward"]["1"].value == 1


def test_one_mutant() -> None:
    variants = {name: by_task for name, by_task in outcomes().items() if name in ("baseline", "m0")}
    case = analysed(with_goals(variants=variants))
    assert case.redundancy.minimal == ("m0",)
    assert overall(case).distinct_scores <= 2
    assert overall(case).kendall.p.value is not None


def test_part_of_an_experiment_draws_nothing_of_what_is_outside() -> None:
    variants: dict[str, dict[str, list[Any]]] = outcomes()
    variants["m1"]["t1"] = ["outside"] * 3
    case = analysed(with_goals(variants=variants), part="-k 'not t1'")
    for figure in (overall(case).kendall, overall(case).kendall.p, overall(case).kendall.random):
        assert figure.outside
    assert case.correlation["sys"]["kill_share"].size_control.gain.outside
    assert case.reliability["kill_share"].overall.outside


entry = st.sampled_from([0, 1, 1, None, UNMEASURED, "missing", "outside"])


@given(st.data())
@settings(max_examples=60)
def test_anything_makes_a_summary(data: st.DataObject) -> None:
    """Any outcomes, goals, gaps and rules: figures have a value or a reason, and the text reads back."""
    tasks = [f"t{number}" for number in range(data.draw(st.integers(1, 9)))]
    attempts = {task: data.draw(st.integers(1, 4)) for task in tasks}
    likely = st.sampled_from([0, 1]) if data.draw(st.booleans()) else entry
    names = ["baseline", *(f"m{number}" for number in range(data.draw(st.integers(0, 4))))]
    variants = {v: {t: data.draw(st.lists(likely, min_size=n, max_size=n)) for t, n in attempts.items()} for v in names}
    sets = data.draw(st.lists(st.lists(st.sampled_from(tasks), min_size=1, unique=True), max_size=8))
    subsets = {f"s{number}": members for number, members in enumerate(sets)}
    goals = {
        system: {task: [*data.draw(st.lists(st.sampled_from("abcdef"), unique=True)), "z"] for task in tasks}
        for system in ("one", "two")
    }
    plain = {"plain": {name: data.draw(st.floats(0, 1)) for name in subsets if data.draw(st.booleans())}}
    table = CaseTable(variants, subsets, plain, goals, controls=names[4:])
    rule = data.draw(st.sampled_from([KillRule(), KillRule("fisher", 0.3), KillRule("fisher", None, 0.4)]))
    draws = data.draw(st.sampled_from([1, 2, 30]))
    given_results = build(table, rule=rule, permutation=draws, bootstrap=draws, part="x")
    gone = data.draw(st.sets(st.sampled_from(sorted(given_results.coverage)))) if given_results.coverage else set()
    coverage = {key: record for key, record in given_results.coverage.items() if key not in gone}
    summary = summarize(replace(given_results, coverage=coverage))
    assert summary_from_json(summary_to_json(summary)) == summary
    for by_score in summary.cases["c"].correlation.values():
        for found in by_score.values():
            for correlation in (found.overall, *found.by_size.values()):
                for figure in (correlation.pearson, correlation.spearman, correlation.kendall):
                    check_figure(figure)


def check_figure(figure: Coefficient) -> None:
    if figure.value is None:
        assert figure.p.value is None
        return
    assert -1 <= figure.value <= 1
    assert figure.p.value is None or 0 < figure.p.value <= 1
    assert (figure.interval is None) == (figure.interval_reason is not None)
    if figure.interval is not None:
        assert -1 <= figure.interval[0] <= round(figure.value, 12) <= figure.interval[1] <= 1
