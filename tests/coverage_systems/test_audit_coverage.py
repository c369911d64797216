"""The native audit as a coverage system: scopes, null rules, judgments, traces that are not right."""

import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_metricbench.contracts import CoverageError, CoverageRequest, Goals, Score
from pytest_metricbench.coverage.audit.document import read_audit
from pytest_metricbench.coverage.audit.judgments import JudgmentError, read_judgments
from pytest_metricbench.coverage.audit.system import AuditCoverage
from pytest_metricbench.definition.problems import ProblemList
from pytest_metricbench.named_files import NamedFile

SAMPLES = Path(__file__).parent / "samples" / "audit"
METHODS = ("tool_calls", "capabilities", "failure_cases")
METHOD_SETS = [list(chosen) for size in (1, 2, 3) for chosen in itertools.combinations(METHODS, size)]
SUBSETS = {"lookup": ["lookup__aaa"], "ticket": ["ticket__bbb"], "chat": ["chat__ccc"]}
TRACES = {
    name: (SAMPLES / f"trials/{name}/agent/trajectory.json").read_bytes() for name in os.listdir(SAMPLES / "trials")
}
Measure = Callable[..., Score]


def digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def judgment(content: bytes, status: str = "satisfied", **changes: Any) -> dict[str, Any]:
    """A file of capability judgments about a trace."""
    entry = {
        "capability": "account_recovery",
        "evidence_index": 0,
        "kind": "user_intent",
        "description": "User is trying to recover account access.",
        "status": status,
        "confidence": "high",
        "rationale": "Step 1 asks for it.",
    } | changes
    return {
        "schema": "nemo.eval_author.audit_capability_judgments.v1",
        "trace_sha256": digest(content),
        "judgments": [entry],
    }


def refused(content: bytes, status: str = "satisfied") -> dict[str, Any]:
    """A file of failure case judgments about a trace."""
    entry = {
        "failure_case": "unverified_identity",
        "evidence_index": 0,
        "kind": "output",
        "description": "Agent refuses direct recovery.",
        "status": status,
        "confidence": "low",
        "rationale": "",
    }
    schema = "nemo.eval_author.audit_failure_case_judgments.v1"
    return {"schema": schema, "trace_sha256": digest(content), "judgments": [entry]}


def evidence(*names: str, **left: Mapping[str, Any]) -> dict[str, dict[str, bytes]]:
    """The evidence of tasks called after the sample trials; ``left``: further files of a task."""
    found = {name.split("__")[0]: {"agent/trajectory.json": TRACES[name]} for name in names}
    for task, files in left.items():
        for name, content in files.items():
            found[task][f"{name}.json"] = json.dumps(content).encode()
    return found


@pytest.fixture
def measure(
    make: Callable[..., Any], request_for: Callable[..., CoverageRequest], folder: Path, workspace: Path
) -> Measure:
    """Measures evidence given as task id -> name -> content with the mixed sample audit."""
    shutil.copy(SAMPLES / "audit-mixed.md", folder / "audit.md")
    shutil.copy(SAMPLES / "audit-tool-only.md", folder / "tools.md")

    def run(given: Mapping[str, Mapping[str, bytes]], subset: str = "s1", **keys: Any) -> Score:
        system = make(AuditCoverage, **({"audit": "audit.md"} | keys))
        score: Score = system.measure(replace(request_for(given), subset=subset), workspace)
        return score

    return run


def all_judged(names: list[str]) -> dict[str, dict[str, bytes]]:
    tasks = {name.split("__")[0]: TRACES[name] for name in names}
    files = {
        task: {"capability-judgments": judgment(content), "failure-case-judgments": refused(content)}
        for task, content in tasks.items()
    }
    return evidence(*names, **files)


# ---------------------------------------------------------------- scopes and methods


