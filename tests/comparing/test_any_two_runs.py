"""Whatever two runs hold, their comparison is made, agrees with itself, and can be shown."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.analysis.comparing import compare_runs, compared
from pytest_metricbench.analysis.comparing_gates import is_significant
from pytest_metricbench.analysis.comparing_terms import require_coherent
from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.analysis.summary_json import summary_from_json, summary_to_json
from pytest_metricbench.definition.experiment import KillRule
from pytest_metricbench.reporting.comparison_block import comparison_block
from pytest_metricbench.reporting.markdown import markdown_text
from tests.analysis.results_builder import MISSING, NOT_NEEDED, NOT_REACHED, OUTSIDE, TIMED_OUT, UNMEASURED, CaseTable
from tests.comparing.comparing_lab import resolved, summary_of

TASKS, MUTANTS, SUBSETS = ("a", "b", "c", "d"), ("m", "n", "o"), ("s", "t", "u", "v")
USUAL = st.sampled_from([1, 0, True, False, 0.5, None])
ODD = st.sampled_from([UNMEASURED, MISSING, OUTSIDE, TIMED_OUT, {"reward": float("nan")}, {"other": 1}])
RULES = st.sampled_from([KillRule(), KillRule("fisher", 0.3), KillRule("fisher", None, 0.4)])
GATES = [
    *("no new survivors", "no significant new survivors", "pass@1 drop <= 0", "significant pass@1 drop < 0.1"),
    *("mutation_score drop <= 0", "significant mean_drop drop >= 0", "coverage drop <= 0", "kendall drop <= 0"),
]


@st.composite
def case_tables(draw: Any) -> CaseTable:
    tasks = draw(st.lists(st.sampled_from(TASKS), min_size=1, unique=True))
    mutants = draw(st.lists(st.sampled_from(MUTANTS), unique=True))
    odd = st.one_of(USUAL, USUAL, USUAL, ODD)
    of_mutants = st.one_of(odd, odd, odd, st.sampled_from([NOT_REACHED, NOT_NEEDED])) if draw(st.booleans()) else odd
    numbers = {task: draw(st.integers(1, 4)) for task in tasks}

    def variant(values: Any) -> dict[str, list[Any]]:
        return {task: draw(st.lists(values, min_size=n, max_size=n)) for task, n in numbers.items()}

    subsets = {
        name: draw(st.lists(st.sampled_from(tasks), min_size=1, unique=True))
        for name in draw(st.lists(st.sampled_from(SUBSETS), unique=True))
    }
    system = draw(st.sampled_from(["x", "y"]))
    value = st.one_of(st.floats(0, 1), st.just("none"), st.none())
    coverage = {system: {name: draw(value) for name in (*subsets, "pool")}}
    return CaseTable(
        {"baseline": variant(odd), **{mutant: variant(of_mutants) for mutant in mutants}},
        subsets,
        coverage,
        controls=[mutant for mutant in mutants if draw(st.integers(0, 5)) == 0],
        equivalent={mutant: "same" for mutant in mutants if draw(st.integers(0, 5)) == 0},
    )


def summaries(draw: Any, rule: KillRule, cases: list[str]) -> Summary:
    tables = {name: draw(case_tables()) for name in cases}
    run = draw(st.sampled_from(["one", "two", None]))
    return summary_of(tables, run=run, rule=rule, ks=[1], bootstrap=30, permutation=19, part="a part")


@given(st.data(), RULES)
@settings(max_examples=60)
def test_any_two_runs(data: st.DataObject, rule: KillRule) -> None:
    one = summaries(data.draw, rule, ["c", "d"])
    other = summaries(data.draw, rule, ["c"] if data.draw(st.booleans()) else ["c", "e"])
    require_coherent(one)
    require_coherent(other)
    later = compared(other, one, "before", [resolved(text) for text in GATES])
    text = summary_to_json(later)
    assert summary_to_json(summary_from_json(text)) == text
    assert [gate.text for gate in later.gates] == GATES
    assert markdown_text(later, limit=20_000)
    assert all(len(line.text) <= 60 for line in comparison_block(later, 60))
    there, back = (compare_runs(*pair, "x").cases["c"] for pair in ((one, other), (other, one)))
    assert {change.mutant for change in there.new_survivors} == {change.mutant for change in back.newly_killed}
    for name in ("kill_share", "mean_drop"):
        forth, reverse = getattr(there, name), getattr(back, name)
        assert (forth.value is None) == (reverse.value is None)
        if forth.value is not None:
            assert forth.value == -reverse.value
            assert forth.interval is None or forth.interval[0] <= forth.value <= forth.interval[1]
    assert (there.added, there.removed) == (back.removed, back.added)
    assert there.attempts.same == back.attempts.same
    for change in (*there.new_survivors, *there.newly_killed):
        assert change.tasks
        assert set(change.gone) <= set(change.tasks)
        assert is_significant(change) in (True, False)


@given(st.data(), RULES)
@settings(max_examples=30)
def test_a_run_against_itself_shows_no_change(data: st.DataObject, rule: KillRule) -> None:
    one = summaries(data.draw, rule, ["c", "d"])
    found = compare_runs(one, one, "x").cases["c"]
    assert (found.new_survivors, found.newly_killed, found.other_groups, found.verdicts) == ((), (), (), ())
    figures = [found.kill_share, found.mean_drop, *found.coverage.values()]
    figures += [mean for by_k in found.pass_at_k.values() for mean in by_k.values()]
    assert {figure.value for figure in figures} <= {0, None}
    assert not any((*found.added.tasks, *found.removed.tasks, *found.added.mutants, *found.removed.mutants))
