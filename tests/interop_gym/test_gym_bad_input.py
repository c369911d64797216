"""Runs that are damaged, mixed up or no runs at all: each error names the file and line and says what to do."""

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.interop.json_lines import JsonLines
from pytest_metricbench.interop.recordings import RecordingError
from tests.interop_gym.gym_lab import GymLab, failure, lines, planned, result


def refused(gym_lab: GymLab, *names: str, **options: object) -> tuple[str, str]:
    with pytest.raises(RecordingError) as caught:
        gym_lab.read(*names, **options)
    return caught.value.message, caught.value.remedy


ONE = lines([result(0, 0)])
ONE_EACH = "a rollout has one result; remove the other, or read the runs apart"


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (ONE + ONE, "rollouts.jsonl:2: task 0, rollout 0 stands in line 1 too", ONE_EACH),
        (lines([result(0, 0, "1.0")]), 'rollouts.jsonl:1: reward is the text "1.0"; a number or a boolean', ""),
        (lines([result(0, 0, "NaN")]), 'rollouts.jsonl:1: reward is the text "NaN"; a number or a boolean', ""),
        (lines([result(0, 0, [1.0])]), "rollouts.jsonl:1: score 'reward' is a list [1.0]; a score is a number", ""),
        (lines([result(0, 0, {"value": 1})]), "rollouts.jsonl:1: score 'reward' is a mapping", ""),
        (
            '{"reward": 1.0}\n',
            "rollouts.jsonl:1: the row has no _ng_task_index",
            "name the rollouts.jsonl that Gym wrote",
        ),
        ('{"_ng_task_index": 0}\n', "rollouts.jsonl:1: the row has no _ng_rollout_index", ""),
        (lines([result("0", 0)]), 'rollouts.jsonl:1: _ng_task_index is the text "0"; a whole number from 0', ""),
        (lines([result(0, -1)]), "rollouts.jsonl:1: _ng_rollout_index is the number -1; a whole number from 0", ""),
        (lines([result(True, 0)]), "rollouts.jsonl:1: _ng_task_index is the boolean true; a whole number", ""),
        (lines([result(0, 0, _ng_attempt_index="1")]), 'rollouts.jsonl:1: _ng_attempt_index is the text "1"', ""),
        (ONE + "[1, 2]\n", "rollouts.jsonl:2: is a list, not a mapping", "every line is one JSON mapping"),
        (ONE + '"x"\n', "rollouts.jsonl:2: is a text, not a mapping", "every line is one JSON mapping"),
        (ONE + '{"reward": 1.0\n' + ONE, "rollouts.jsonl:2: is not JSON: Expecting ',' delimiter at column 15", ""),
        (
            ONE + "PK\x03\x04\n" + ONE,
            "rollouts.jsonl:2: is not JSON: Expecting value at column 1",
            "every line is one JSON mapping",
        ),
        ("[" * 100_000 + "\n", "rollouts.jsonl:1: is not JSON: nested too deep", ""),
        (lines([result(0, 0)]).replace("1.0", "1" * 5000), "rollouts.jsonl:1: is not JSON: Exceeds the limit", ""),
        ("", "rollouts.jsonl: there are no rollouts", "name the rollouts.jsonl of a run"),
        ("\n \n", "rollouts.jsonl: there are no rollouts", "name the rollouts.jsonl of a run"),
    ],
)
def test_rollouts_that_are_not_right(gym_lab: GymLab, text: str, message: str, remedy: str) -> None:
    gym_lab.write(text)
    told, advice = refused(gym_lab)
    assert told.startswith(message)
    assert advice.startswith(remedy)


def test_a_line_that_is_no_utf_8(gym_lab: GymLab) -> None:
    path = gym_lab.write(ONE)
    path.write_bytes(path.read_bytes() + b'{"text": "\xff"}\n')
    assert refused(gym_lab) == ("rollouts.jsonl:2: byte 11 is not UTF-8", "save it as UTF-8")


def test_a_byte_order_mark_and_windows_line_ends_are_no_matter(gym_lab: GymLab) -> None:
    path = gym_lab.write(ONE)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert len(gym_lab.read().attempts) == 1


def test_materialized_inputs_that_are_cut_are_damage(gym_lab: GymLab) -> None:
    gym_lab.write(ONE, None, lines(planned(1, 2))[:-9])
    assert refused(gym_lab) == (
        "rollouts_materialized_inputs.jsonl:2: the last line is cut: it is no JSON and has no line end",
        "write the file whole, or remove that line",
    )


