"""The values that attempts score, and how JSON holds them."""

import math
from typing import Final, Literal, TypeAlias

ScoreValue: TypeAlias = bool | int | float | str | None
"""What an attempt scored: a number, a boolean, a label, or None for an attempt that died before it was scored."""

NON_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""How JSON writes the numbers that it has no word for."""


def value_to_json(value: ScoreValue) -> bool | int | float | str | None:
    """A score value as JSON can hold it: non-finite numbers become ``"NaN"``, ``"Infinity"``, ``"-Infinity"``.

    The text alone cannot be told from a label, so files keep a ``value_type`` beside it.
    """
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return "NaN"
        return "Infinity" if value > 0 else "-Infinity"
    return value


def value_type(value: ScoreValue) -> Literal["number", "label", "missing"]:
    """Which kind of value this is; a boolean counts as a number."""
    if value is None:
        return "missing"
    return "label" if isinstance(value, str) else "number"
