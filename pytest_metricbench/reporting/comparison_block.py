"""The part of the terminal section that says what changed against an earlier run."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from pytest_metricbench.analysis.comparing_models import CaseComparison, ChangedFigure, VerdictChange
from pytest_metricbench.analysis.summary import Settings, Summary
from pytest_metricbench.definition.experiment import BASELINE
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.comparison_words import (
    change_text,
    experiment_parts_texts,
    group_words,
    headline_changes,
    is_better,
    killers_text,
    parts_texts,
    says_nothing,
    seen_text,
    source_text,
)
from pytest_metricbench.reporting.coverage_sentences import p_text
from pytest_metricbench.reporting.layout import Line, Style, block, one_line, two_digits

MOST_LINES: Final = 6
"""Of one kind, over all cases."""


def comparison_block(summary: Summary, width: int) -> list[Line]:
    """What changed, a label a kind; nothing where no earlier run was named.

    Args:
        summary: this run's.
        width: of the terminal.
    """
    comparison = summary.comparison
    if comparison is None:
        return []
    cases, several = comparison.cases, len(summary.cases) > 1
    lines = block("compared with", [one_line(source_text(comparison))], width, "bold")
    kinds: list[tuple[str, Style, list[str]]] = [
        ("changed", "", _texts(cases, several, lambda found: _figures(found, summary.settings))),
        ("over the cases", "", _over_cases(summary)),
        ("new survivors", "red", _texts(cases, several, _new_survivors)),
        ("newly killed", "green", _texts(cases, several, _newly_killed)),
        ("verdicts", "", _texts(cases, several, _verdicts)),
        ("mutants", "", _texts(cases, several, _groups)),
        *_parts(summary, several),
    ]
    for label, style, texts in kinds:
        shown = texts[:MOST_LINES]
        if len(texts) > len(shown):
            shown.append(f"and {len(texts) - len(shown)} more: summary.json, comparison")
        lines += block(label, map(one_line, shown), width, style)
    if all(map(says_nothing, cases.values())):
        lines += block("", ["nothing changed in what both runs have"], width)
    return lines


def _texts(
    cases: Mapping[str, CaseComparison], several: bool, of: Callable[[CaseComparison], Iterator[str]]
) -> list[str]:
    return [f"{name}: {text}" if several else text for name, found in cases.items() for text in of(found)]


def _figures(found: CaseComparison, settings: Settings) -> Iterator[str]:
    """Changes of figures; those that did not change are left out."""
    for change in headline_changes(found, settings):
        if change.figure.value != 0:
            yield f"{change.what} {_then_now(change.figure)}, over {change.over}"


def _then_now(figure: ChangedFigure) -> str:
    if figure.value is None:
        return change_text(figure)
    return f"{two_digits(figure.then)} -> {two_digits(figure.now)}: {change_text(figure)}"


def _over_cases(summary: Summary) -> list[str]:
    found = summary.comparison.over_cases if summary.comparison is not None else {}
    return [
        f"baseline pass@{k} {_then_now(mean)}, over {counted(mean.tasks, 'task')} of {counted(mean.clusters, 'case')}"
        for k, mean in found.items()
        if mean.value != 0
    ]


def _new_survivors(found: CaseComparison) -> Iterator[str]:
    for change in found.new_survivors:
        yield f"{change.mutant}: {killers_text(change, 'killed before')}"


def _newly_killed(found: CaseComparison) -> Iterator[str]:
    for change in found.newly_killed:
        yield f"{change.mutant}: {killers_text(change, 'killed now')}"


def _verdicts(found: CaseComparison) -> Iterator[str]:
    """How many changed, and the baseline's tasks one by one, those first that chance explains least."""
    baseline = [change for change in found.verdicts if change.variant == BASELINE]
    mutants = [change for change in found.verdicts if change.variant != BASELINE]
    for whose, changes in (("the baseline", baseline), ("mutants", mutants)):
        if changes:
            better = sum(map(is_better, changes))
            yield f"of {whose}: {better} better, {len(changes) - better} worse"
    for change in sorted(baseline, key=lambda change: change.p):
        yield _verdict(change)


def _verdict(change: VerdictChange) -> str:
    return f"{change.task}: {seen_text(change.then)} -> {seen_text(change.now)}, p = {p_text(change.p)}"


def _groups(found: CaseComparison) -> Iterator[str]:
    for change in found.other_groups:
        yield f"{change.mutant}: {group_words(change.then)} before, {group_words(change.now)} now"


def _parts(summary: Summary, several: bool) -> Iterator[tuple[str, Style, list[str]]]:
    comparison = summary.comparison
    if comparison is None:
        return
    for side in ("added", "removed"):
        texts = experiment_parts_texts(comparison, side)
        for name, found in comparison.cases.items():
            texts += [f"{name}: {text}" if several else text for text in parts_texts(found, side)]
        yield side, "", texts
