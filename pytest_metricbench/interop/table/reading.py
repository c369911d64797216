"""A table of results, CSV or JSONL, read as recorded attempts.

A row is an attempt; or a row is a task, and a column a variant.

An empty cell says nothing: no entry. ``died`` (or ``null``) says that the agent died before it was scored: it counts
and did not pass. A row without any value is unmeasured, unless its outcome says otherwise.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pytest_metricbench.contracts import AttemptError, Outcome
from pytest_metricbench.definition.experiment import Note
from pytest_metricbench.definition.ids import derive_id
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.interop.counted_notes import counted_note, counted_notes
from pytest_metricbench.interop.recordings import (
    ReadOptions,
    RecordedTask,
    Recording,
    RecordingError,
    Recordings,
    Treatment,
)
from pytest_metricbench.interop.table.cells import Nothing, ScoreCells, name_in, named_text, words_in
from pytest_metricbench.interop.table.columns import Columns, FileColumns, no_column, read_columns
from pytest_metricbench.interop.table.rows import Table, TableRow, large_cells
from pytest_metricbench.messages import nearest
from pytest_metricbench.score_values import ScoreValue

REPEATED: Final = "row{s} with the name of an earlier attempt of the file: counted as further attempts"
EQUAL: Final = "row{s} equal to an earlier one in every cell, as in a file that was appended to itself: counted too"
NAN: Final = "cell{s} with NaN: counted, and never passing; leave empty what is not known"
NULL: Final = "cell{s} with null: counted as died; leave out the key where nothing is known"
OVERRULED: Final = "row{s} with scores that are not read: the outcome is died or unmeasured"
NO_SCORE: Final = "NoScore"
"""The type of the error of a row without any value."""
_WORDS: Final[Mapping[str, Treatment]] = {"scored": "scored", "died": "died", "unmeasured": "unmeasured"}
_SHOWN: Final = 20


def read(paths: Mapping[str, Path], options: ReadOptions) -> Recordings:
    """Read the rows of one case from the files in ``paths``, in their order.

    ``options.columns`` is the mapping that :class:`~pytest_metricbench.interop.table.columns.Columns` describes;
    ``options.outcomes`` says what words of the outcome column (or, without one, of the error column) mean.

    Raises:
        RecordingError: there is nothing of that case, or a file, a row or a cell is not right.
    """
    if options.variants is not None:
        raise RecordingError("runner.variants: the form table takes them from runner.columns.variant", "remove the key")
    if options.evidence is not None:
        raise RecordingError("runner.evidence: a table has no files of its attempts", "remove the key")
    reader = _Reader(options, read_columns(options.columns))
    with large_cells():
        for name, path in paths.items():
            reader.read(name, path)
    return reader.recordings(paths)


@dataclass(slots=True)
class _Reader:
    """Reads the files of one case, one after the other."""

    options: ReadOptions
    columns: Columns
    scores: dict[str, ScoreCells] = field(init=False)
    """Column -> how its cells are read."""
    attempts: list[Recording] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    cases: dict[str, None] = field(default_factory=dict)
    """Those that rows are of, in order of appearance."""
    seen: dict[str, None] = field(default_factory=dict)
    """Every column of every file."""
    used: set[str] = field(default_factory=set)
    filled: set[str] = field(default_factory=set)
    """The columns of scores that are there."""

    def __post_init__(self) -> None:
        """Make a reader of cells for every column of a score."""
        named = self.columns.named_scores
        if self.columns.wide:
            (score, form), *_ = named.items()
            self.scores = {name: ScoreCells(score, name, form.kind, form.values) for name in self.columns.wide}
            return
        self.scores = {}
        for score, form in named.items():
            column = form.column or score
            if column in self.scores:
                message = (
                    f"runner.columns.scores: {score!r} and {self.scores[column].score!r} are the column {column!r}"
                )
                raise RecordingError(message, "a column is one score")
            self.scores[column] = ScoreCells(score, column, form.kind, form.values)

    # ------------------------------------------------ reading

    def read(self, name: str, path: Path) -> None:
        """Read one file."""
        real = Path(os.path.realpath(path))  # a link that the experiment names is followed
        table = Table(real, name, self.columns.wanted)
        places = FileColumns.of(self.columns, table, name)
        repeats: dict[tuple[str, str, str], set[int]] = {}
        rows = 0
        for row in table.rows():
            rows += 1
            if self._is_of_case(row, places, name):
                for attempt in self._attempts(row, places, name, is_json=table.is_json):
                    self.attempts.append(attempt)
                    if places.trial is not None:
                        self._count_repeat(repeats, attempt, row)
        if not rows:
            raise RecordingError(f"{name} has no rows", "a row an attempt")
        self.seen.update(dict.fromkeys(table.columns))
        self.used |= places.used(self.columns)
        self.filled.update(self.scores.keys() & set(table.columns))

    def _is_of_case(self, row: TableRow, places: FileColumns, name: str) -> bool:
        if places.case is None:
            return True
        case = name_in(row.cells.get(places.case), f"{name}:{row.line}", "case")
        if len(self.cases) < _SHOWN + 1:
            self.cases.setdefault(case)
        return case == self.options.case or derive_id(case)[0] == self.options.case

    def _attempts(self, row: TableRow, places: FileColumns, name: str, *, is_json: bool) -> Iterator[Recording]:
        """The attempts of a row: one, or one for each variant that has a column."""
        where = f"{name}:{row.line}"
        task = name_in(row.cells.get(places.task), where, "task") if places.task is not None else f"row-{row.number}"
        trial = name_in(row.cells.get(places.trial), where, "attempt") if places.trial is not None else where
        if self.columns.wide:
            for variant, cells in self.scores.items():
                values = _values(row, {variant: cells}, where, is_json=is_json)
                if values or places.outcome is not None or places.error is not None:
                    outcome = self._outcome(row, values, places, where, trial)
                    yield Recording(variant, task, trial, name, outcome)
            return
        variant = PurePosixPath(name).stem
        if places.variant is not None:
            variant = name_in(row.cells.get(places.variant), where, "variant")
        values = _values(row, self.scores, where, is_json=is_json)
        yield Recording(variant, task, trial, name, self._outcome(row, values, places, where, trial))

    def _count_repeat(self, repeats: dict[tuple[str, str, str], set[int]], attempt: Recording, row: TableRow) -> None:
        try:
            content = hash(repr(sorted(row.cells.items(), key=lambda item: item[0])))
        except RecursionError:  # nested so deep that it could just be read
            content = row.line
        others = repeats.setdefault((attempt.variant, attempt.task, attempt.trial), set())
        self.counted[REPEATED] += bool(others)
        self.counted[EQUAL] += content in others
        others.add(content)

    # ------------------------------------------------ outcomes

    def _outcome(
        self, row: TableRow, values: Mapping[str, ScoreValue], places: FileColumns, where: str, trial: str
    ) -> Outcome:
        """What became of an attempt, by what its row says of it and by its values."""
        error = words_in(row.cells.get(places.error)) if places.error is not None else ""
        said, word = self._treatment(row, error, places, where)
        measured = any(value is not None for value in values.values())
        treatment = said or "scored"
        if treatment == "scored" and not measured:
            treatment = "died" if values else "unmeasured"
        if treatment == "scored":
            problem = AttemptError(word or "Error", error, "agent") if error else None
            return Outcome.scored(values, error=problem, trial_name=trial)
        self.counted[OVERRULED] += measured
        has_said = said == treatment or bool(values)
        message = error or (f"as {where} says" if has_said else f"{where} has no score")
        if treatment == "died":
            return Outcome.died(word or "Died", message, trial_name=trial)
        return Outcome.unmeasured(
            word or ("Unmeasured" if has_said else NO_SCORE), message, "verifier", trial_name=trial
        )

    def _treatment(self, row: TableRow, error: str, places: FileColumns, where: str) -> tuple[Treatment | None, str]:
        """What a row's own words make of it, None where they do not say; and the word, where there is one."""
        if places.outcome is None:
            return self.options.outcomes.get(error), error if error in self.options.outcomes else ""
        word = words_in(row.cells.get(places.outcome))
        if not word:
            return None, ""
        treatment = self.options.outcomes.get(word) or _WORDS.get(word.lower())
        if treatment is None:
            message = f"{where}, column {places.outcome!r}: {named_text(word)} is no outcome"
            known = ", ".join(dict.fromkeys([*self.options.outcomes, *_WORDS]))
            raise RecordingError(message, f"it is one of {known}; outcomes: {{{word[:40]}: died}} gives it a meaning")
        return treatment, "" if word.lower() in _WORDS and word not in self.options.outcomes else word

    # ------------------------------------------------ the whole

    def recordings(self, paths: Mapping[str, Path]) -> Recordings:
        """What was read, once every file was."""
        self._check_found(paths)
        kinds = {cells.score: cells.kind for cells in self.scores.values() if cells.kind is not None}
        tasks = dict.fromkeys(attempt.task for attempt in self.attempts)
        return Recordings(
            self.attempts,
            {name: RecordedTask(name, outputs=kinds) for name in tasks},
            notes=self._notes(),
            files=dict(paths),
        )

    def _check_found(self, paths: Mapping[str, Path]) -> None:
        there = list(self.seen)
        for column, cells in self.scores.items():
            if column not in self.filled:
                message = f"{', '.join(paths)}: no row has the key {column!r}"
                raise RecordingError(message, no_column(column, f"runner.columns.scores.{cells.score}", there))
        for role in ("outcome", "error"):
            column = getattr(self.columns, role)
            if column is not None and column not in self.seen and nearest(column, there) is not None:
                message = f"{', '.join(paths)}: no row has the key {column!r}"
                raise RecordingError(message, no_column(column, f"runner.columns.{role}", there))
        if not self.attempts:
            shown = ", ".join(list(self.cases)[:_SHOWN]) + (", ..." if len(self.cases) > _SHOWN else "")
            message = f"{', '.join(paths)}: no row is of the case {self.options.case!r}"
            raise RecordingError(message, f"the cases are {shown}" if self.cases else "a row an attempt")

    def _notes(self) -> list[Note]:
        self.counted[NAN] += sum(cells.nan for cells in self.scores.values())
        self.counted[NULL] += sum(cells.null for cells in self.scores.values())
        notes = list(counted_notes((REPEATED, EQUAL, NAN, NULL, OVERRULED), self.counted))
        unused = [name for name in self.seen if name and name not in self.used]
        if unused:
            text = f"column{{s}} that nothing reads: {first_names(unused, _SHOWN)}"
            notes.append(counted_note(text, len(unused)))
        return notes


def _values(row: TableRow, scores: Mapping[str, ScoreCells], where: str, *, is_json: bool) -> dict[str, ScoreValue]:
    """The scores that a row has, by name."""
    values = {}
    for column, cells in scores.items():
        if column in row.cells:
            value: Any = cells.value(row.cells[column], where, is_json=is_json)
            if not isinstance(value, Nothing):
                values[cells.score] = value
    return values
