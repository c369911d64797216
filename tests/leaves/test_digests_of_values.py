"""Digests: one spelling for one value, on any machine and in any order."""

import hashlib
import json
import math
from collections import OrderedDict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.digests import canonical_json, digest_bytes, digest_file, digest_value

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


@given(JSON)
def test_the_text_is_ascii_and_holds_the_value(value: object) -> None:
    text = canonical_json(value)
    assert text.isascii()
    assert "\n" not in text
    assert json.loads(text) == value


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=6))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    turned = OrderedDict(reversed(value.items()))
    assert digest_value(turned) == digest_value(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        ("1", 1),
        (None, "null"),
        ([], {}),
        ([1, 2], [2, 1]),
        ("a", "a "),
        ("\u00e9", "e\u0301"),
    ],
)
def test_different_values_have_different_digests(one: object, other: object) -> None:
    assert digest_value(one) != digest_value(other)


def test_numbers_that_are_none_have_names() -> None:
    assert canonical_json([math.nan, math.inf, -math.inf]) == "[NaN,Infinity,-Infinity]"


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), Path("/x"), {"a": {1}}, {(1,): 2}])
def test_what_json_has_no_word_for_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        digest_value(value)


def test_known_digests(tmp_path: Path) -> None:
    empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (tmp_path / "empty").touch()
    assert digest_bytes(b"") == digest_file(tmp_path / "empty") == empty
    assert digest_value({"b": [1, None], "a": "ü"}) == digest_bytes(rb'{"a":"\u00fc","b":[1,null]}')


@pytest.mark.parametrize("size", [1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5_000_000])
def test_a_file_is_read_in_pieces(tmp_path: Path, size: int) -> None:
    content = bytes(range(256)) * (size // 256 + 1)
    (tmp_path / "file").write_bytes(content[:size])
    assert digest_file(tmp_path / "file") == "sha256:" + hashlib.sha256(content[:size]).hexdigest()


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(OSError, match=path.name):
            digest_file(path)
