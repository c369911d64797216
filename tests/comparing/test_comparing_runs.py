"""What a comparison lists: mutants, verdicts with their attempts, what was added and removed, what is refused."""

from typing import Any

import pytest

from pytest_metricbench.analysis.comparing import compare_runs
from pytest_metricbench.analysis.comparing_terms import (
    ComparisonError,
    require_coherent,
    require_comparable,
    terms_of_experiment,
    terms_of_summary,
)
from pytest_metricbench.analysis.summary_json import summary_from_json, summary_to_json
from pytest_metricbench.definition.experiment import KillRule, ScorePolicy
from tests.analysis.results_builder import MISSING, NOT_NEEDED, NOT_REACHED, OUTSIDE, UNMEASURED, CaseTable
from tests.comparing.comparing_lab import BASE, case, comparison, summary_of, table

DEAD = {**BASE, "c": [0] * 5}


def test_a_mutant_that_survives_now_with_the_tasks_that_killed_it() -> None:
    found = case(table({"m": DEAD, "other": DEAD}), table({"m": BASE, "other": DEAD}, descriptions={"m": "Lies."}))
    (change,) = found.new_survivors
    assert (change.mutant, change.description, change.tasks, change.gone) == ("m", "Lies.", ("c",), ())
    assert change.p.value is not None
    assert change.p.value < 0.02
    assert change.holm == pytest.approx(2 * change.p.value), "two mutants could have changed like this"
    assert found.newly_killed == ()


def test_newly_killed_is_the_same_the_other_way_round() -> None:
    found = case(table({"m": BASE}, descriptions={"m": "Old."}), table({"m": DEAD}, descriptions={"m": "New."}))
    assert [(change.mutant, change.description) for change in found.newly_killed] == [("m", "New.")]
    assert found.newly_killed[0].tasks == ("c",)
    assert found.new_survivors == ()
    assert (found.kill_share.gained, found.kill_share.lost) == (1, 0)


def test_a_mutant_whose_killer_was_removed_survives_by_no_chance() -> None:
    before = table({"m": DEAD})
    after = table({"m": {task: BASE[task] for task in "ab"}}, base={task: BASE[task] for task in "ab"})
    (change,) = case(before, after).new_survivors
    assert (change.tasks, change.gone) == (("c",), ("c",))
    assert (change.p.value, change.p.reason) == (None, "the task that killed it is not in the other run")
    assert change.holm is None
    assert case(before, after).kill_share.lost == 0, "the common tasks killed it in neither run"


def test_a_mutant_whose_killer_is_not_measured_now() -> None:
    (change,) = case(table({"m": DEAD}), table({"m": {**BASE, "c": [UNMEASURED] * 5}})).new_survivors
    assert change.p.reason == "the task that killed it is not measured in both runs"


def test_what_counts_in_another_way_is_no_survivor() -> None:
    before = table({"died": DEAD, "judged": DEAD, "gone": DEAD})
    after = table(
        {"died": {task: [None] * 5 for task in BASE}, "judged": BASE, "new": BASE},
        equivalent={"judged": "only slower"},
    )
    found = case(before, after)
    assert found.new_survivors == ()
    assert [(change.mutant, change.then, change.now) for change in found.other_groups] == [
        ("died", "detected", "invalid"),
        ("judged", "detected", "equivalent"),
    ]
    assert (found.added.mutants, found.removed.mutants) == (("new",), ("gone",))


def test_scores_are_compared_over_the_mutants_that_count_in_both_runs() -> None:
    before = table({"m": DEAD, "died": DEAD, "judged": DEAD})
    after = table(
        {"m": DEAD, "died": {task: [None] * 5 for task in BASE}, "judged": BASE}, equivalent={"judged": "only slower"}
    )
    for earlier, later in ((before, after), (after, before)):
        share = case(earlier, later).kill_share
        assert (share.mutants, share.then, share.now, share.gained, share.lost) == (1, 1, 1, 0, 0)


def test_verdicts_that_changed_with_the_attempts_behind_them() -> None:
    after = {**BASE, "a": [1, 1, 0, None, 1], "b": [1, 1, 0, 0, 1]}
    found = case(table({"m": DEAD}), table({"m": {**DEAD, "c": [0, 0, 0, 0, 1]}}, base=after))
    first, second = found.verdicts
    assert (first.variant, first.task, first.then.verdict, first.now.verdict) == ("baseline", "a", "solved", "flaky")
    assert first.now.passed_trials == ("c-baseline-a-1", "c-baseline-a-2", "c-baseline-a-5")
    assert first.now.missed_trials == ("c-baseline-a-3",)
    assert first.now.died_trials == ("c-baseline-a-4",)
    assert (first.now.n, first.now.passed, first.now.died) == (5, 3, 1)
    assert first.p == pytest.approx(4 / 9), "5 of 5 against 3 of 5: 2 * C(8, 5) / C(10, 5)"
    assert (second.variant, second.task) == ("m", "c")


