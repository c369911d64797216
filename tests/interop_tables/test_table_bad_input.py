"""Tables that are damaged, no tables, or not what the mapping says: each error names its place and what to do."""

import os
import tracemalloc

import pytest

from pytest_metricbench.interop.table import rows as table_rows
from tests.interop_tables.table_lab import TableLab

SAVE = "save it as CSV in UTF-8, or as JSONL"
HEAD = b"task,reward\n"


@pytest.mark.parametrize(
    ("content", "message", "remedy"),
    [
        (b"", "results.csv is empty", "its first row names the columns"),
        (b"\n\r\n", "results.csv is empty", "its first row names the columns"),
        (HEAD, "results.csv has no rows", "a row an attempt"),
        (
            HEAD + b"t,1,2\n",
            "results.csv:2: the row has 3 cells, the header 2",
            "a cell with the delimiter or a line end",
        ),
        (HEAD + b"t,1\nu\n", "results.csv:3: the row has 1 cells, the header 2", "a cell with the delimiter"),
        (HEAD + b"t,1\nu,", None, None),
        (
            HEAD + b't,"1\nu,2\n',
            "results.csv:2: is no CSV: unexpected end of data",
            "quotes in a quoted cell are doubled",
        ),
        (HEAD + b't,"1" 2\n', "results.csv:2: is no CSV: ',' expected after '\"'", "quotes in a quoted cell"),
        (HEAD + b"t,1\ru,2\n", "results.csv:2: is no CSV: new-line character", "line ends are LF or CR LF"),
        (HEAD + b"t\xe9,1\n", "results.csv:2: byte 2 of the line is not UTF-8", SAVE),
        (HEAD + b"t\0,1\n", "results.csv:2: has a null character: it is no text", SAVE),
        ("task,reward\nt,1\n".encode("utf-16"), "results.csv is UTF-16, as some spreadsheets save it", SAVE),
        (b"PK\x03\x04rest", "results.csv is no text: a workbook, a Parquet or a compressed file", SAVE),
        (b"task,reward,task\nt,1,u\n", "results.csv:1: the column 'task' stands twice", "rename one of the two"),
        (HEAD + b",1\n", "results.csv:2: the row names no task", "every row names its task"),
        (HEAD + b"x" * 501 + b",1\n", "results.csv:2: the name of the task has 501 characters", "at most 500"),
        (b"task,trial_id,reward\nt,,1\n", "results.csv:2: the row names no attempt", "every row names its attempt"),
        (b"case,task,reward\n,t,1\n", "results.csv:2: the row names no case", "every row names its case"),
        (b"variant,task,reward\n,t,1\n", "results.csv:2: the row names no variant", "every row names its variant"),
    ],
)
def test_files_that_are_not_right(table_lab: TableLab, content: bytes, message: str | None, remedy: str) -> None:
    table_lab.write(content)
    if message is None:
        assert [found.outcome.kind for found in table_lab.read().attempts] == ["scored", "unmeasured"]
        return
    told, advice = table_lab.refused()
    assert told.startswith(message)
    assert advice.startswith(remedy)


@pytest.mark.parametrize(
    ("content", "message", "remedy"),
    [
        (b"", "r.jsonl is empty", "every line is one JSON mapping"),
        (
            b'{"task": "t", "rew',
            "r.jsonl:1: the last line is cut: it is no JSON and has no line end",
            "write the file whole",
        ),
        (b'{"task": "t"}\n{"rew\n', "r.jsonl:2: is not JSON: ", "every line is one JSON mapping"),
        (b'[{"task": "t"}]\n', "r.jsonl:1: is a list, not a mapping", "every line is one JSON mapping"),
        (b'{"task": "t", "task": "u"}\n', "r.jsonl:1: the key 'task' stands twice", "keep one of the two"),
        (
            b'{"task": "t", "reward": 1}\n{"reward": 1}\n',
            "r.jsonl:2: the row names no task",
            "every row names its task",
        ),
        (b'{"task": true, "reward": 1}\n', "r.jsonl:1: the task is the boolean true", "a name is a text or a number"),
        (b'{"task": ["t"], "reward": 1}\n', 'r.jsonl:1: the task is a list ["t"]', "a name is a text or a number"),
        (
            b'{"task": "t"}\n',
            "r.jsonl: no row has the key 'reward'",
            "runner.columns.scores.reward says which column it is",
        ),
        (
            b'{"task": "t", "rewards": 1}\n',
            "r.jsonl: no row has the key 'reward'",
            "did you mean 'rewards'? runner.columns",
        ),
    ],
)
def test_jsonl_that_is_not_right(table_lab: TableLab, content: bytes, message: str, remedy: str) -> None:
    table_lab.write(content, "r.jsonl")
    told, advice = table_lab.refused("r.jsonl")
    assert told.startswith(message)
    assert advice.startswith(remedy)


