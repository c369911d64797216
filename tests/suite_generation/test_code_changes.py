"""Every change that cosmic-ray makes itself is made here, and no other."""

from importlib import import_module

import pytest

from pytest_metricbench.generating.code_changes import changes_of, family, operators_named
from pytest_metricbench.sources import SourceError
from pytest_metricbench.suite.bytecode import compiled, same_bytecode

pytest.importorskip("cosmic_ray", reason="needs the extra suite")

RICH = '''\
"""A bit of everything that an operator looks for."""

import functools


@functools.cache
@functools.wraps(len)
def first(seq, /, default=None, *, limit=10):
    try:
        for item in seq:
            if not item or item is None:
                continue
            if item == 1 and limit > -3:
                break
            return item if item <= limit else ~item
    except (ValueError, KeyError):
        return default
    except TypeError:
        pass
    while True:
        limit -= 1
        if limit < 0x10: return False
    return [*seq, 1.5 ** 2 // 3 % 7]


class Shop:
    rate = 1 << 3 | 2 & 5 ^ 6 >> 1

    def price(self, *goods, **more):
        assert len(goods) != 0, "none"
        return sum(x * y for x, y in goods) @ 2 if more else not goods


a, *b = -1, 2, 3
x: int | None = (
    4
    - 5
)
'''


def test_the_changes_are_those_of_cosmic_ray() -> None:
    """Its own way, which parses the source for every change, gives the same texts."""
    operators = operators_named(None)
    upstream = import_module("cosmic_ray.mutating").mutate_code
    expected: dict[str, list[str]] = {}
    for name, operator in operators.items():
        occurrence = 0
        while (changed := upstream(RICH, operator, occurrence)) is not None:
            expected.setdefault(name.partition("/")[2], []).append(changed)
            occurrence += 1
    found: dict[str, list[str | None]] = {}
    for change in changes_of(RICH, operators):
        found.setdefault(change.operator, []).append(change.text)
    assert {name: sorted(map(str, texts)) for name, texts in found.items()} == {
        name: sorted(texts) for name, texts in expected.items()
    }
    assert len({family(name) for name in found}) >= 12
    assert sum(map(len, found.values())) > 150


def test_what_a_change_says_of_itself() -> None:
    changes = list(changes_of(RICH, operators_named(["NumberReplacer", "AddNot", "RemoveDecorator"])))
    told = [(change.operator, change.function, change.line, change.before, change.after) for change in changes]
    assert told[:2] == [
        ("RemoveDecorator", "", 6, "@functools.cache", ""),
        ("RemoveDecorator", "", 7, "@functools.wraps(len)", ""),
    ]
    assert ("NumberReplacer", "first", 8, "10", "11") in told
    assert ("AddNot", "first", 11, "not item or item is None", "not not item or item is None") in told
    rows = RICH.splitlines()
    assert ("NumberReplacer", "", rows.index("    - 5") + 1, "5", "6") in told
    number = next(change for change in changes if change.line == rows.index("        limit -= 1") + 1)
    assert (number.row, number.new_row) == ("limit -= 1", "limit -= 2")


def test_they_come_in_the_order_of_their_places() -> None:
    lines = [change.line for change in changes_of(RICH, operators_named(None))]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("written", "count"),
    [
        (["NumberReplacer"], 1),
        (["core/NumberReplacer"], 1),
        (["ReplaceBinaryOperator"], 132),
        (["ReplaceBinaryOperator_Add_*"], 11),
        (["*Not", "AddNot"], 0),
    ],
)
def test_operators_are_named_as_cosmic_ray_does(written: list[str], count: int) -> None:
    found = operators_named(written)
    assert len(found) == count or (count == 0 and "core/AddNot" in found)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("NumberReplace", "cosmic-ray has no operator 'NumberReplace'; did you mean 'NumberReplacer'?"),
        ("replaceBinaryOperator", "cosmic-ray has no operator 'replaceBinaryOperator'; did you mean"),
        ("VariableReplacer", "the operator 'VariableReplacer' of cosmic-ray needs arguments"),
    ],
)
def test_operators_that_are_none(written: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        operators_named([written])
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("x = 1", "x = 1  # a remark", True),
        ("x = 1", "\n\nx = (1)", True),
        ("if False:\n    x = 1\n", "if False:\n    x = 2\n", True),
        ("x = 1", "x = 2", False),
        ("x = 1", "x = True", False),
        ("x = 1", "x = 1.0", False),
        ("x = 0.0", "x = -0.0", False),
        ("x = (0.0, 1)", "x = (-0.0, 1)", False),
        ("x = y in {1, 2}", "x = y in {True, 2}", False),
        ("def f():\n    return 1", "def f():\n    return 2", False),
        ("def f(): return a", "def f(): return b", False),
        ('def f():\n    "one"', 'def f():\n    "two"', False),
        ('"""one"""', '"""two"""', False),
        ("def f(a): pass", "def f(*, a): pass", False),
        ("def f(a=1): pass", "def f(a=2): pass", False),
        ("x = lambda: 1", "x = lambda: 1.0", False),
    ],
)
def test_the_same_bytecode(one: str, other: str, same: bool) -> None:
    first, second = (compiled(text.encode(), "m") for text in (one, other))
    assert first is not None
    assert second is not None
    assert same_bytecode(first, second) is same


def test_what_does_not_compile_is_no_code() -> None:
    assert compiled(b"def f(a, +, b): pass", "m") is None
    assert compiled(b"x = \0", "m") is None
    assert compiled(b"# coding: latin-1\nx = '\xe9'", "m") is not None
