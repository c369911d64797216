"""Gates against an earlier run: how they are written, what they look at, and what noise excuses."""

import re
from typing import Any

import pytest

from pytest_metricbench.definition.experiment import Gate
from pytest_metricbench.definition.gates import CaseScope, GateError, Scope, check_gate
from tests.analysis.results_builder import OUTSIDE, UNMEASURED
from tests.comparing.comparing_lab import BASE, checked, summary_of, table, with_gates

DEAD = {**BASE, "c": [0] * 5}
SCOPE = Scope(
    cases={
        "refunds": CaseScope(frozenset({"baseline", "skips", "drop", "no"}), 2, True, 5),
        "plain": CaseScope(frozenset({"baseline"}), 0, False, 1),
    },
    systems=frozenset({"tools"}),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("baseline pass@1 drop <= 0.05", (None, "baseline", "pass@k", 1, "<=", 0.05, True, False)),
        ("pass^1 drop < .1", (None, None, "pass^k", 1, "<", 0.1, True, False)),
        ("refunds skips pass@3 drop>=-1", ("refunds", "skips", "pass@k", 3, ">=", -1.0, True, False)),
        ("drop pass@1 drop <= 0", ("refunds", "drop", "pass@k", 1, "<=", 0.0, True, False)),
        ("significant baseline pass@1 drop <= 0", (None, "baseline", "pass@k", 1, "<=", 0.0, True, True)),
        (
            "significant refunds mutation_score drop < 0.1",
            ("refunds", None, "mutation_score", None, "<", 0.1, True, True),
        ),
        ("refunds tools spearman drop <= 0.2", ("refunds", "tools", "spearman", None, "<=", 0.2, True, False)),
        ("tools coverage drop <= 0", (None, "tools", "coverage", None, "<=", 0.0, True, False)),
        ("refunds no new survivors", ("refunds", None, "new_survivors", None, "<=", 0.0, False, False)),
        ("  refunds  no significant\tnew survivors ", ("refunds", None, "new_survivors", None, "<=", 0.0, False, True)),
    ],
)
def test_how_they_are_written(text: str, expected: tuple[Any, ...]) -> None:
    gate = check_gate(text, SCOPE)
    assert gate == Gate(text, *expected)
    assert gate.compares


@pytest.mark.parametrize("text", ["pass@1 >= 0.5", "drop pass@1 >= 0.5", "no pass@1 > 0", "refunds mean_drop >= 0"])
def test_gates_of_one_run_are_as_they_were(text: str) -> None:
    assert not check_gate(text, SCOPE).compares


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("drop <= 0.05", "names no figure; write baseline pass@1 drop <= 0.05"),
        ("significant drop <= 0.05", "names no figure; write baseline pass@1 drop <= 0.05"),
        ("pass drop <= 0", "pass names no k; write pass@1"),
        ("baseline pass@1 drops <= 0", "'drops' is no figure; did you mean 'drop'? the figures are pass@k, pass^k,"),
        ("significant pass@1 >= 0.9", "only a drop can be significant; write significant pass@1 drop <= 0"),
        (
            "significant refunds mean_drop >= 0.9",
            "only a drop can be significant; write significant refunds mean_drop drop <= 0",
        ),
        (
            "significant pass@1 drop == 0",
            "a significant drop cannot be compared by ==; write <= and the drop that is allowed",
        ),
        ("significant pass@1 drop != 0", "a significant drop cannot be compared by !="),
        (
            "significant tools coverage drop <= 0",
            "the drop of coverage has no interval, so none can be significant; leave significant out",
        ),
        ("significant tools kendall drop <= 0", "the drop of kendall has no interval"),
        ("pass@1 drop <= 5%", "'5%' is no number; write 0.05"),
        ("baseline pass@1 drop", "'baseline pass@1 drop' compares nothing"),
        ("refunds x y pass@1 drop <= 0", "names 3 things before the figure"),
        ("refunds pass@6 drop <= 0", "no task of the case refunds gets 6 attempts"),
        ("no new survivors", "the case plain has no mutants that count, so it has no new_survivors; name a case"),
        ("plain no new survivors", "the case plain has no mutants that count"),
        ("refund no new survivors", "there is no case, variant or coverage system 'refund'; did you mean 'refunds'?"),
        (
            "skips no new survivors",
            "'skips' is a variant and has no new_survivors; new_survivors is a figure of a whole case; leave",
        ),
        (
            "new survivors",
            "write no new survivors or no significant new survivors, a case before it where only one is meant",
        ),
        ("no new survivor", "'no new survivor' is no gate; write no new survivors"),
        ("no survivors", "'no survivors' is no gate"),
        ("significant no new survivors", "'significant no new survivors' is no gate; write no new survivors or no"),
        ("new survivors <= 0", "'new survivors <= 0' is no gate; write no new survivors"),
        ("refunds skips no new survivors", "is no gate"),
    ],
)
def test_what_is_no_gate(text: str, said: str) -> None:
    with pytest.raises(GateError, match=re.escape(said)):
        check_gate(text, SCOPE)


