"""What the terminal says of a comparison, read as a user reads it."""

from typing import Any

import pytest

from pytest_metricbench.reporting.comparison_block import comparison_block
from pytest_metricbench.reporting.comparison_words import signed
from tests.comparing.comparing_lab import BASE, summary_of, table, with_gates
from tests.reporting_markdown.markdown_lab import after, before, changed


def shown(summary: Any, width: int = 80) -> list[str]:
    lines = [line.text for line in comparison_block(summary, width)]
    assert all(len(text) <= width and text == text.rstrip() for text in lines), lines
    return lines


def test_everything_that_changed() -> None:
    assert shown(changed()) == [
        "compared with   before",
        "changed         baseline pass@1 0.93 -> 0.80: -0.13 [-0.71, 0.44], over 3 tasks,",
        "                1 worse",
        "                coverage x 0.90 -> 0.60: -0.30, over the pool",
        "                tau-b x 0.00 -> -0.22: -0.22, over 4 subsets",
        "new survivors   m: killed before by c; p = 0.008",
        "newly killed    n: killed now by c; p = 0.002",
        "verdicts        of the baseline: 0 better, 1 worse",
        "                of mutants: 1 better, 5 worse",
        "                a: solved 5/5 -> flaky 3/5, 1 died, p = 0.44",
        "mutants         ill: detected before, invalid now",
        "added           mutant added",
        "removed         mutant gone",
    ]


def test_nothing_without_an_earlier_run() -> None:
    assert comparison_block(summary_of(table()), 80) == []


def test_nothing_changed() -> None:
    same = with_gates([], before(), before())
    assert shown(same) == ["compared with   before", "                nothing changed in what both runs have"]


@pytest.mark.parametrize("width", [40, 60, 120])
def test_narrow_and_wide(width: int) -> None:
    assert shown(changed(), width)


def test_several_cases_are_named_and_long_lists_end() -> None:
    tables = {f"case-{number}": before() for number in range(9)}, {f"case-{number}": after() for number in range(9)}
    lines = shown(with_gates([], *tables))
    assert any(line.startswith("new survivors   case-0: m: killed before by c; p = 0.0") for line in lines)
    assert "                and 3 more: summary.json, comparison" in lines
    assert any(line.startswith("over the cases  baseline pass@1 0.93 -> 0.80: -0.13") for line in lines)


def test_the_limits_of_the_earlier_run_are_said() -> None:
    one = summary_of(table(), run="r", part="-k a")
    from pytest_metricbench.analysis.comparing import compared

    lines = shown(compared(one, one, "main", []))
    assert lines[0] == "compared with   main (15 of 15 attempts are the same; a part of the experiment:"


def test_a_removed_killer_is_named() -> None:
    kept = {task: BASE[task] for task in "ab"}
    lines = shown(with_gates([], table({"m": {**BASE, "c": [0] * 5}}), table({"m": kept}, base=kept)))
    assert "new survivors   m: killed before by c (gone); no chance in it: the task that" in lines


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "+0.10"), (-0.004, "-0.004"), (0.0, "0.00"), (1e-9, "+1e-09"), (-1.0, "-1.00")]
)
def test_signs(value: float, text: str) -> None:
    assert signed(value) == text