@pytest.mark.parametrize("methods", METHOD_SETS, ids="+".join)
def test_the_score_of_tools_is_the_same_whatever_else_is_measured(measure: Measure, methods: list[str]) -> None:
    table = {name: measure(evidence(*names), score_scope="tool", methods=methods) for name, names in SUBSETS.items()}
    values = {name: score.value for name, score in table.items()}
    if "tool_calls" in methods:
        assert values == {"lookup": 0.5, "ticket": 0.5, "chat": 0.0}
    else:
        assert values == dict.fromkeys(SUBSETS)
        reason = "score_scope tool has items that no method measures; add tool_calls to methods"
        assert {score.reason for score in table.values()} == {reason}


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("scope", ["overall", "tool", "capability", "failure_case"])
def test_a_method_more_changes_no_score(measure: Measure, scope: str, judged: bool) -> None:
    needed = {"tool": {"tool_calls"}, "capability": {"capabilities"}, "failure_case": {"failure_cases"}}.get(
        scope, set(METHODS)
    )
    names = ["lookup__aaa", "ticket__bbb"]
    given = all_judged(names) if judged else evidence(*names)
    scores = [measure(given, score_scope=scope, methods=methods) for methods in METHOD_SETS if needed <= set(methods)]
    assert all(score == scores[0] for score in scores)
    known = {"overall": 1.0, "tool": 1.0, "capability": 1.0, "failure_case": 1.0}
    assert scores[0].value == (known[scope] if judged else (1.0 if scope == "tool" else None))


def test_all_of_an_audit_counts_every_item_once(measure: Measure) -> None:
    score = measure(all_judged(["lookup__aaa", "chat__ccc"]))
    assert score.value == 3 / 4
    assert score.goals == Goals(
        ("account_recovery", "customer.lookup", "ticket.create", "unverified_identity"),
        {"lookup": ("account_recovery", "customer.lookup", "unverified_identity"), "chat": ("unverified_identity",)},
    )


def test_an_audit_of_tools_needs_no_other_method_for_all_of_it(measure: Measure) -> None:
    score = measure(evidence("lookup__aaa"), audit="tools.md", methods=["tool_calls"])
    assert score == Score(0.5, None, Goals(("customer.lookup", "ticket.create"), {"lookup": ("customer.lookup",)}))


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (
            {"audit": "tools.md", "score_scope": "capability"},
            "tools.md has no item of the kind capability: there is nothing to cover",
        ),
        (
            {"methods": ["tool_calls"]},
            "score_scope overall has items that no method measures; add capabilities, failure_cases to methods",
        ),
    ],
)
def test_a_scope_that_nothing_can_measure_is_null(measure: Measure, keys: dict[str, Any], reason: str) -> None:
    assert measure(evidence("lookup__aaa"), **keys) == Score(None, reason)


def test_an_empty_trial_folder_is_null(measure: Measure) -> None:
    given = {"chat": {"agent/trajectory.json": TRACES["chat__ccc"]}, "empty": {}, "none": {"log.txt": b""}}
    assert measure(given, score_scope="tool") == Score(None, "task empty left no trajectory.json (and 1 more task)")


def test_attempts_of_a_task_count_together(measure: Measure) -> None:
    given = {"t": {"1/trajectory.json": TRACES["lookup__aaa"], "2/trajectory.json": TRACES["ticket__bbb"]}}
    assert measure(given, score_scope="tool").value == 1


# ---------------------------------------------------------------- judgments


def test_evidence_without_a_judgment_makes_its_scope_null(measure: Measure) -> None:
    score = measure(evidence("lookup__aaa", "ticket__bbb"), score_scope="capability")
    assert score == Score(
        None,
        "capability 'account_recovery', evidence 0 (user_intent): not judged for the trace "
        f"{digest(TRACES['lookup__aaa'])} (task lookup, attempt trial1) (and 1 more missing judgment)",
    )


@pytest.mark.parametrize(("status", "value"), [("satisfied", 1.0), ("missing", 0.0), ("unclear", 0.0)])
def test_a_judgment_that_the_attempt_left(measure: Measure, status: str, value: float) -> None:
    files = {"capability-judgments": judgment(TRACES["lookup__aaa"], status)}
    assert measure(evidence("lookup__aaa", lookup=files), score_scope="capability").value == value


def test_a_judgment_beside_the_experiment(measure: Measure, folder: Path) -> None:
    shutil.copy(SAMPLES / "capability-judgments.json", folder / "lookup.json")
    (folder / "more").mkdir()
    (folder / "more/ticket.json").write_text(json.dumps(judgment(TRACES["ticket__bbb"])))
    keys: dict[str, Any] = {"judgments": ["lookup.json", "more/*.json"], "score_scope": "capability"}
    score = measure(evidence("lookup__aaa", "ticket__bbb"), **keys)
    assert score.goals == Goals(("account_recovery",), {"lookup": ("account_recovery",), "ticket": ()})