def test_an_id_that_is_a_word_of_gates() -> None:
    scope = Scope({"significant": CaseScope(frozenset({"baseline"}), 1, True, 3)}, frozenset())
    assert check_gate("significant pass@1 >= 0.5", scope).case == "significant"
    with pytest.raises(
        GateError, match="'significant' is an id and a word of gates; give what is called so another id"
    ):
        check_gate("significant pass@1 drop <= 0", scope)


# ---------------------------------------------------------------- without an earlier run


@pytest.mark.parametrize("text", ["no new survivors", "baseline pass@1 drop <= 0.05", "c x kendall drop <= 0"])
def test_without_an_earlier_run_nothing_is_checked(text: str) -> None:
    from tests.comparing.comparing_lab import resolved

    (result,) = summary_of(table({"m": DEAD}), gates=[resolved(text)]).gates
    assert (result.value, result.holds) == (None, None)
    assert result.reason == "there is no earlier run to compare with; name one with --metricbench-compare"


# ---------------------------------------------------------------- survivors


def test_a_new_survivor_breaks_its_gate() -> None:
    result = checked("no new survivors", table({"m": DEAD, "n": DEAD}), table({"m": BASE, "n": DEAD}))
    assert (result.value, result.holds, result.reason) == (1, False, "1 new survivor: m")


def test_old_survivors_and_new_mutants_do_not() -> None:
    result = checked("no new survivors", table({"m": BASE, "n": DEAD}), table({"m": BASE, "n": DEAD, "new": BASE}))
    assert (result.value, result.holds, result.reason) == (0, True, None)


FEW = {task: row[:2] for task, row in BASE.items()}


def test_what_noise_can_explain_is_not_significant() -> None:
    """Two attempts against two: one exchange in six looks like this."""
    base = {**FEW, "b": [1, 1]}
    before, after = table({"m": {**base, "c": [0, 0]}}, base=base), table({"m": base}, base=base)
    assert checked("no new survivors", before, after).holds is False
    result = checked("no significant new survivors", before, after)
    assert (result.value, result.holds) == (0, True)
    assert result.reason == "m survives now, which noise of the attempts explains: not significant"
    sure = checked("no significant new survivors", table({"m": DEAD}), table({"m": BASE}))
    assert (sure.holds, sure.reason) == (False, "1 significant new survivor: m")


def test_a_killer_that_was_removed_is_no_noise() -> None:
    kept = {task: FEW[task] for task in "ab"}
    before, after = table({"m": {**FEW, "c": [0, 0]}}, base=FEW), table({"m": kept}, base=kept)
    assert checked("no significant new survivors", before, after).holds is False


def test_a_mutant_that_is_not_measured_now_may_survive() -> None:
    result = checked("no new survivors", table({"m": DEAD}), table({"m": {task: [UNMEASURED] * 5 for task in BASE}}))
    assert (result.value, result.holds) == (None, False)
    assert result.reason == "killed in the earlier run and not measured now: m"


