"""The kill matrix of the page: mutants against tasks, in an order in which structure shows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pytest_metricbench.analysis.summary import CaseSummary
from pytest_metricbench.definition.experiment import BASELINE

Shown: TypeAlias = Literal["killed", "timed-out", "died", "survived", "not-reached", "missing"]
SIGNS: Final[Mapping[Shown, str]] = {
    "killed": "x",
    "timed-out": "t",
    "died": "d",
    "survived": ".",
    "not-reached": "-",
    "missing": "?",
}
"""What stands in a cell, so that colour is never alone."""
MEANINGS: Final[Mapping[Shown, str]] = {
    "killed": "killed",
    "timed-out": "killed, but only since attempts timed out",
    "died": "killed, but only since attempts died",
    "survived": "survived",
    "not-reached": "not reached: the task never runs what the mutant changed",
    "missing": "missing: not measured on both sides",
}
MOST_TITLES: Final = 3_000
"""Cells up to which each says its pass rates on hover; of more that would be most of the page."""
MOST_LETTERS: Final = 26
"""Of a task's id above its column."""
WIDE: Final = 40
"""Tasks from which the columns are narrow."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A mutant at a task."""

    state: Shown
    title: str
    """What hovering says; empty where there are too many cells."""

    @property
    def sign(self) -> str:
        """What stands in it."""
        return SIGNS[self.state]


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A mutant at every task."""

    mutant: str
    group: str
    """``control``, ``equivalent`` or ``invalid`` for a mutant that is in no score; else empty."""
    cells: tuple[Cell, ...]
    kills: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """All mutants of a case at all of its tasks."""

    tasks: tuple[tuple[str, str], ...]
    """Id, and the id as it stands above its column: of a long one the end, where ids of a suite differ."""
    rows: tuple[MatrixRow, ...]
    kills: tuple[int, ...]
    """By task: how many of the mutants in the score it kills."""
    legend: tuple[tuple[Shown, str, str], ...]
    """State, sign, meaning; of the states that occur."""

    @property
    def wide(self) -> bool:
        """Whether its columns are narrow."""
        return len(self.tasks) >= WIDE


def kill_matrix_view(case: CaseSummary) -> Matrix | None:
    """The matrix of a case in an order that shows its structure; None without mutants.

    Tasks stand in the greedy order (each adds most kills to those before it), the others after them by their number of
    kills. Mutants stand by the first of these tasks that kills them, so that each step of the greedy order is a step of
    a staircase, then by how many tasks kill them; then come survivors, and at the end those that are in no score.
    """
    if not case.kills:
        return None
    tasks = _task_order(case)
    mutants = _mutant_order(case, tasks)
    shown = _states(case)
    titled = len(tasks) * len(mutants) <= MOST_TITLES
    rows = tuple(_row(case, mutant, tasks, shown[mutant], titled=titled) for mutant in mutants)
    used = {cell.state for row in rows for cell in row.cells}
    legend = tuple((state, sign, MEANINGS[state]) for state, sign in SIGNS.items() if state in used)
    heads = tuple((task, _short(task)) for task in tasks)
    return Matrix(heads, rows, tuple(case.tasks[task].kills for task in tasks), legend)


def _short(task: str) -> str:
    return task if len(task) <= MOST_LETTERS else f"\N{HORIZONTAL ELLIPSIS}{task[1 - MOST_LETTERS :]}"


def _task_order(case: CaseSummary) -> list[str]:
    greedy = [step.task for step in case.greedy]
    rest = [task for task in case.tasks if task not in set(greedy)]
    return [*greedy, *sorted(rest, key=lambda task: -case.tasks[task].kills)]


def _mutant_order(case: CaseSummary, tasks: list[str]) -> list[str]:
    last = (*case.mutants.controls, *case.mutants.invalid, *case.mutants.equivalent)
    position = {mutant: index for index, mutant in enumerate(last, start=1)}

    def rank(mutant: str) -> tuple[int, int, int]:
        killed = [index for index, task in enumerate(tasks) if case.kills[mutant].get(task) == "killed"]
        return position.get(mutant, 0), killed[0] if killed else len(tasks), -len(killed)

    return sorted(case.kills, key=rank)


def _states(case: CaseSummary) -> dict[str, dict[str, Shown]]:
    """The state of every cell, weak kills told from the others."""
    states: dict[str, dict[str, Shown]] = {
        mutant: {task: "not-reached" if state == "not_reached" else state for task, state in by_task.items()}
        for mutant, by_task in case.kills.items()
    }
    for kill in case.died_kills.kills:
        states[kill.mutant][kill.task] = "died"
    for kill in case.died_kills.time_outs:
        states[kill.mutant][kill.task] = "timed-out"
    return states


def _row(case: CaseSummary, mutant: str, tasks: list[str], states: Mapping[str, Shown], *, titled: bool) -> MatrixRow:
    cells = tuple(Cell(states[task], _title(case, mutant, task, states[task]) if titled else "") for task in tasks)
    kills = sum(1 for state in case.kills[mutant].values() if state == "killed")
    return MatrixRow(mutant, _group(case, mutant), cells, kills)


def _group(case: CaseSummary, mutant: str) -> str:
    groups = case.mutants
    named = (("control", groups.controls), ("invalid", groups.invalid), ("equivalent", groups.equivalent))
    return ", ".join(word for word, members in named if mutant in members)


def _title(case: CaseSummary, mutant: str, task: str, state: Shown) -> str:
    """Whose cell it is, and the passes on both sides."""
    sides = [f"{side} {text}" for side, text in _passes(case, mutant, task)]
    return f"{mutant} at {task}: {MEANINGS[state].partition(':')[0]} ({'; '.join(sides)})"


def _passes(case: CaseSummary, mutant: str, task: str) -> Iterator[tuple[str, str]]:
    for side, variant in (("mutant", mutant), ("baseline", BASELINE)):
        found = case.variants[variant].tasks[task]
        yield side, f"passed {found.passed} of {found.n}"
