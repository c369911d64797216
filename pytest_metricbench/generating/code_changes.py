"""The changes that cosmic-ray's operators make of a Python source, one at a time.

cosmic-ray itself parses and walks the whole source for each change. Here a source is parsed once: an operator changes
the node it is given, the text is read off, and the node is put back. Operators of plugins may do anything, so for
these cosmic-ray's own way is taken.
"""

import fnmatch
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeAlias

from pytest_metricbench.messages import did_you_mean, joined
from pytest_metricbench.sources import SourceError

_Node: TypeAlias = Any
"""A node of parso's tree."""
_Operator: TypeAlias = Any
"""An operator of cosmic-ray."""
_CORE: Final = "core/"


@dataclass(frozen=True, slots=True)
class CodeChange:
    """One way in which an operator changes a source."""

    operator: str
    """As cosmic-ray calls it, without its provider: ``ReplaceBinaryOperator_Add_Sub``."""
    function: str
    """The function or class that it stands in, dotted; empty outside all of them."""
    line: int
    before: str
    """What stood at its place."""
    after: str
    """What stands there now; empty where it is gone."""
    row: str
    """The line at which the place begins, without the blanks around it."""
    new_row: str
    """The same line after the change."""
    text: str | None
    """The whole changed source; None where the operator failed."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place at which an operator can change something."""

    operator: str
    node: _Node
    index: int
    start: tuple[int, int]
    end: tuple[int, int]
    occurrence: int


def operators_named(written: Sequence[str] | None) -> dict[str, _Operator]:
    """The operators by their whole names (``core/NumberReplacer``), in a fixed order.

    Args:
        written: names with or without the provider, names of families (``ReplaceBinaryOperator``), and patterns with
            ``*``; None: all that need no arguments.

    Raises:
        SourceError: cosmic-ray is not installed, or there is no such operator.
    """
    plugins = _plugins()
    known = {name: plugins.get_operator(name) for name in sorted(plugins.operator_names())}
    usable = {name: cls for name, cls in known.items() if not cls.arguments()}
    wanted = list(usable)
    if written is not None:
        wanted = [name for pattern in written for name in _matching(pattern, known, usable)]
    return {name: usable[name]() for name in sorted(set(wanted))}


def _plugins() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its dependencies
            return import_module("cosmic_ray.plugins")
    except ImportError as error:
        raise SourceError(
            f"from: cosmic-ray needs cosmic-ray, and it cannot be imported ({error})",
            "pip install 'pytest-metricbench[suite]'",
        ) from None


def _matching(pattern: str, known: Mapping[str, Any], usable: Mapping[str, Any]) -> list[str]:
    found = [
        name
        for name in known
        if any(fnmatch.fnmatchcase(form, pattern) for form in (name, plain_name(name), family(plain_name(name))))
    ]
    if not found:
        names = [plain_name(name) for name in known]
        message = joined(
            f"cosmic-ray has no operator {pattern!r}", did_you_mean(pattern, [*names, *map(family, names)])
        )
        raise SourceError(message, "`cosmic-ray operators` lists them, without core/ here")
    if not any(name in usable for name in found):
        raise SourceError(f"the operator {pattern!r} of cosmic-ray needs arguments", "leave it out")
    return [name for name in found if name in usable]


def plain_name(operator: str) -> str:
    """The name of an operator without its provider."""
    return operator.partition("/")[2]


def family(name: str) -> str:
    """What operators of one kind have in common: ``ReplaceBinaryOperator`` of ``ReplaceBinaryOperator_Add_Sub``."""
    return name.partition("_")[0]


def changes_of(text: str, operators: Mapping[str, _Operator]) -> Iterator[CodeChange]:
    """Every change that some operators make of a source, in the order of the places.

    Args:
        text: the source, its line ends as they are.
        operators: whole name -> operator.
    """
    tree = import_module("cosmic_ray.ast").get_ast(text)
    lines = _lines(text)
    for spot in sorted(_spots(tree, operators), key=lambda spot: (spot.start, spot.operator, spot.index)):
        operator = operators[spot.operator]
        with _repeatable(f"{spot.operator}:{spot.occurrence}"):
            changed = _changed(tree, text, operator, spot)
        yield _described(text, lines, spot, changed)


def _lines(text: str) -> list[str]:
    return list(import_module("parso.utils").split_lines(text, keepends=True))


def _nodes(node: _Node) -> Iterator[_Node]:
    return iter(import_module("cosmic_ray.ast").ast_nodes(node))


def _spots(tree: _Node, operators: Mapping[str, _Operator]) -> Iterator[_Spot]:
    nodes = list(_nodes(tree))
    for name, operator in operators.items():
        occurrence = 0
        for node in nodes:
            for index, (start, end) in enumerate(operator.mutation_positions(node)):
                yield _Spot(name, node, index, start, end, occurrence)
                occurrence += 1


@contextmanager
def _repeatable(seed: str) -> Iterator[None]:
    """The same chance every time, for operators that draw."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)


def _changed(tree: _Node, text: str, operator: _Operator, spot: _Spot) -> str | None:
    try:
        if spot.operator.startswith(_CORE):
            return _mutated(tree, operator, spot)
        code: str | None = import_module("cosmic_ray.mutating").mutate_code(text, operator, spot.occurrence)
    except Exception:  # cosmic-ray asserts what it expects, and evaluates numbers
        return None
    return code


def _mutated(tree: _Node, operator: _Operator, spot: _Spot) -> str:
    """The text of the tree with one node changed; the tree is then as it was."""
    node, parent = spot.node, spot.node.parent
    kept = [(part, _state(part)) for part in _nodes(node)]
    siblings = parent.children
    try:
        changed = operator.mutate(node, spot.index)
        at = next(number for number, sibling in enumerate(siblings) if sibling is node)
        parent.children = [*siblings[:at], *([] if changed is None else [changed]), *siblings[at + 1 :]]
        code: str = tree.get_code()
    finally:
        parent.children = siblings
        for part, state in kept:
            for name, value in state.items():
                setattr(part, name, value)
    return code


def _state(node: _Node) -> dict[str, Any]:
    """What an operator may change of a node."""
    if hasattr(node, "children"):
        return {"children": list(node.children)}
    return {"value": node.value, "prefix": node.prefix}


def _described(text: str, lines: Sequence[str], spot: _Spot, changed: str | None) -> CodeChange:
    first, last = (sum(map(len, lines[: line - 1])) + column for line, column in (spot.start, spot.end))
    line = spot.start[0]
    after = new_row = ""
    if changed is not None:
        same = next((at for at, (a, b) in enumerate(zip(text[:first], changed, strict=False)) if a != b), first)
        after = changed[same : len(changed) - (len(text) - last)].strip()
        begun = first - spot.start[1]
        new_row = next(iter(_lines(changed[begun:])), "")
    return CodeChange(
        operator=plain_name(spot.operator),
        function=_function_of(spot.node),
        line=line,
        before=text[first:last].strip(),
        after=after,
        row=lines[line - 1].strip(),
        new_row=new_row.strip(),
        text=changed,
    )


def _function_of(node: _Node) -> str:
    names: list[str] = []
    while node is not None:
        if node.type in ("funcdef", "classdef"):
            names.insert(0, node.name.value)
        node = node.parent
    return ".".join(names)