@pytest.mark.parametrize(
    ("then", "now", "groups"),
    [
        (BASE, {**BASE, "c": [OUTSIDE] * 5}, ("undetected", "outside")),
        (BASE, {task: [UNMEASURED] * 5 for task in BASE}, ("undetected", "unmeasured")),
        (DEAD, {task: [None] * 5 for task in BASE}, ("detected", "invalid")),
        ({**BASE, "c": [OUTSIDE] * 5}, DEAD, ("outside", "detected")),
        ({task: [None] * 5 for task in BASE}, BASE, ("invalid", "undetected")),
    ],
)
def test_a_mutant_that_was_not_killed_or_counts_no_more_is_no_new_survivor(
    then: dict[str, list[Any]], now: dict[str, list[Any]], groups: tuple[str, str]
) -> None:
    summary = with_gates(["no new survivors"], table({"m": then, "n": DEAD}), table({"m": now, "n": DEAD}))
    assert summary.comparison is not None
    (change,) = summary.comparison.cases["c"].other_groups
    assert (change.then, change.now) == groups
    assert (summary.gates[0].value, summary.gates[0].holds, summary.gates[0].reason) == (0, True, None)


def test_a_part_leaves_the_gate_open() -> None:
    part = table({"m": {**BASE, "c": [OUTSIDE] * 5}})
    now = checked("no new survivors", table({"m": DEAD}), part)
    assert (now.holds, now.reason) == (None, "killed in the earlier run, and attempts are outside this part now: m")
    then = checked("no new survivors", part, table({"m": BASE}))
    assert (then.holds, then.reason) == (
        None,
        "attempts were outside the part of the earlier run, which may have killed: m",
    )
    worse = checked(
        "no new survivors", table({"m": DEAD, "n": DEAD}), table({"m": {**BASE, "c": [OUTSIDE] * 5}, "n": BASE})
    )
    assert worse.holds is False, "what is known to be broken is broken"


# ---------------------------------------------------------------- drops


def test_a_drop_is_the_earlier_figure_minus_this_one() -> None:
    after = table(base={**BASE, "a": [1, 1, 0, 0, 1]})
    result = checked("baseline pass@1 drop <= 0.05", table(), after)
    assert result.value == pytest.approx(0.4 / 3)
    assert (result.holds, result.reason) == (False, "the drop 0.133333 is not <= 0.05")
    assert checked("baseline pass@1 drop <= 0.2", table(), after).holds is True
    assert checked("baseline pass@1 drop <= 0", after, table()).value == pytest.approx(-0.4 / 3), "it rose"
    assert checked("baseline pass@1 drop <= 0", after, table()).holds is True


def test_equal_fractions_are_equal() -> None:
    before, after = table(base={"a": [1] * 10}), table(base={"a": [1] * 7 + [0] * 3})
    assert checked("baseline pass@1 drop <= 0.3", before, after).holds is True
    assert checked("baseline pass@1 drop < 0.3", before, after).holds is False


def test_a_significant_drop_is_one_whose_interval_does_not_reach_the_number() -> None:
    after = table(base={**BASE, "a": [1, 1, 0, 0, 1]})
    result = checked("significant baseline pass@1 drop <= 0.05", table(), after)
    assert result.holds is True
    assert result.reason == (
        "the drop 0.133333 is not <= 0.05, but some of its interval [-0.440354, 0.70702] is: not significant"
    )
    many = {f"t{number}": [1] * 5 for number in range(12)}
    fallen = {task: [1, 0, 0, 0, 0] if number % 3 else [0] * 5 for number, task in enumerate(many)}
    sure = checked("significant baseline pass@1 drop <= 0.05", table(base=many), table(base=fallen))
    assert sure.holds is False
    assert re.fullmatch(
        r"the drop 0\.8\d+ is not <= 0\.05, nor is any of its interval \[0\.8\d*, 0\.9\d*\]", sure.reason or ""
    )
    wished = checked("significant baseline pass@1 drop >= 0.95", table(base=many), table(base=fallen))
    assert wished.holds is False, "for a wished drop the upper end counts"


