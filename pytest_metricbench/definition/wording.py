"""What pydantic says about a value, in the words of the experiment file."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import ErrorDetails

from pytest_metricbench.definition.problems import shortened
from pytest_metricbench.targets import Target

_EXPECTED: Final = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "none_required": "null",
    "path_type": "a path",
}
_BOUNDS: Final = {
    "greater_than": ("gt", "a number above {}"),
    "greater_than_equal": ("ge", "at least {}"),
    "less_than": ("lt", "a number below {}"),
    "less_than_equal": ("le", "at most {}"),
}


@dataclass(frozen=True, slots=True)
class Wording:
    """One error in words: what is wrong, what would be right, and the words it may be a misspelling of."""

    message: str
    remedy: str = ""
    expected: str = ""
    """What kind of value belongs there, where the error is about that."""
    known: tuple[str, ...] = ()


def in_words(details: ErrorDetails, annotation: object, written: str | None) -> Wording:
    """Say what is wrong with a value.

    Args:
        details: what pydantic found.
        annotation: the type of the field, where it is known.
        written: how the value is written, where it stands without quotes in the file.
    """
    kind, value = details["type"], details["input"]
    context: dict[str, Any] = details.get("ctx", {})
    if kind in _EXPECTED:
        expected = _EXPECTED[kind]
        remedy = f"{expected} is expected{_quoting(kind, value, written)}"
        return Wording(f"is {described(value)}", remedy, expected)
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return Wording(f"is {described(value)}", f"{words.format(_plain_number(context[name]))} is expected")
    special = _SPECIAL.get(kind)
    if special is not None:
        return special(value, context, annotation)
    if "remedy" in context and "message" in context:
        return Wording(str(context["message"]), str(context["remedy"]))
    message = details["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    message = f"{message[:1].lower()}{message[1:]}" if message[:6] == "Input " else message
    return Wording(message)


def described(value: object) -> str:
    """A wrong value as a message names it: its type, and itself where that is short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {shortened(str(value))}"
    if isinstance(value, str):
        return f"the text {shortened(value)!r}"
    return "a list" if isinstance(value, list) else "a mapping"


def _quoting(kind: str, value: object, written: str | None) -> str:
    """How to write what was probably meant, where YAML read something else."""
    if kind == "string_type" and written and (value is None or isinstance(value, bool | int | float)):
        return f'; quote it: "{written}"'
    if kind in ("int_type", "float_type") and isinstance(value, str):
        plain = _meant(value, whole=kind == "int_type")
        if plain is not None:
            return (
                f"; write {plain} without quotes"
                if written is None
                else f"; YAML reads {written} as a text, write {plain}"
            )
    return ""


def _meant(text: str, *, whole: bool) -> str | None:
    """The number that a text was meant to be, as YAML reads it; None where it is none that would be taken."""
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    if number.is_integer():
        return repr(int(number))
    return None if whole else repr(number)


def _plain_number(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _literal(value: object, context: dict[str, Any], _: object) -> Wording:
    known = tuple(re.findall(r"'([^']*)'", str(context["expected"])))
    return Wording(f"is {described(value)}", f"{context['expected']} is expected", known=known)


def _length(value: object, context: dict[str, Any], _: object) -> Wording:
    least, most = context.get("min_length"), context.get("max_length")
    unit = "character" if isinstance(value, str) else "entry"
    plural = {"character": "characters", "entry": "entries"}
    if most is not None:
        return Wording("is too long", f"at most {most} {unit if most == 1 else plural[unit]}")
    if least == 1:
        return Wording("is empty", f"at least one {unit} is expected")
    return Wording("is too short", f"at least {least} {plural[unit]}")


def _pattern(value: object, context: dict[str, Any], annotation: object) -> Wording:
    if annotation is Target:
        return Wording(f"is {described(value)}", "a Python function is named as package.module:function")
    return Wording(f"is {described(value)}", f"a text that matches {context['pattern']} is expected")


def _finite(value: object, context: dict[str, Any], annotation: object) -> Wording:
    return Wording(f"is {described(value)}", "a finite number is expected")


_SPECIAL: Final[dict[str, Callable[[object, dict[str, Any], object], Wording]]] = {
    "literal_error": _literal,
    "enum": _literal,
    "too_short": _length,
    "too_long": _length,
    "string_too_short": _length,
    "string_too_long": _length,
    "string_pattern_mismatch": _pattern,
    "finite_number": _finite,
}
