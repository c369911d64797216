"""Tables as recorded attempts: which rows are attempts, of which variant and task, and what became of them."""

import pytest

from pytest_metricbench.definition.ids import derive_id
from pytest_metricbench.interop.recordings import RecordedTask
from pytest_metricbench.interop.table import reading as tables
from tests.interop_tables.table_lab import TableLab, notes, rows, said
from tests.present import present

PLAIN = """\
variant,task,trial_id,reward
baseline,find,a1,1
baseline,find,a2,0.5
no-pay,find,b1,died
no-pay,pay,b2,
"""


def test_a_row_is_an_attempt(table_lab: TableLab) -> None:
    table_lab.write(PLAIN)
    recordings = table_lab.read()
    assert rows(recordings) == [
        ("baseline", "find", "a1", "scored", {"reward": 1}),
        ("baseline", "find", "a2", "scored", {"reward": 0.5}),
        ("no-pay", "find", "b1", "died", {}),
        ("no-pay", "pay", "b2", "unmeasured", {}),
    ]
    assert [found.origin for found in recordings.attempts] == ["results.csv"] * 4
    assert [found.outcome.trial_name for found in recordings.attempts] == ["a1", "a2", "b1", "b2"]
    assert recordings.tasks == {"find": RecordedTask("find"), "pay": RecordedTask("pay")}
    assert recordings.files == {"results.csv": table_lab.folder / "results.csv"}
    assert recordings.notes == []
    died, unmeasured = (present(found.outcome.error) for found in recordings.attempts[2:])
    assert (died.type, died.message, died.phase) == ("Died", "as results.csv:4 says", "agent")
    assert (unmeasured.type, unmeasured.message, unmeasured.phase) == (
        "NoScore",
        "results.csv:5 has no score",
        "verifier",
    )


def test_the_same_as_jsonl(table_lab: TableLab) -> None:
    table_lab.write(
        '{"variant": "baseline", "task": "find", "trial_id": "a1", "reward": 1}\n'
        '{"variant": "baseline", "task": "find", "trial_id": "a2", "reward": 0.5}\n'
        "\n"
        '{"variant": "no-pay", "task": "find", "trial_id": "b1", "reward": null}\n'
        '{"variant": "no-pay", "task": "pay", "trial_id": "b2"}\n',
        "results.jsonl",
    )
    recordings = table_lab.read("results.jsonl")
    table_lab.write(PLAIN)
    assert rows(recordings) == rows(table_lab.read())
    assert notes(recordings) == said({tables.NULL: 1})


def test_columns_are_what_the_mapping_says(table_lab: TableLab) -> None:
    table_lab.write("model;question;run;correct;usd;tone;extra;more\nm;q;7;true;0.25;dry;x;y\n")
    columns = {
        "variant": "model",
        "task": "question",
        "trial": "run",
        "scores": {"reward": "correct", "cost": {"column": "usd", "kind": "measurement"}, "tone": "tone"},
    }
    recordings = table_lab.read(columns=columns)
    assert rows(recordings) == [("m", "q", "7", "scored", {"reward": True, "cost": 0.25, "tone": "dry"})]
    assert recordings.tasks["q"].outputs == {"cost": "measurement"}
    assert notes(recordings) == {"columns that nothing reads: extra, more": 2}


def test_a_file_without_a_column_of_variants_is_one(table_lab: TableLab) -> None:
    for name in ("strict", "lax"):
        table_lab.write("task,reward\nt,1\n", f"{name}.csv")
    assert [(row[0], row[2]) for row in rows(table_lab.read("strict.csv", "lax.csv"))] == [
        ("strict", "strict.csv:2"),
        ("lax", "lax.csv:2"),
    ]
    table_lab.write("variant,task,reward\nv,t,1\n", "x.csv")
    assert rows(table_lab.read("x.csv", columns={"scores": "reward"}))[0][4] == {"reward": 1}
    assert rows(table_lab.read("x.csv", columns={"variant": None}))[0][0] == "x"


def test_rows_of_other_cases_are_left_out(table_lab: TableLab) -> None:
    table_lab.write("case,task,reward\nshop,a,1\norg/bank,b,bad\nshop,c,0\n")
    assert [row[1] for row in rows(table_lab.read(case="shop"))] == ["a", "c"]
    assert [row[4] for row in rows(table_lab.read(case=derive_id("org/bank")[0]))] == [{"reward": "bad"}]
    assert len(table_lab.read(case="other", columns={"case": None, "scores": ["case"]}).attempts) == 3


