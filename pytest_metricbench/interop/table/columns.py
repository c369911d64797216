"""What the columns of a table are: the mapping in the experiment, and the columns of a file that it means."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pytest_metricbench.contracts import OutputKind
from pytest_metricbench.interop.recordings import RecordingError
from pytest_metricbench.interop.table.rows import Table
from pytest_metricbench.messages import did_you_mean, joined

DEFAULTS: Final[Mapping[str, str]] = {"case": "case", "variant": "variant", "task": "task", "trial": "trial_id"}
"""What a column is looked for under when the experiment does not name it."""
DEFAULT_SCORE: Final = "reward"
_SHOWN: Final = 20

ColumnName: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]


class ScoreColumn(BaseModel):
    """One score of a table."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    column: ColumnName | None = Field(None, description="Its column; default: the score's name.")
    kind: OutputKind | None = Field(None, description="What the score is; default: what its cells say.")
    values: dict[str, bool | int | float | str | None] = Field(
        {}, description="Words that stand for values: {pass: true, fail: false}. null: the agent died."
    )


def _column(name: str) -> ScoreColumn:
    return ScoreColumn(column=name, kind=None, values={})


class Columns(BaseModel):
    """What the columns of a table are. A role that is null is not looked for."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    case: ColumnName | None = Field(None, description="Which case a row is of; default: case, where it is.")
    variant: ColumnName | Annotated[list[ColumnName], Field(min_length=1)] | None = Field(
        None, description="Which variant; default: variant, or else the file's name. A list: a column each variant."
    )
    task: ColumnName | None = Field(None, description="Which task; default: task.")
    trial: ColumnName | None = Field(None, description="What the attempt is called; default: trial_id.")
    outcome: ColumnName | None = Field(None, description="scored, died, unmeasured, or a word of outcomes.")
    error: ColumnName | None = Field(None, description="What went wrong, in words.")
    scores: list[ColumnName] | dict[ColumnName, ColumnName | ScoreColumn] = Field(
        [DEFAULT_SCORE], min_length=1, description="The columns that are scores, or score names and their columns."
    )

    @field_validator("scores", mode="before")
    @classmethod
    def _one_score(cls, given: object) -> object:
        """A single column may stand without a list."""
        return [given] if isinstance(given, str) else given

    @property
    def wide(self) -> list[str]:
        """The columns that are variants, where each is one; else none."""
        return self.variant if isinstance(self.variant, list) else []

    @property
    def named_scores(self) -> dict[str, ScoreColumn]:
        """Score name -> its column, with the column's name filled in."""
        if isinstance(self.scores, list):
            return {name: _column(name) for name in self.scores}
        given = {name: _column(column) if isinstance(column, str) else column for name, column in self.scores.items()}
        return {name: column.model_copy(update={"column": column.column or name}) for name, column in given.items()}

    @property
    def wanted(self) -> list[str]:
        """The columns of a file that the experiment names, or that are looked for."""
        named = [name for role in DEFAULTS if isinstance(name := self.column(role), str)]
        scores = [] if self.wide else [score.column or "" for score in self.named_scores.values()]
        return [*named, *self.wide, *scores, *(name for name in (self.outcome, self.error) if name)]

    def column(self, role: str) -> str | None:
        """The column of a role: as named, or by its default name."""
        if role in self.model_fields_set:
            named = getattr(self, role)
            return named if isinstance(named, str) else None
        return DEFAULTS.get(role)


def read_columns(given: Mapping[str, Any]) -> Columns:
    """The mapping of the experiment, checked.

    Raises:
        RecordingError: an unknown key, a wrong type, or keys that do not go together.
    """
    try:
        columns = Columns.model_validate(dict(given))
    except ValidationError as error:
        # Of the errors of a type's alternatives the one that came furthest is about what was meant.
        first = max(error.errors(include_url=False), key=lambda found: len(found["loc"]))
        keys = [str(key) for key in first["loc"]]
        where = ".".join(["runner.columns", *(key for key in keys if not _BRANCH.fullmatch(key))])
        if first["type"] == "extra_forbidden":
            fields = ScoreColumn.model_fields if len(keys) > 1 else Columns.model_fields
            raise RecordingError(f"{where} is not known to the form table", f"it knows {', '.join(fields)}") from None
        raise RecordingError(f"{where}: {first['msg']}", _FORM) from None
    if columns.wide and len(columns.named_scores) != 1:
        raise RecordingError("runner.columns: with a list of variants every cell is one score", "name one under scores")
    return columns


_BRANCH: Final = re.compile(r"(?:constrained-)?str|ScoreColumn|\[key\]|(?:list|dict|union|function-.*)\[.*\]")
"""How pydantic names the alternatives of a type among the keys."""
_FORM: Final = "for example columns: {variant: model, task: task_id, trial: trial, scores: [reward]}"


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of one file by what they are; None where it has none."""

    case: str | None
    variant: str | None
    task: str | None
    trial: str | None
    outcome: str | None
    error: str | None

    @classmethod
    def of(cls, columns: Columns, table: Table, name: str) -> "FileColumns":
        """Find them in a file.

        Raises:
            RecordingError: one that is named, or that must be there, is not; the message lists those that are.
        """
        roles = {role: _find(columns, role, table, name) for role in ("case", "task", "trial", "outcome", "error")}
        variant = None if columns.wide else _find(columns, "variant", table, name)
        for wanted in columns.wide:
            _check(wanted, "runner.columns.variant", table, name)
        if not table.is_json and not columns.wide:  # rows of a JSONL file need not have every score
            for score, column in columns.named_scores.items():
                _check(column.column or score, f"runner.columns.scores.{score}", table, name)
        if roles["task"] is None and not columns.wide:
            _check(DEFAULTS["task"], "runner.columns.task", table, name)
        return cls(variant=variant, **roles)

    def used(self, columns: Columns) -> set[str]:
        """The names of the columns that something reads."""
        mine = (self.case, self.variant, self.task, self.trial, self.outcome, self.error)
        scores = [] if columns.wide else [column.column for column in columns.named_scores.values()]
        return {name for name in (*mine, *columns.wide, *scores) if name is not None}


def _find(columns: Columns, role: str, table: Table, name: str) -> str | None:
    column = columns.column(role)
    if column is None:
        return None
    if role not in columns.model_fields_set:
        return column if column in table.columns else None
    if not (table.is_json and role in ("outcome", "error")):
        _check(column, f"runner.columns.{role}", table, name)
    return column


def _check(column: str, key: str, table: Table, name: str) -> None:
    if column not in table.columns:
        raise RecordingError(f"{name}:1: there is no column {column!r}", no_column(column, key, table.columns))


def no_column(column: str, key: str, there: Sequence[str]) -> str:
    """What to do about a column that is not there."""
    shown = ", ".join(repr(name) for name in there[:_SHOWN]) + (", ..." if len(there) > _SHOWN else "")
    return joined(did_you_mean(column, there), f"{key} says which column it is; there are {shown}")