def test_a_task_without_an_entry_has_no_verdict_that_could_change() -> None:
    assert case(table(), table(base={**BASE, "a": [UNMEASURED] * 5})).verdicts == ()


def test_tasks_subsets_systems_and_cases_that_only_one_run_has() -> None:
    coverage = {"x": {"s1": 0.1, "s2": 0.2, "pool": 0.3}}
    before = {"c": table(subsets={"s1": ["a"], "s2": ["b"]}, coverage=coverage), "old": table()}
    base = {**{task: BASE[task] for task in "ab"}, "d": [1]}
    after = {
        "c": table(
            base=base, subsets={"s1": ["a"], "s2": ["a", "b"]}, coverage={"y": {"s1": 0.1, "s2": 0.2, "pool": 0.3}}
        ),
        "new": table(),
    }
    found = comparison(before, after)
    assert (found.added.cases, found.removed.cases) == (("new",), ("old",))
    assert (found.added.systems, found.removed.systems) == (("y",), ("x",))
    inner = found.cases["c"]
    assert (inner.added.tasks, inner.removed.tasks) == (("d",), ("c",))
    assert (inner.added.subsets, inner.removed.subsets) == (("s2",), ("s2",)), "other tasks under the same id"
    assert (inner.coverage, inner.correlation) == ({}, {})
    assert inner.pass_at_k["baseline"]["1"].tasks == 2


def test_nothing_changed_between_a_run_and_itself() -> None:
    coverage = {"x": {"s1": 0.1, "s2": 0.2, "s3": 0.25, "pool": 0.3}}
    subsets = {"s1": ["a"], "s2": ["c"], "s3": ["a", "b"]}
    run = table({"m": DEAD, "n": {**BASE, "b": [0] * 5}}, subsets=subsets, coverage=coverage)
    found = case(run, run)
    assert (found.new_survivors, found.newly_killed, found.other_groups, found.verdicts) == ((), (), (), ())
    assert found.kill_share.value == found.mean_drop.value == 0
    assert found.kill_share.interval_reason == "no cell changed: there is no spread to judge by"
    assert found.correlation["x"]["kill_share"].kendall.value == 0
    assert found.coverage["x"].value == 0


def test_the_same_attempts_are_recognised_by_ids_that_the_plugin_drew() -> None:
    run = table({"m": {**DEAD, "a": [1, 0, 1, 0, 1]}})
    one = summary_of(run, run="first")
    found = compare_runs(one, one, "x").cases["c"].attempts
    assert (found.then, found.now, found.same) == (30, 30, 30)
    other = compare_runs(one, summary_of(run, run="second"), "x").cases["c"].attempts
    assert (other.now, other.same) == (30, 0)
    named = summary_of(run)
    assert compare_runs(named, named, "x").cases["c"].attempts.same == 0, "names from elsewhere prove nothing"


def test_an_attempt_that_was_scored_anew_is_not_the_same() -> None:
    before, after = summary_of(table(), run="r"), summary_of(table(base={**BASE, "a": [0, 1, 1, 1, 1]}), run="r")
    assert compare_runs(before, after, "x").cases["c"].attempts.same == 14


def test_coefficients_over_the_common_subsets_and_mutants_are_those_of_the_summary() -> None:
    coverage = {"x": {"s1": 0.1, "s2": 0.5, "s3": 0.7, "s4": 0.6, "pool": 0.9}}
    subsets = {"s1": ["a"], "s2": ["b", "c"], "s3": ["a", "b"], "s4": ["c"]}
    before = table({"m": DEAD, "n": {**BASE, "b": [0] * 5}}, subsets=subsets, coverage=coverage)
    after = table({"m": BASE, "n": {**BASE, "b": [0] * 5}}, subsets=subsets, coverage=coverage)
    one, other = summary_of(before), summary_of(after)
    found = compare_runs(one, other, "x").cases["c"].correlation["x"]
    for score in ("kill_share", "mean_drop"):
        for method in ("pearson", "spearman", "kendall"):
            change = getattr(found[score], method)
            for summary, value in ((one, change.then), (other, change.now)):
                overall = summary.cases["c"].correlation["x"][score].overall
                assert value == pytest.approx(getattr(overall, method).value, abs=1e-9)
            assert change.interval is None
            assert "goals of each task" in change.interval_reason
    assert found["kill_share"].subsets == 4


