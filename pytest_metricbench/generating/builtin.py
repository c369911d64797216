"""The generators and text operators that need no plugin, and all that are known with those that plugins give."""

import re
from collections.abc import Iterable
from typing import Any, Final

from pytest_metricbench.generating import text_operators
from pytest_metricbench.generating.base import Generator, Makers, TextOperator
from pytest_metricbench.kinds import Kinds

BUILTIN: Final = Kinds[Generator](
    {
        "cosmic-ray": "pytest_metricbench.generating.code:CosmicRayGenerator",
        "params": "pytest_metricbench.generating.params:ParamsGenerator",
        "text": "pytest_metricbench.generating.text:TextGenerator",
        "tools": "pytest_metricbench.generating.tools:ToolsGenerator",
    }
)
"""The generators that need no plugin: what stands after ``from`` -> class."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}", re.ASCII)


class MakerError(ValueError):
    """A plugin gives something that is no generator or operator, or whose name is taken; the message says which."""


def known_makers(generators: Iterable[Iterable[Any]] = (), operators: Iterable[Iterable[Any]] = ()) -> Makers:
    """What is built in with what plugins give.

    Args:
        generators: a group of classes for each plugin.
        operators: a group of :class:`~pytest_metricbench.generating.base.TextOperator` for each plugin.

    Raises:
        MakerError: one of them is none, or its name is taken.
    """
    classes = BUILTIN
    for cls in (cls for group in generators for cls in group):
        if not isinstance(cls, type) or not issubclass(cls, Generator):
            raise MakerError(f"{cls!r} is no generator; a subclass of Generator is expected")
        where, origin = f"{cls.__module__}.{cls.__qualname__}", getattr(cls, "origin", None)
        if not isinstance(origin, str) or not _NAME.fullmatch(origin):
            raise MakerError(f'{where} names no origin; write origin: ClassVar[str] = "name"')
        if origin in classes and classes[origin] is not cls:
            other = f"{classes[origin].__module__}.{classes[origin].__qualname__}"
            raise MakerError(f"the origin {origin!r} of {where} is taken by {other}; rename one")
        classes = classes.also({origin: cls})
    known = dict(text_operators.BUILTIN)
    for operator in (operator for group in operators for operator in group):
        if not isinstance(operator, TextOperator):
            raise MakerError(f"{operator!r} is no operator; a TextOperator is expected")
        if not _NAME.fullmatch(operator.name):
            raise MakerError(
                f"the operator name {operator.name!r} is none: at most 40 letters, digits and - are allowed"
            )
        if known.setdefault(operator.name, operator) != operator:
            raise MakerError(f"there are two operators {operator.name!r}; rename one")
    return Makers(classes, known)
