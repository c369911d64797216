"""The last lines of a section: the next useful things to do, at most three, the most pressing first."""

from typing import Any

from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.definition.experiment import KillRule
from pytest_metricbench.reporting.next_steps import MOST_STEPS, next_steps
from tests.analysis.results_builder import NOT_REACHED, UNMEASURED, CaseTable, build

TASKS = ["a", "b", "c"]


def steps(table: CaseTable | dict[str, CaseTable], **settings: Any) -> list[str]:
    return next_steps(summarize(build(table, **settings)))


def rows(**by_task: list[Any]) -> dict[str, list[Any]]:
    return {task: by_task.get(task, [1, 1]) for task in TASKS}


def test_nothing_to_do() -> None:
    variants = {"baseline": rows(), "m": rows(a=[0, 0], b=[0, 0], c=[0, 0])}
    assert steps(CaseTable(variants)) == []


def test_a_survivor_and_a_task_that_kills_nothing() -> None:
    variants = {"baseline": rows(), "m": rows(a=[0, 0], b=[0, 0]), "quiet": rows(), "still": rows()}
    assert steps(CaseTable(variants)) == [
        "add a task that quiet fails, or mark it `equivalent:` with the reason; 1 more: --metricbench-show survivors",
        "look at task c, which kills no mutant: it may ask for too little (--metricbench-show tasks)",
    ]


def test_a_task_that_reaches_no_mutant_is_not_blamed() -> None:
    unreached = [NOT_REACHED, NOT_REACHED]
    variants = {"baseline": rows(), "m": rows(a=unreached, b=[0, 0], c=[1, 1]), "n": rows(a=unreached, b=[0, 0])}
    blamed = "look at task c, which kills no mutant: it may ask for too little (--metricbench-show tasks)"
    assert steps(CaseTable(variants)) == [blamed]
    assert (
        steps(
            CaseTable(
                {name: {**row, "c": [1, 1] if name == "baseline" else unreached} for name, row in variants.items()}
            )
        )
        == []
    )


def test_of_several_cases_it_says_which() -> None:
    bad = CaseTable({"baseline": rows(), "quiet": rows(a=[1, 1])})
    good = CaseTable({"baseline": rows(), "m": rows(a=[0, 0], b=[0, 0], c=[0, 0])})
    found = steps({"one": good, "two": bad})
    assert found[0] == "add a task to two that quiet fails, or mark it `equivalent:` with the reason"
    assert found[1].startswith("look at task a of two, which kills no mutant")


def test_too_few_attempts_for_the_rule() -> None:
    variants = {"baseline": rows(), "m": rows(a=[0, 0], b=[0, 0], c=[0, 0])}
    first, *_ = steps(CaseTable(variants), rule=KillRule("fisher", alpha=0.05))
    assert first == (
        "ask for 4 attempts: {rule: fisher, alpha: 0.05} can kill nothing in 3 cells with those that there are"
    )


def test_a_control_that_is_killed_asks_for_more_attempts_there() -> None:
    variants = {"baseline": rows(b=[1, 1]), "m": rows(a=[0, 0], b=[0, 0], c=[0, 0]), "copy": rows(b=[0, 0])}
    table = CaseTable(variants, controls=["copy"])
    assert steps(table) == ["ask for more attempts at task b: it kills the control copy, by luck"]
    first, *_ = steps({"one": table, "two": table})
    assert first.startswith("ask for more attempts at task b of one: ")


def test_enough_attempts_are_not_asked_for() -> None:
    variants = {"baseline": {task: [1] * 5 for task in TASKS}, "m": {task: [0] * 5 for task in TASKS}}
    assert steps(CaseTable(variants), rule=KillRule("fisher", alpha=0.05)) == []


def test_a_baseline_that_never_passes_comes_first_and_its_tasks_are_not_blamed() -> None:
    variants = {"baseline": rows(a=[0, 0], b=[0, 0], c=[0, 0]), "m": rows(a=[0, 0], b=[0, 0], c=[0, 0])}
    found = steps(CaseTable(variants))
    assert found[0] == "make some attempt of the baseline pass first: its mutants say nothing before"
    assert not any("look at task" in text or "add a task" in text for text in found)


def test_never_more_than_three() -> None:
    variants = {"baseline": rows(c=[1, UNMEASURED]), "quiet": rows(), "m": rows(a=[0, 0])}
    subsets = {f"s{number}": [task] for number, task in enumerate(TASKS)}
    found = steps(
        CaseTable(variants, subsets, {"k": dict.fromkeys([*subsets, "pool"], 0.5)}), rule=KillRule("fisher", alpha=0.01)
    )
    assert len(found) == MOST_STEPS == 3
    assert found[0] == "run the same command again: what was measured is reused, only the rest runs"
    assert found[1].startswith("ask for 5 attempts: ")
