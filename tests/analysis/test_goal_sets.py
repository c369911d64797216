"""Goals put together from the requests of a system, and every reason why they cannot be used."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_metricbench.analysis.goal_sets import GoalSets, goal_sets
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.contracts import CoverageRecord, Goals
from tests.analysis.goals_lab import GOALS, SUBSETS, TASKS, outcomes
from tests.analysis.results_builder import CaseTable, build, coverage_record


def results(changed: Mapping[str, Any] | None = None) -> Results:
    """Results in which the records of some requests are replaced: subset -> new fields, or None to leave it out."""
    given = build(CaseTable(outcomes(), SUBSETS, goals={"sys": GOALS}))
    coverage: dict[tuple[str, str, str], CoverageRecord] = dict(given.coverage)
    for subset, fields in (changed or {}).items():
        key = ("c", "sys", subset)
        if fields is None:
            del coverage[key]
        else:
            coverage[key] = replace(coverage[key], **fields)
    return replace(given, coverage=coverage)


def goals_of(subset: Sequence[str], **other: Sequence[str]) -> Goals:
    return Goals(
        tuple("abcdef"), {**{task: tuple(GOALS[task]) for task in subset}, **{t: tuple(g) for t, g in other.items()}}
    )


def reason(given: Results) -> str:
    found = goal_sets(given, given.experiment.cases[0], "sys", TASKS)
    assert isinstance(found, str), found
    return found


def test_goals_become_bits() -> None:
    given = results()
    found = goal_sets(given, given.experiment.cases[0], "sys", TASKS)
    assert isinstance(found, GoalSets)
    assert found.tasks == (0, 1, 2, 3, 4, 5)
    assert found.universe == 6
    assert found.words.shape == (1, 6)
    assert [int(word).bit_count() for word in found.words[0]] == [2, 2, 0, 2, 1, 2]


def test_tasks_of_no_request_are_not_known() -> None:
    given = results({"pool": None, "s0": None, "s5": None, "s3": None})
    found = goal_sets(given, given.experiment.cases[0], "sys", TASKS)
    assert isinstance(found, GoalSets)
    used = {task for name in ("s1", "s2", "s4") for task in SUBSETS[name]}
    assert [TASKS[index] for index in found.tasks] == sorted(used)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({name: {"goals": None} for name in (*SUBSETS, "pool")}, "the system gives no goals"),
        ({"s2": {"goals": None}}, "no goals were given for s2"),
        ({"s1": {"value": 0.9}}, "the goals of s1 make a coverage of 0.5, and 0.9 was reported"),
        (
            {"s0": {"goals": goals_of(SUBSETS["s0"], t0="cd"), "value": 0.5}},
            "the goals of the task t0 differ between pool and s0",
        ),
        (
            {"s0": {"goals": goals_of(SUBSETS["s0"], elsewhere="")}},
            "the goals of s0 name the task 'elsewhere', which it",
        ),
        ({"s0": {"goals": goals_of(SUBSETS["s0"][:1])}}, "the goals of s0 say nothing of its task t1"),
        (
            {"s0": {"goals": Goals(tuple("abcdefg"), {t: tuple(GOALS[t]) for t in SUBSETS["s0"]})}},
            "the universe of goals differs between pool and s0",
        ),
        ({"pool": {"goals": Goals((), dict.fromkeys(TASKS, ()))}}, "the universe of goals is empty in pool"),
        (
            {name: {"value": None, "reason": "no judge"} for name in (*SUBSETS, "pool")},
            "no coverage was measured",
        ),
    ],
)
def test_goals_that_cannot_be_used_say_why_and_where(changed: dict[str, Any], words: str) -> None:
    assert words in reason(results(changed))


def test_the_reason_stands_at_p_and_interval_and_takes_nothing_else() -> None:
    figure = summarize(results({"s1": {"value": 0.9}})).cases["c"].correlation["sys"]["kill_share"].overall.kendall
    assert figure.value is not None
    assert figure.p.reason == figure.random.reason == figure.interval_reason
    assert figure.p.reason is not None
    assert figure.p.reason.startswith("needs the goals of each task: the goals of s1 make a coverage of 0.5")


def test_goals_outside_the_universe_count_nowhere() -> None:
    members = SUBSETS["s4"]
    extra = {members[0]: (*GOALS[members[0]], "z")}
    changed = {name: {"goals": None} for name in (*SUBSETS, "pool")}
    given = results({name: None for name in changed if name != "s4"})
    record = given.coverage["c", "sys", "s4"]
    goals = Goals(tuple("abcdef"), {**{t: tuple(GOALS[t]) for t in members}, **extra})
    given = replace(given, coverage={record.key: replace(record, goals=goals)})
    found = goal_sets(given, given.experiment.cases[0], "sys", TASKS)
    assert isinstance(found, GoalSets)
    assert int(found.words[0][0]).bit_count() == len(GOALS[TASKS[found.tasks[0]]])


def test_a_record_of_a_system_that_rounds_is_taken() -> None:
    record = coverage_record("c", "sys", "pool", round(1 / 3, 10))
    record = replace(record, goals=Goals(tuple("abc"), dict.fromkeys(TASKS, ("a",))))
    given = replace(results(), coverage={record.key: record})
    found = goal_sets(given, given.experiment.cases[0], "sys", TASKS)
    assert isinstance(found, GoalSets)
    assert np.all(found.words == 1)
