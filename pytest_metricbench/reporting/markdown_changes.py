"""What changed against an earlier run, as Markdown."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from pytest_metricbench.analysis.comparing_models import CaseComparison, ChangedFigure, MutantChange, RunComparison
from pytest_metricbench.analysis.summary import Settings, Summary
from pytest_metricbench.definition.experiment import BASELINE
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.comparison_words import (
    change_text,
    experiment_parts_texts,
    group_words,
    headline_changes,
    is_better,
    is_settled,
    noise_text,
    parts_texts,
    says_nothing,
    seen_text,
    source_text,
)
from pytest_metricbench.reporting.coverage_sentences import p_text
from pytest_metricbench.reporting.layout import two_digits
from pytest_metricbench.reporting.markdown_text import bullets, code, heading, table, text

MOST_ROWS: Final = 30
"""Of one table."""
MOST_TASKS: Final = 6
"""Named behind a mutant."""
_Rows: TypeAlias = list[list[str]]


def change_blocks(summary: Summary) -> list[list[str]]:
    """Blocks of lines on what changed; none where no earlier run was named."""
    comparison = summary.comparison
    if comparison is None:
        return []
    blocks = [[heading(3, "What changed")], [f"Compared with {text(source_text(comparison))}."]]
    if all(map(says_nothing, comparison.cases.values())):
        blocks.append(["Nothing changed in what both runs have."])
    blocks.append(_figures(comparison, summary.settings, several=len(summary.cases) > 1))
    for title, of in (("New survivors", "new_survivors"), ("Newly killed", "newly_killed")):
        rows = [_mutant_row(name, change) for name, case in comparison.cases.items() for change in getattr(case, of)]
        heads = ["mutant", "what it does", "killed before by" if of == "new_survivors" else "killed now by", "noise"]
        blocks += _part(f"{title}: {len(rows)}", _limited(heads, rows, len(summary.cases) > 1))
    verdicts = _verdict_rows(comparison)
    heads = ["task", "variant", "before", "now", "p"]
    blocks += _part(f"Tasks with another verdict: {len(verdicts)}", _limited(heads, verdicts, len(summary.cases) > 1))
    blocks.append(bullets(_lists(comparison, several=len(summary.cases) > 1)))
    return blocks


def _part(title: str, lines: list[str]) -> list[list[str]]:
    return [[f"**{title}**"], lines] if lines else []


def _limited(heads: list[str], rows: _Rows, several: bool) -> list[str]:
    """A table whose rows start with their case, which is shown where there are several."""
    start = 0 if several else 1
    lines = table(["case", *heads][start:], [row[start:] for row in rows[:MOST_ROWS]])
    if len(rows) > MOST_ROWS:
        cells = [f"and {len(rows) - MOST_ROWS} more", *[""] * (len(heads) - start)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _figures(comparison: RunComparison, settings: Settings, *, several: bool) -> list[str]:
    """One row a figure, changes whose interval leaves 0 out in bold."""
    rows = [
        [code(name), _what(change.what), *_numbers(change.figure), text(change.over)]
        for name, case in comparison.cases.items()
        for change in headline_changes(case, settings)
    ]
    rows += [
        ["all", f"baseline pass@{k}", *_numbers(mean), text(f"{counted(mean.tasks, 'task')}, clustered by case")]
        for k, mean in comparison.over_cases.items()
    ]
    return _limited(["", "before", "now", "change", "over"], rows, several)


def _what(words: str) -> str:
    """A figure's name, the id of a coverage system in it as code."""
    for kind in ("coverage ", "tau-b "):
        if words.startswith(kind):
            return kind + code(words.removeprefix(kind))
    return text(words)


def _numbers(figure: ChangedFigure) -> list[str]:
    if figure.value is None:
        return ["", "", text(change_text(figure), 160)]
    said = change_text(figure)
    change = f"**{said}**" if is_settled(figure) else said
    return [two_digits(figure.then), two_digits(figure.now), "no change" if figure.value == 0 else change]


def _mutant_row(case: str, change: MutantChange) -> list[str]:
    tasks = [code(task) + (" (gone)" if task in change.gone else "") for task in change.tasks[:MOST_TASKS]]
    more = [f"{len(change.tasks) - MOST_TASKS} more"] if len(change.tasks) > MOST_TASKS else []
    return [
        code(case),
        code(change.mutant),
        text(change.description),
        ", ".join(tasks + more),
        text(noise_text(change)),
    ]


def _verdict_rows(comparison: RunComparison) -> _Rows:
    """The baseline's first, in each the surest first."""
    found = [(name, change) for name, case in comparison.cases.items() for change in case.verdicts]
    found.sort(key=lambda pair: (pair[1].variant != BASELINE, is_better(pair[1]), pair[1].p))
    return [
        [
            *(code(name), code(change.task), code(change.variant)),
            *(text(seen_text(change.then)), text(seen_text(change.now)), p_text(change.p)),
        ]
        for name, change in found
    ]


def _lists(comparison: RunComparison, *, several: bool) -> Iterator[str]:
    for side in ("added", "removed"):
        yield from (f"{side}: {text(found)}" for found in experiment_parts_texts(comparison, side))
        for name, case in comparison.cases.items():
            where = f" in {code(name)}" if several else ""
            yield from (f"{side}{where}: {text(found)}" for found in parts_texts(case, side))
    for name, case in comparison.cases.items():
        yield from _groups(name, case, several=several)


def _groups(name: str, case: CaseComparison, *, several: bool) -> Iterator[str]:
    where = f" of {code(name)}" if several else ""
    for change in case.other_groups[:MOST_ROWS]:
        yield f"{code(change.mutant)}{where}: {group_words(change.then)} before, {group_words(change.now)} now"
    if len(case.other_groups) > MOST_ROWS:
        yield f"and {len(case.other_groups) - MOST_ROWS} more mutants{where} count in another way than before"
