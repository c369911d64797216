"""What became of every attempt, for the strips of the page: a letter, a word, and the id it can be found by."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summary import CaseSummary, Summary
from pytest_metricbench.contracts import NOT_RECORDED, TIME_OUT, AttemptKey
from pytest_metricbench.definition.experiment import BASELINE, Case, ScorePolicy, Task
from pytest_metricbench.definition.scoring import status

MOST_ATTEMPTS: Final = 10_000
"""Attempts that are listed one by one. Of more, only the baseline's are: the others' ids stand in summary.json."""

Became: TypeAlias = Literal[
    "passed", "missed", "died", "timed-out", "unmeasured", "not-reached", "not-needed", "missing", "outside"
]
LETTERS: Final[Mapping[Became, str]] = {
    "passed": "p",
    "missed": "m",
    "died": "d",
    "timed-out": "t",
    "unmeasured": "u",
    "not-reached": "-",
    "not-needed": "-",
    "missing": "?",
    "outside": "o",
}
"""The letter of each: colour is never alone."""


@dataclass(frozen=True, slots=True)
class ShownAttempt:
    """One attempt in a strip."""

    became: Became
    trial_id: str
    """Empty where there is no record."""
    error: str = ""
    """Kind of the error, where there is one."""

    @property
    def letter(self) -> str:
        """What stands in the strip."""
        return LETTERS[self.became]

    @property
    def word(self) -> str:
        """What became of it, in words."""
        return self.became.replace("-", " ")

    @property
    def title(self) -> str:
        """What hovering says."""
        parts = [self.word, self.error, self.trial_id]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class VariantStrip:
    """The attempts of one variant at a task, by slot."""

    variant: str
    attempts: tuple[ShownAttempt, ...]


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A row of the table of tasks."""

    id: str
    name: str
    """What it is called elsewhere, where that differs; else empty."""
    description: str
    tags: tuple[str, ...]
    verdict: str
    rate: float | None
    kills: int
    cells: int
    only_killer_of: tuple[str, ...]
    kills_nothing: bool
    baseline: tuple[ShownAttempt, ...]
    mutants: tuple[VariantStrip, ...]
    """Empty where there are too many attempts to list."""


def task_rows(results: Results, summary: Summary, case: Case) -> list[TaskRow]:
    """The tasks of a case in the order of its summary, with the attempts of every variant."""
    found = summary.cases[case.id]
    policy = replace(results.experiment.score, primary=summary.settings.primary)
    listed = summary.counts.declared <= MOST_ATTEMPTS
    tasks = {task.id: task for task in case.tasks}
    nothing = frozenset(found.kill_nothing)
    return [
        _row(results, policy, case, tasks[task], found, listed=listed, kills_nothing=task in nothing)
        for task in found.tasks
    ]


def attempts_legend(rows: Sequence[TaskRow]) -> list[ShownAttempt]:
    """One of each outcome that the strips of these rows show, without its id."""
    strips = [strip for row in rows for strip in (row.baseline, *(mutant.attempts for mutant in row.mutants))]
    used = {attempt.became for strip in strips for attempt in strip}
    return [ShownAttempt(became, "") for became in LETTERS if became in used]


def _row(
    results: Results,
    policy: ScorePolicy,
    case: Case,
    task: Task,
    found: CaseSummary,
    *,
    listed: bool,
    kills_nothing: bool,
) -> TaskRow:
    summary = found.tasks[task.id]
    strips = [
        VariantStrip(variant.id, tuple(_strip(results, policy, case, variant.id, task)))
        for variant in case.variants
        if listed or variant.id == BASELINE
    ]
    return TaskRow(
        id=task.id,
        name=task.name if task.name != task.id else "",
        description=task.description,
        tags=task.tags,
        verdict=summary.baseline,
        rate=summary.baseline_rate.value,
        kills=summary.kills,
        cells=summary.cells,
        only_killer_of=summary.only_killer_of,
        kills_nothing=kills_nothing,
        baseline=strips[0].attempts,
        mutants=tuple(strips[1:]),
    )


def _strip(results: Results, policy: ScorePolicy, case: Case, variant: str, task: Task) -> Iterator[ShownAttempt]:
    for slot in case.slots(variant, task):
        yield shown_attempt(results, policy, (case.id, variant, task.id, slot))


def shown_attempt(results: Results, policy: ScorePolicy, key: AttemptKey) -> ShownAttempt:
    """What became of an attempt that the experiment declares, whether or not there is a record of it."""
    record = results.attempts.get(key)
    if record is None:
        return ShownAttempt("outside" if key in results.outside else "missing", "")
    error = record.error.type if record.error is not None else ""
    if error == NOT_RECORDED and record.outcome == "unmeasured":
        return ShownAttempt("missing", record.shown_id, error)
    word = status(policy, record)
    if word == "died" and error == TIME_OUT:
        return ShownAttempt("timed-out", record.shown_id)
    became: Became = "not-reached" if word == "not_reached" else "not-needed" if word == "not_needed" else word
    return ShownAttempt(became, record.shown_id, error)
