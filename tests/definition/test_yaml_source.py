"""YAML as it is read: values with their places, and what may not stand in a file."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.definition.problems import Problem, ProblemList
from pytest_metricbench.definition.source import FILE_LIMIT, read_document


def read(path: Path, text: str | bytes) -> tuple[Any, list[Problem]]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    problems = ProblemList()
    return read_document(path, problems), problems.found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.yml"


def test_values_and_positions(path: Path) -> None:
    document, found = read(path, "a: 1\nb:\n  - x\n  - {c: true, d: null, e: 1.5, f: ~}\n'q': \"5\"\n")
    assert not found
    assert document.value == {"a": 1, "b": ["x", {"c": True, "d": None, "e": 1.5, "f": None}], "q": "5"}
    assert document.position(()) == (1, 1)
    assert document.position(("b", 1, "d")) == (4, 18)
    assert document.position(("b", 1, "d"), at_key=True) == (4, 15)
    assert document.position(("b", 1, "nowhere", 3)) == (4, 5)
    assert document.position(("b", "nowhere", 0)) == document.position(("b",)) == (3, 3)
    assert document.position(("nowhere",)) == document.position(("nowhere",), at_key=True) == (1, 1)
    assert document.written(("a",)) == "1"
    assert document.written(("q",)) is None


def test_anchors_aliases_and_merges(path: Path) -> None:
    text = "base: &b {x: 1, y: 2}\nsame: *b\nmore: {<<: *b, y: 3}\nboth: {<<: [{x: 9}, *b], z: 0}\n"
    document, found = read(path, text)
    assert not found
    assert document.value["same"] == {"x": 1, "y": 2}
    assert document.value["more"] == {"x": 1, "y": 3}
    assert document.value["both"] == {"x": 9, "y": 2, "z": 0}
    assert document.position(("more", "x")) == (1, 14)
    assert document.position(("more", "y")) == (3, 19)
    document.value["same"]["x"] = 7
    assert document.value["base"]["x"] == 1


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *((word, True) for word in ("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON")),
        *((word, False) for word in ("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF")),
        *((word, None) for word in ("null", "Null", "NULL", "~", "")),
        *((word, word) for word in ("y", "n", "none", "None", "nan", "inf", "1e3", "0o7", "1.2.3", "tRue")),
        ("0", 0),
        ("-12", -12),
        ("+1_000", 1000),
        ("0x1F", 31),
        ("0b11", 3),
        ("0.0", 0.0),
        ("-1_0.5", -10.5),
        ("1.5e+3", 1500.0),
        (".5", 0.5),
    ],
)
def test_words_without_quotes(path: Path, written: str, value: Any) -> None:
    document, found = read(path, f"a: {written}\n")
    assert not found
    assert document.value == {"a": value}
    assert type(document.value["a"]) is type(value)


def test_an_empty_file_has_a_place(path: Path) -> None:
    document, found = read(path, "# nothing\n")
    assert not found
    assert document.value is None
    assert document.position(()) == document.position(("a",)) == (1, 1)


def test_the_first_wrong_key_of_a_mapping_hides_no_other(path: Path) -> None:
    document, found = read(path, "a: {1: x, b: 2, b: 3, [c]: 4, d: 2024-01-01}\n")
    assert document.value == {"a": {"b": 2, "d": "2024-01-01"}}
    assert [(problem.column, problem.key) for problem in found] == [(5, "a"), (17, "a.b"), (23, "a"), (34, "a.d")]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
def test_encodings(path: Path, encoding: str) -> None:
    document, found = read(path, "a: é\n".encode(encoding))
    assert not found
    assert document.value == {"a": "é"}


@pytest.mark.parametrize(
    ("text", "line", "column", "key", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 1, "a", "stands twice, first in line 1"),
        ("a: {x: 1,\n  x: 2}\n", 2, 3, "a.x", "stands twice, first in line 1"),
        ("yes: 1\n", 1, 1, "", "the key 'yes' is read as a boolean; quote it"),
        ("a: {1: x}\n", 1, 5, "a", "the key '1' is read as a number"),
        ("? [a]\n: 1\n", 1, 3, "", "a key is a list or a mapping"),
        ("a: 2024-01-01\n", 1, 4, "a", 'quote it: "2024-01-01"'),
        ("a: 12:30\n", 1, 4, "a", "to the base 60"),
        ("a: 12:30.5\n", 1, 4, "a", "to the base 60"),
        ("a: 010\n", 1, 4, "a", "octal"),
        ("a: .inf\n", 1, 4, "a", "no finite number"),
        ("a: [1, -.inf]\n", 1, 8, "a[1]", "no finite number"),
        ("a: .nan\n", 1, 4, "a", "no finite number"),
        ("a: 1.0e+999\n", 1, 4, "a", "no finite number"),
        ("a: !!int x\n", 1, 4, "a", "is no int"),
        ("a: !!bool x\n", 1, 4, "a", "is no bool"),
        ("a: !!binary aGk=\n", 1, 4, "a", "the tag !!binary is not allowed"),
        ("a: !!python/object:os.system x\n", 1, 4, "a", "the tag !!python/object:os.system is not allowed"),
        ("a: !mine {b: 1}\n", 1, 4, "a", "the tag !mine is not allowed"),
        ("a: !!set {b}\n", 1, 4, "a", "the tag !!set is not allowed"),
        ("a: {<<: 5}\n", 1, 9, "a['<<']", "needs a mapping"),
    ],
)
def test_values_that_are_told(path: Path, text: str, line: int, column: int, key: str, said: str) -> None:
    document, found = read(path, text)
    assert document is not None
    assert [(p.line, p.column, p.key) for p in found] == [(line, column, key)]
    assert said in str(found[0])


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: [1\nb: 2\n", 2, "is no YAML"),
        ("a: b: c\n", 1, "mapping values are not allowed"),
        ("\tx: 1\n", 1, "is no YAML"),
        ("a: *nowhere\n", 1, "undefined alias"),
        ("a: 1\nb: 2\nc: *nowhere\n", 3, "undefined alias"),
        (
            "a: 1\nb: 'x\n",
            3,
            "is no YAML: found unexpected end of stream (while scanning a quoted scalar, which begins at line 2)",
        ),
        ("a: " + "{<<: " * 990 + "{x: 1}" + "}" * 990, 1, "is nested too deeply"),
        (b"a: 1\nb: \xff\n", 2, "save the file as UTF-8"),
        ("a: \x01\n", 1, "is no YAML"),
        ("a: 1\n---\nb: 2\n", 2, "a second YAML document"),
        ("a: &x [*x]\n", 1, "holds an alias of itself"),
        ("a: &x {<<: *x}\n", 1, "merges itself"),
        ("a: " + "[" * 101 + "]" * 101, 1, "nested too deeply"),
        ("a: " + "[" * 5000 + "]" * 5000, 1, "nesting depth"),
    ],
)
def test_files_that_are_refused(path: Path, text: bytes | str, line: int, said: str) -> None:
    document, found = read(path, text)
    assert document is None
    assert len(found) == 1
    assert found[0].line == line
    assert said in str(found[0])


def test_a_billion_laughs(path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    document, found = read(path, "\n".join(lines))
    assert document is None
    assert "aliases" in str(found[0])


def test_a_billion_merges(path: Path) -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 50)}], y{n}: 1}}" for n in range(1, 300)]
    document, found = read(path, "\n".join(lines))
    assert document is None
    assert "aliases" in str(found[0])


@pytest.mark.slow
def test_too_many_values(path: Path) -> None:
    document, found = read(path, "a: [" + "1," * 1_000_010 + "]")
    assert document is None
    assert "more than 1000000 values" in str(found[0])


def test_a_large_file_is_not_read(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(FILE_LIMIT + 1)
    problems = ProblemList()
    assert read_document(path, problems) is None
    assert "at most 16 MiB" in str(problems.found[0])


def test_what_is_no_file(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "absent.yml", tmp_path / "a\0b"):
        problems = ProblemList()
        assert read_document(place, problems) is None
        assert len(problems) == 1


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200)
@given(_JSON)
def test_what_yaml_dumps_is_read_as_it_was(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.mktemp("round") / "x.yml"
    document, found = read(path, yaml.safe_dump(value))
    assert not found
    assert json.dumps(document.value, sort_keys=True) == json.dumps(value, sort_keys=True)