def test_a_row_a_task_and_a_column_a_variant(table_lab: TableLab) -> None:
    table_lab.write("id,gpt-4 (functions),claude-2.1\n10,1.00,0\n11,,died\n11,0.5,1\n")
    columns = {"task": "id", "variant": ["claude-2.1", "gpt-4 (functions)"], "scores": ["correct"]}
    recordings = table_lab.read(columns=columns)
    assert rows(recordings) == [
        ("claude-2.1", "10", "results.csv:2", "scored", {"correct": 0}),
        ("gpt-4 (functions)", "10", "results.csv:2", "scored", {"correct": 1.0}),
        ("claude-2.1", "11", "results.csv:3", "died", {}),
        ("claude-2.1", "11", "results.csv:4", "scored", {"correct": 1}),
        ("gpt-4 (functions)", "11", "results.csv:4", "scored", {"correct": 0.5}),
    ]
    assert notes(recordings) == {}


def test_such_a_table_may_leave_its_tasks_without_names(table_lab: TableLab) -> None:
    table_lab.write("a,b\n1,0\n\n0,0\n")
    assert [row[:2] for row in rows(table_lab.read(columns={"variant": ["a", "b"]}))] == [
        ("a", "row-1"),
        ("b", "row-1"),
        ("a", "row-2"),
        ("b", "row-2"),
    ]


# ---------------------------------------------------------------- outcomes


def test_an_outcome_column_is_the_last_word(table_lab: TableLab) -> None:
    table_lab.write(
        "task,reward,status,message\n"
        "ok,1,scored,\n"
        "late,0,TIMEOUT,after 60 s\n"
        "down,0,infra,the sandbox is gone\n"
        "dead,,died,\n"
        "lost,0.5,unmeasured,\n"
        "open,0,,\n"
        "none,,,\n"
        "odd,1,Scored,a warning\n"
        "empty,,scored,\n"
    )
    columns = {"outcome": "status", "error": "message"}
    recordings = table_lab.read(columns=columns, outcomes={"TIMEOUT": "died", "infra": "unmeasured"})
    found = {attempt.task: attempt.outcome for attempt in recordings.attempts}
    assert {task: outcome.kind for task, outcome in found.items()} == {
        "ok": "scored",
        "late": "died",
        "down": "unmeasured",
        "dead": "died",
        "lost": "unmeasured",
        "open": "scored",
        "none": "unmeasured",
        "odd": "scored",
        "empty": "unmeasured",
    }
    errors = {task: (o.error.type, o.error.message) for task, o in found.items() if o.error is not None}
    assert errors == {
        "late": ("TIMEOUT", "after 60 s"),
        "down": ("infra", "the sandbox is gone"),
        "dead": ("Died", "as results.csv:5 says"),
        "lost": ("Unmeasured", "as results.csv:6 says"),
        "none": ("NoScore", "results.csv:8 has no score"),
        "odd": ("Error", "a warning"),
        "empty": ("NoScore", "results.csv:10 has no score"),
    }
    assert notes(recordings) == said({tables.OVERRULED: 3})


def test_without_such_a_column_the_error_may_say_it(table_lab: TableLab) -> None:
    table_lab.write("task,reward,error\na,0,AgentTimeoutError\nb,0,Other\nc,,Other\nd,1,\n")
    recordings = table_lab.read(columns={"error": "error"}, outcomes={"AgentTimeoutError": "died"})
    assert [(row[1], row[3]) for row in rows(recordings)] == [
        ("a", "died"),
        ("b", "scored"),
        ("c", "unmeasured"),
        ("d", "scored"),
    ]
    assert [found.outcome.error and found.outcome.error.message for found in recordings.attempts] == [
        "AgentTimeoutError",
        "Other",
        "Other",
        None,
    ]


def test_a_death_may_be_of_one_score_only(table_lab: TableLab) -> None:
    table_lab.write("task,reward,cost\na,died,0.5\nb,died,\nc,,0.5\nd,null,NULL\n")
    assert [row[3:] for row in rows(table_lab.read(columns={"scores": ["reward", "cost"]}))] == [
        ("scored", {"reward": None, "cost": 0.5}),
        ("died", {}),
        ("scored", {"cost": 0.5}),
        ("died", {}),
    ]


# ---------------------------------------------------------------- identities


def test_attempts_keep_the_order_of_the_rows_and_equal_names(table_lab: TableLab) -> None:
    table_lab.write("task,trial_id,reward\nt,x,1\nt,y,0\nt,x,0\nt,x,1\nu,x,1\n")
    recordings = table_lab.read()
    assert [row[1:3] for row in rows(recordings)] == [("t", "x"), ("t", "y"), ("t", "x"), ("t", "x"), ("u", "x")]
    assert notes(recordings) == said({tables.REPEATED: 2, tables.EQUAL: 1})


def test_a_name_may_return_in_another_file_and_rows_without_names_may_be_equal(table_lab: TableLab) -> None:
    table_lab.write("variant,task,trial_id,reward\nv,t,1,1\n", "a.csv")
    table_lab.write("variant,task,trial_id,reward\nv,t,1,1\n", "b.csv")
    assert table_lab.read("a.csv", "b.csv").notes == []
    table_lab.write("task,reward\nt,1\nt,1\n")
    recordings = table_lab.read()
    assert [row[2] for row in rows(recordings)] == ["results.csv:2", "results.csv:3"]
    assert recordings.notes == []


