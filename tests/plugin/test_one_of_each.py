"""Experiments of one case, one task, one mutant, one subset, one attempt: nothing is said of them in the plural."""

import re
from typing import Any

import pytest

from pytest_metricbench.reporting.announcing import BUDGET_REACHED
from tests.plugin.plugin_lab import Lab

ONE: dict[str, Any] = {
    "tasks": [{"id": "find"}],
    "mutants": [{"id": "quiet", "description": "Says nothing."}],
    "subsets": [{"id": "s1", "tasks": ["find"]}],
}
WORDS = (
    *(
        "attempt",
        "task",
        "mutant",
        "subset",
        "case",
        "variant",
        "request",
        "result",
        "store",
        "item",
        "worker",
        "thread",
    ),
    *(
        "goal",
        "pair",
        "cell",
        "entry",
        "entries",
        "figure",
        "gate",
        "file",
        "line",
        "row",
        "second",
        "process",
        "reason",
    ),
)
PLURAL = re.compile(rf"(?<![\d.,/])1 (?:[a-z-]+ )?(?:{'|'.join(w if w == 'entries' else w + 's' for w in WORDS)})\b.*")


def plurals(text: str) -> list[str]:
    """What is said of one thing as of several."""
    return [found[0] for found in PLURAL.finditer(text)]


def test_what_counts_as_a_plural_of_one() -> None:
    assert plurals("took over 1 attempts; 1 more tasks: 1 entries") == ["1 attempts; 1 more tasks: 1 entries"]
    assert plurals("1 attempt, 11 attempts, 0.1 seconds, 3/1 attempts, 1 of 3 attempts, 1 task tells") == []


@pytest.mark.parametrize(
    ("items", "outcomes", "status"),
    [
        ("attempt", {"quiet::find": "m"}, 0),
        ("attempt", {"baseline::find": "u"}, 1),
        ("task", {}, 0),
        ("variant", {"quiet::find": "d"}, 0),
    ],
    ids=["killed", "unmeasured", "survives", "died"],
)
def test_a_run_of_one(lab: Lab, items: str, outcomes: dict[str, str], status: int) -> None:
    rule = {"rule": "fisher", "q": 0.05}
    lab.make(case=ONE, outcomes=outcomes, attempts=1, items=items, analysis={"kill": rule, "pass_at_k": [1]})
    reports = ["--metricbench-markdown=one.md", *(["--metricbench-html=one.html"] if items == "task" else [])]
    result = lab.run("experiment.yml", "-v", *reports)
    assert result.ret == status
    result.stdout.fnmatch_lines(["metricbench: shop: 2 attempts*, 2 coverage requests, *"])
    said = [result.stdout.str(), *(path.read_text(encoding="utf-8") for path in lab.path.glob("one.*"))]
    assert len(said) == 1 + len(reports)
    for text in said:
        assert plurals(re.sub(r"<[^>]*>", "", text)) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--metricbench-executor=threads:1"], "metricbench: the budget of 1 attempt was reached; 1 attempt is left *"),
        (["--metricbench-show=plan"], "*1 attempt*"),
        (["-k", "baseline"], "part *1 of 2 attempts selected; 1 of 2 attempts is outside it and not"),
        (["-q"], "*1 passed, 1 left*"),
        (["--metricbench-merge=other"], "*took over 1 attempt and 1 coverage result from 1 store"),
    ],
    ids=["budget", "plan", "part", "brief", "merged"],
)
def test_a_run_of_one_in_another_way(lab: Lab, arguments: list[str], said: str) -> None:
    runner = {"kind": "python", "agent": "agent:run", "verifier": "agent:verify", "thread_safe": True}
    subsets = {"subsets": None} if "--metricbench-merge=other" in arguments else {}
    lab.make(case=ONE | subsets, attempts=1, runner=runner, budget={"attempts": 1})
    if subsets:
        assert lab.run("experiment.yml", "--metricbench-store=other", "-k", "baseline").ret == 0
    result = lab.run("experiment.yml", "-v", *arguments)
    assert result.ret in (0, BUDGET_REACHED)
    result.stdout.fnmatch_lines([said])
    assert plurals(result.stdout.str()) == []