def test_a_judgment_does_not_make_up_for_a_tool_that_is_not_called(measure: Measure) -> None:
    assert measure(all_judged(["chat__ccc"]), score_scope="capability").value == 0


def test_a_prohibited_tool_undoes_a_failure_case(measure: Measure) -> None:
    content = TRACES["lookup__aaa"].replace(b"customer.lookup", b"password.reset")
    given = {"t": {"trajectory.json": content, "failure-case-judgments.json": json.dumps(refused(content)).encode()}}
    assert measure(given, score_scope="failure_case").value == 0


BAD_JUDGMENTS: list[tuple[Any, str]] = [
    (
        judgment(TRACES["ticket__bbb"]),
        f"judges the trace {digest(TRACES['ticket__bbb'])}, which this attempt did not leave; its own is "
        f"{digest(TRACES['lookup__aaa'])}",
    ),
    (
        judgment(TRACES["lookup__aaa"], capability="recovery"),
        "judgments[0]: judges the capability 'recovery', which audit.md does not have",
    ),
    (
        judgment(TRACES["lookup__aaa"], capability="customer.lookup"),
        "judgments[0]: judges the capability 'customer.lookup', which audit.md does not have (it is a tool)",
    ),
    (
        judgment(TRACES["lookup__aaa"], evidence_index=2),
        "judgments[0]: judges evidence 2 of 'account_recovery', which has 2 in audit.md, counted from 0",
    ),
    (
        judgment(TRACES["lookup__aaa"], evidence_index=1, kind="tool_call", description="Agent grounds"),
        "judgments[0]: judges evidence 1 of 'account_recovery', which is a tool call: that is found in the trace, "
        "not judged",
    ),
    (
        judgment(TRACES["lookup__aaa"], description="Another text."),
        "judgments[0]: judges evidence 0 of 'account_recovery' as user_intent 'Another text.', and in audit.md it is "
        "user_intent 'User is trying to recover account access.': judge it anew",
    ),
    (
        judgment(TRACES["lookup__aaa"], status="yes"),
        "judgments[0].status: is the text 'yes'; 'satisfied', 'missing' or 'unclear' is expected",
    ),
    (judgment(TRACES["lookup__aaa"], why="x"), "judgments[0].why: is an unknown key; the keys here are "),
    ({**judgment(b""), "trace_sha256": "abc"}, "trace_sha256: is 'abc'; sha256: and 64 hexadecimal digits is expected"),
    ({"schema": "x"}, "schema is 'x'; nemo.eval_author.audit_capability_judgments.v1 is expected"),
    ({"schema": judgment(b"")["schema"]}, "trace_sha256: is missing (and 1 more problem)"),
    ([], "schema is None; nemo.eval_author.audit_capability_judgments.v1 is expected"),
    (
        judgment(TRACES["lookup__aaa"]) | {"judgments": judgment(b"")["judgments"] * 2},
        "judgments[1]: evidence 0 of the capability 'account_recovery' is judged twice; keep one judgment",
    ),
    (
        judgment(TRACES["lookup__aaa"])
        | {"judgments": judgment(b"")["judgments"] + judgment(b"", "missing")["judgments"]},
        "judgments[1]: evidence 0 of the capability 'account_recovery' is judged twice, and the two contradict: "
        "satisfied and missing",
    ),
]


@pytest.mark.parametrize(("content", "message"), BAD_JUDGMENTS)
def test_bad_judgments_that_an_attempt_left(measure: Measure, workspace: Path, content: Any, message: str) -> None:
    given = evidence("lookup__aaa", lookup={"capability-judgments": content})
    with pytest.raises(CoverageError) as caught:
        measure(given, score_scope="capability")
    assert str(caught.value).startswith("task lookup: capability-judgments.json of trial1: ")
    assert message in str(caught.value)
    # They are none of the business of another scope, which only notes them.
    assert measure(given, "pool", score_scope="tool").value == 0.5
    assert message in json.loads((workspace / "warnings.json").read_text())["warnings"][0]


