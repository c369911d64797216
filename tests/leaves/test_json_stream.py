"""The incremental JSON reader takes what json.loads takes and gives the same, whatever the pieces it reads."""

import io
import json
import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_metricbench.json_stream import DEPTH_LIMIT, JsonError, JsonReader

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**40), 10**40)
    | st.floats()
    | st.text()
    | st.text('\\"/\n\t\x00\x1f\x7f é€😀\ud800\udc00', max_size=12)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=6),
    max_leaves=30,
)
PIECES = st.integers(1, 40) | st.just(1 << 18)
NOT_JSON = "a b".encode("ascii") + b"\xff"


def build(reader: JsonReader) -> Any:
    """The next value, put together from what the reader gives."""
    kind = reader.kind
    if kind == "text":
        return reader.text()
    if kind == "object":
        return {key: build(reader) for key in reader.members()}
    if kind == "array":
        return [build(reader) for _ in reader.items()]
    return reader.scalar()


def whole(data: bytes, piece: int) -> Any:
    reader = JsonReader(io.BytesIO(data), piece=piece)
    value = build(reader)
    reader.end()
    return value


def skipped(data: bytes, piece: int) -> None:
    reader = JsonReader(io.BytesIO(data), piece=piece)
    reader.skip()
    reader.end()


def same(one: Any, other: Any) -> bool:
    """Equal with their types and signs, NaN equal to NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or (one == other and str(one) == str(other))
    return bool(one == other)


@given(VALUES, PIECES, st.booleans(), st.sampled_from([None, 0, 1, "\t"]))
def test_what_json_writes_is_read_alike(value: Any, piece: int, ascii_only: bool, indent: Any) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    assert same(whole(data, piece), json.loads(data))
    skipped(data, piece)


@given(VALUES, PIECES, st.sampled_from(["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"]))
def test_every_encoding_of_json_is_read(value: Any, piece: int, encoding: str) -> None:
    data = json.dumps(value).encode(encoding)
    assert same(whole(data, piece), json.loads(data))


@given(
    st.lists(
        st.sampled_from(
            [
                *'{}[],:"\\ \n\t\x0b\x00aé\xa001-+.eE',
                "\\u",
                "d83d",
                "true",
                "false",
                "null",
                "NaN",
                "Infinity",
                '"a"',
                '"b":',
                "12",
                "0.5",
            ]
        ),
        max_size=14,
    ).map("".join),
    PIECES,
)
@example('"\\u12', 3)
@example("-", 1)
@example("1.", 1)
@example("-Infinity", 2)
@example("[1,]", 1)
@example('{"a":1,}', 1)
@settings(max_examples=600)
def test_what_json_refuses_is_refused_and_nothing_else(text: str, piece: int) -> None:
    data = text.encode()
    try:
        expected = json.loads(data)
    except ValueError:
        with pytest.raises(JsonError):
            whole(data, piece)
        with pytest.raises(JsonError):
            skipped(data, piece)
    else:
        assert same(whole(data, piece), expected)
        skipped(data, piece)


@given(VALUES, PIECES, st.data())
def test_a_damaged_file_is_refused_where_json_refuses_it(value: Any, piece: int, data: st.DataObject) -> None:
    content = bytearray(json.dumps(value, indent=data.draw(st.sampled_from([None, 1]))).encode())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[at] = data.draw(st.integers(0, 255))
    else:
        del content[at:]
    try:
        expected = json.loads(bytes(content))
    except ValueError:
        for read in (whole, skipped):
            with pytest.raises(JsonError):
                read(bytes(content), piece)
    else:
        assert same(whole(bytes(content), piece), expected)
        skipped(bytes(content), piece)


@given(st.lists(st.integers() | st.text(max_size=4) | st.none(), min_size=300, max_size=400), PIECES)
@settings(max_examples=30)
def test_long_lists_of_plain_values_are_skipped_to_their_end(values: list[Any], piece: int) -> None:
    for value in (values, {str(index): entry for index, entry in enumerate(values)}):
        reader = JsonReader(io.BytesIO(json.dumps([value, "after"]).encode()), piece=piece)
        found = []
        for index in reader.items():
            if index == 0:
                reader.skip()
            else:
                found.append(reader.text())
        reader.end()
        assert found == ["after"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a value is expected (line 1, column 1)"),
        (b"  \n ", "a value is expected (line 2, column 2)"),
        (b'{"a": 1\n "b": 2}', "',' or '}' is expected (line 2, column 2)"),
        (b"[1,\n\n  2 3]", "',' or ']' is expected (line 3, column 5)"),
        (b"{1: 2}", "a key in quotes is expected (line 1, column 2)"),
        (b'{"a" 1}', "':' is expected after the key (line 1, column 6)"),
        (b'["a\nb"]', "a text has a control character (line 1, column 4)"),
        (b'["a\\x"]', "a text has an escape that there is not (line 1, column 4)"),
        (b'["abc', "the text has no end (line 1, column 6)"),
        (b"[1] [2]", "something follows the value (line 1, column 5)"),
        (b"[tru]", "a value is expected (line 1, column 2)"),
        (b"[01]", "a value is expected (line 1, column 2)"),
        (b"9" * 5000, "a number has more than 4300 characters (line 1, column 1)"),
    ],
)
@pytest.mark.parametrize("piece", [1, 7, 1 << 18])
def test_what_is_wrong_is_told_with_its_place(data: bytes, message: str, piece: int) -> None:
    for read in (whole, skipped):
        with pytest.raises(JsonError) as caught:
            read(data, piece)
        assert str(caught.value) == message


def test_what_is_no_text_is_told() -> None:
    with pytest.raises(JsonError, match="the file is not UTF-8 text"):
        whole(NOT_JSON, 4)


@pytest.mark.parametrize("inner", [b"[", b"[1, [", b'{"a": '])
def test_the_deepest_value_that_is_read(inner: bytes) -> None:
    levels = inner.count(b"[") + inner.count(b"{")
    closing = b"".join({b"[": b"]", b"{": b"}"}[bytes([byte])] for byte in reversed(inner) if byte in b"[{")
    content = b"0" if inner.endswith(b" ") else b""
    skipped(inner * (DEPTH_LIMIT // levels) + content + closing * (DEPTH_LIMIT // levels), 64)
    with pytest.raises(JsonError, match="lists and mappings are nested deeper than 500 levels"):
        skipped(inner * (DEPTH_LIMIT // levels + 1), 64)


def test_a_text_longer_than_is_asked_for_is_refused() -> None:
    reader = JsonReader(io.BytesIO(b'"' + b"a" * 100 + b'"'))
    with pytest.raises(JsonError, match="a text of more than 99 characters"):
        reader.text(99)
    assert JsonReader(io.BytesIO(b'"' + b"a" * 100 + b'"'), piece=3).text(100) == "a" * 100


class Endless(io.RawIOBase):
    """A file made while it is read: a beginning, a middle so many times, an end."""

    def __init__(self, begin: bytes, middle: bytes, times: int, end: bytes) -> None:
        self.parts = [begin, *[middle] * times, end]
        self.parts.reverse()

    def read(self, size: int = -1) -> bytes:
        return self.parts.pop() if self.parts else b""


@pytest.mark.slow
@pytest.mark.benchmark
@pytest.mark.parametrize(
    ("begin", "middle", "end"),
    [
        (b'["', b"all work and no play " * 50_000, b'"]'),
        (b'["', b'\\u00e9\\n\\"' * 100_000, b'"]'),
        (b"[0", b", 12345, -0.25, 7" * 60_000, b"]"),
        (b'[{"a": 0', b', "key": "value", "n": null' * 40_000, b"}]"),
        (b"[[]", b', {"a": [{"b": {}}]}' * 10_000, b"]"),
    ],
    ids=["text", "escapes", "numbers", "members", "nested"],
)
def test_whatever_is_long_is_skipped_in_bounded_memory(begin: bytes, middle: bytes, end: bytes) -> None:
    tracemalloc.start()
    try:
        reader = JsonReader(Endless(begin, middle, (12 << 20) // len(middle), end))
        reader.skip()
        reader.end()
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