def test_a_list_of_rows_in_one_json_value(table_lab: TableLab) -> None:
    table_lab.write('[{"task": "t"}]', "r.json")
    assert table_lab.refused("r.json") == ("r.json is one JSON list", "write one mapping a line: JSONL")


THERE = "there are 'model', 'question', 'correct'"


@pytest.mark.parametrize(
    ("columns", "message", "remedy"),
    [
        (
            {},
            "results.csv:1: there is no column 'reward'",
            f"runner.columns.scores.reward says which column it is; {THERE}",
        ),
        (
            {"scores": ["correct"]},
            "results.csv:1: there is no column 'task'",
            f"runner.columns.task says which column it is; {THERE}",
        ),
        (
            {"task": "qestion", "scores": ["correct"]},
            "results.csv:1: there is no column 'qestion'",
            f"did you mean 'question'? runner.columns.task says which column it is; {THERE}",
        ),
        (
            {"task": "question", "scores": {"reward": "corect"}},
            "results.csv:1: there is no column 'corect'",
            f"did you mean 'correct'? runner.columns.scores.reward says which column it is; {THERE}",
        ),
        (
            {"task": "question", "variant": ["model", "gpt"]},
            "results.csv:1: there is no column 'gpt'",
            f"runner.columns.variant says which column it is; {THERE}",
        ),
        (
            {"task": "question", "scores": ["correct"], "outcome": "status"},
            "results.csv:1: there is no column 'status'",
            f"runner.columns.outcome says which column it is; {THERE}",
        ),
        (
            {"task": "question", "scores": ["correct"], "error": "status"},
            "results.csv:1: there is no column 'status'",
            f"runner.columns.error says which column it is; {THERE}",
        ),
        (
            {"task": "question", "scores": {"a": "correct", "b": "correct"}},
            "runner.columns.scores: 'b' and 'a' are the column 'correct'",
            "a column is one score",
        ),
        (
            {"tasks": "question"},
            "runner.columns.tasks is not known to the form table",
            "it knows case, variant, task, trial",
        ),
        (
            {"scores": {"a": {"col": "x"}}},
            "runner.columns.scores.a.col is not known to the form table",
            "it knows column, kind, values",
        ),
        ({"task": 3}, "runner.columns.task: Input should be a valid string", "for example columns: "),
        ({"scores": []}, "runner.columns.scores: Value should have at least 1 item", "for example columns: "),
        (
            {"scores": {"a": {"kind": "number"}}},
            "runner.columns.scores.a.kind: Input should be 'continuous'",
            "for example",
        ),
        (
            {"variant": ["model", "question"], "scores": ["a", "b"]},
            "runner.columns: with a list of variants every cell is one score",
            "name one under scores",
        ),
        ({"scores": [""]}, "runner.columns.scores.0: String should have at least 1 character", "for example"),
        ({"scores": {"": "x"}}, "runner.columns.scores.: String should have at least 1 character", "for example"),
        ({"scores": {"a": 3}}, "runner.columns.scores.a: Input should be a valid string", "for example"),
        ({"variant": ["a", 3]}, "runner.columns.variant.1: Input should be a valid string", "for example"),
        ({"variant": []}, "runner.columns.variant: ", "for example"),
    ],
)
def test_mappings_that_do_not_fit(table_lab: TableLab, columns: dict[str, object], message: str, remedy: str) -> None:
    table_lab.write("model,question,correct\nm,q,1\n")
    told, advice = table_lab.refused(columns=columns)
    assert told.startswith(message)
    assert advice.startswith(remedy)


