"""Which lines of a source lead to what a mutant changes: a test that runs none of them cannot tell the two apart.

The two syntax trees are compared statement by statement. Control reaches a changed place only through the statement
that stands there in the baseline, so its lines are what counts. Some changes reach further than their place, and so
do their lines: the names that a function binds are local everywhere in it, ``yield`` makes its calls something else,
and a docstring belongs to the line of the ``def``.

Left out is what only looks at source: line numbers in messages, ``inspect.getsource``.
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import decode_source
from itertools import pairwise
from types import CodeType
from typing import Any, Final, TypeAlias

from pytest_metricbench.suite.blocks import changed_block

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_BODIES: Final = ("body", "orelse", "finalbody")


def same_code(old: bytes, new: bytes) -> bool:
    """Whether two sources differ in nothing that Python runs: comments, layout, redundant parentheses.

    A source that does not compile is the same as none.
    """
    try:
        return ast.dump(ast.parse(old)) == ast.dump(ast.parse(new))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def leading_lines(old: bytes, new: bytes) -> frozenset[int]:
    """The lines of ``old``, from 1, one of which runs before anything that ``new`` changes can matter.

    All lines, where one of the two cannot be parsed; none, where they are the same code.
    """
    everything = frozenset(range(1, old.count(b"\n") + old.count(b"\r") + 2))
    try:
        before, after, texts = _differing(old, new)
        comparison = _Comparison(*texts)
        comparison.bodies(before, after, set(everything), set(everything))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return everything
    return frozenset(comparison.lines)


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of what is compared, where its lines are known that differ: the others need not be looked into."""

    first: int
    lines: Sequence[str]
    changed: tuple[int, int]

    def of(self, node: ast.stmt) -> str | None:
        """The text of a statement outside the lines that differ; None of any other."""
        start, end = _first_line(node), node.end_lineno or node.lineno
        if end >= self.changed[0] and start <= self.changed[1]:
            return None
        return "\n".join(
            (f"{node.col_offset}:{node.end_col_offset}", *self.lines[start - self.first : end + 1 - self.first])
        )


_Compared: TypeAlias = tuple[list[ast.stmt], list[ast.stmt], tuple[_Text | None, _Text | None]]


def _differing(old: bytes, new: bytes) -> _Compared:
    """The statements of two sources to compare: one of each where that is all in which they differ."""
    block = changed_block(decode_source(old), decode_source(new))
    if block is not None:
        try:
            before, after = _known_statements(block.placed(block.old)), ast.parse(block.placed(block.new)).body
        except SyntaxError:  # it goes on behind its end
            pass
        else:
            if len(before) == len(after) == 1:
                (start, end), grown = block.changed, block.grown
                texts = (
                    _Text(block.first, block.old.split("\n"), (start, end)),
                    _Text(block.first, block.new.split("\n"), (start, end + grown)),
                )
                return before, after, texts
    return ast.parse(old).body, ast.parse(new).body, (None, None)


@lru_cache(maxsize=64)
def _known_statements(text: str) -> list[ast.stmt]:
    """The statements of a baseline's text: mutants change the same ones again and again, and nobody changes these."""
    return ast.parse(text).body


