"""Bundles that are broken, cut, mixed or being written: each error names the file, the line and what to do."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.interop.nemo import content as nemo_content
from pytest_metricbench.interop.nemo import files as nemo_files
from pytest_metricbench.interop.nemo.bundles import read
from pytest_metricbench.interop.recordings import ReadOptions, RecordingError
from tests.interop_nemo.bundle_lab import SAMPLES, Lab, Trial, edit_json, edit_row, write_rows

AGAIN = "write the bundle again, or take it out of what is read"
MIXED = "the files are not of one run, were cut, or are being written; write the bundle again"
WAIT = "wait until the run has ended; a run that was stopped leaves no whole bundle"
UNDECLARED = {"metrics": [{"type": "m", "outputs": [{"name": "s"}]}]}
STATUSES = "one of completed, failed, partial is expected"
BROKEN = "this is no row as the evaluator SDK writes it; write the bundle again"


@pytest.fixture
def geo(tmp_path: Path) -> Path:
    return shutil.copytree(SAMPLES / "geo", tmp_path / "geo")


def problem(folder: Path, **options: Any) -> tuple[str, str]:
    """What reading a bundle says is wrong, and what to do."""
    with pytest.raises(RecordingError) as caught:
        read({folder.name: folder}, ReadOptions("geo", **options))
    return caught.value.message, caught.value.remedy


# ---------------------------------------------------------------- no bundle, or no whole one


def test_what_is_no_bundle(tmp_path: Path) -> None:
    form = "a bundle is a folder with run.json, tasks.jsonl, trials.jsonl, scores.jsonl, summary.json"
    assert problem(tmp_path / "nowhere") == ("nowhere does not exist", form)
    (tmp_path / "empty").mkdir()
    assert problem(tmp_path / "empty") == ("empty holds no evaluator bundle", form)
    (tmp_path / "b.tar.gz").write_bytes(b"")
    message = "b.tar.gz is a file; an evaluator bundle is a folder"
    assert problem(tmp_path / "b.tar.gz") == (message, "unpack it and name the folder")
    (tmp_path / "summary.json").write_text("{}")
    message = "summary.json is a file; an evaluator bundle is a folder"
    assert problem(tmp_path / "summary.json") == (message, "name the folder")


@pytest.mark.parametrize("name", ["tasks.jsonl", "trials.jsonl", "scores.jsonl", "summary.json"])
def test_a_file_is_missing(geo: Path, name: str) -> None:
    (geo / name).unlink()
    assert problem(geo) == (f"geo is no whole bundle: {name} missing", WAIT)


def test_the_file_that_is_written_last_is_missing(geo: Path) -> None:
    (geo / "run.json").unlink()
    assert problem(geo) == ("geo has no run.json, which is written last: it is not whole yet", WAIT)


def test_one_broken_bundle_among_many_is_never_left_out(lab: Lab) -> None:
    lab.bundle("good", [Trial("t", "1", {"m.s": 1.0})])
    shutil.copytree(SAMPLES / "geo", lab.folder / "bad")
    (lab.folder / "bad" / "summary.json").unlink()
    assert problem(lab.folder)[0] == "runs/bad is no whole bundle: summary.json missing"


def test_a_bundle_in_the_middle_of_being_written(geo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody adds a trial while the scores are read."""
    attach = nemo_content._attach_scores

    def slowly(*given: Any) -> int:
        with (geo / "trials.jsonl").open("a") as file:
            file.write("{}\n")
        return attach(*given)

    monkeypatch.setattr(nemo_content, "_attach_scores", slowly)
    assert problem(geo) == ("geo changed while it was read", "wait until its run has ended")


# ---------------------------------------------------------------- cut or damaged files


@pytest.mark.parametrize("name", ["tasks.jsonl", "trials.jsonl", "scores.jsonl"])
def test_a_file_that_is_cut_within_a_row(geo: Path, name: str) -> None:
    content = (geo / name).read_bytes()
    (geo / name).write_bytes(content[:-40])
    line = content.count(b"\n")
    assert problem(geo) == (
        f"geo/{name}:{line}: the last line is cut: it is no JSON and has no line end",
        "write the file whole, or remove that line",
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("scores.jsonl", "geo/scores.jsonl has 35 rows, and score_count in summary.json is the number 36"),
        (
            "trials.jsonl",
            "geo/scores.jsonl:34: a score of the trial 'capital-spain__k9mm2Xa' at the task 'capital-spain', "
            "which trials.jsonl does not have",
        ),
        (
            "tasks.jsonl",
            "geo/trials.jsonl:10: the trial 'capital-spain__7f3a9cQ' is of the task 'capital-spain', "
            "which tasks.jsonl does not have",
        ),
    ],
)
def test_a_file_that_is_cut_between_two_rows(geo: Path, name: str, said: str) -> None:
    rows = (geo / name).read_text().splitlines(keepends=True)
    (geo / name).write_text("".join(rows[:-1]))
    assert problem(geo) == (said, MIXED)