def test_an_outcome_that_is_no_word(table_lab: TableLab) -> None:
    table_lab.write("task,reward,status\nt,1,scored\nu,0,TIMEOUT\n")
    assert table_lab.refused(columns={"outcome": "status"}, outcomes={"infra": "unmeasured"}) == (
        "results.csv:3, column 'status': 'TIMEOUT' is no outcome",
        "it is one of infra, scored, died, unmeasured; outcomes: {TIMEOUT: died} gives it a meaning",
    )


def test_a_misspelt_column_of_errors_in_jsonl(table_lab: TableLab) -> None:
    table_lab.write('{"task": "t", "reward": 1, "message": "x"}\n', "r.jsonl")
    assert table_lab.refused("r.jsonl", columns={"error": "mesage"}) == (
        "r.jsonl: no row has the key 'mesage'",
        "did you mean 'message'? runner.columns.error says which column it is; there are 'task', 'reward', 'message'",
    )
    assert table_lab.read("r.jsonl", columns={"error": "traceback"}).attempts


def test_a_case_that_has_no_rows(table_lab: TableLab) -> None:
    table_lab.write("case,task,reward\n" + "".join(f"c{n},t,1\n" for n in range(30)))
    message, remedy = table_lab.refused(case="shop")
    assert message == "results.csv: no row is of the case 'shop'"
    assert remedy == "the cases are " + ", ".join(f"c{n}" for n in range(20)) + ", ..."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variants": "agent"}, "runner.variants: the form table takes them from runner.columns.variant"),
        ({"evidence": ["*"]}, "runner.evidence: a table has no files of its attempts"),
    ],
)
def test_options_of_other_forms(table_lab: TableLab, options: dict[str, object], message: str) -> None:
    table_lab.write(HEAD + b"t,1\n")
    assert table_lab.refused(**options) == (message, "remove the key")


def test_lines_and_cells_without_end(table_lab: TableLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "ROW_LIMIT", 50)
    table_lab.write(HEAD + b"t,1\n" + b"x" * 60 + b",1\n")
    assert table_lab.refused()[0] == "results.csv:3: the line has more than 50 bytes"
    monkeypatch.undo()
    monkeypatch.setattr(table_rows, "CELL_LIMIT", 0)
    table_lab.write(HEAD + b't,"' + b"never closed\n" * 20_000)
    assert table_lab.refused()[0] == "results.csv:2: is no CSV: field larger than field limit (131072)"


def test_what_is_no_file(table_lab: TableLab) -> None:
    (table_lab.folder / "folder").mkdir()
    os.mkfifo(table_lab.folder / "pipe.csv")
    assert table_lab.refused("gone.csv")[0] == "gone.csv cannot be read: No such file or directory"
    assert table_lab.refused("folder")[0] == "folder is a folder; name the files in it"
    assert table_lab.refused("pipe.csv")[0] == "pipe.csv cannot be read: not a regular file"
    (table_lab.folder / "circle.csv").symlink_to(table_lab.folder / "circle.csv")
    assert table_lab.refused("circle.csv")[0] == "circle.csv cannot be read: not a regular file"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["big.csv", "big.jsonl"])
def test_large_tables_take_no_more_memory_than_their_values(table_lab: TableLab, name: str) -> None:
    """40 MB, nearly all of it in a column that nothing reads."""
    with (table_lab.folder / name).open("w") as file:
        if name.endswith(".csv"):
            file.write("task,trace,reward\n")
            file.writelines(f"t{row % 500},{'x' * 4000},1\n" for row in range(10_000))
        else:
            file.writelines(
                f'{{"task": "t{row % 500}", "trace": "{"x" * 4000}", "reward": 1}}\n' for row in range(10_000)
            )
    tracemalloc.start()
    try:
        recordings = table_lab.read(name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(recordings.attempts) == 10_000
    assert peak < 15_000_000
