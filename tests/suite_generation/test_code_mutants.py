"""``from: cosmic-ray``: which mutants are proposed, and that each is exactly what its patch says."""

import ast
import re

import pytest

from pytest_metricbench.generating.base import EQUAL, Context
from pytest_metricbench.generating.code import BROKEN, MARKED, CosmicRayGenerator
from pytest_metricbench.runners.command import CommandRunner
from pytest_metricbench.sources import SourceError
from tests.suite_generation.code_lab import PRICES, CodeLab

pytest.importorskip("cosmic_ray", reason="needs the extra suite")


def test_a_mutant_is_a_patch_with_words(code: CodeLab) -> None:
    found = code.proposals(operators=["ReplaceBinaryOperator_Add_Sub", "NumberReplacer"])
    assert [(made.operator, made.target, made.description) for made in found[:4]] == [
        ("NumberReplacer", "10 to 11", "shop/prices.py:1: 'RATE = 10' became 'RATE = 11'."),
        ("NumberReplacer", "10 to 9", "shop/prices.py:1: 'RATE = 10' became 'RATE = 9'."),
        ("NumberReplacer", "total 0 to 1", "shop/prices.py:5, in total: 'result = 0' became 'result = 1'."),
        ("NumberReplacer", "total 0 to minus 1", "shop/prices.py:5, in total: 'result = 0' became 'result = -1'."),
    ]
    add = next(made for made in found if made.operator == "ReplaceBinaryOperator")
    assert add.target == "total Add to Sub"
    assert add.listed == {
        "patch": (
            "--- a/shop/prices.py\n+++ b/shop/prices.py\n@@ -4,7 +4,7 @@\n def total(prices):\n     result = 0\n"
            "     for price in prices:\n-        result = result + price\n+        result = result - price\n"
            "     return result\n \n \n"
        )
    }
    assert code.source_of(add) == PRICES.replace("result + price", "result - price").encode()


def test_long_lines_are_described_by_what_changed(code: CodeLab) -> None:
    name = "a_rather_long_name_for_something"
    code.write("shop/prices.py", f"{name} = 0\nother = {name} + {name} + {name} + {name} + 1234\n")
    described = [made.description for made in code.proposals(operators=["NumberReplacer"])]
    assert described[2] == "shop/prices.py:2: '1234' became '1235'."


def test_what_is_gone_is_described_as_gone(code: CodeLab) -> None:
    code.write("shop/prices.py", "import functools\n\n\n@functools.cache\ndef one():\n    return 1\n")
    (made,) = code.proposals(operators=["RemoveDecorator"])
    assert made.description == "shop/prices.py:4: '@functools.cache' is gone."
    assert b"functools.cache" not in code.source_of(made)


# ---------------------------------------------------------------- what is dropped


def test_equal_bytecode_is_dropped_and_counted(code: CodeLab) -> None:
    code.write("shop/prices.py", "if False:\n    UNUSED = 1\nUSED = 2\n")
    assert len(code.proposals(operators=["NumberReplacer"])) == 2
    assert code.dropped(operators=["NumberReplacer"]) == {EQUAL: 2}


def test_what_does_not_compile_is_dropped_and_counted(code: CodeLab) -> None:
    code.write("shop/prices.py", "def f(a, /, b):\n    return a / b\n")
    made = code.proposals(operators=["ReplaceBinaryOperator_Div_Add"])
    assert [one.description for one in made] == ["shop/prices.py:2, in f: 'return a / b' became 'return a + b'."]
    assert code.dropped(operators=["ReplaceBinaryOperator_Div_Add"]) == {BROKEN: 1}


def test_marked_lines_are_left_alone(code: CodeLab) -> None:
    code.write("shop/prices.py", "A = 1  # pragma: no mutate\nB = 2\n")
    assert [made.target for made in code.proposals(operators=["NumberReplacer"])] == ["2 to 3", "2 to 1"]
    assert code.dropped(operators=["NumberReplacer"]) == {MARKED: 2}


# ---------------------------------------------------------------- sources of all kinds

