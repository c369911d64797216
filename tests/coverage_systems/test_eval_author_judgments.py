"""Judgments for ``eval-author``: fixed, or left by attempts; bound to traces, and to the scope that counts them."""

import json
import shutil
from pathlib import Path

import pytest

from pytest_metricbench.contracts import CoverageError, Goals, Score
from tests.coverage_systems.eval_author_lab import (
    JUDGMENTS,
    LOOKUP,
    METHODS,
    SUBSETS,
    TICKET,
    digest,
    measured,
    system,
    tree,
)


def test_fixed_judgments_are_given_to_the_traces_they_are_about(tmp_path: Path) -> None:
    audit = system(tmp_path, score_scope="capability", judgments=[str(JUDGMENTS)])
    tasks = {"t1": {"a1": LOOKUP, "a2": LOOKUP}}
    assert measured(tmp_path, audit, tasks) == Score(
        1.0, None, Goals(("account_recovery",), {"t1": ("account_recovery",)})
    )
    for trial in ("a1", "a2"):
        assert (tmp_path / f"request/judgments/{trial}/capabilities.json").read_bytes() == JUDGMENTS.read_bytes()


def test_judgments_that_an_attempt_left_with_its_trace(tmp_path: Path) -> None:
    left = {"agent/trajectory.json": LOOKUP, "judged/capability-judgments.json": JUDGMENTS.read_bytes()}
    tasks = {"t": {"a1": left, "a2": left}}
    assert measured(tmp_path, system(tmp_path, score_scope="capability"), tasks).value == 1.0
    assert (tmp_path / "request/judgments/a2/capabilities.json").read_bytes() == JUDGMENTS.read_bytes()


@pytest.mark.parametrize(
    ("content", "trace_left", "says"),
    [
        (JUDGMENTS.read_bytes(), TICKET,
         "are about the trace {lookup}, which this attempt did not leave; its own is {ticket}"),
        (b"[1]", LOOKUP, ": schema is null; nemo.eval_author.audit_capability_judgments.v1 is expected"),
        (JUDGMENTS.read_bytes().replace(b"capability_j", b"failure_case_j"), LOOKUP,
         ': schema is the text "nemo.eval_author.audit_failure_case_judgments.v1"; '
         "nemo.eval_author.audit_capability_judgments.v1 is expected"),
    ],
)  # fmt: skip
def test_judgments_left_that_are_not_right(tmp_path: Path, content: bytes, trace_left: bytes, says: str) -> None:
    tasks = {"t": {"a1": {"trajectory.json": trace_left, "capability-judgments.json": content}}}
    with pytest.raises(CoverageError) as failed:
        measured(tmp_path, system(tmp_path, score_scope="capability"), tasks, "one")
    text = "the judgments evidence/t/a1/capability-judgments.json" + (says if says[0] == ":" else f" {says}")
    assert str(failed.value) == text.replace("{lookup}", digest(LOOKUP)).replace("{ticket}", digest(TICKET))
    assert measured(tmp_path, system(tmp_path, score_scope="tool"), tasks, "two").value == 0.5
    score = measured(tmp_path, system(tmp_path, score_scope="failure_case"), tasks, "three")
    assert str(score.reason).startswith("a judgment is missing: evidence 0 (output) of the failure case")


def test_judgments_left_half_written_by_an_attempt_that_died(tmp_path: Path) -> None:
    tasks = {"t": {"a1": {"trajectory.json": LOOKUP, "capability-judgments.json": b"{"}}}
    score = measured(tmp_path, system(tmp_path, score_scope="capability"), tasks, died=["a1"])
    assert str(score.reason).startswith("a judgment is missing")


def test_judgments_left_and_fixed_for_one_trace(tmp_path: Path) -> None:
    tasks = {"t": {"a1": {"trajectory.json": LOOKUP, "capability-judgments.json": JUDGMENTS.read_bytes()}}}
    with pytest.raises(CoverageError) as failed:
        measured(tmp_path, system(tmp_path, score_scope="capability", judgments=[str(JUDGMENTS)]), tasks)
    assert str(failed.value) == (
        "evidence/t/a1/capability-judgments.json and a file under judgments both have the judgments of capabilities "
        f"for the trace {digest(LOOKUP)}; put them into one file"
    )


def test_judgments_by_a_glob(tmp_path: Path) -> None:
    (tmp_path / "judged").mkdir()
    shutil.copy(JUDGMENTS, tmp_path / "judged/one.json")
    audit = system(tmp_path, score_scope="capability", judgments=["judged/*.json"])
    assert [file.written for file in audit.judgments] == ["judged/one.json"]
    assert measured(tmp_path, audit, SUBSETS["lookup"]).value == 1.0


