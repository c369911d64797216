"""What changed against an earlier run, as tables of the page."""

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_metricbench.analysis.comparing_models import ChangedFigure, MutantChange, RunComparison
from pytest_metricbench.analysis.summary import Settings, Summary
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.comparison_words import (
    change_text,
    experiment_parts_texts,
    group_words,
    headline_changes,
    noise_text,
    parts_texts,
    says_nothing,
    seen_text,
    source_text,
)
from pytest_metricbench.reporting.coverage_sentences import p_text
from pytest_metricbench.reporting.layout import two_digits


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """A table of changes of one kind."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The first cell names the row."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What the page says of an earlier run."""

    source: str
    """What this run is compared with."""
    nothing: bool
    """Nothing is different in what both runs have."""
    tables: tuple[ChangeTable, ...]
    """Those that have rows."""
    parts: tuple[str, ...]
    """What only one of the runs has."""


def changes_view(summary: Summary) -> Changes | None:
    """What changed; None where no earlier run was named. Names of cases are in front where there are several."""
    comparison = summary.comparison
    if comparison is None:
        return None
    several = len(summary.cases) > 1
    tables = (
        ChangeTable(
            "Figures",
            ("figure", "before", "now", "change", "over"),
            tuple(_figures(comparison, summary.settings, several)),
        ),
        ChangeTable(
            "New survivors",
            ("mutant", "what it does", "killed before by", "noise"),
            tuple(_mutants(comparison, "new_survivors", several)),
        ),
        ChangeTable(
            "Newly killed",
            ("mutant", "what it does", "killed now by", "noise"),
            tuple(_mutants(comparison, "newly_killed", several)),
        ),
        ChangeTable(
            "Tasks with another verdict",
            ("task", "variant", "before", "now", "p", "trial ids before", "trial ids now"),
            tuple(_verdicts(comparison, several)),
        ),
        ChangeTable("Mutants that count otherwise", ("mutant", "before", "now"), tuple(_groups(comparison, several))),
    )
    return Changes(
        source_text(comparison),
        all(map(says_nothing, comparison.cases.values())),
        tuple(table for table in tables if table.rows),
        tuple(_parts(comparison, several)),
    )


def _named(case: str, name: str, several: bool) -> str:
    return f"{case}: {name}" if several else name


def _figures(comparison: RunComparison, settings: Settings, several: bool) -> Iterator[tuple[str, ...]]:
    for name, case in comparison.cases.items():
        for change in headline_changes(case, settings):
            yield (_named(name, change.what, several), *_numbers(change.figure), change.over)
    for k, mean in comparison.over_cases.items():
        over = f"{counted(mean.tasks, 'task')}, clustered by case"
        yield (f"all cases: baseline pass@{k}", *_numbers(mean), over)


def _numbers(figure: ChangedFigure) -> tuple[str, str, str]:
    return two_digits(figure.then), two_digits(figure.now), change_text(figure)


def _mutants(comparison: RunComparison, kind: str, several: bool) -> Iterator[tuple[str, ...]]:
    for name, case in comparison.cases.items():
        changes: tuple[MutantChange, ...] = getattr(case, kind)
        for change in changes:
            tasks = (f"{task} (gone)" if task in change.gone else task for task in change.tasks)
            yield _named(name, change.mutant, several), change.description, ", ".join(tasks), noise_text(change)


def _verdicts(comparison: RunComparison, several: bool) -> Iterator[tuple[str, ...]]:
    for name, case in comparison.cases.items():
        for change in case.verdicts:
            trials = (
                ", ".join((*seen.passed_trials, *seen.missed_trials, *seen.died_trials))
                for seen in (change.then, change.now)
            )
            task = _named(name, change.task, several)
            yield task, change.variant, seen_text(change.then), seen_text(change.now), p_text(change.p), *trials


def _groups(comparison: RunComparison, several: bool) -> Iterator[tuple[str, ...]]:
    for name, case in comparison.cases.items():
        for change in case.other_groups:
            yield _named(name, change.mutant, several), group_words(change.then), group_words(change.now)


def _parts(comparison: RunComparison, several: bool) -> Iterator[str]:
    for side in ("added", "removed"):
        for text in experiment_parts_texts(comparison, side):
            yield f"{side}: {text}"
        for name, case in comparison.cases.items():
            for text in parts_texts(case, side):
                yield _named(name, f"{side}: {text}", several)