def test_an_added_mutant_changes_no_paired_figure() -> None:
    subsets = {"s1": ["a"], "s2": ["b", "c"], "s3": ["a", "b"], "s4": ["c"]}
    coverage = {"x": {"s1": 0.1, "s2": 0.5, "s3": 0.7, "s4": 0.6, "pool": 0.9}}
    before = table({"m": DEAD, "n": {**BASE, "b": [0] * 5}}, subsets=subsets, coverage=coverage)
    after = table({"m": DEAD, "n": {**BASE, "b": [0] * 5}, "new": BASE}, subsets=subsets, coverage=coverage)
    found = case(before, after)
    assert (found.kill_share.value, found.kill_share.mutants) == (0, 2)
    assert found.correlation["x"]["kill_share"].kendall.value == 0


@pytest.mark.parametrize("side", ["the earlier run", "this run"])
def test_a_part_makes_figures_unavailable_that_need_the_rest(side: str) -> None:
    whole, part = table({"m": DEAD}), table({"m": {**DEAD, "a": [1, OUTSIDE, 1, 1, 1]}})
    found = case(whole, part) if side == "this run" else case(part, whole)
    reason = f"{side}: 1 of 30 attempts is outside this part and not in the store"
    assert (found.kill_share.value, found.kill_share.reason, found.kill_share.outside) == (None, reason, True)
    assert found.pass_at_k["m"]["1"].outside is True
    assert found.pass_at_k["baseline"]["1"].value == 0


def test_mutants_left_alone_after_their_first_kill() -> None:
    before = table({"m": {"a": [0] * 5, "b": [NOT_NEEDED] * 5, "c": [NOT_NEEDED] * 5}, "n": BASE})
    after = table({"m": BASE, "n": BASE})
    found = case(before, after)
    assert [change.mutant for change in found.new_survivors] == ["m"]
    assert (found.kill_share.value, found.kill_share.then, found.kill_share.now) == (-0.5, 0.5, 0)
    assert found.mean_drop.reason == "mutants were left alone after their first kill"
    fewer = {task: BASE[task] for task in "ab"}
    other = case(before, table({"m": fewer, "n": fewer}, base=fewer))
    assert "the tasks are not the same in both runs" in (other.kill_share.reason or "")


def test_cells_that_are_not_reached_take_part_as_survived() -> None:
    before = table({"m": {**DEAD, "a": [NOT_REACHED] * 5}})
    found = case(before, table({"m": {**BASE, "a": [NOT_REACHED] * 5}}))
    assert [change.mutant for change in found.new_survivors] == ["m"]
    assert found.mean_drop.then == pytest.approx(1 / 3)


def test_a_case_without_mutants() -> None:
    found = case(table(), table())
    assert found.kill_share.reason == "no mutant is scored in both runs with a cell in each"
    assert found.new_survivors == ()


def test_the_text_of_a_summary_with_a_comparison_is_read_back() -> None:
    before, after = summary_of(table({"m": DEAD})), summary_of(table({"m": BASE, "n": DEAD}))
    summary = after.model_copy(update={"comparison": compare_runs(before, after, "old \ud800")})
    text = summary_to_json(summary)
    assert summary_to_json(summary_from_json(text)) == text
    assert '"comparison"' not in summary_to_json(after)


def test_the_same_runs_give_the_same_bytes() -> None:
    before, after = (
        summary_of(table({"m": DEAD, "n": DEAD})),
        summary_of(table({"m": BASE, "n": {**DEAD, "a": [0, 1, 1, 0, 1]}})),
    )
    one, other = (compare_runs(before, after, "x") for _ in range(2))
    assert one == other


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"score": ScorePolicy("tone", 1.0, {})}, "its primary score is 'tone', this run's is 'reward'"),
        ({"score": ScorePolicy("reward", 0.5, {})}, "its attempts pass from 0.5 on, this run's from 1"),
        ({"rule": KillRule("fisher", 0.05)}, "its kill rule is fisher with alpha 0.05, this run's is flip"),
        ({"rule": KillRule("fisher", None, 0.1)}, "its kill rule is fisher with q 0.1, this run's is flip"),
    ],
)
def test_runs_that_were_read_by_other_rules(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ComparisonError) as raised:
        compare_runs(summary_of(table(), **settings), summary_of(table()), "x")
    assert str(raised.value) == (
        f"the earlier run cannot be compared: {said}; score and analysis are no part of an attempt: with today's keys "
        "in the earlier run's files, --metricbench-cached-only reads its store anew"
    )