def test_judgments_of_a_method_that_is_not_asked_for_are_not_passed(tmp_path: Path) -> None:
    audit = system(tmp_path, score_scope="tool", methods=["tool_calls"], judgments=[str(JUDGMENTS)])
    assert measured(tmp_path, audit, SUBSETS["lookup"]).value == 0.5


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[]", "schema is null; nemo.eval_author.audit_capability_judgments.v1 or nemo.eval_author."
               "audit_failure_case_judgments.v1 is expected"),
        ('{"schema": "x"}', "schema is the text \"x\"; nemo.eval_author.audit_capability_judgments.v1 or "
                            "nemo.eval_author.audit_failure_case_judgments.v1 is expected"),
        ('{"schema": "nemo.eval_author.audit_capability_judgments.v1"}',
         "trace_sha256 is null; the digest of the judged trace is expected"),
        ("", "house.json is empty"),
        ("{", "house.json is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    ],
)  # fmt: skip
def test_files_that_are_no_judgments(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "house.json").write_text(content)
    audit = system(tmp_path, judgments=["house.json"])
    with pytest.raises(CoverageError) as failed:
        measured(tmp_path, audit, SUBSETS["lookup"])
    assert str(failed.value) == f"the judgments house.json: {says}"


def test_two_files_with_judgments_of_one_trace(tmp_path: Path) -> None:
    for name in ("one.json", "two.json"):
        shutil.copy(JUDGMENTS, tmp_path / name)
    with pytest.raises(CoverageError) as failed:
        measured(tmp_path, system(tmp_path, judgments=["one.json", "two.json"]), SUBSETS["lookup"])
    assert str(failed.value) == (
        f"two.json and one.json both have the judgments of capabilities for the trace {digest(LOOKUP)}; "
        "put them into one file"
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"capability": "nobody"}, "unknown capability 'nobody'"),
        ({"description": "Something else."}, "kind and description must be those of evidence 0 of account_recovery"),
        ({"evidence_index": 1, "kind": "tool_call"}, "tool_call evidence is deterministic and cannot be judged"),
    ],
)
def test_judgments_that_the_scripts_refuse(tmp_path: Path, change: dict[str, object], says: str) -> None:
    document = json.loads(JUDGMENTS.read_text())
    document["judgments"][0] |= change
    (tmp_path / "house.json").write_text(json.dumps(document))
    with pytest.raises(CoverageError) as failed:
        measured(tmp_path, system(tmp_path, judgments=["house.json"], score_scope="capability"), SUBSETS["lookup"])
    assert str(failed.value) == (
        "measure.py for task task-lookup, trial lookup__aaa ended with exit status 1: it cannot be measured "
        f"(error_type measurement): judgments/lookup__aaa/capabilities.json: judgments[0]: {says}"
    )


def test_judgments_that_are_not_right_concern_their_own_scope_alone(tmp_path: Path) -> None:
    document = json.loads(JUDGMENTS.read_text())
    document["judgments"][0]["capability"] = "nobody"
    (tmp_path / "house.json").write_text(json.dumps(document))
    keys = {"judgments": ["house.json"], "score_scope": "tool"}
    for methods in (["tool_calls"], ["tool_calls", "failure_cases"], list(METHODS)):
        audit = system(tmp_path, methods=methods, **keys)
        assert [measured(tmp_path, audit, SUBSETS[name], f"{len(methods)}-{name}").value for name in SUBSETS] == [
            0.5, 0.5, 0.0, 1.0,
        ]  # fmt: skip
    left = tree(tmp_path / "3-all")
    (warning,) = json.loads(left["warnings.json"])["warnings"]
    assert warning.startswith("only tool_calls could be measured: measure.py for task task-lookup, trial lookup__aaa")
    assert "unknown capability 'nobody'" in warning
    assert {name.split("/")[3] for name in left if "/run=lookup__aaa/" in name} == {"tool_calls"}
    assert "warnings.json" not in tree(tmp_path / "3-ticket")


def test_contradictory_judgments(tmp_path: Path) -> None:
    document = json.loads(JUDGMENTS.read_text())
    document["judgments"].append({**document["judgments"][0], "status": "missing"})
    (tmp_path / "house.json").write_text(json.dumps(document))
    with pytest.raises(CoverageError, match="judgments\\[1\\]: account_recovery evidence 0 is judged twice"):
        measured(tmp_path, system(tmp_path, judgments=["house.json"]), SUBSETS["lookup"])
