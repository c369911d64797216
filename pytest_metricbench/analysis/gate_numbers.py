"""How a figure is held against the number of a gate."""

import operator
from collections.abc import Callable, Mapping
from typing import Final

from pytest_metricbench.analysis.figures import DECIMALS
from pytest_metricbench.definition.experiment import Operator

_OPERATORS: Final[Mapping[Operator, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


def meets(op: Operator, value: float, number: float) -> bool:
    """Whether ``value op number``, both rounded to 12 decimals: equal fractions are equal."""
    return _OPERATORS[op](round(value, DECIMALS), round(number, DECIMALS))


def number_text(value: float) -> str:
    """A number as reasons of gates show it."""
    return f"{value:.6g}"