def test_a_summary_that_is_cut(geo: Path) -> None:
    content = (geo / "summary.json").read_text()
    (geo / "summary.json").write_text(content[: len(content) // 2])
    message, remedy = problem(geo)
    assert message.startswith("geo/summary.json is no JSON, or was cut: ")
    assert remedy == AGAIN


def test_a_summary_that_is_something_else(geo: Path) -> None:
    (geo / "summary.json").write_text("[1, 2]")
    assert problem(geo) == ("geo/summary.json is a list [1, 2]; a mapping is expected", AGAIN)


@pytest.mark.parametrize("name", ["summary.json", "trials.jsonl", "run.json"])
def test_links_and_pipes_are_not_followed(geo: Path, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (geo / name).rename(elsewhere)
    (geo / name).symlink_to(elsewhere)
    assert problem(geo)[0] == f"geo/{name} cannot be read: not a regular file"
    (geo / name).unlink()
    os.mkfifo(geo / name)
    assert problem(geo)[0] == f"geo/{name} cannot be read: not a regular file"


def test_files_of_any_size_are_refused_in_words(geo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nemo_files, "DOCUMENT_LIMIT", 1 << 10)
    assert problem(geo) == ("geo/summary.json has more than 1024 bytes", "read smaller bundles")


# ---------------------------------------------------------------- rows that are not as they should be


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("trials.jsonl", {"status": "done"}, f'status is the text "done"; {STATUSES}'),
        ("trials.jsonl", {"id": ""}, 'id is the text ""; a text is expected'),
        ("trials.jsonl", {"task_id": ...}, "task_id is null; a text is expected"),
        ("trials.jsonl", {"error": "boom"}, 'error is the text "boom"; a mapping is expected'),
        ("trials.jsonl", {"error": {"message": "boom"}}, "type is null; a text is expected"),
        ("scores.jsonl", {"status": None}, f"status is null; {STATUSES}"),
        ("scores.jsonl", {"metric_type": 3}, "metric_type is the number 3; a text is expected"),
        ("scores.jsonl", {"outputs": {"a": 1}}, 'outputs is a mapping {"a": 1}; a list of mappings is expected'),
        ("scores.jsonl", {"outputs": [{"name": "score"}]}, "an output has no value"),
        ("tasks.jsonl", {"id": None}, "id is null; a text is expected"),
        ("tasks.jsonl", UNDECLARED, "value_schema is null; a text is expected"),
    ],
)  # fmt: skip
def test_a_row_that_is_not_of_the_form(geo: Path, name: str, changes: dict[str, Any], said: str) -> None:
    edit_row(geo / name, 2, **changes)
    assert problem(geo) == (f"geo/{name}:2: {said}", BROKEN)


def test_a_score_without_its_trial(geo: Path) -> None:
    edit_row(geo / "scores.jsonl", 3, trial_id="nobody")
    said = "a score of the trial 'nobody' at the task 'capital-france', which trials.jsonl does not have"
    assert problem(geo) == (f"geo/scores.jsonl:3: {said}", MIXED)


def test_a_trial_without_its_task(geo: Path) -> None:
    edit_row(geo / "trials.jsonl", 5, task_id="capital-peru")
    said = "the trial 'capital-japan__1b8e42Z' is of the task 'capital-peru', which tasks.jsonl does not have"
    assert problem(geo) == (f"geo/trials.jsonl:5: {said}", MIXED)


def test_two_scores_with_one_key(geo: Path) -> None:
    rows = [json.loads(line) for line in (geo / "scores.jsonl").read_text().splitlines()]
    write_rows(geo / "scores.jsonl", [*rows, rows[0]])
    said = "one score of 'keyword_match' too many: trials.jsonl has the trial 'capital-france__7f3a9cQ' once"
    assert problem(geo) == (f"geo/scores.jsonl:37: {said}", MIXED)


def test_a_score_of_a_trial_that_failed(geo: Path) -> None:
    edit_row(geo / "trials.jsonl", 1, status="failed", output=None)
    said = "geo/scores.jsonl:1: the trial 'capital-france__7f3a9cQ' was scored, and trials.jsonl says that it failed"
    assert problem(geo) == (said, MIXED)


def test_two_tasks_with_one_id(geo: Path) -> None:
    edit_row(geo / "tasks.jsonl", 2, id="capital-france")
    assert problem(geo) == ("geo/tasks.jsonl:2: the task 'capital-france' stands there twice", MIXED)


# ---------------------------------------------------------------- files of two runs or versions


def test_scores_of_another_run(geo: Path) -> None:
    edit_json(geo / "run.json", run_id="other")
    run = "agent-eval-20261129144349-380b2f76"
    said = f'geo/scores.jsonl:1: run_id is the text "{run}", and in run.json it is the text "other"'
    assert problem(geo) == (said, MIXED)


@pytest.mark.parametrize(
    ("run_id", "named"), [(..., "null"), ("", 'the text ""'), (7, "the number 7"), (["a"], 'a list ["a"]')]
)
def test_a_run_without_an_id(geo: Path, run_id: object, named: str) -> None:
    edit_json(geo / "run.json", run_id=run_id)
    assert problem(geo) == (f"geo/run.json: run_id is {named}; a text is expected", MIXED)


@pytest.mark.parametrize(
    ("name", "value", "named"), [("labels", ["a"], 'a list ["a"]'), ("target", "model", 'the text "model"')]
)
def test_metadata_of_another_form(geo: Path, name: str, value: object, named: str) -> None:
    (geo / "metadata.json").write_text(json.dumps({name: value}))
    assert problem(geo) == (f"geo/metadata.json: {name} is {named}; a mapping is expected", MIXED)


@pytest.mark.parametrize(
    ("key", "file", "counted"), [("task_count", "tasks.jsonl", 4), ("trial_count", "trials.jsonl", 12)]
)
def test_counts_that_do_not_fit(geo: Path, key: str, file: str, counted: int) -> None:
    edit_json(geo / "summary.json", **{key: 99})
    said = f"geo/{file} has {counted} rows, and {key} in summary.json is the number 99"
    assert problem(geo) == (said, MIXED)


def test_neither_shape(geo: Path) -> None:
    edit_json(geo / "summary.json", task_metric_values=...)
    assert problem(geo) == (
        "geo/summary.json has no values of attempts: neither task_metric_values nor task_metric_attempts",
        "write the bundle with nemo-platform-plugin 0.4 or later, or nemo-helix-plugin: those write task_metric_values",
    )


def test_both_shapes(geo: Path) -> None:
    edit_json(geo / "summary.json", task_metric_attempts={})
    assert problem(geo) == ("geo/summary.json has both task_metric_values and task_metric_attempts", MIXED)


@pytest.mark.parametrize("values", [[], {"capital-france": []}, {"capital-france": {"a.b": [{"value": 1}]}}])
def test_values_of_another_form(geo: Path, values: Any) -> None:
    edit_json(geo / "summary.json", task_metric_values=values)
    said = "task_metric_values is not of the form task -> output -> list of trial_id and value"
    assert problem(geo) == (f"geo/summary.json: {said}", MIXED)


def changed_values(geo: Path, change: Callable[[dict[str, Any]], None]) -> tuple[str, str]:
    summary = json.loads((geo / "summary.json").read_text())
    change(summary["task_metric_values"])
    (geo / "summary.json").write_text(json.dumps(summary))
    return problem(geo)


WHERE = "geo/summary.json: keyword_match.score of the trial 'capital-france__7f3a9cQ' at the task 'capital-france'"
ONE = ": scores.jsonl has the number 1.0 and summary.json has"


@pytest.mark.parametrize(
    ("entry", "said", "remedy"),
    [
        ({"value": 0.0}, f"{ONE} the number 0.0", MIXED),
        ({"value": None, "value_type": "missing"}, f"{ONE} null", MIXED),
        ({"value": "1.0", "value_type": "label"}, f'{ONE} the text "1.0"', MIXED),
        ({"value": "1.0"}, ' has the text "1.0" with value_type the text "number"', BROKEN),
        ({"value": None}, ' has null with value_type the text "number"', BROKEN),
        ({"value": 1, "value_type": "label"}, ' has the number 1 with value_type the text "label"', BROKEN),
        ({"value_type": "float"}, ' has the number 1.0 with value_type the text "float"', BROKEN),
        ({"value": ...}, ' has no value with value_type the text "number"', BROKEN),
    ],
)  # fmt: skip
def test_an_entry_that_does_not_fit(geo: Path, entry: dict[str, Any], said: str, remedy: str) -> None:
    def change(values: dict[str, Any]) -> None:
        first = values["capital-france"]["keyword_match.score"][0]
        first |= entry
        for key in [key for key, value in first.items() if value is ...]:
            del first[key]

    assert changed_values(geo, change) == (f"{WHERE}{said}", remedy)


def test_a_value_is_missing_in_the_summary(geo: Path) -> None:
    said = f"{WHERE}: scores.jsonl has the number 1.0 and summary.json has no entry"
    assert changed_values(geo, lambda values: values["capital-france"]["keyword_match.score"].pop(0)) == (said, MIXED)


def test_a_value_that_no_score_has(geo: Path) -> None:
    extra = {"trial_id": "capital-france__7f3a9cQ", "value_type": "number", "value": 1.0}
    said = f"{WHERE}: summary.json has the number 1.0 and scores.jsonl has no such value"
    assert changed_values(geo, lambda values: values["capital-france"]["keyword_match.score"].append(extra)) == (
        said,
        MIXED,
    )


def test_values_of_a_task_that_is_not_there(geo: Path) -> None:
    said = "geo/summary.json has values of the task 'capital-peru', which tasks.jsonl does not have"
    assert changed_values(geo, lambda values: values.update({"capital-peru": {}})) == (said, MIXED)


def test_errors_that_disagree(geo: Path) -> None:
    edit_json(geo / "summary.json", error_trial_ids={"AgentTimeoutError": ["capital-japan__1b8e42Z"]}, error_count=1)
    said = "geo/summary.json: error_trial_ids and trials.jsonl disagree on RuntimeError of 'capital-spain__7f3a9cQ'"
    assert problem(geo) == (said, MIXED)
    edit_json(geo / "summary.json", error_trial_ids=["x"])
    assert problem(geo) == ("geo/summary.json: error_trial_ids is not of the form type -> list of ids", MIXED)


def test_errors_of_trials_that_are_not_there(lab: Lab) -> None:
    folder = lab.bundle("b", [Trial("t", "1", {"m.s": 1.0})], errors=False)
    edit_json(folder / "summary.json", error_trial_ids={"E": ["2"]})
    assert problem(folder) == ("b/summary.json: error_trial_ids names '2', which trials.jsonl does not have", MIXED)


def test_copies_of_one_run(lab: Lab) -> None:
    lab.bundle("a", [Trial("t", "1", {"m.s": 1.0})], labels={"variant": "x"})
    shutil.copytree(lab.folder / "a", lab.folder / "b")
    said = "runs/b and runs/a are copies of one run, 'run-a'"
    assert problem(lab.folder) == (said, "read one of the two")


def test_kinds_that_differ_between_bundles(lab: Lab) -> None:
    lab.bundle("a", [Trial("t", "1", {"m.s": 1.0})], {"m.s": "ContinuousScore"})
    lab.bundle("b", [Trial("t", "1", {"m.s": "ok"})], {"m.s": "Label"})
    assert problem(lab.folder, variants="folder") == (
        "m.s of the task 't' is declared as continuous in runs/a and as label in runs/b",
        "bundles whose metrics differ cannot be compared; read them apart",
    )


def test_a_number_too_large_to_compute_with(lab: Lab) -> None:
    folder = lab.bundle("b", [Trial("t", "1", {"m.s": 10**400})])
    where = "b/summary.json: m.s of the trial '1' at the task 't'"
    assert problem(folder) == (f"{where} is no score: a number up to 1e308, a boolean or a text is expected", BROKEN)


def test_an_error_that_nobody_knows(geo: Path) -> None:
    said = "runner.outcomes: no attempt has an error of the type 'AgentTimeout'"
    assert problem(geo, outcomes={"AgentTimeout": "died"}) == (said, "did you mean 'AgentTimeoutError'?")
    said = "runner.outcomes: no attempt has an error of the type 'Xyzzy'"
    assert problem(geo, outcomes={"Xyzzy": "died"}) == (said, "the types here are AgentTimeoutError, RuntimeError")


def test_columns_are_of_a_table(geo: Path) -> None:
    assert problem(geo, columns={"task": "x"}) == ("runner.columns: the form nemo has no columns", "remove the key")


# ---------------------------------------------------------------- anything at all


@pytest.mark.parametrize(
    "name", ["run.json", "metadata.json", "tasks.jsonl", "trials.jsonl", "scores.jsonl", "summary.json"]
)
def test_any_damage_is_told_and_never_a_traceback(geo: Path, name: str) -> None:
    """Every tenth place of each file is cut, doubled or overwritten: what is still read is a bundle, or an error."""
    content = (geo / name).read_bytes()
    step = max(1, len(content) // 60)
    for place in range(0, len(content), step):
        for damaged in (
            content[:place],
            content[:place] + b"null" + content[place + 4 :],
            content[:place] + b"\xff" + content[place + 1 :],
            content[:place] + content[place + step :],
        ):
            (geo / name).write_bytes(damaged)
            said = None
            try:
                found = read({"geo": geo}, ReadOptions("geo"))
            except RecordingError as error:
                said = error
            assert ("geo" in said.message and said.remedy) if said is not None else found.attempts
