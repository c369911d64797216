"""Numbers and lines of the terminal section."""

import pytest

from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.reporting.layout import (
    Column,
    Line,
    Span,
    block,
    cut_apart,
    fitting,
    flowing,
    line,
    named,
    one_line,
    paragraph,
    shortened,
    table,
    told_apart,
    two_digits,
    with_interval,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.50"), (1.0, "1.00"), (0.9999, "0.99"), (-0.9999, "-0.99"), (-1.0, "-1.00"), (-0.001, "0.00"),
     (0.0, "0.00"), (None, "n/a"), (12.345, "12.35")],
)  # fmt: skip
def test_two_digits_never_round_to_perfect(value: float | None, text: str) -> None:
    assert two_digits(value) == text


def test_an_interval_stands_beside_its_figure() -> None:
    assert with_interval(0.5, (0.25, 0.999)) == "0.50 [0.25, 0.99]"
    assert with_interval(0.5, None) == "0.50"
    assert with_interval(None, (0.1, 0.2)) == "n/a"


def test_lines_end_without_blanks() -> None:
    assert line("a  ", ("b  ", "red"), "  ") == Line((Span("a  "), Span("b", "red")))
    assert line("  ") == Line()
    assert line().text == ""


def test_text_of_unknown_origin_is_one_plain_line() -> None:
    assert one_line("two\nlines\t\x1b[31mred\x1b[0m \u202eback") == "two lines [31mred [0m back"


def test_shortened() -> None:
    assert [shortened("abcdef", width) for width in (6, 5, 3)] == ["abcdef", "abc..", "a.."]


def test_a_block_wraps_beside_its_label() -> None:
    texts = [found.text for found in block("label", ["one two three four five six", "seven"], 36)]
    assert texts == ["label           one two three four", "                five six", "                seven"]


def test_an_interval_is_never_broken() -> None:
    texts = [found.text for found in paragraph("3 of 5 killed = 0.60 [0.23, 0.88]", 20)]
    assert texts == ["3 of 5 killed", "= 0.60 [0.23, 0.88]"]


def test_names_with_meanings_line_up_and_are_cut() -> None:
    assert named([("a", "first"), ("longer", "x" * 40), ("b", "")], 40) == [
        "a       first", "longer  xxxxxxxxxxxxxx..", "b",
    ]  # fmt: skip


def test_a_meaning_may_take_several_lines() -> None:
    assert named([("a", "one two three four five six seven"), ("b", "x")], 32, most_lines=2) == [
        "a  one two three", "   four five s..", "b  x",
    ]  # fmt: skip


def test_lists_of_names() -> None:
    assert first_names(["a", "b", "c"], 2) == "a, b and 1 more"
    assert flowing(["a", "bb", "c"], 8) == ["a   bb", "c"]


def test_a_table_drops_what_does_not_fit_and_says_so() -> None:
    columns = [Column("id", ["a", "bb"], "<"), Column("n", ["1", "20"], gap=1), Column("wide", ["x" * 30, ""], "<")]
    assert [found.text for found in table(columns, 80)] == ["id  n  wide", f"a   1  {'x' * 30}", "bb 20"]
    assert [found.text for found in table(columns, 30, (1, "1 more"))] == [
        "id  n", "a   1", ".. 1 more", "bb 20", "no room for wide: summary.json",
    ]  # fmt: skip
    assert fitting(columns, 1) == columns[:1], "the first column always stays"


def test_names_that_would_look_alike_are_cut_in_the_middle() -> None:
    names = ["NumberReplacer-limit-100-to-101", "NumberReplacer-limit-100-to-99", "ReplaceTrueWithFalse-box"]
    assert cut_apart(names, 16) == ["NumberR..-to-101", "NumberR..0-to-99", "ReplaceTrueWit.."]
    assert cut_apart(["same", "same"], 4) == ["same", "same"]
    assert all(len(name) <= 24 for name in cut_apart(names, 24))
    assert named([(name, "x") for name in names[:2]], 48) == ["NumberR..-to-101  x", "NumberR..0-to-99  x"]


def test_names_that_begin_alike_are_told_apart() -> None:
    ids = [f"tests-test_prices.py--test_{name}-ab12cd" for name in ("tax", "discount", "a_name_that_goes_on_and_on")]
    assert told_apart(ids, 24) == ["..test_tax-ab12cd", "..test_discount-ab12cd", "..test_a_name_that_goe.."]
    assert told_apart(["find", "pay"], 24) == ["find", "pay"]
    assert told_apart(["x" * 30], 24) == ["x" * 22 + ".."]
    assert told_apart(["abc" * 10, "abd" * 10], 8) == ["abcabc..", "abdabd.."]
