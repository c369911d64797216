"""The section at the end of a run, read as a user reads it."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.analysis.summary_json import summary_from_json, summary_to_json
from pytest_metricbench.definition.experiment import Gate
from pytest_metricbench.reporting.terminal import gate_value, section_lines, section_title
from tests.analysis.results_builder import OUTSIDE, UNMEASURED, CaseTable
from tests.reporting.terminal_lab import block_of, rendered, summary_of

EXPECTED = Path(__file__).with_name("expected_section.txt")
TASKS = ["late-purchase", "no-receipt", "greeting", "two-orders", "gift-card", "fraud-flag"]
BASE: dict[str, list[Any]] = {
    **{task: [1] * 5 for task in TASKS}, "two-orders": [1, 1, 0, 1, 1], "gift-card": [0, 1, 0, 0, 1],
}  # fmt: skip


def damaged(*tasks: str, row: tuple[Any, ...] = (0, 0, 0, 0, 1)) -> dict[str, list[Any]]:
    return {task: list(row) if task in tasks else list(BASE[task]) for task in TASKS}


def shop() -> CaseTable:
    """Every thing that the section has words for."""
    variants = {
        "baseline": BASE,
        "skips-eligibility": damaged("late-purchase", "no-receipt"),
        "drops-lookup-tool": damaged(*TASKS[:5], row=(0,) * 5),
        "crashes-on-two": damaged("two-orders", row=(None, None, None, 1, 1)),
        "slow-but-right": {**BASE, "greeting": [UNMEASURED] * 5},
        "crashes-on-start": damaged(*TASKS, row=(None,) * 5),
        "waits-twice": BASE,
        "control-1": damaged("two-orders", row=(0, 0, 0, 1, 1)),
    }
    pairs = [(a, b) for a in range(6) for b in range(a)]
    subsets = {f"n2-{n}": [TASKS[a], TASKS[b]] for n, (a, b) in enumerate(pairs[:6])}
    subsets |= {f"n4-{n}": [task for i, task in enumerate(TASKS) if i not in pair] for n, pair in enumerate(pairs[:5])}
    goals = dict(zip(TASKS, ("ab", "bc", "", "cd", "e", "af"), strict=True))
    tools: dict[str, float | str | None] = {
        s: len(set("".join(goals[t] for t in members))) / 6 for s, members in {**subsets, "pool": TASKS}.items()
    }
    house = {**tools, "n2-1": "the judge gave no verdict", "n4-0": 0.9}
    return CaseTable(
        variants,
        subsets,
        {"house-metric": house},
        {"tools": goals},
        controls=["control-1"],
        equivalent={"waits-twice": "only slower"},
        descriptions={"slow-but-right": "Looks everything up twice before it answers, whatever it was asked."},
    )


def gates() -> list[Gate]:
    return [
        Gate("baseline pass@1 >= 0.8", None, "baseline", "pass@k", 1, ">=", 0.8),
        Gate("mutation_score >= 0.8", None, None, "mutation_score", None, ">=", 0.8),
        Gate("house-metric coverage >= 0.5", None, "house-metric", "coverage", None, ">=", 0.5),
    ]


def test_the_whole_section() -> None:
    """To renew it after a change that is meant: print the lines of this summary into the file, and read them."""
    summary = summary_of(shop(), gates=gates(), warnings=["subsets n2-0 and n2-1 hold the same tasks"])
    lines = [
        f" {section_title(summary)} ".center(80, "="),
        *rendered(summary, summary_path=".metricbench/shop/summary.json"),
    ]
    assert "\n".join(lines) + "\n" == EXPECTED.read_text()


def test_nothing_is_said_that_is_not_in_the_file() -> None:
    summary = summary_of(shop(), gates=gates())
    assert section_lines(summary_from_json(summary_to_json(summary))) == section_lines(summary)


@pytest.mark.parametrize("width", [40, 50, 60, 72, 80, 100, 200])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    lines = rendered(summary_of(shop(), gates=gates()), width)
    text = "\n".join(lines)
    for label in ("problems", "mutation score", "survived", "gates", "next"):
        assert label in text


def test_narrow_tables_say_what_they_left_out() -> None:
    text = "\n".join(rendered(summary_of(shop()), 60))
    assert "no room for" in text
    assert "summary.json" in text


def test_brief_is_one_line_a_case_with_problems_and_gates() -> None:
    lines = rendered(summary_of(shop(), gates=gates(), warnings=["a warning"]), brief=True)
    text = "\n".join(lines)
    assert any(found.startswith("c         6  ") for found in lines)
    assert "3 of 4 = 0.75" in text
    assert "problems" in text
    assert "FAIL  mutation_score >= 0.8" in text
    assert "solved" not in text
    assert "a warning" not in text


def test_of_many_mutants_the_worst_and_best_are_shown() -> None:
    variants = {"baseline": BASE} | {
        f"m{number:02d}": {task: [1] * (number % 6) + [0] * (5 - number % 6) for task in TASKS} for number in range(30)
    }
    lines = rendered(summary_of(CaseTable(variants)))
    start = lines.index(next(text for text in lines if text.startswith("variant")))
    table = lines[start : start + 13]
    assert table[7] == ".. 20 more mutants between these: summary.json, cases.c.variants"
    values = [float(text.split()[4]) for text in (*table[2:7], *table[8:13])]
    assert values == sorted(values)
    assert values[0] == 0.0
    assert values[-1] == 1.0
    assert not any(text.startswith("kills  ") for text in lines), "the table of kills would not fit"


def test_a_figure_over_few_tasks_looks_like_one() -> None:
    rows = {task: [UNMEASURED] * 5 for task in TASKS} | {"greeting": [1] * 5}
    lines = rendered(summary_of(CaseTable({"baseline": rows})))
    assert any(text.startswith("baseline") and "1.00 /1" in text for text in lines)
    assert "/n: over n of 6 tasks" in lines


def test_other_scores_are_said_to_be_elsewhere() -> None:
    rows = {"t": [{"reward": 1, "style": 0, "tone": "kind"}]}
    lines = rendered(summary_of(CaseTable({"baseline": rows}), ks=[1]))
    assert "pass@k of reward; of style: summary.json" in lines


def test_many_cases_get_a_line_each() -> None:
    tables = {f"case-{number}": shop() for number in range(5)}
    lines = rendered(summary_of(tables))
    assert sum(text.startswith("case-") for text in lines) == 5
    assert not any(text.startswith("variant") for text in lines)
    assert block_of(lines, "survived")[0].startswith("case-0::slow-but-right  Looks everything up")
    two = rendered(summary_of({"one": shop(), "two": shop()}))
    assert sum(text.startswith("case ") for text in two) == 2


def test_of_very_many_cases_the_worst_and_best_are_shown() -> None:
    tables = {f"k{number:02d}": CaseTable({"baseline": {"t": [1]}, "m": {"t": [number % 2]}}) for number in range(24)}
    lines = rendered(summary_of(tables, ks=[1]))
    assert ".. 4 more cases between these: summary.json" in lines
    assert sum("of 1 = " in text for text in lines) == 20


def test_reasons_are_grouped() -> None:
    alike = CaseTable(
        {"baseline": {t: [1] for t in TASKS}, "m": {t: [0] for t in TASKS}},
        shop().subsets,
        shop().coverage,
        shop().goals,
    )
    lines = rendered(summary_of(alike, ks=[1]))
    assert "does coverage predict the kill share?  n/a" in lines
    reasons = " ".join(block_of(lines, "n/a"))
    assert "house-metric at size 2, 4, all; tools at size 2, 4, all: the kill share is 1 in every pair" in reasons
    assert "house-metric, 1 of 11 subsets (n2-1): the judge gave no verdict" in reasons
    assert "draw smaller subsets" in " ".join(block_of(lines, "next"))


def test_a_part_says_what_it_is_about() -> None:
    table = shop()
    variants = {name: {**by_task} for name, by_task in table.outcomes.items()}
    variants["drops-lookup-tool"]["fraud-flag"] = [OUTSIDE] * 5
    lines = rendered(
        summary_of(replace(table, outcomes=variants), gates=gates(), part="-k 'not fraud'"), summary_path="x"
    )
    assert " ".join(block_of(lines, "part")) == (
        "-k 'not fraud'; 5 of 240 attempts are outside it and not in the store"
    )
    assert any("open  mutation_score >= 0.8" in text for text in lines)
    assert "needs attempts that are outside this part and not in the store" in " ".join(block_of(lines, "n/a"))
    counts = any(re.search(r"[\d\]] /\d", text) for text in lines)
    assert counts == any("over n of" in text for text in lines), "explained where it is used, and only there"
    assert "mutation score  n/a: 5 of 150 attempts are outside this part and not in the" in lines


def test_an_experiment_without_mutants_talks_of_pass_at_k_only() -> None:
    lines = rendered(summary_of(CaseTable({"baseline": BASE}, shop().subsets)))
    text = "\n".join(lines)
    assert "pass@5" in text
    for word in ("mutation", "kill", "predict", "survived", "n/a"):
        assert word not in text


def test_a_baseline_that_never_passes_comes_first() -> None:
    lines = rendered(summary_of(CaseTable({"baseline": {"t": [0]}, "m": {"t": [0]}}), ks=[1]))
    assert lines[0].startswith("problems        c: none of 1 attempt of the baseline passes")
    assert block_of(lines, "next")[0].startswith("make some attempt of the baseline pass first")


def test_styles_are_hints_only() -> None:
    lines = section_lines(summary_of(shop(), gates=gates()))
    styles = {span.style for found in lines for span in found.spans}
    assert {"bold", "light", "red", "green", "yellow", ""} >= styles
    gate_lines = {found.spans[1].style: found.text for found in lines if len(found.spans) > 2}
    assert "ok " in gate_lines["green"]
    assert "FAIL " in gate_lines["red"]


def test_control_characters_never_reach_the_terminal() -> None:
    table = replace(
        shop(),
        descriptions={"slow-but-right": "red\x1b[31m\nand\ttwo lines"},
        goals={},
        coverage={"tools": {"pool": "no\x1b]0;title\x07 trace"}},
    )
    lines = rendered(summary_of(table, warnings=["a\x1bb"], part="p\x07art"))
    assert all(text.isprintable() for text in lines)


@pytest.mark.parametrize(
    ("value", "number", "op", "text"),
    [(0.8996, 0.9, ">=", "0.8996"), (0.5, 0.9, ">=", "0.50"), (0.9, 0.9, ">", "0.90"), (0.95, 0.9, ">=", "0.95")],
)
def test_a_gate_shows_enough_digits_to_be_understood(value: float, number: float, op: Any, text: str) -> None:
    rows = {"t": [1] * round(value * 2500) + [0] * (2500 - round(value * 2500))}
    wanted = Gate(f"baseline pass@1 {op} {number}", None, "baseline", "pass@k", 1, op, number)
    (found,) = summary_of(CaseTable({"baseline": rows}), ks=[1], gates=[wanted]).gates
    assert gate_value(found) == text


words = st.text("abcdefghij-._0123456789", min_size=1, max_size=100).map(lambda text: "x" + text)
row = st.lists(st.sampled_from([0, 1, None, UNMEASURED, OUTSIDE]), min_size=2, max_size=2)


@given(st.data(), st.integers(40, 130), st.booleans())
@settings(max_examples=80)
def test_any_summary_fits_any_terminal(data: st.DataObject, width: int, brief: bool) -> None:
    tables = {}
    for case in data.draw(st.lists(words, min_size=1, max_size=5, unique=True)):
        tasks = data.draw(st.lists(words, min_size=1, max_size=5, unique=True))
        variants = ["baseline", *data.draw(st.lists(words, max_size=4, unique=True))]
        outcomes = {variant: {task: data.draw(row) for task in tasks} for variant in variants}
        subsets = {f"s{n}": [task] for n, task in enumerate(tasks)} | {"all": tasks}
        coverage = {data.draw(words): {subset: data.draw(st.floats(0, 1)) for subset in (*subsets, "pool")}}
        descriptions = {variant: data.draw(st.text(max_size=200)) for variant in variants}
        tables[case] = CaseTable(outcomes, subsets, coverage, descriptions=descriptions)
    rendered(summary_of(tables, bootstrap=10, gates=gates()[:2]), width, brief=brief, summary_path="s/" * 60)
