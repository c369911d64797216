"""The lines that lead to a change: by hand where they reach further than their place, and sound on random changes."""

import ast
import random
import sys
import textwrap
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.suite.changes import leading_lines, runs_of, same_code

BASE = """\
import os
RATE = 10

def total(prices, start=0):
    "Sum."
    result = start
    for price in prices:
        if price < 0:
            raise ValueError(
                price
            )
        result += price
    else:
        result += 0
    return result

class Shop:
    rate = RATE

    def price(self):
        def inner():
            return self.rate
        return inner()
"""


def changed(old: str, new: str, base: str = BASE) -> list[int]:
    assert base.count(old) == 1
    return sorted(leading_lines(base.encode(), base.replace(old, new).encode()))


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("result += price", "result -= price", [12]),  # a statement
        ("RATE = 10", "RATE = 11", [2]),  # at the top: whoever imports it
        ("if price < 0:", "if price <= 0:", [8]),  # a condition
        ("                price\n", "                -price\n", [9, 10, 11]),  # in the middle of a statement
        ("for price in prices:", "for price in prices[1:]:", [7]),
        ("start=0", "start=1", [4]),  # a default: evaluated with the def
        ('"Sum."', '"Total."', list(range(4, 16))),  # a docstring: given with the def
        ('    "Sum."\n', "", list(range(4, 16))),
        ("        result += 0\n", "        result += 1\n", [14]),
        ("    else:\n        result += 0\n", "", [14]),  # a branch gone
        ("    return result\n", "", [15]),
        ("    return result\n", "    result += 1\n    return result\n", [15]),  # added before it
        ("    result = start\n", "    result = start\n    start = 2\n", [7]),  # added: before what follows
        ("    return result\n", "    return result\n    other = 1\n", list(range(5, 16))),  # a new local name
        ("    return result\n", "    return result\n    yield\n", list(range(4, 16))),  # now a generator
        ("            return self.rate", "            return 1", [22]),
        ("    rate = RATE\n", "    rate = 1\n", [18]),
        ("        result += price\n    else:\n", "        result += price\n    if 1:\n", [7]),
        ("import os\n", "", [1]),
        ("class Shop:", "class Shop(dict):", [17]),
        ("import os\n", "import os  # used\n", []),
        ("result += price", "result += (price)", []),
    ],
)
def test_by_hand(old: str, new: str, lines: list[int]) -> None:
    assert changed(old, new) == lines


def test_what_cannot_be_parsed_leads_from_everywhere() -> None:
    assert changed("RATE = 10", "RATE = = 10") == list(range(1, 25))


def test_same_code() -> None:
    old = BASE.encode()
    assert same_code(old, BASE.replace("import os", "import os  # x").encode())
    assert not same_code(old, BASE.replace("10", "11").encode())
    assert not same_code(old, b"= =")
    assert not same_code(b"= =", b"= = =")


def test_line_numbers_for_readers() -> None:
    assert runs_of([]) == ""
    assert runs_of({7, 3, 8, 9, 11}) == "3, 7-9, 11"


PROGRAM = textwrap.dedent(
    '''
    LIMIT = 3
    seen = []

    def helper(n, extra=1):
        """Helps."""
        if n > LIMIT:
            while n > LIMIT:
                n -= 2
                if n == 4:
                    break
            else:
                n += extra
        elif n == 1:
            try:
                n = 10 // (n - 1)
            except ZeroDivisionError as error:
                n = len(str(error))
            finally:
                seen.append(n)
        return n

    def numbers(n):
        for i in range(n):
            if i % 2:
                continue
            yield helper(i)

    class Box:
        size = 2

        def __init__(self, n):
            self.n = n

        def grow(self):
            def inner(k):
                total = 0
                for j in range(k):
                    total += j
                return total + self.size
            if self.n > 5:
                with self:
                    return inner(self.n)
            return self.n

        def __enter__(self):
            self.n += 1
            return self

        def __exit__(self, *error):
            return None

    def run(n):
        match n % 4:
            case 0:
                return list(numbers(n))
            case 1 | 2:
                return Box(n).grow()
            case other:
                return helper(other, extra=n), len(seen)
    '''
).lstrip()


class Damage(ast.NodeTransformer):
    """One random change to a program."""

    def __init__(self, choice: random.Random) -> None:
        self.choice = choice

    def apply(self) -> str:
        tree = ast.parse(PROGRAM)
        lists = [
            (node, name)
            for node in ast.walk(tree)
            for name in ("body", "orelse", "finalbody")
            if isinstance(getattr(node, name, None), list) and not (isinstance(node, ast.Module) and name != "body")
        ]
        node, name = self.choice.choice(lists)
        body = getattr(node, name)
        place = self.choice.randrange(len(body) + 1)
        kind = self.choice.choice(["insert", "insert", "delete", "replace", "operator", "operator"])
        if kind == "operator":
            return self.operator(tree)
        added = self.choice.choice(
            ["n = 1", "total = 5", "return 7", "yield 3", "global n", "pass", "LIMIT = 1", "seen.append(0)", "'text'"]
        )
        new = ast.parse(added).body
        if kind == "delete" or (kind == "replace" and place < len(body)):
            del body[place : place + 1]
        if kind != "delete":
            body[place:place] = new
        if not body and name == "body":
            body.append(ast.Pass())
        return ast.unparse(ast.fix_missing_locations(tree))

    def operator(self, tree: ast.Module) -> str:
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Constant | ast.Compare | ast.AugAssign)]
        node = self.choice.choice(nodes)
        if isinstance(node, ast.Constant):
            node.value = 2 if isinstance(node.value, int) else "other"
        elif isinstance(node, ast.Compare):
            node.ops = [ast.LtE() for _ in node.ops]
        else:
            node.op = ast.Mult()
        return ast.unparse(ast.fix_missing_locations(tree))


def ran(source: str, argument: int) -> tuple[object, set[int]]:
    """What ``run(argument)`` gives, and the lines of the program that ran, those of its import included."""
    lines: set[int] = set()

    def trace(frame: FrameType, event: str, value: Any) -> Any:
        if frame.f_code.co_filename != "<program>":
            return None
        if event == "line":
            lines.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        space: dict[str, Any] = {"__name__": "program"}
        exec(compile(source, "<program>", "exec"), space)
        result: object = repr(space["run"](argument))
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    finally:
        sys.settrace(before)
    return result, lines


PLAIN = ast.unparse(ast.parse(PROGRAM)) + "\n"
KNOWN = {argument: ran(PLAIN, argument) for argument in range(12)}


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_a_run_that_no_line_leads_from_cannot_tell_the_difference(seed: int) -> None:
    new = Damage(random.Random(seed)).apply() + "\n"
    try:
        compile(new, "<new>", "exec")
    except SyntaxError:
        return
    leading = leading_lines(PLAIN.encode(), new.encode())
    for argument, (result, lines) in KNOWN.items():
        if lines.isdisjoint(leading):
            assert ran(new, argument)[0] == result, (argument, sorted(leading))


def test_most_runs_are_spared() -> None:
    """The rule is of use: of random changes most leave most runs alone."""
    spared = total = 0
    for seed in range(150):
        new = Damage(random.Random(seed)).apply() + "\n"
        leading = leading_lines(PLAIN.encode(), new.encode())
        total += len(KNOWN)
        spared += sum(lines.isdisjoint(leading) for _, lines in KNOWN.values())
    assert spared > total / 3
