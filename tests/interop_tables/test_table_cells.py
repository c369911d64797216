"""What a cell says: numbers, booleans, labels, deaths and nothing, in CSV and in JSONL."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.interop.recordings import ReadOptions, RecordingError
from pytest_metricbench.interop.table import reading as tables
from tests.interop_tables.table_lab import TableLab, notes, rows, said

Missing = object()


def csv_value(table_lab: TableLab, cell: str, **score: Any) -> Any:
    table_lab.write(f"task,reward\nt,{cell}\n")
    (row,) = rows(table_lab.read(columns={"scores": {"reward": score}} if score else {}))
    return None if row[3] == "died" else row[4].get("reward", Missing)


def json_value(table_lab: TableLab, cell: str, **score: Any) -> Any:
    table_lab.write(f'{{"task": "t", "reward": {cell}}}\n', "r.jsonl")
    (row,) = rows(table_lab.read("r.jsonl", columns={"scores": {"reward": score}} if score else {}))
    return None if row[3] == "died" else row[4].get("reward", Missing)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        *[("1", 1), ("0", 0), ("-3", -3), ("+4", 4), ("007", 7)],
        *[("1.0", 1.0), ("1.", 1.0), (".5", 0.5), ("1e3", 1000.0), ("-2.5E-1", -0.25), (" 2 ", 2)],
        *[("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False)],
        *[("NaN", math.nan), ("nan", math.nan), ("-nan", math.nan), ("inf", math.inf), ("-inf", -math.inf)],
        *[("Infinity", math.inf), ("-Infinity", -math.inf), ("+INF", math.inf)],
        *[("", Missing), ("   ", Missing), ("died", None), ("Died", None), ("null", None), ("NULL", None)],
        *[("dry", "dry"), ("N/A", "N/A"), ("None", "None"), ("1_000", "1_000"), ("0x10", "0x10"), ("50%", "50%")],
    ],
)
def test_cells_of_csv(table_lab: TableLab, cell: str, value: Any) -> None:
    assert repr(csv_value(table_lab, cell)) == repr(value)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        *[("1", 1), ("1.0", 1.0), ("-2e-1", -0.2), ("true", True), ("false", False), ("null", None)],
        *[("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf)],
        *[('"NaN"', math.nan), ('"Infinity"', math.inf), ('"-Infinity"', -math.inf)],
        *[('""', Missing), ('" "', Missing), ('"dry"', "dry"), ('"died"', None), ('"true"', "true")],
    ],
)
def test_values_of_jsonl(table_lab: TableLab, cell: str, value: Any) -> None:
    assert repr(json_value(table_lab, cell)) == repr(value)


@pytest.mark.parametrize(
    ("cell", "kind", "value"),
    [
        *[("1", "boolean", True), ("0", "boolean", False), ("1.0", "boolean", True), ("true", "boolean", True)],
        *[("1", "label", "1"), ("nan", "label", "nan"), ("died", "label", "died"), ("True", "label", "True")],
        *[("", "label", Missing), ("", "continuous", Missing), ("died", "continuous", None), ("died", "boolean", None)],
        *[("3", "discrete", 3), ("0.5", "measurement", 0.5), ("3.0", "discrete", 3.0)],
    ],
)
def test_a_kind_decides_where_the_cell_does_not(table_lab: TableLab, cell: str, kind: str, value: Any) -> None:
    assert repr(csv_value(table_lab, cell, kind=kind)) == repr(value)
    assert table_lab.read(columns={"scores": {"reward": {"kind": kind}}}).tasks["t"].outputs == {"reward": kind}


def test_words_stand_for_values(table_lab: TableLab) -> None:
    table_lab.write("task,result\na,PASS\nb,FAIL\nc,CRASH\nd,\ne,0.5\n")
    words = {"PASS": True, "FAIL": 0, "CRASH": None}
    recordings = table_lab.read(columns={"scores": {"reward": {"column": "result", "values": words}}})
    assert [(row[3], row[4]) for row in rows(recordings)] == [
        ("scored", {"reward": True}),
        ("scored", {"reward": 0}),
        ("died", {}),
        ("unmeasured", {}),
        ("scored", {"reward": 0.5}),
    ]


def test_nan_is_counted_aloud(table_lab: TableLab) -> None:
    table_lab.write("task,reward\na,nan\nb,NaN\nc,1\n")
    assert notes(table_lab.read()) == said({tables.NAN: 2})


NO_SCORE = "at most 1000; do not name that column under scores"
REMEDY = "a number, true or false; empty where nothing is known, died where the agent died before it was scored"


@pytest.mark.parametrize(
    ("cells", "message", "remedy"),
    [
        (["1", "n/a"], "results.csv:3, column 'reward': 'n/a' is not a number, as results.csv:2 has one", REMEDY),
        (
            ["0.5", "", "0,5x"],
            "results.csv:4, column 'reward': '0,5x' is not a number, as results.csv:2 has one",
            REMEDY,
        ),
        (
            ["0.5", "0,5"],
            "results.csv:3, column 'reward': '0,5' is not a number, as results.csv:2 has one",
            "write it with a decimal point",
        ),
        (
            ["n/a", "died", "1"],
            "results.csv:4, column 'reward': '1' is no text, as results.csv:2 has one",
            f"numbers and texts do not mix: {REMEDY}; or say that it has kind: label",
        ),
        (
            ["ok", "true"],
            "results.csv:3, column 'reward': 'true' is no text, as results.csv:2 has one",
            f"numbers and texts do not mix: {REMEDY}; or say that it has kind: label",
        ),
        (["1e999"], "results.csv:2, column 'reward': '1e999' is too large", "up to 1e308"),
        (["1" * 5000], f"results.csv:2, column 'reward': '{'1' * 57}...' is too large", "up to 1e308"),
        (["x" * 1001], "results.csv:2, column 'reward': a text of 1001 characters is no label", NO_SCORE),
    ],
)
def test_cells_that_do_not_go_together(table_lab: TableLab, cells: list[str], message: str, remedy: str) -> None:
    table_lab.write("task;reward\n" + "".join(f"t;{cell}\n" for cell in cells))
    told, advice = table_lab.refused()
    assert told == message
    assert advice.startswith(remedy)


@pytest.mark.parametrize(
    ("cell", "kind", "problem"),
    [
        ("n/a", "continuous", "'n/a' is not a number: its kind is continuous"),
        ("maybe", "boolean", "'maybe' is not true or false: its kind is boolean"),
        ("2", "boolean", "'2' is not true or false: its kind is boolean"),
        ("0.5", "boolean", "'0.5' is not true or false: its kind is boolean"),
        ("true", "continuous", "'true' is not a number: its kind is continuous"),
        ("0.5", "discrete", "'0.5' is not a whole number: its kind is discrete"),
        ("inf", "discrete", "'inf' is not a whole number: its kind is discrete"),
        ("high", "measurement", "'high' is not a number: its kind is measurement"),
    ],
)
def test_a_cell_of_another_kind(table_lab: TableLab, cell: str, kind: str, problem: str) -> None:
    table_lab.write(f"task,reward\nt,1\nu,{cell}\n")
    told, advice = table_lab.refused(columns={"scores": {"reward": {"kind": kind}}})
    assert (told, advice) == (f"results.csv:3, column 'reward': {problem}", REMEDY)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ('"1.0"', "r.jsonl:1, column 'reward': the text '1.0' stands where a number would"),
        ("[1]", "r.jsonl:1: score 'reward' is a list [1]; a score is a number, a boolean, a label or null"),
        ('{"value": 1}', "r.jsonl:1: score 'reward' is a mapping {\"value\": 1}; a score is a number"),
        ("1" * 400, "r.jsonl:1: score 'reward' has 400 digits; a number up to 1e308 is expected"),
        ("1" * 5000, "r.jsonl:1: is not JSON: Exceeds the limit"),
    ],
)
def test_values_of_jsonl_that_are_no_scores(table_lab: TableLab, cell: str, message: str) -> None:
    table_lab.write(f'{{"task": "t", "reward": {cell}}}\n', "r.jsonl")
    assert table_lab.refused("r.jsonl")[0].startswith(message)


NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: abs(number) < 1e308),
    st.booleans(),
)


@given(st.lists(st.one_of(st.none(), NUMBERS, st.floats(allow_nan=True)), min_size=1, max_size=8))
@settings(max_examples=60)
def test_values_survive_both_formats(tmp_path_factory: pytest.TempPathFactory, values: list[Any]) -> None:
    values = [v for v in values if not (isinstance(v, float) and math.isfinite(v) and abs(v) >= 1e308)] or [1]
    folder = tmp_path_factory.mktemp("tables")
    cells = ["died" if value is None else repr(value) for value in values]
    (folder / "t.csv").write_text("task,reward\n" + "".join(f"t,{cell}\n" for cell in cells))
    (folder / "t.jsonl").write_text("".join(json.dumps({"task": "t", "reward": v}) + "\n" for v in values))
    for name in ("t.csv", "t.jsonl"):
        found = tables.read({name: folder / name}, ReadOptions("case")).attempts
        read = [None if a.outcome.kind == "died" else a.outcome.scores["reward"] for a in found]
        assert [repr(value) for value in read] == [repr(value) for value in values]


def read_or_refused(path: Path) -> str:
    """How many attempts a file has, or what is said about it; any other error is one."""
    try:
        return str(len(tables.read({path.name: path}, ReadOptions("case")).attempts))
    except RecordingError as error:
        return error.message if error.message.startswith(path.name) else ""


@given(st.text(max_size=60))
@settings(max_examples=150)
def test_no_cell_whatever_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    path.write_bytes(b"task,reward\nt," + text.encode("utf-8", "surrogatepass") + b"\nu,1\n")
    assert read_or_refused(path) != ""


@given(st.binary(max_size=200))
@settings(max_examples=150)
def test_no_file_whatever_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("tables") / "t"
    path.write_bytes(content)
    assert read_or_refused(path) != ""
