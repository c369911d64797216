"""What somebody met who used recorded attempts for the first time, with files that nobody meant well."""

import json
from pathlib import Path

import pytest

from pytest_metricbench.interop.gym.reading import read as read_gym
from pytest_metricbench.interop.recorded_cases import build_case
from pytest_metricbench.interop.recordings import LONGEST_MESSAGE, ReadOptions, RecordingError
from pytest_metricbench.interop.table.reading import read as read_table

HOSTILE = "\x1b[31mred\x07\nline \ud800"


def test_a_terminal_is_never_given_what_a_name_holds(tmp_path: Path) -> None:
    table = tmp_path / "r.jsonl"
    rows = [
        {"variant": name, "task": "a", "trial_id": "1", "reward": 1}
        for name in (HOSTILE.encode("utf-8", "replace").decode(), "ok")
    ]
    table.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    recordings = read_table({"r.jsonl": table}, ReadOptions("c"))
    with pytest.raises(RecordingError) as caught:
        build_case(recordings, None)
    assert caught.value.message.isprintable()
    assert caught.value.remedy.isprintable()
    assert r"\x1b[31mred\x07\nline ?" in caught.value.message


def test_an_error_is_printable_and_not_longer_than_can_be_read() -> None:
    error = RecordingError(f"name {'x' * 5000} end{HOSTILE}", "remedy")
    assert len(error.message) < LONGEST_MESSAGE + 100
    assert error.message.startswith("name xxx")
    assert error.message.endswith(r"end\x1b[31mred\x07\nline \ud800")
    assert str(error) == error.message
    assert RecordingError("Ä 'ö'", "").message == "Ä 'ö'"


def test_a_parsers_words_are_no_stutter(tmp_path: Path) -> None:
    rollouts = tmp_path / "rollouts.jsonl"
    rollouts.write_text('{"_ng_task_index": 0, "_ng_fail\n{}\n')
    with pytest.raises(RecordingError) as caught:
        read_gym({"rollouts.jsonl": rollouts}, ReadOptions("c"))
    assert caught.value.message == "rollouts.jsonl:1: is not JSON: Unterminated string starting at column 23"


def test_a_column_of_decimal_commas_is_no_column_of_labels(tmp_path: Path) -> None:
    table = tmp_path / "r.csv"
    table.write_text("task;reward\na;0,5\nb;1,0\n")
    with pytest.raises(RecordingError) as caught:
        read_table({"r.csv": table}, ReadOptions("c"))
    assert caught.value.message == "r.csv:2, column 'reward': '0,5' has a decimal comma"
    assert caught.value.remedy == "write it with a decimal point, or say that the score has kind: label"
    labels = ReadOptions("c", columns={"scores": {"tone": {"column": "reward", "kind": "label"}}})
    scores = [dict(attempt.outcome.scores) for attempt in read_table({"r.csv": table}, labels).attempts]
    assert scores == [{"tone": "0,5"}, {"tone": "1,0"}]


OFF = [part for name in ("randomly", "sugar", "html", "metadata", "pytest_cov") for part in ("-p", f"no:{name}")]


def test_a_bundle_of_somebody_else_is_not_replaced(pytester: pytest.Pytester) -> None:
    (pytester.path / "r.csv").write_text("task,reward\na,1\n")
    runner = {"kind": "recorded", "form": "table", "read": ["r.csv"]}
    (pytester.path / "experiment.yml").write_text(
        json.dumps({"metricbench": 1, "name": "x", "runner": runner, "cases": [{"id": "c"}]})
    )
    arguments = (*OFF, "experiment.yml", "--metricbench-nemo-bundle", "out")
    assert pytester.runpytest_inprocess(*arguments).ret == 0
    assert pytester.runpytest_inprocess(*arguments).ret == 0  # ours is replaced
    place = pytester.path / "out" / "x" / "c" / "baseline"
    run = json.loads((place / "run.json").read_text())
    (place / "run.json").write_text(json.dumps({**run, "run_id": "agent-eval-20261129144349-380b2f76"}))
    (place / "trials.jsonl").write_text("all there is of it")
    found = pytester.runpytest_inprocess(*arguments)
    assert found.ret == 1
    found.stdout.fnmatch_lines(["*baseline is in the way: it is a bundle of somebody else; name another directory*"])
    assert (place / "trials.jsonl").read_text() == "all there is of it"


def test_params_of_a_recorded_variant_are_refused_in_words(pytester: pytest.Pytester) -> None:
    (pytester.path / "r.csv").write_text("variant,task,reward\nok,a,1\nbad,a,0\n")
    runner = {"kind": "recorded", "form": "table", "read": ["r.csv"], "baseline": "ok"}
    case = {"id": "c", "baseline": {"params": {"x": 1}}, "mutants": [{"id": "bad", "params": {}}]}
    (pytester.path / "experiment.yml").write_text(
        json.dumps({"metricbench": 1, "name": "x", "runner": runner, "cases": [case]})
    )
    found = pytester.runpytest_inprocess(*OFF, "experiment.yml")
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    said = "\n".join(found.errlines)
    assert "cases[0].baseline.params: recorded attempts take no params; remove the key" in said
    assert "cases[0].mutants[0].params: recorded attempts take no params; remove the key" in said
    assert "recorded: is missing" not in said
