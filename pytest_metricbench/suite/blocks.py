"""The one statement of a module in which two sources differ: what compares them need not read the rest.

A module of a thousand lines takes as long to parse as some tests take to run, and a mutant mostly changes one of them.
"""

import ast
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Block:
    """A statement at the top of a module, in two versions; all that stands around it is the same."""

    first: int
    """The line at which it begins, from 1, its decorators included."""
    old: str
    new: str
    changed: tuple[int, int]
    """First and last line of ``old`` that differ in ``new``; the last is before the first where lines were added."""
    imported: tuple[str, ...]
    """Names that the module's imports bind: calls of what they have are compiled in another way."""

    @property
    def grown(self) -> int:
        """How many lines ``new`` has more than ``old``."""
        return self.new.count("\n") - self.old.count("\n")

    def placed(self, text: str) -> str:
        """One of the two with as many lines before it as there are in the module: it is compiled as it is there."""
        return "\n" * (self.first - 1) + text

    def to_compile(self, text: str) -> str:
        """Likewise, with what the compiler looks at of the rest: the code of functions is the module's."""
        imports = "".join(f"import {name}\n" for name in self.imported)
        return self.placed(text) + imports


def changed_block(old: str, new: str) -> Block | None:
    """The only statement in which two sources differ; None where there is more to it.

    What it gives is certain for ``new`` only where its text is one whole statement when it stands alone: Python reads
    from the top, and what follows begins a statement in ``old``.

    Args:
        old: that compiles; with line feeds as the only ends of lines, as Python reads it.
        new: likewise, or not even that.
    """
    before, after = old.split("\n"), new.split("\n")
    shorter = min(len(before), len(after))
    head = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    tail = 0
    while tail < shorter - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    start, end = head + 1, len(before) - tail  # lines of ``old``; none where something was put between two
    spans, imported = _outline(old)
    index = bisect_right(spans, (start, len(before) + 1)) - 1
    if index < 0:
        return None
    first, last = spans[index]
    is_inside = start > first and end < last if end < start else end <= last
    if not is_inside:
        return None
    grown = len(after) - len(before)
    theirs = "\n".join(after[first - 1 : last + grown]) + "\n"
    return Block(first, "\n".join(before[first - 1 : last]) + "\n", theirs, (start, end), imported)


@lru_cache(maxsize=16)
def _outline(source: str) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...]]:
    """First and last line of each statement at the top, those left out that share a line; and names of imports."""
    spans, body = [], ast.parse(source).body
    for node in body:
        decorators = getattr(node, "decorator_list", [])
        spans.append((min([node.lineno, *(entry.lineno for entry in decorators)]), node.end_lineno or node.lineno))
    shared = {line for (_, end), (start, _) in pairwise(spans) if end >= start for line in (start, end)}
    alone = tuple((start, end) for start, end in spans if start not in shared and end not in shared)
    return alone, tuple(dict.fromkeys(name for node in body for name in _imported_by(node)))


def _imported_by(node: ast.AST) -> Iterator[str]:
    """The names that a statement's imports bind in its own scope."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = (entry.asname or entry.name.partition(".")[0] for entry in node.names)
        yield from (name for name in names if name != "*")
    elif isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for inner in ast.iter_child_nodes(node):
            yield from _imported_by(inner)
    elif isinstance(node, ast.ExceptHandler | ast.match_case):
        for inner in node.body:
            yield from _imported_by(inner)