@pytest.mark.parametrize(("content", "message"), BAD_JUDGMENTS[1:])
def test_bad_judgments_beside_the_experiment(
    measure: Measure, make: Callable[..., Any], folder: Path, content: Any, message: str
) -> None:
    (folder / "bad.json").write_text(json.dumps(content))
    with pytest.raises(ValidationError) as caught:
        make(AuditCoverage, audit="audit.md", judgments=["bad.json"])
    (error,) = caught.value.errors()
    assert error["msg"].startswith("bad.json: ")
    assert (
        message.replace("_judgments.v1 is", "_judgments.v1 ").partition(" or ")[0].split(" is exp")[0][:40]
        in error["msg"]
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.just("satisfied") | st.just("a\ud83d"),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    ),
    st.sampled_from(["schema", "trace_sha256", "judged_by", "judgments", "other", *judgment(b"")["judgments"][0]]),
)
@settings(max_examples=150)
def test_whatever_is_written_as_judgments_there_is_no_traceback(tmp_path: Path, value: Any, key: str) -> None:
    problems = ProblemList()
    audit = read_audit(SAMPLES / "audit-mixed.md", "audit.md", problems)
    assert audit is not None
    content = judgment(b"")
    level = content if key in ("schema", "trace_sha256", "judged_by", "judgments", "other") else content["judgments"][0]
    level[key] = value
    (tmp_path / "j.json").write_text(json.dumps(content))
    said = "j.json: right"
    try:
        read_judgments(tmp_path / "j.json", "j.json", audit)
    except JudgmentError as error:
        said = str(error)
    assert said.startswith("j.json: ")
    assert len(said) < 700


def test_two_files_that_contradict_each_other(measure: Measure, folder: Path) -> None:
    (folder / "kept.json").write_text(json.dumps(judgment(TRACES["lookup__aaa"], "missing")))
    given = evidence("lookup__aaa", lookup={"capability-judgments": judgment(TRACES["lookup__aaa"])})
    with pytest.raises(CoverageError) as caught:
        measure(given, score_scope="capability", judgments=["kept.json"])
    assert str(caught.value) == (
        "task lookup: capability-judgments.json of trial1: evidence 0 of the capability 'account_recovery' is judged "
        "twice, and the two contradict: missing and satisfied (first in kept.json)"
    )


def test_judgments_of_traces_elsewhere_are_left_alone(measure: Measure, folder: Path) -> None:
    (folder / "other.json").write_text(json.dumps(judgment(b"another trace")))
    assert measure(evidence("lookup__aaa"), score_scope="tool", judgments=["other.json"]).value == 0.5
    assert measure(evidence("lookup__aaa"), score_scope="capability", judgments=["other.json"]).value is None


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("none.json", "'none.json' does not exist"),
        ("none-*.json", "no file matches 'none-*.json'; it is looked for in "),
        ("../*.json", "'../*.json' leaves the experiment's folder; name the files one by one, absolutely"),
    ],
)
def test_files_of_judgments_that_are_not_there(
    measure: Measure, make: Callable[..., Any], written: str, message: str
) -> None:
    with pytest.raises(ValidationError, match=message.replace("*", r"\*").replace(".", r"\.")):
        make(AuditCoverage, audit="audit.md", judgments=[written])


# ---------------------------------------------------------------- traces


def changed(**changes: Any) -> bytes:
    return json.dumps(json.loads(TRACES["lookup__aaa"]) | changes).encode()


OUT_OF_ORDER = json.loads(TRACES["lookup__aaa"])
OUT_OF_ORDER["steps"][1]["step_id"] = 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "trajectory.json: not JSON: a key in quotes is expected (line 1, column 2)"),
        (b"", "trajectory.json: not JSON: a value is expected (line 1, column 1)"),
        (
            json.dumps(OUT_OF_ORDER).encode(),
            "trajectory.json: trajectory.steps[1].step_id is 3; 2 is expected: steps are counted from 1",
        ),
        (
            changed(mood="good"),
            "trajectory.json: trajectory.mood is an unknown field; with strict: false it is a warning",
        ),
        (
            changed(schema_version="ATIF-v1.9"),
            "trajectory.schema_version is 'ATIF-v1.9'; ATIF-v1.0 to ATIF-v1.8 are known; with strict: false",
        ),
        (changed(schema_version="ATIF-v2.0"), "trajectory.schema_version is 'ATIF-v2.0'; ATIF-v1.x is expected"),
        (changed(steps=[]), "trajectory.steps is missing or empty"),
    ],
)
def test_a_trace_that_is_not_right(measure: Measure, content: bytes, message: str) -> None:
    with pytest.raises(CoverageError) as caught:
        measure({"t": {"trajectory.json": content}}, score_scope="tool")
    assert message in str(caught.value)


