"""Mutants as they are written: found, made and refused, in every encoding that Python source may have."""

import codecs
import importlib.machinery
from typing import Any

import pytest

from pytest_metricbench.runners.suite import SuiteRunner
from pytest_metricbench.sources import SourceError
from tests.present import present
from tests.suite_runner.suite_lab import SuiteLab, diff, message, told

PATCH = diff("shop/prices.py", 9, "        result += price", "        result -= price")


def refusal(runner: SuiteRunner, suite: SuiteLab, params: dict[str, Any]) -> tuple[str, str]:
    """What collection says of a mutant."""
    with pytest.raises(SourceError) as refused:
        runner.variant_files(runner.inherit({}, params), suite.path)
    return refused.value.message, refused.value.remedy


def test_a_patch_file_a_patch_in_the_experiment_and_a_replaced_file(suite: SuiteLab) -> None:
    suite.shop()
    suite.write("mutants/minus.patch", PATCH)
    source = (suite.path / "shop/prices.py").read_text()
    suite.write("mutants/prices.py", source.replace("result += price", "result -= price"))
    runner = suite.runner()
    for params in (
        {"patch": "mutants/minus.patch"},
        {"patch": PATCH},
        {"replace": {"shop/prices.py": "mutants/prices.py"}},
        {"patch": PATCH.replace("a/shop", "shop").replace("b/shop", "shop")},
        {"patch": PATCH.replace("shop/prices.py", "lib/shop/prices.py")},  # from where the patch was made
        {"patch": PATCH.replace("shop/prices.py", "prices.py")},
        {"patch": str(suite.path / "mutants/minus.patch")},
    ):
        assert told(suite.attempt(runner, "test_total", params)) == ("scored", 0), params
    assert set(runner.variant_files({"patch": "mutants/minus.patch"}, suite.path)) == {"mutant:mutants/minus.patch"}
    assert set(runner.variant_files({"patch": PATCH}, suite.path)) == set()