SOURCES = {
    "CRLF": b"A = 1\r\n\r\ndef f(x):\r\n    return x + 1\r\n",
    "tabs": b"def f(x):\n\tif x > 0:\n\t\treturn x + 1\n\treturn -1\n",
    "a BOM": b"\xef\xbb\xbfA = 1\n\n\ndef f(x):\n    return x + 1\n",
    "a BOM and CRLF": b"\xef\xbb\xbfA = 1\r\nB = A + 1\r\n",
    "Latin-1": "# -*- coding: latin-1 -*-\nA = 'é'\nB = A + 'ü' if 1 else 'ß'\n".encode("latin-1"),
    "UTF-8": "A = 'é→😀'\nB = A + 'ü' if 1 else ''\n".encode(),
    "no newline at its end": b"A = 1\nB = A + 1",
    "several line ends": b"A = 1\nB = 2\r\nC = A + B\nD = 3\r\n",
    "a form feed": b"A = 1\n\x0c\ndef f(x):\n    return x + 1\n",
    "trailing blanks": b"A = 1   \n\t\nB = A + 1 \n",
    "a text of several lines": b'A = """1 + 1\r\nand\t2\r\n"""\r\nB = A + "x" if 1 else 0\r\n',
    "one line": b"A = 1 + 2 if 3 else 4; B = A + 5",
    "a line separator": "A = 'a\u2028b\x85c'\nB = A * 2\n".encode(),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_only_what_is_mutated_changes(code: CodeLab, kind: str) -> None:
    """The source that the runner makes of each patch is the old one, but for one place."""
    source = SOURCES[kind]
    code.write("shop/prices.py", source)
    found = code.proposals(operators=["NumberReplacer", "ReplaceBinaryOperator_Add_Sub"])
    assert found
    for made in found:
        mutated = code.source_of(made)
        same = next(at for at, (a, b) in enumerate(zip(source, mutated, strict=False)) if a != b)
        tail = next(at for at, (a, b) in enumerate(zip(reversed(source), reversed(mutated), strict=False)) if a != b)
        gone, new = source[same : len(source) - tail], mutated[same : len(mutated) - tail]
        assert re.fullmatch(rb" ?[0-9]*\+?", gone), gone
        assert re.fullmatch(rb" ?-?[0-9]*", new), new
    assert set(code.dropped(operators=["NumberReplacer", "ReplaceBinaryOperator_Add_Sub"])) <= {EQUAL}


@pytest.mark.parametrize("kind", SOURCES)
def test_the_lock_keeps_the_patches_as_they_are(code: CodeLab, kind: str) -> None:
    code.write("shop/prices.py", SOURCES[kind])
    fresh = code.load(lock=True)
    again = code.load()
    assert [dict(v.params) for v in again.cases[0].variants] == [dict(v.params) for v in fresh.cases[0].variants]


def test_lines_that_end_as_on_an_old_mac(code: CodeLab) -> None:
    """A unified diff knows no such lines; what Python runs is what was meant."""
    code.write("shop/prices.py", b"A = 1\rB = A + 1\r")
    found = [code.source_of(made) for made in code.proposals(operators=["ReplaceBinaryOperator_Add_Sub"])]
    assert [ast.dump(ast.parse(source)) for source in found] == [ast.dump(ast.parse("A = 1\nB = A - 1\n"))]


# ---------------------------------------------------------------- modules


def test_modules_may_be_named_in_several_ways(code: CodeLab) -> None:
    code.write("shop/tax/__init__.py", "A = 1\n")
    code.write("shop/tax/rates.py", "B = 1\n")

    def files(*written: str) -> list[str]:
        context = code.context()
        return list(CosmicRayGenerator(modules=list(written)).bound(context).lock_files(context))

    assert files("shop.prices") == files("shop/prices.py") == files("./shop/prices.py") == ["shop/prices.py"]
    assert files("shop.tax") == files("shop/tax") == ["shop/tax/__init__.py", "shop/tax/rates.py"]
    assert files("shop.tax.rates", "shop.prices") == ["shop/prices.py", "shop/tax/rates.py"]
    assert len(files("shop")) == 4


def test_tests_inside_the_source_are_no_modules(code: CodeLab) -> None:
    code.write("shop/tests/test_prices.py", "A = 1\n")
    context = code.context()
    runner = type(code.runner).model_validate(
        {"source": ["shop"], "tests": "shop/tests"}, context={"folder": code.path}
    )
    context = Context(code.path, "shop", runner, {})
    assert list(CosmicRayGenerator().lock_files(context)) == ["shop/__init__.py", "shop/prices.py"]


@pytest.mark.parametrize(
    ("keys", "message", "remedy"),
    [
        (
            {"modules": ["shop.price"]},
            "the source has no module 'shop.price'; did you mean 'shop.prices'?",
            "its modules are shop, shop.prices",
        ),
        ({"modules": ["os"]}, "the source has no module 'os'", "its modules are shop, shop.prices"),
        ({"operators": ["Nothing"]}, "cosmic-ray has no operator 'Nothing'", None),
    ],
)
def test_keys_that_name_nothing(code: CodeLab, keys: dict[str, list[str]], message: str, remedy: str | None) -> None:
    with pytest.raises(SourceError) as caught:
        code.made(**keys)
    assert caught.value.message == message
    assert remedy is None or caught.value.remedy == remedy


def test_a_module_that_does_not_compile(code: CodeLab) -> None:
    code.write("shop/prices.py", "def f(:\n")
    with pytest.raises(SourceError) as caught:
        code.made(modules=["shop.prices"])
    assert caught.value.message == "shop/prices.py does not compile"


def test_a_compiled_module(code: CodeLab) -> None:
    from importlib.machinery import EXTENSION_SUFFIXES

    code.write(f"shop/prices{EXTENSION_SUFFIXES[0]}", b"")
    with pytest.raises(SourceError) as caught:
        code.made(modules=["shop.prices"])
    assert caught.value.message.startswith("shop/prices.py is not what Python imports: the compiled prices.")
    context = code.context()
    assert list(CosmicRayGenerator().lock_files(context)) == ["shop/__init__.py"]


def test_another_runner(code: CodeLab) -> None:
    runner = CommandRunner.model_validate({"agent": ["{python}", "-V"]}, context={"folder": code.path})
    with pytest.raises(SourceError) as caught:
        CosmicRayGenerator().bound(Context(code.path, "shop", runner, {}))
    assert caught.value.message == (
        "from: cosmic-ray makes mutants of the source of the runner suite; this experiment's is command"
    )
