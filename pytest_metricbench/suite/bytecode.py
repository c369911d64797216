"""Whether two sources compile to the same: then no test can tell them apart."""

import dis
import inspect
import warnings
from types import CodeType


def compiled(source: bytes, name: str) -> CodeType | None:
    """A module's code; None where it does not compile."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a module that compiles with a warning compiles
            return compile(source, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def same_bytecode(one: CodeType, other: CodeType) -> bool:
    """Whether two modules run the same: instructions, the constants and names they use, in all their functions.

    Where the code stands in its file does not count, nor what the compiler keeps of code that it left out.
    """
    if one is other:
        return True
    if _frame(one) != _frame(other) or len(one.co_code) != len(other.co_code):
        return False
    if one.co_code == other.co_code and len(one.co_consts) == len(other.co_consts):
        differing = _differing(one, other)  # none in most functions of a module, whose steps need not be taken apart
        return not differing or not differing & (_used(one) | _used(other))
    steps, others = _steps(one), _steps(other)
    if len(steps) != len(others):
        return False
    return all(_same_step(step, its) for step, its in zip(steps, others, strict=True))


def _frame(code: CodeType) -> tuple[object, ...]:
    """Everything but instructions and constants."""
    return (
        (code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars),
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
        (code.co_name, code.co_qualname, code.co_exceptiontable),
    )


def _differing(one: CodeType, other: CodeType) -> set[int]:
    """The places of constants that are not the same."""
    pairs = enumerate(zip(one.co_consts, other.co_consts, strict=True))
    return {place for place, (mine, its) in pairs if mine is not its and not _same_constant(mine, its)}


def _used(code: CodeType) -> set[int]:
    """Places of the constants that count: those that instructions have, and of a function what may be its docstring."""
    used = {step.arg or 0 for step in dis.get_instructions(code) if step.opcode in dis.hasconst}
    return used | ({0} if _may_have_docstring(code) else set())


def _may_have_docstring(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_NEWLOCALS and code.co_consts and isinstance(code.co_consts[0], str))


def _steps(code: CodeType) -> list[tuple[int, object]]:
    """The instructions, each with its constant or its number; of a function also what may be its docstring."""
    found: list[tuple[int, object]] = [
        (step.opcode, code.co_consts[step.arg or 0] if step.opcode in dis.hasconst else step.arg)
        for step in dis.get_instructions(code)
    ]
    if _may_have_docstring(code):
        found.append((-1, code.co_consts[0]))
    return found


def _same_step(one: tuple[int, object], other: tuple[int, object]) -> bool:
    return one[0] == other[0] and _same_constant(one[1], other[1])


def _same_constant(one: object, other: object) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return same_bytecode(one, other)
    return typed(one) == typed(other)


def typed(value: object) -> object:
    """A constant with its kind: 1, True and 1.0 are equal, and so are 0.0 and -0.0."""
    if isinstance(value, tuple):
        return tuple(map(typed, value))
    if isinstance(value, frozenset):
        return frozenset(map(typed, value))
    return (type(value), repr(value) if isinstance(value, float | complex) else value)