def test_unknown_fields_are_a_warning_when_asked_for(measure: Measure, workspace: Path) -> None:
    content = changed(mood="good", schema_version="ATIF-v1.9")
    assert measure({"t": {"trajectory.json": content}}, score_scope="tool", strict=False).value == 0.5
    assert json.loads((workspace / "warnings.json").read_text()) == {
        "warnings": [
            "attempt trial1: trajectory.json: trajectory.schema_version is 'ATIF-v1.9'; "
            "ATIF-v1.0 to ATIF-v1.8 are known",
            "attempt trial1: trajectory.json: trajectory.mood is an unknown field",
        ]
    }


def test_steps_out_of_order_are_an_error_all_the_same(measure: Measure) -> None:
    with pytest.raises(CoverageError, match="step_id is 3"):
        measure({"t": {"trajectory.json": json.dumps(OUT_OF_ORDER).encode()}}, score_scope="tool", strict=False)


@pytest.mark.parametrize(
    ("name", "value"), [(" customer.lookup\n", 0.5), ("Customer.Lookup", 0), ("customer .lookup", 0)]
)
def test_tool_names_that_differ_in_case_or_blanks(measure: Measure, workspace: Path, name: str, value: float) -> None:
    content = json.loads(TRACES["lookup__aaa"])
    for call in content["steps"][1]["tool_calls"]:
        call["function_name"] = name
    assert measure({"t": {"trajectory.json": json.dumps(content).encode()}}, score_scope="tool").value == value
    warnings = workspace / "warnings.json"
    if value:
        assert not warnings.exists()
    else:
        text = f"task t, attempt trial1: calls {name!r}, which is not 'customer.lookup' of audit.md"
        assert json.loads(warnings.read_text()) == {"warnings": [text]}


def test_what_died_may_have_left_half_a_trace(
    measure: Measure, make: Callable[..., Any], request_for: Callable[..., CoverageRequest], workspace: Path
) -> None:
    given = request_for(
        {"t": {"1/trajectory.json": TRACES["lookup__aaa"][:-9], "2/trajectory.json": TRACES["chat__ccc"]}}
    )
    first, second = given.files["t"]
    died = replace(given, files={"t": (replace(first, outcome="died"), second)})
    system = make(AuditCoverage, audit="audit.md", score_scope="tool")
    assert system.measure(died, workspace).value == 0
    assert "died, and what it left is no trace: not JSON" in (workspace / "warnings.json").read_text()
    with pytest.raises(CoverageError, match="not JSON"):
        system.measure(given, workspace)


@pytest.mark.parametrize("name", ["trajectory.json", "capability-judgments.json"])
def test_evidence_that_changed_meanwhile(
    measure: Measure,
    make: Callable[..., Any],
    request_for: Callable[..., CoverageRequest],
    workspace: Path,
    name: str,
) -> None:
    content = TRACES["lookup__aaa"]
    given = request_for(
        {"t": {"trajectory.json": content, "capability-judgments.json": json.dumps(judgment(content)).encode()}}
    )
    path = next(file.path for file in given.files["t"] if file.name == name)
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(CoverageError, match="has changed since its attempt ended; run the attempt again"):
        make(AuditCoverage, audit="audit.md", score_scope="capability").measure(given, workspace)


def test_a_pipe_or_a_link_is_no_trace(
    measure: Measure, make: Callable[..., Any], request_for: Callable[..., CoverageRequest], workspace: Path
) -> None:
    given = request_for({"t": {"trajectory.json": TRACES["chat__ccc"]}})
    path: Path = given.files["t"][0].path
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(CoverageError, match="cannot be read: not a regular file"):
        make(AuditCoverage, audit="audit.md").measure(given, workspace)


