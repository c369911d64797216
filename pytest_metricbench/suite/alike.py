"""Two versions of a module's code, told apart function by function: which of them can take the other's place."""

import __future__

import inspect
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from types import CodeType
from typing import Final

from pytest_metricbench.suite.blocks import changed_block
from pytest_metricbench.suite.bytecode import typed

_OF_FUTURES: Final = reduce(or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))
"""What a code's flags have of ``from __future__``."""


class UnfitError(Exception):
    """A mutant that cannot take the baseline's place in a process that has imported it; says why."""


@dataclass(frozen=True, slots=True)
class Swap:
    """The code of a function, or of what it holds, in two versions."""

    old: CodeType
    """As compiled for the comparison: equal to what is in force, and not the same object."""
    new: CodeType
    does_other: bool
    """Whether it does something else itself, and not only a function that it makes."""


def swaps(old: str, new: str, in_force: CodeType) -> list[Swap]:
    """What has to be put in place of what, so that ``new`` is in force where ``old`` is.

    Args:
        old: source, with line feeds as the only ends of lines.
        new: likewise.
        in_force: the module's code, made of ``old``.

    Raises:
        UnfitError: they differ in more than what functions do when they are called.
    """
    if old.count("\n") != new.count("\n"):
        raise UnfitError("it has another number of lines")  # and the lines of what follows stand in its code
    try:
        one, other = _compiled(old, new, in_force)
        return list(_differences(one, other))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise UnfitError(f"it cannot be compiled: {error}") from None


def _compiled(old: str, new: str, in_force: CodeType) -> tuple[CodeType, CodeType]:
    flags = in_force.co_flags & _OF_FUTURES & ~inspect.CO_NESTED

    def code_of(text: str) -> CodeType:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # what the compiler finds odd about a mutant is no verdict
            code: CodeType = compile(text, in_force.co_filename, "exec", flags, dont_inherit=True)
        return code

    block = changed_block(old, new)
    if block is not None:
        try:
            return code_of(block.to_compile(block.old)), code_of(block.to_compile(block.new))
        except SyntaxError:  # it goes on behind its end, or is no code at all
            pass
    return code_of(old), code_of(new)


def _differences(old: CodeType, new: CodeType, outermost: bool = True) -> Iterator[Swap]:
    """The pairs that differ, what holds another one after it."""
    if old == new:
        return
    if _face(old) != _face(new):
        raise UnfitError(f"{new.co_qualname} is called, named or described in another way")
    pairs = list(_held(old, new))
    for one, other in pairs:
        yield from _differences(one, other, outermost=False)
    does_other = _doings(old) != _doings(new)
    if not outermost:
        yield Swap(old, new, does_other)
    elif does_other:
        raise UnfitError("it differs outside functions")


def _face(code: CodeType) -> tuple[object, ...]:
    """What the outside sees of a function, and what a function object must share with its code."""
    arguments = code.co_argcount + code.co_kwonlyargcount
    arguments += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    text = code.co_consts[0] if code.co_consts else None
    return (
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
        (code.co_varnames[:arguments], code.co_freevars, code.co_name, code.co_qualname, code.co_firstlineno),
        text if isinstance(text, str) else None,
        sum(isinstance(constant, CodeType) for constant in code.co_consts),
    )


def _held(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The functions, classes and comprehensions in them, in order."""
    ones = [constant for constant in old.co_consts if isinstance(constant, CodeType)]
    others = [constant for constant in new.co_consts if isinstance(constant, CodeType)]
    return zip(ones, others, strict=True)


def _doings(code: CodeType) -> tuple[object, ...]:
    """Everything that it does itself: the codes that it holds are known by their place."""
    return (
        (code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames, code.co_cellvars),
        [None if isinstance(constant, CodeType) else typed(constant) for constant in code.co_consts],
    )
