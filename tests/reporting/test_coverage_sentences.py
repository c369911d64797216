"""What the terminal says of p, of random goals, of two systems and of several cases."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_metricbench.analysis.figures import Comparison, DifferenceFigure, Differences, Figure
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.reporting.coverage_sentences import coverage_sentences, p_text
from tests.analysis.results_builder import CaseTable, build
from tests.reporting.terminal_lab import block_of, rendered, summary_of

TASKS = [f"t{number:02d}" for number in range(14)]


def table(seed: int = 0) -> CaseTable:
    """Two systems: ``real`` counts what the mutants are about, ``blind`` counts nothing of the kind."""
    rng = np.random.default_rng(seed)
    topics = {task: rng.choice(12, 1 + index % 4, replace=False) for index, task in enumerate(TASKS)}
    mutants = {f"m{n}": {task: [0 if n in topics[task] else 1] * 3 for task in TASKS} for n in range(12)}
    subsets = {f"s{n}": rng.choice(TASKS, 4, replace=False).tolist() for n in range(40)}
    goals = {
        "real": {task: [f"topic-{n}" for n in topics[task]] for task in TASKS},
        "blind": {task: [f"g{n}" for n in rng.choice(20, 2, replace=False)] for task in TASKS},
    }
    return CaseTable({"baseline": {task: [1] * 3 for task in TASKS}, **mutants}, subsets, goals=goals)


@pytest.mark.parametrize(
    ("p", "text"),
    [(None, "n/a"), (0.0001, "0.0001"), (0.00004, "4e-05"), (0.0123, "0.012"), (0.5, "0.50"), (1.0, "1.00")],
)
def test_p_keeps_digits_that_mean_something(p: float | None, text: str) -> None:
    assert p_text(p) == text


def test_a_metric_that_tells_is_told_from_random_goals() -> None:
    lines = rendered(summary_of(table(), ks=[1], permutation=999, bootstrap=200))
    text = " ".join(line.strip() for line in lines)
    assert "real: 1.00 [" in text
    assert "blind: " in text
    sentence = text[text.index("blind: ") :]
    assert sentence[: sentence.index(" real")].endswith(": not told apart")
    told = text[text.index("real: 1.00 [") :]
    assert "random goals reach" in told[:80]
    assert "not told apart" not in told[: told.index("p = ") + 10]
    assert "real predicts better than blind by" in text
    assert ": settled" in text
    p_rows = [line for line in lines if "p (task labels)" in line]
    assert len(p_rows) == 2


def test_without_goals_there_is_no_row_of_p() -> None:
    given = table()
    coverage: dict[str, dict[str, float | str | None]] = {
        "plain": {name: (n * 7 % 10) / 10 for n, name in enumerate((*given.subsets, "pool"))}
    }
    lines = rendered(summary_of(replace(given, goals={}, coverage=coverage), ks=[1]))
    assert not any("p (task labels)" in line for line in lines)
    assert "p and interval of plain: needs the goals of each task: the system gives no goals" in " ".join(
        block_of(lines, "n/a")
    )


def difference(value: float, interval: tuple[float, float] | None, p: float, holm: float | None = None) -> Comparison:
    figure = DifferenceFigure(
        value=value, interval=interval, p=Figure(value=p), p_swapped=Figure(value=p), holm=holm,
        interval_reason=None if interval else "why",
    )  # fmt: skip
    found = Differences(pairs=9, pearson=figure, spearman=figure, kendall=figure)
    return Comparison(first="one", second="two", overall=found, by_size={})


@pytest.mark.parametrize(
    ("comparison", "text"),
    [
        (difference(0.3, (0.1, 0.5), 0.01), "one predicts better than two by 0.30 [0.10, 0.50], p = 0.010: settled"),
        (difference(-0.3, (-0.5, -0.1), 0.01), "two predicts better than one by 0.30 [0.10, 0.50], p = 0.010: settled"),
        (
            difference(0.3, (-0.1, 0.5), 0.01),
            "one predicts better than two by 0.30 [-0.10, 0.50], p = 0.010: not settled",
        ),
        (
            difference(0.3, (0.1, 0.5), 0.01, 0.2),
            "one predicts better than two by 0.30 [0.10, 0.50], p = 0.20: not settled",
        ),
        (difference(0.3, None, 0.01), "one predicts better than two by 0.30, p = 0.010: not settled"),
    ],
)
def test_a_difference_is_settled_where_interval_and_p_agree(comparison: Comparison, text: str) -> None:
    case = summarize(build(table(), permutation=9, bootstrap=9)).cases["c"]
    sentences = list(coverage_sentences(case.model_copy(update={"comparisons": (comparison,)}), "kill_share"))
    assert text in sentences


def test_only_the_first_comparisons_are_shown() -> None:
    case = summarize(build(table(), permutation=9, bootstrap=9)).cases["c"]
    many = tuple(difference(0.1 * n, None, 0.5) for n in range(1, 7))
    sentences = list(coverage_sentences(case.model_copy(update={"comparisons": many}), "kill_share"))
    assert sum("predicts better" in text for text in sentences) == 3
    assert "3 more comparisons: summary.json" in sentences


def test_lopsided_sizes_are_named() -> None:
    given = table()
    outcomes: dict[str, Any] = {"baseline": given.outcomes["baseline"]}
    outcomes |= {f"m{n}": {task: [int(n > 0 or task != "t00")] * 3 for task in TASKS} for n in range(20)}
    text = " ".join(line.strip() for line in rendered(summary_of(replace(given, outcomes=outcomes), ks=[1])))
    assert "little to predict at size 4: nearly all or nearly none are killed" in text


def test_several_cases_have_a_mean() -> None:
    lines = rendered(summary_of({f"k{n}": table(n) for n in range(2)}, ks=[1], permutation=49, bootstrap=49))
    found = block_of(lines, "over the cases")
    assert found[0].startswith("tau-b of blind: mean ")
    assert found[1].startswith("tau-b of real: mean ")
    assert found[1].endswith("2 of 2 cases defined")
    assert " ".join(found[2:]) == "2 cases with this coefficient: an interval needs 10; see each case"


def test_the_few_tasks_that_do_it_all_are_named_best_first() -> None:
    lines = rendered(summary_of(table(), ks=[1]))
    found = " ".join(block_of(lines, "best first"))
    steps = summary_of(table(), ks=[1]).cases["c"].greedy
    assert found.startswith(f"{len(steps)} of 14 tasks kill all that is killed, {steps[-1].killed}: {steps[0].task} ")