class _Comparison:
    """Gathers the lines while two trees are walked side by side."""

    def __init__(self, old: _Text | None, new: _Text | None) -> None:
        self.lines: set[int] = set()
        self._old: Final = old
        self._new: Final = new

    def bodies(self, old: Sequence[ast.stmt], new: Sequence[ast.stmt], entry: set[int], scope: set[int]) -> None:
        """Two lists of statements in one place.

        Args:
            old: of the baseline.
            new: of the mutant.
            entry: lines that lead to the list, where it is empty.
            scope: all lines of the function, class or module around it.
        """
        olds, news = [_key(node, self._old) for node in old], [_key(node, self._new) for node in new]
        start = 0
        while start < min(len(old), len(new)) and olds[start] == news[start]:
            start += 1
        end = 0
        while end < min(len(old), len(new)) - start and olds[-1 - end] == news[-1 - end]:
            end += 1
        middle, changed = range(start, len(old) - end), range(start, len(new) - end)
        if not middle and not changed:
            return
        if len(middle) == len(changed):
            for one, other in zip(middle, changed, strict=True):
                if olds[one] != news[other]:
                    self._statement(old[one], new[other], scope)
        elif start < len(old):  # the statement at the place runs whenever control comes there
            self._touch(old[start], scope)
        elif old:
            self._touch(old[-1], scope)
        else:
            self.lines |= entry

    def _touch(self, node: ast.stmt, scope: set[int]) -> None:
        self.lines |= scope if _runs_nothing(node) else _head(node)

    def _statement(self, old: ast.stmt, new: ast.stmt, scope: set[int]) -> None:
        if type(old) is not type(new):
            self._touch(old, scope)
        elif isinstance(old, _Function) and isinstance(new, _Function):
            self._function(old, new)
        elif isinstance(old, ast.ClassDef) and isinstance(new, ast.ClassDef):
            whole = _span(old)
            if _without_bodies(old) != _without_bodies(new):
                self._touch(old, scope)
            self.bodies(old.body, new.body, whole, whole)
        elif hasattr(old, "body") or isinstance(old, ast.Match):
            self._compound(old, new, scope)
        else:
            self._touch(old, scope)

    def _function(self, old: _Function, new: _Function) -> None:
        head, whole = _head(old), _span(old)
        if _without_bodies(old) != _without_bodies(new):
            self.lines |= head
        before, after = _scope_of(old), _scope_of(new)
        if before is None or after is None or before[0] != after[0]:
            self.lines |= whole
        elif before[1] != after[1]:
            self.lines |= whole - head or whole
        self.bodies(old.body, new.body, whole, whole)

    def _compound(self, old: Any, new: Any, scope: set[int]) -> None:
        head = _head(old)
        if _without_bodies(old) != _without_bodies(new):
            self.lines |= head
        for name in _BODIES:
            self.bodies(getattr(old, name, []), getattr(new, name, []), head, scope)
        for name in ("handlers", "cases"):
            olds, news = getattr(old, name, []), getattr(new, name, [])
            if list(map(_without_bodies, olds)) != list(map(_without_bodies, news)):
                self.lines |= head
            for one, other in zip(olds, news, strict=False):
                self.bodies(one.body, other.body, head, scope)


def _key(node: ast.stmt, text: _Text | None) -> str:
    """What is equal for two statements that do the same; of what holds statements that differ it is another one."""
    if text is None:
        return ast.dump(node)
    known = text.of(node)
    if known is None:
        return f"{id(node)}" if hasattr(node, "body") or isinstance(node, ast.Match) else ast.dump(node)
    return known


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _span(node: ast.stmt) -> set[int]:
    return set(range(_first_line(node), (node.end_lineno or node.lineno) + 1))


def _head(node: ast.stmt) -> set[int]:
    """The lines of a statement without those of its body, at least its first line."""
    whole = _span(node)
    inner = [body[0] for name in _BODIES if (body := getattr(node, name, None))]
    inner += [case.body[0] for case in getattr(node, "cases", [])]
    if not inner:
        return whole
    first = min(min(_span(statement)) for statement in inner)
    return {line for line in whole if line < first} | {min(whole), node.lineno}


def _runs_nothing(node: ast.stmt) -> bool:
    """Whether no line event need tell that a statement was passed."""
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant or isinstance(node, ast.Global | ast.Nonlocal)


def _without_bodies(node: ast.AST) -> str:
    """The text of a node's tree, the lists of statements in it left out."""
    kept = {
        name: value
        for name, value in ast.iter_fields(node)
        if name not in (*_BODIES, "handlers", "cases") or not isinstance(value, list)
    }
    return repr({name: _dumped(value) for name, value in kept.items()})


def _dumped(value: object) -> object:
    if isinstance(value, ast.AST):
        return ast.dump(value)
    return [_dumped(entry) for entry in value] if isinstance(value, list) else value


def _scope_of(node: _Function) -> tuple[int, frozenset[str]] | None:
    """A function's flags (a generator, a coroutine) and the names local to it; None where they cannot be told."""
    alone = ast.Module([_bare(node)], [])
    try:
        module = compile(alone, "<scope>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):  # a nonlocal name, without the function around it
        return None
    found = [const for const in module.co_consts if isinstance(const, CodeType) and const.co_name == node.name]
    return (found[-1].co_flags, frozenset(found[-1].co_varnames + found[-1].co_cellvars)) if found else None


def _bare(node: _Function) -> _Function:
    """The function without what is evaluated around it."""
    fields = dict(ast.iter_fields(node)) | {"decorator_list": [], "returns": None}
    if "type_params" in fields:
        fields["type_params"] = []
    return ast.copy_location(type(node)(**fields), node)


def runs_of(lines: Iterable[int]) -> str:
    """Line numbers as a reader has them: ``3, 7-9``."""
    ordered = sorted(set(lines))
    starts = ordered[:1] + [later for earlier, later in pairwise(ordered) if later > earlier + 1]
    ends = [earlier for earlier, later in pairwise(ordered) if later > earlier + 1] + ordered[-1:]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