@pytest.mark.parametrize("name", ["a b", "tests/x.py::t[1]", "x" * 500, "é", "0", "-1", "2.50"])
def test_names_are_kept_as_they_are(table_lab: TableLab, name: str) -> None:
    table_lab.write(f"variant,task,trial_id,reward\n{name},{name},{name},1\n")
    assert rows(table_lab.read())[0][:3] == (name, name, name)


def test_numbers_may_be_names_in_jsonl(table_lab: TableLab) -> None:
    table_lab.write('{"task": 3, "trial_id": 1.5, "reward": 1}\n', "r.jsonl")
    assert rows(table_lab.read("r.jsonl"))[0][:3] == ("r", "3", "1.5")


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found_out(table_lab: TableLab, delimiter: str) -> None:
    text = 'task,"a;b|c",reward\n"x, ""y""\nz",0,1\nlast,2,3\n'
    cells = [
        ["task", '"a;b|c"' if delimiter == "," else '"a,b"', "reward"],
        ['"x, ""y""\nz"', "0", "1"],
        ["last", "2", "3"],
    ]
    text = "".join(delimiter.join(row) + "\n" for row in cells)
    table_lab.write(text)
    recordings = table_lab.read()
    assert [row[1:3] for row in rows(recordings)] == [('x, "y"\nz', "results.csv:2"), ("last", "results.csv:4")]
    assert [row[4] for row in rows(recordings)] == [{"reward": 1}, {"reward": 3}]


def test_marks_line_ends_and_blanks_are_no_matter(table_lab: TableLab) -> None:
    for text in (
        b"\xef\xbb\xbftask,reward\r\na,1\r\n\r\nb, 0.5 \r\n",
        b" task , reward \na,1\n\nb,0.5",
        b'"task","reward"\n"a","1"\n"b","0.5"\n',
        b",task,reward\n0,a,1\n1,b,0.5\n",
    ):
        table_lab.write(text)
        assert [(row[1], row[4]["reward"]) for row in rows(table_lab.read())] == [("a", 1), ("b", 0.5)]


@pytest.mark.parametrize("name", ["r.jsonl", "r.ndjson", "r", "r.log"])
def test_jsonl_is_known_by_its_suffix_or_its_beginning(table_lab: TableLab, name: str) -> None:
    table_lab.write(b'\xef\xbb\xbf  {"task": "a", "reward": 1}\n', name)
    assert rows(table_lab.read(name))[0][4] == {"reward": 1}


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.txt", "r", "r.dat"])
def test_csv_is_known_by_its_suffix_or_its_beginning(table_lab: TableLab, name: str) -> None:
    table_lab.write("task\treward\na\t1\n", name)
    assert rows(table_lab.read(name))[0][4] == {"reward": 1}


def test_files_of_both_kinds_make_one_case(table_lab: TableLab) -> None:
    table_lab.write("variant,task,reward\nv,a,1\n", "a.csv")
    table_lab.write('{"variant": "w", "task": "a", "reward": 0, "note": []}\n', "b.jsonl")
    recordings = table_lab.read("a.csv", "b.jsonl")
    assert [row[0] for row in rows(recordings)] == ["v", "w"]
    assert notes(recordings) == {"column that nothing reads: note": 1}


def test_keys_of_jsonl_may_come_later(table_lab: TableLab) -> None:
    table_lab.write('{"task": "a"}\n{"task": "b", "reward": 1, "x": 2}\n{"task": "c", "y": [1]}\n', "r.jsonl")
    recordings = table_lab.read("r.jsonl")
    assert [row[3] for row in rows(recordings)] == ["unmeasured", "scored", "unmeasured"]
    assert notes(recordings) == {"columns that nothing reads: x, y": 2}


def test_rows_of_jsonl_that_are_nested_deep_are_compared_too(table_lab: TableLab) -> None:
    deep = "[" * 900 + "]" * 900
    table_lab.write(f'{{"task": "a", "trial_id": 1, "reward": 1, "x": {deep}}}\n' * 2, "r.jsonl")
    assert said({tables.REPEATED: 1}).items() <= notes(table_lab.read("r.jsonl")).items()


def test_a_link_that_is_named_is_followed(table_lab: TableLab) -> None:
    table_lab.write("task,reward\na,1\n", "data/real.csv")
    (table_lab.folder / "results.csv").symlink_to("data/real.csv")
    assert len(table_lab.read().attempts) == 1


def test_long_cells_of_other_columns_are_no_matter(table_lab: TableLab) -> None:
    import csv

    before = csv.field_size_limit()
    table_lab.write(f'task,trace,reward\na,"{"x" * 300_000}",1\n')
    assert rows(table_lab.read())[0][4] == {"reward": 1}
    assert csv.field_size_limit() == before