def test_every_difference_is_named_at_once() -> None:
    earlier = summary_of(table(), rule=KillRule("fisher", 0.05)).model_copy(update={"experiment": "other"})
    with pytest.raises(ComparisonError) as raised:
        compare_runs(earlier, summary_of(table(), score=ScorePolicy("reward", 0.5, {})), "x")
    assert str(raised.value) == (
        "the earlier run cannot be compared: it is of the experiment 'other', this one is 'built'; its attempts pass "
        "from 1 on, this run's from 0.5; its kill rule is fisher with alpha 0.05, this run's is flip"
    )


def test_no_case_in_common() -> None:
    with pytest.raises(ComparisonError) as raised:
        compare_runs(summary_of({"one": table()}), summary_of({"two": table(), "three": table()}), "x")
    assert str(raised.value) == (
        "the earlier run cannot be compared: they have no case in common (it has one, this run three, two)"
    )


def test_the_terms_are_known_before_a_run() -> None:
    from tests.analysis.results_builder import build

    results = build(table({"m": DEAD}))
    before = terms_of_summary(summary_of(table({"m": DEAD})))
    require_comparable(before, terms_of_experiment(results.experiment))
    assert terms_of_experiment(results.experiment).cases == before.cases
    fisher = build(table(), rule=KillRule("fisher", 0.05)).experiment
    with pytest.raises(ComparisonError, match=r"its kill rule is flip, this run's is fisher with alpha 0\.05"):
        require_comparable(before, terms_of_experiment(fisher))


def test_a_summary_that_the_plugin_made_is_coherent() -> None:
    odd: dict[str, list[Any]] = {"a": [1, True, None, UNMEASURED, MISSING], "b": [OUTSIDE] * 5, "c": [0.5] * 5}
    table_ = CaseTable(
        {"baseline": odd, "m": {**odd, "a": [None] * 5}, "copy": odd, "same": odd},
        {"s": ["a"]}, {"x": {"s": 0.5}}, controls=["copy"], equivalent={"same": "yes"},
    )  # fmt: skip
    require_coherent(summary_of(table_, part="-k a"))


OTHER_TASKS = "its tasks are not those of the case"
OTHER_MUTANTS = "its mutants are not those of the variants"


@pytest.mark.parametrize(
    ("where", "change", "said"),
    [
        ("variants", lambda of: of.pop("baseline"), "it has no baseline"),
        ("variants.m.tasks", lambda of: of.pop("a"), OTHER_TASKS),
        ("variants.m.attempts", lambda of: of.update(z={}), OTHER_TASKS),
        ("variants.m.tasks.a", lambda of: of.update(passed=9), "its counts do not add up"),
        ("variants.m.tasks.a", lambda of: of.update(n=-1, passed=-1), "its counts do not add up"),
        ("variants.m.tasks.a", lambda of: of.update(died=1), "its counts do not add up"),
        ("variants.m.tasks.a", lambda of: of.update(n=10**30, passed=10**30), "its counts do not add up"),
        ("correlation", lambda of: of.update(y=of["x"]), "its systems are not the pool's"),
        ("subsets.s.coverage", lambda of: of["x"].update(value=1e308), "it is not within 0 and 1"),
        ("kills", lambda of: of.pop("m"), OTHER_MUTANTS),
        ("kills.m", lambda of: of.pop("a"), OTHER_TASKS),
        ("mutants", lambda of: of.update(detected=[]), OTHER_MUTANTS),
        ("subsets.s", lambda of: of.update(tasks=["z"]), "its tasks are not tasks of the case"),
        ("subsets.s", lambda of: of.update(tasks=[]), "its tasks are not tasks of the case"),
        ("subsets.s.coverage", lambda of: of.clear(), "its systems are not those of the pool"),
    ],
)
def test_a_summary_that_somebody_changed_contradicts_itself(where: str, change: Any, said: str) -> None:
    summary = summary_of(table({"m": DEAD}, subsets={"s": ["a"]}, coverage={"x": {"s": 0.5, "pool": 0.5}}))
    content = summary.model_dump(mode="json")
    found = content["cases"]["c"]
    for key in where.split("."):
        found = found[key]
    change(found)
    with pytest.raises(ComparisonError) as raised:
        require_coherent(type(summary).model_validate(content))
    assert str(raised.value) == f"the summary contradicts itself at cases.c.{where}: {said}"
