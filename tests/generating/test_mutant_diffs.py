"""Diffs of texts and params: they lead from the baseline to the mutant, whatever the two are."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.generating.diffs import changed_texts, params_diff, params_text, unified_diff, without_positions
from pytest_metricbench.suite.patches import PatchError

LINES = st.lists(
    st.sampled_from(
        ["", " ", "a", "b", "- x", "+ y", "--- a/z", "@@ -1 +1 @@", "\\ no", "\ta", "caf\xe9", "\x0c\u2028"]
    )
)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f\x00"), max_size=12),
    st.sampled_from(
        ["no", "1e3", "12:30:00", "=", "a\nb\n", "a\n\n", " a\n b", "2020-01-01", "~", "1_000", "{x}", "# x", "x\r\ny"]
    ),
)
PARAMS = st.dictionaries(
    st.text(min_size=1, max_size=6),
    st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_size=4,
)


@settings(max_examples=300)
@given(old=TEXTS, new=TEXTS)
def test_the_diff_of_two_texts_makes_one_of_the_other(old: Any, new: Any) -> None:
    diff = unified_diff("a b.md", old, new)
    if old == new:
        assert diff == ""
        return
    files, params = changed_texts(diff, {"a b.md": old}.__getitem__, "")
    assert files == {"a b.md": new}
    assert params is None


@settings(max_examples=300)
@given(old=PARAMS, new=PARAMS)
def test_the_diff_of_two_params_makes_one_of_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    diff = params_diff(old, new)
    if params_text(old) == params_text(new):
        assert diff == ""
        return
    no_files: dict[str, str] = {}
    files, params = changed_texts(diff, no_files.__getitem__, params_text(old))
    assert files == {}
    assert params == new
    assert repr(params) == repr(new)  # 1, 1.0 and true are three values


def test_line_ends_of_the_file_are_kept() -> None:
    diff = unified_diff("p.md", "a\nb\nc\n", "a\nB\nc\n")
    assert changed_texts(diff, {"p.md": "a\r\nb\r\nc\r\n"}.__getitem__, "")[0] == {"p.md": "a\r\nB\r\nc\r\n"}


def test_a_diff_that_does_not_fit_is_refused() -> None:
    diff = unified_diff("p.md", "a\nb\n", "a\nc\n")
    with pytest.raises(PatchError, match=r"line 2 of p.md is 'x', the patch expects 'b'"):
        changed_texts(diff, {"p.md": "a\nx\n"}.__getitem__, "")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("a: [1", "what it makes of the params is no YAML: "),
        ("- a", "what it makes of the params is no mapping"),
        ("5", "what it makes of the params is no mapping"),
    ],
)
def test_a_diff_after_which_the_params_are_none_is_refused(made: str, said: str) -> None:
    params = params_text({"a": 1})
    diff = params_diff({"a": 1}, {"a": 2}).replace("+a: 2", f"+{made}")
    assert f"+{made}" in diff
    with pytest.raises(PatchError) as caught:
        changed_texts(diff, str, params)
    assert str(caught.value).startswith(said)


def test_a_diff_that_removes_all_params_leaves_none() -> None:
    params = params_text({"a": 1})
    assert changed_texts(params_diff({"a": 1}, {}), str, params) == ({}, {})


def test_without_positions_a_diff_stays_the_same_when_lines_are_added_above() -> None:
    old, new = "a\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n"
    above = "".join(f"{number}\n" for number in range(9))
    one, other = unified_diff("p", old, new), unified_diff("p", above + old, above + new)
    assert one != other
    assert without_positions(one).splitlines()[3:] == without_positions(other).splitlines()[3:]