def test_a_collapse_without_spread_is_not_excused() -> None:
    result = checked("significant baseline pass@1 drop <= 0", table(), table(base={task: [0] * 5 for task in BASE}))
    assert result.holds is False
    collapse = checked(
        "significant baseline pass@1 drop <= 0",
        table(base={task: [1] * 5 for task in BASE}),
        table(base={task: [0] * 5 for task in BASE}),
    )
    assert collapse.reason == (
        "the drop 1 is not <= 0, and has no interval (all 3 tasks changed alike: there is no spread to judge by)"
    )
    assert collapse.holds is False


def test_drops_of_scores_coverage_and_correlations() -> None:
    subsets = {"s1": ["a"], "s2": ["b", "c"], "s3": ["a", "b"], "s4": ["c"]}
    one = {"x": {"s1": 0.1, "s2": 0.5, "s3": 0.7, "s4": 0.6, "pool": 0.9}}
    other = {"x": {"s1": 0.7, "s2": 0.1, "s3": 0.1, "s4": 0.2, "pool": 0.6}}
    before = table({"m": DEAD, "n": {**BASE, "b": [0] * 5}}, subsets=subsets, coverage=one)
    after = table({"m": BASE, "n": {**BASE, "b": [0] * 5}}, subsets=subsets, coverage=other)
    assert checked("mutation_score drop <= 0.1", before, after).value == pytest.approx(0.5)
    assert checked("mean_drop drop <= 1", before, after).value == pytest.approx((1 - 0) / 3 / 2)
    assert checked("coverage drop <= 0.1", before, after).value == pytest.approx(0.3)
    kendall = checked("kendall drop <= 0.1", before, after)
    assert kendall.value is not None
    assert kendall.holds is False
    share = checked("mutation_score drop <= 0", before, after, mutation_score="mean_drop")
    assert share.value == pytest.approx(1 / 6), "the mutation score of the analysis"


def test_the_worst_of_several_cases_decides_and_new_cases_have_no_drop() -> None:
    worse = table(base={**BASE, "a": [1, 1, 0, 0, 1]})
    before = {"one": table(), "two": table()}
    result = checked("pass@1 drop <= 0.05", before, {"one": table(), "two": worse, "new": table()})
    assert (result.holds, result.reason) == (False, "two baseline: the drop 0.133333 is not <= 0.05")
    assert [check.case for check in result.checks] == ["one", "two"]
    named = with_gates(["new baseline pass@1 drop <= 0"], before, {"one": table(), "two": worse, "new": table()})
    assert (named.gates[0].holds, named.gates[0].reason) == (None, "the earlier run has no case new")


def test_what_the_earlier_run_does_not_have_leaves_the_gate_open() -> None:
    coverage = {"x": {"pool": 0.5}}
    mutant = checked("c m pass@1 drop <= 0", table(), table({"m": DEAD}))
    assert (mutant.holds, mutant.reason) == (None, "the earlier run has no m")
    system = checked("c x coverage drop <= 0", table(), table(coverage=coverage))
    assert (system.holds, system.reason) == (None, "the earlier run has no x")


def test_a_drop_that_needs_what_is_outside_is_not_checked() -> None:
    part = table(base={**BASE, "a": [1, OUTSIDE, 1, 1, 1]})
    for before, after, side in ((part, table(), "the earlier run"), (table(), part, "this run")):
        result = checked("baseline pass@1 drop <= 0", before, after)
        assert result.holds is None
        assert result.reason == f"{side}: 1 of 15 attempts is outside this part and not in the store"


def test_a_drop_that_cannot_be_computed_does_not_hold() -> None:
    result = checked(
        "coverage drop <= 0", table(coverage={"x": {"pool": "no verdict"}}), table(coverage={"x": {"pool": 0.5}})
    )
    assert (result.value, result.holds, result.reason) == (None, False, "the earlier run: no verdict")


def test_gates_of_one_run_are_checked_beside_them() -> None:
    summary = with_gates(["baseline pass@1 >= 0.9", "no new survivors"], table({"m": DEAD}), table({"m": DEAD}))
    assert [gate.holds for gate in summary.gates] == [True, True]
    assert summary.comparison is not None