# ---------------------------------------------------------------- what is left


def test_what_is_not_covered_is_told_with_its_reasons(measure: Measure, workspace: Path) -> None:
    measure(evidence("ticket__bbb", "chat__ccc"))
    entries = json.loads((workspace / "uncovered.json").read_text())["uncovered"]
    assert [(entry["name"], entry["traces"]) for entry in entries] == [
        ("customer.lookup", {"not_called": 2}),
        ("account_recovery", {"missing_required_tool": 2, "missing_tool_call_evidence": 2, "unjudged_evidence": 2}),
        ("unverified_identity", {"unjudged_evidence": 2}),
    ]
    assert entries[0]["description"] == "Looks up a customer record."


def test_the_pool_has_a_report_of_every_method(measure: Measure, workspace: Path) -> None:
    measure(evidence("lookup__aaa", "chat__ccc"), "pool", score_scope="tool")
    report = json.loads((workspace / "report.json").read_text())
    assert report["measured_kinds"] == ["capability", "failure_case", "tool"]
    assert report["coverage"]["by_kind"]["tool"] == {"item_count": 2, "covered_count": 1, "uncovered_count": 1}
    paths = [entry["path"] for entry in report["input_reports"]]
    assert paths[0] == "measurements/task=chat/run=trial1/capabilities/coverage.json"
    assert len(set(paths)) == 6


def test_traces_of_one_attempt_have_runs_of_their_own(measure: Measure, workspace: Path) -> None:
    given = {"t": {"a/trajectory.json": TRACES["lookup__aaa"], "b/trajectory.json": TRACES["ticket__bbb"]}}
    measure(given, "pool", score_scope="tool", methods=["tool_calls"])
    runs = [
        entry["subject"]["run_id"] for entry in json.loads((workspace / "report.json").read_text())["input_reports"]
    ]
    assert runs == ["trial1/a", "trial1/b"]


def test_a_trace_is_read_once(
    measure: Measure, make: Callable[..., Any], request_for: Callable[..., CoverageRequest], workspace: Path
) -> None:
    given = request_for(evidence("lookup__aaa"))
    system = make(AuditCoverage, audit="audit.md", score_scope="tool")
    assert system.measure(given, workspace).value == 0.5
    given.files["lookup"][0].path.unlink()
    assert system.measure(given, workspace).value == 0.5


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "Field required"),
        ({"audit": "none.md"}, "'none.md' does not exist; it is looked for in"),
        ({"audit": "audit.md", "methods": []}, "at least 1 item"),
        ({"audit": "audit.md", "methods": ["trace_tools"]}, "'tool_calls', 'capabilities' or 'failure_cases'"),
        ({"audit": "audit.md", "score_scope": "tools"}, "'overall', 'tool', 'capability' or 'failure_case'"),
        ({"audit": "audit.md", "scope": "tool"}, "Extra inputs are not permitted"),
    ],
)
def test_wrong_keys(measure: Measure, make: Callable[..., Any], keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        make(AuditCoverage, **keys)
    assert words in str(caught.value)


def test_the_files_it_names_are_found_as_written(measure: Measure, make: Callable[..., Any], folder: Path) -> None:
    shutil.copy(SAMPLES / "capability-judgments.json", folder / "b.json")
    system = make(AuditCoverage, audit="audit.md", judgments=["b.json"])
    assert isinstance(system.audit, NamedFile)
    assert system.model_dump(mode="json") == {
        "kind": "audit",
        "audit": "audit.md",
        "methods": list(METHODS),
        "score_scope": "overall",
        "judgments": ["b.json"],
        "strict": True,
    }
    assert system.model_json_schema()["properties"]["audit"]["type"] == "string"


def test_a_store_without_the_audit_can_be_read(folder: Path, request_for: Callable[..., CoverageRequest]) -> None:
    system = AuditCoverage.model_validate({"audit": "gone.md"}, context={"folder": folder, "cached_only": True})
    with pytest.raises(CoverageError, match=r"the audit gone\.md was absent when the experiment was read"):
        system.measure(request_for(evidence("chat__ccc")), folder)
