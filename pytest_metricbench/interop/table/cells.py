"""Cells of a table as scores: what is a number, a boolean, a label, a death, and what is nothing."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_metricbench.answers import as_score_value, named, plain_text
from pytest_metricbench.contracts import ContractError, OutputKind
from pytest_metricbench.interop.recordings import RecordingError
from pytest_metricbench.score_values import ScoreValue

LABEL_LIMIT: Final = 1000
"""Characters of a label; a longer text is no score but somebody's answer."""
NAME_LIMIT: Final = 500
"""Characters of the name of a variant, a task or an attempt."""
DEAD_WORDS: Final = frozenset({"died", "null"})
"""What a cell says, in any case, where the agent died before it was scored."""
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?[0-9]+,[0-9]+")
_BOOLEANS: Final = {"true": True, "false": False}
_NON_FINITE: Final = {"nan": math.nan, "infinity": math.inf, "inf": math.inf}
_REMEDY: Final = "a number, true or false; empty where nothing is known, died where the agent died before it was scored"


class Nothing:
    """The value of a cell that says nothing: the attempt has no entry for that score."""


NOTHING: Final = Nothing()


@dataclass(slots=True)
class ScoreCells:
    """Reads the cells of one score, and holds them against one another: numbers and texts do not mix."""

    score: str
    column: str
    kind: OutputKind | None
    words: Mapping[str, ScoreValue]
    """What words stand for, by the user's word."""
    number_in: str = ""
    """Where a number was first."""
    text_in: str = ""
    nan: int = 0
    null: int = 0
    """Nulls of JSONL files."""

    def value(self, cell: Any, where: str, *, is_json: bool) -> ScoreValue | Nothing:
        """The value of a cell; ``where`` is its file and line.

        Raises:
            RecordingError: it is no score, or of another type than the score's other cells.
        """
        if isinstance(cell, str):
            text = plain_text(cell).strip()
            if text in self.words:
                return self._of_type(self.words[text], where, text)
            if not text:
                return NOTHING
            return self._of_text(text, where, is_json=is_json)
        if cell is None:
            self.null += 1
            return None
        try:
            value = as_score_value(self.score, cell)
        except ContractError as error:
            raise RecordingError(f"{where}: {error}") from None
        return self._of_type(value, where, str(value))

    def _of_text(self, text: str, where: str, *, is_json: bool) -> ScoreValue:
        if self.kind != "label":
            if text.lower() in DEAD_WORDS:
                return None
            sign, bare = (-1, text[1:]) if text[0] == "-" else (1, text.removeprefix("+"))
            if bare.lower() in _NON_FINITE:
                return self._of_type(sign * _NON_FINITE[bare.lower()], where, text)
            if not is_json and text.lower() in _BOOLEANS:
                return self._of_type(_BOOLEANS[text.lower()], where, text)
            if _NUMBER.fullmatch(text):
                if is_json:
                    message = (
                        f"{where}, column {self.column!r}: the text {named_text(text)} stands where a number would"
                    )
                    raise RecordingError(message, "write it without quotes, or say that the score has kind: label")
                return self._of_type(self._number(text, where), where, text)
        return self._of_type(text, where, text)

    def _number(self, text: str, where: str) -> int | float:
        if len(text) <= 400:
            number = float(text) if re.search(r"[.eE]", text) else int(text)
            if abs(number) < 1e308:
                return number
        raise RecordingError(f"{where}, column {self.column!r}: {named_text(text)} is too large", "up to 1e308")

    def _of_type(self, value: ScoreValue, where: str, shown: str) -> ScoreValue:
        """The value, once it is clear that it may stand in this column."""
        if value is None:
            return None
        if isinstance(value, float) and math.isnan(value):
            self.nan += 1
        if self.kind == "label":
            return self._label(value if isinstance(value, str) else shown, where)
        if self.kind == "boolean" and not isinstance(value, str) and value in (0, 1):
            return bool(value)
        if isinstance(value, str) and self.kind is None and not self.number_in:
            if _DECIMAL_COMMA.fullmatch(value):
                message = f"{where}, column {self.column!r}: {named_text(value)} has a decimal comma"
                raise RecordingError(message, "write it with a decimal point, or say that the score has kind: label")
            self.text_in = self.text_in or where
            return self._label(value, where)
        if isinstance(value, str) or not self._is_of_kind(value):
            self._refuse(shown, where)
        if self.text_in:
            message = f"{where}, column {self.column!r}: {named_text(shown)} is no text, as {self.text_in} has one"
            raise RecordingError(message, f"numbers and texts do not mix: {_REMEDY}; or say that it has kind: label")
        self.number_in = self.number_in or where
        return value

    def _is_of_kind(self, value: bool | float) -> bool:
        """Whether a number or boolean is what the declared kind says, as the contract of scores has it."""
        if self.kind is None:
            return True
        if isinstance(value, bool) or self.kind == "boolean":
            return isinstance(value, bool) and self.kind == "boolean"
        return self.kind != "discrete" or isinstance(value, int) or value.is_integer()

    def _refuse(self, shown: str, where: str) -> None:
        what = {"boolean": "true or false", "discrete": "a whole number"}.get(self.kind or "", "a number")
        since = f", as {self.number_in} has one" if self.kind is None else f": its kind is {self.kind}"
        message = f"{where}, column {self.column!r}: {named_text(shown)} is not {what}{since}"
        remedy = "write it with a decimal point" if _DECIMAL_COMMA.fullmatch(shown) else _REMEDY
        raise RecordingError(message, remedy)

    def _label(self, text: str, where: str) -> str:
        if len(text) > LABEL_LIMIT:
            message = f"{where}, column {self.column!r}: a text of {len(text)} characters is no label"
            raise RecordingError(message, f"at most {LABEL_LIMIT}; do not name that column under scores")
        return text


def name_in(cell: Any, where: str, what: str) -> str:
    """The name of a case, a variant, a task or an attempt in a cell.

    Raises:
        RecordingError: there is none, or it is neither a text nor a number.
    """
    if isinstance(cell, str):
        text = plain_text(cell).strip()
    elif isinstance(cell, int | float) and not isinstance(cell, bool):
        text = str(cell)
    else:
        text = ""
        if cell is not None:
            raise RecordingError(f"{where}: the {what} is {named(cell)}", "a name is a text or a number")
    if not text:
        raise RecordingError(f"{where}: the row names no {what}", f"every row names its {what}")
    if len(text) > NAME_LIMIT:
        raise RecordingError(f"{where}: the name of the {what} has {len(text)} characters", f"at most {NAME_LIMIT}")
    return text


def words_in(cell: Any) -> str:
    """What a cell says in words; empty where it says nothing."""
    if isinstance(cell, str):
        return plain_text(cell).strip()
    return "" if cell is None or cell is False else str(cell)


def named_text(text: str) -> str:
    """How an error shows what a cell says: whole where it is short."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