def test_a_patch_of_two_files(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner()
    both = diff("shop/prices.py", 3, "RATE = 10", "RATE = 11") + diff(
        "shop/__init__.py", 1, "from shop.prices import discount, total", "from shop.prices import *; import os"
    )
    assert told(suite.attempt(runner, "test_total", {"patch": both})) == ("scored", 1)


@pytest.mark.parametrize(
    ("params", "said", "remedy"),
    [
        (
            {"patch": PATCH.replace("-        result += price", "-        result += prize")},
            "the patch: hunk 1 (@@ -9 +9 @@) does not apply: line 9 of shop/prices.py is '        result += price', "
            "the patch expects '        result += prize'",
            "",
        ),
        (
            {"patch": "mutants/none.patch"},
            "'mutants/none.patch' does not exist",
            "it is looked for in {path}/mutants",
        ),
        (
            {"patch": "../none.patch"},
            "'../none.patch' leaves the experiment's folder",
            "copy the file into it, or name it absolutely",
        ),
        (
            {"patch": PATCH.replace("shop/prices.py", "shop/price.py")},
            "b/shop/price.py is no file of the source",
            "its files are shop/__init__.py, shop/prices.py",
        ),
        (
            {"patch": PATCH.replace("shop/prices.py", "shop/data.txt")},
            "b/shop/data.txt is no Python source",
            "a mutant changes .py files",
        ),
        (
            {"patch": diff("shop/prices.py", 9, "        result += price", "        result += (price)  # sum")},
            None,
            None,
        ),
        (
            {"replace": {"shop/prices.py": "shop/prices.py"}},
            "the mutant is equal to the baseline: nothing that Python runs differs",
            "delete it (controls: 1 gives unchanged copies of the baseline)",
        ),
        (
            {"replace": {"shop/prices.py": "same.py"}},
            "the mutant is equal to the baseline: nothing that Python runs differs",
            "delete it (controls: 1 gives unchanged copies of the baseline)",
        ),
        (
            {"patch": PATCH, "replace": {"shop/prices.py": "same.py"}},
            "a mutant has a patch or files to replace, not both",
            "make two mutants, or one patch",
        ),
        (
            {},
            "the mutant changes nothing",
            "write params: {patch: file}, or params: {replace: {file of the source: file}}",
        ),
    ],
)
def test_what_collection_says_of_a_mutant(
    suite: SuiteLab, params: dict[str, Any], said: str | None, remedy: str | None
) -> None:
    suite.shop()
    suite.write("shop/data.txt", "text\n" * 9)
    same = (suite.path / "shop/prices.py").read_text().replace("RATE = 10", "RATE = (10)  # per cent\n")
    suite.write("same.py", same)
    runner = suite.runner()
    if said is None:  # generated mutants are compared when they are made, not whenever they are collected
        runner.variant_files(runner.inherit({}, params), suite.path)
        return
    assert refusal(runner, suite, params) == (said, present(remedy).replace("{path}", str(suite.path)))


def test_a_patch_file_that_is_equal_to_the_baseline(suite: SuiteLab) -> None:
    suite.shop()
    suite.write("mutants/same.patch", diff("shop/prices.py", 3, "RATE = 10", "RATE = (10)"))
    said, _ = refusal(suite.runner(), suite, {"patch": "mutants/same.patch"})
    assert said == "the mutant is equal to the baseline: nothing that Python runs differs"


def test_a_compiled_module_beside_the_source(suite: SuiteLab) -> None:
    suite.shop()
    twin = f"prices{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    suite.write(f"shop/{twin}", b"\x7fELF")
    assert refusal(suite.runner(), suite, {"patch": PATCH}) == (
        f"b/shop/prices.py is not what Python imports: the compiled {twin} beside it is",
        "a mutant needs a module that is imported from its source",
    )


def test_a_name_that_may_be_two_files(suite: SuiteLab) -> None:
    suite.shop()
    suite.write("shop/more/prices.py", "RATE = 10\n")
    said, remedy = refusal(suite.runner(), suite, {"patch": diff("x/prices.py", 1, "RATE = 10", "RATE = 11")})
    assert (said, remedy) == ("b/x/prices.py is no file of the source", said and remedy)
    said, remedy = refusal(suite.runner(), suite, {"patch": diff("prices.py", 1, "RATE = 10", "RATE = 11")})
    assert said == f"b/prices.py may be {suite.path}/shop/more/prices.py or {suite.path}/shop/prices.py"
    assert remedy == "name it whole"


def test_two_mutants_on_one_line(suite: SuiteLab) -> None:
    suite.shop()
    runner = suite.runner()
    plus = {"patch": diff("shop/prices.py", 9, "        result += price", "        result *= price")}
    same = {"patch": diff("shop/prices.py", 9, "        result += price", "        result += 1 * price")}
    suite.attempt(runner, "test_total")
    assert told(suite.attempt(runner, "test_total", {"patch": PATCH})) == ("scored", 0)
    assert told(suite.attempt(runner, "test_total", same)) == ("scored", 1)
    assert told(suite.attempt(runner, "test_total", plus)) == ("scored", 0)


NAMES = 'NAME = "Käse"\n\n\ndef total(prices):\n\treturn sum(prices)\n'
OLD, NEW = "\treturn sum(prices)", "\treturn sum(prices) + len('é')"
TOTAL = """\
from shop.prices import NAME, total


def test_total():
    assert total([1]) == 1


def test_name():
    assert NAME == "K\\u00e4se"
"""


@pytest.mark.parametrize(
    "source",
    [
        NAMES.encode(),
        NAMES.replace("\n", "\r\n").encode(),
        codecs.BOM_UTF8 + NAMES.encode(),
        codecs.BOM_UTF8 + NAMES.replace("\n", "\r\n").encode(),
        b"# -*- coding: latin-1 -*-\n" + NAMES.encode("latin-1"),
        b"# -*- coding: cp1252 -*-\r\n" + NAMES.replace("\n", "\r\n").encode("cp1252"),
        NAMES.removesuffix("\n").encode(),
    ],
    ids=["utf-8", "crlf", "bom", "bom-crlf", "latin-1", "cp1252-crlf", "no-newline"],
)
def test_source_in_any_encoding(suite: SuiteLab, source: bytes) -> None:
    suite.shop(tests=TOTAL)
    suite.write("shop/__init__.py", "")
    suite.write("shop/prices.py", source)
    line = 6 if b"coding" in source else 5
    patch = diff("shop/prices.py", line, OLD, NEW)
    if not source.endswith(b"\n"):
        patch = patch.replace(f"-{OLD}\n", f"-{OLD}\n\\ No newline at end of file\n") + "\\ No newline at end of file\n"
    suite.write("utf-8.patch", patch.encode())
    suite.write("latin-1.patch", patch.encode("latin-1"))
    runner = suite.runner()
    for name in ("test_total", "test_name"):
        assert told(suite.attempt(runner, name)) == ("scored", 1)
    variants = [{"patch": patch}, {"patch": "utf-8.patch"}]
    if b"coding" in source:
        variants.append({"patch": "latin-1.patch"})
    for params in variants:
        runner.variant_files(params, suite.path)
        assert told(suite.attempt(runner, "test_name", params))[1] in (1, "NotReached")
        outcome = suite.attempt(runner, "test_total", params)
        assert told(outcome) == ("scored", 0), outcome
        assert "assert 2 == 1" in message(outcome)


def test_a_patch_in_another_encoding_than_its_source(suite: SuiteLab) -> None:
    suite.shop(tests=TOTAL)
    suite.write("shop/prices.py", NAMES)
    suite.write("latin-1.patch", diff("shop/prices.py", 5, OLD, NEW).encode("latin-1"))
    said, _ = refusal(suite.runner(), suite, {"patch": "latin-1.patch"})
    assert said == "latin-1.patch: it is neither UTF-8 nor in utf-8, the encoding of b/shop/prices.py"


def test_a_character_that_the_source_cannot_hold(suite: SuiteLab) -> None:
    suite.shop(tests=TOTAL)
    suite.write("shop/prices.py", b"# coding: latin-1\n" + NAMES.encode("latin-1"))
    said, remedy = refusal(suite.runner(), suite, {"patch": diff("shop/prices.py", 6, OLD, f"{OLD} + len('\u20ac')")})
    assert said == "the mutant puts '\u20ac' into shop/prices.py, whose encoding is iso-8859-1"
    assert remedy == "that cannot be written there"


def test_source_that_is_not_in_its_encoding(suite: SuiteLab) -> None:
    suite.shop(tests=TOTAL)
    suite.write("shop/prices.py", NAMES.encode("latin-1"))
    said, _ = refusal(suite.runner(), suite, {"patch": diff("shop/prices.py", 5, OLD, NEW)})
    assert said.startswith("shop/prices.py cannot be read as Python source: ")