def test_files_of_two_runs_in_one_folder(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0), result(7, 0)], None, planned(1, 1))
    assert refused(gym_lab) == (
        "rollouts.jsonl:2: task 7, rollout 0 is not planned in rollouts_materialized_inputs.jsonl",
        "the two files are of different runs; keep each run's files together",
    )
    gym_lab.write([result(0, 0)], [failure(0, 3, "judge_failed")], planned(1, 1))
    assert refused(gym_lab)[0] == (
        "rollouts_failures.jsonl:1: task 0, rollout 3 is not planned in rollouts_materialized_inputs.jsonl"
    )


def test_rows_of_several_versions_in_one_file_are_read(gym_lab: GymLab) -> None:
    old = {"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 1.0, "agent_ref": {"name": "solver"}}
    new = result(0, 1, _ng_attempt_index=1, ng_perf={"seconds": 3}, _ng_environment_server="env", skills_ref=None)
    gym_lab.write([old, new], [failure(0, 2, "environment_server_failed", _ng_failure_record={"stage": "agent"})])
    assert [found.outcome.kind for found in gym_lab.read().attempts] == ["scored", "scored", "unmeasured"]


def test_a_rollout_that_is_planned_twice(gym_lab: GymLab) -> None:
    gym_lab.write(ONE, None, [*planned(1, 1), *planned(1, 1)])
    assert refused(gym_lab)[0] == "rollouts_materialized_inputs.jsonl:2: task 0, rollout 0 is planned twice"


@pytest.mark.parametrize(
    ("suffix", "what"), [("failures", "the failures"), ("materialized_inputs", "the materialized")]
)
def test_a_file_beside_the_rollouts_is_not_them(gym_lab: GymLab, suffix: str, what: str) -> None:
    gym_lab.write(ONE, [failure(0, 1, "cancelled")], planned(1, 2))
    message, remedy = refused(gym_lab, f"rollouts_{suffix}.jsonl")
    assert message.startswith(f"rollouts_{suffix}.jsonl holds {what}")
    assert remedy == "name its rollouts, rollouts.jsonl; the rest is found"


def test_a_folder_without_rollouts(gym_lab: GymLab) -> None:
    (gym_lab.folder / "empty").mkdir()
    assert refused(gym_lab, "empty") == (
        "empty has no rollouts: no file *.jsonl",
        "name a rollouts file, or its folder",
    )


def test_a_file_that_is_not_there_or_none(gym_lab: GymLab) -> None:
    assert refused(gym_lab, "gone.jsonl")[0] == "gone.jsonl cannot be read: No such file or directory"
    os.mkfifo(gym_lab.folder / "pipe.jsonl")
    assert refused(gym_lab, "pipe.jsonl")[0] == "pipe.jsonl cannot be read: not a regular file"
    (gym_lab.folder / "circle.jsonl").symlink_to(gym_lab.folder / "circle.jsonl")
    assert refused(gym_lab, "circle.jsonl")[0] == "circle.jsonl cannot be read: not a regular file"
    (gym_lab.folder / "secret").write_text(ONE)
    (gym_lab.folder / "rollouts.jsonl").write_text(ONE)
    (gym_lab.folder / "rollouts_failures.jsonl").symlink_to(gym_lab.folder / "secret")
    assert refused(gym_lab)[0] == "rollouts_failures.jsonl cannot be read: not a regular file"


def test_a_link_in_a_folder_of_runs_is_not_passed_over(gym_lab: GymLab) -> None:
    """Without its rollouts a run would look as if nothing of its plan had been done."""
    path = gym_lab.write(ONE, None, planned(1, 1), name="run/rollouts.jsonl")
    path.rename(gym_lab.folder / "elsewhere.jsonl")
    path.symlink_to(gym_lab.folder / "elsewhere.jsonl")
    assert refused(gym_lab, "run")[0] == "run/rollouts.jsonl cannot be read: not a regular file"
    assert len(gym_lab.read("run/rollouts.jsonl").attempts) == 1


def test_a_line_without_end(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n{"text": "' + "x" * 100)
    lines_read = JsonLines(tmp_path / "x.jsonl", "x.jsonl", may_be_torn=True, limit=50)
    with pytest.raises(RecordingError) as caught:
        list(lines_read)
    assert caught.value.message == "x.jsonl:2: the line has more than 50 bytes"


def test_rows_without_an_agent(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0, agent=None)])
    assert refused(gym_lab) == (
        "rollouts.jsonl: rollout 0:0 has no agent_ref.name, which would be its variant",
        "variants: folder or file takes it from where the file is",
    )
    assert [found.variant for found in gym_lab.read(variants="file").attempts] == ["rollouts"]


@pytest.mark.parametrize(
    ("options", "message", "remedy"),
    [
        ({"variants": "model"}, "runner.variants: 'model' is not known to the form gym", "one of agent, folder, file"),
        ({"evidence": ["*.json"]}, "runner.evidence: Gym's rollouts leave no files of their own", "remove the key"),
        ({"columns": {"variant": "x"}}, "runner.columns: 'variant' is not known to the form gym", "scores or task"),
        ({"columns": {"scores": 5}}, "runner.columns.scores is no list of texts", "the fields of a row"),
        ({"columns": {"scores": [1]}}, "runner.columns.scores is no list of texts", "the fields of a row"),
        ({"columns": {"task": 3}}, "runner.columns.task is no text", "the field of the materialized inputs"),
        (
            {"columns": {"scores": ["accurracy"]}},
            "runner.columns.scores: no row has a field 'accurracy'",
            "fields with numbers",
        ),
        (
            {"columns": {"task": "id"}},
            "rollouts_materialized_inputs.jsonl:1: the field 'id' names no task",
            "the row has name",
        ),
        (
            {"columns": {"task": "name"}},
            "rollouts_materialized_inputs.jsonl:2: task 1 is called 'same', as task 0 is",
            "runner.columns.task: a field that tells",
        ),
    ],
)
def test_options_that_do_not_fit(gym_lab: GymLab, options: dict[str, object], message: str, remedy: str) -> None:
    gym_lab.write([result(0, 0, accuracy=0.5)], None, planned(2, 1, name="same"))
    told, advice = refused(gym_lab, **options)
    assert told == message
    assert advice.startswith(remedy)


def test_a_field_that_names_tasks_needs_the_inputs(gym_lab: GymLab) -> None:
    gym_lab.write(ONE)
    assert refused(gym_lab, columns={"task": "id"}) == (
        "rollouts.jsonl has no materialized inputs beside it, of which a field would name tasks",
        "rollouts_materialized_inputs.jsonl is looked for; or remove runner.columns.task",
    )


@pytest.mark.slow
def test_thousands_of_tasks_take_no_more_memory_than_their_values(gym_lab: GymLab) -> None:
    """40 MB of conversations: what is kept of them is a fraction."""
    conversation = [{"type": "message", "content": "word " * 800}]
    with (gym_lab.folder / "rollouts.jsonl").open("w") as file:
        for task in range(5000):
            for rollout in range(2):
                file.write(
                    json.dumps(result(task, rollout, response={"output": conversation, "id": f"r{task}"})) + "\n"
                )
    assert (gym_lab.folder / "rollouts.jsonl").stat().st_size > 40_000_000
    tracemalloc.start()
    try:
        recordings = gym_lab.read()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(recordings.attempts) == 10_000
    assert peak < 20_000_000


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.floats(), st.text(max_size=4), st.just("judge_failed")
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("name"), inner))
FIELDS = st.sampled_from(
    [
        *("_ng_task_index", "_ng_rollout_index", "_ng_attempt_index", "_ng_failure_class", "_ng_failure_stage"),
        *("_ng_failure_message", "_ng_failure_record", "_ng_omitted_rollout", "reward", "mask_sample", "agent_ref"),
        *("response", "responses_create_params", "failure_reason", "id"),
    ]
)
ROWS = st.lists(
    st.builds(
        lambda rollout, changed: {**result(0, rollout), **changed},
        st.integers(0, 9),
        st.dictionaries(FIELDS, VALUES, max_size=2),
    ),
    max_size=3,
)


@given(ROWS, st.none() | ROWS, st.none() | ROWS, st.sampled_from(["agent", "file"]))
@settings(max_examples=100)
def test_no_row_whatever_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory,
    results: list[dict[str, Any]],
    failures: list[dict[str, Any]] | None,
    inputs: list[dict[str, Any]] | None,
    variants: str,
) -> None:
    gym_lab = GymLab(tmp_path_factory.mktemp("runs"))
    gym_lab.write(results, failures, inputs)
    try:
        found = len(gym_lab.read(variants=variants).attempts)
    except RecordingError as error:
        found = len(error.message)
    assert found
