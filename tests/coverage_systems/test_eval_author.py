"""The ``eval-author`` system over the samples: scores, reasons, goals, and what lies in the request's folder."""

import itertools
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.contracts import CoverageError, Goals, Score
from tests.coverage_systems.eval_author_lab import (
    CHAT,
    JUDGMENTS,
    LOOKUP,
    METHODS,
    MIXED,
    SAMPLES,
    SCOPES,
    SUBSETS,
    TICKET,
    TOOLS_ONLY,
    digest,
    measured,
    scripts,
    system,
    trace,
    tree,
)

METHOD_SETS = [chosen for size in (1, 2, 3) for chosen in itertools.combinations(METHODS, size)]
KIND = {"tool_calls": "tool", "capabilities": "capability", "failure_cases": "failure_case"}


# ---------------------------------------------------------------- the table


@pytest.mark.parametrize(
    "methods",
    [
        pytest.param(chosen, id="+".join(chosen), marks=[pytest.mark.benchmark] * (len(chosen) == 2))
        for chosen in METHOD_SETS
    ],
)
def test_every_method_set_and_scope_over_the_samples(tmp_path: Path, methods: tuple[str, ...]) -> None:
    """What a scope gives never depends on the other methods: tools are 0.5 / 0.5 / 0.0 / 1.0, or not measured."""
    found = {}
    first = system(tmp_path, methods=methods)
    for scope in SCOPES:
        audit = first.model_copy(update={"score_scope": scope})  # with what it has measured
        for subset, tasks in SUBSETS.items():
            score = measured(tmp_path, audit, tasks, f"{scope}-{subset}")
            found[scope, subset] = score.value if score.value is not None else score.reason
    tools = [found["tool", subset] for subset in SUBSETS]
    if "tool_calls" in methods:
        assert tools == [0.5, 0.5, 0.0, 1.0]
    else:
        assert set(tools) == {"tool items are not measured, which the scope tool counts; add tool_calls to methods"}
    words = {"capability": "capability", "failure_case": "failure case"}
    for method, scope in (("capabilities", "capability"), ("failure_cases", "failure_case")):
        texts = {found[scope, subset] for subset in SUBSETS}
        if method in methods:
            assert all(str(text).startswith("a judgment is missing: evidence 0 (") for text in texts)
        else:
            what = f"{words[scope]} items are not measured, which the scope {scope} counts"
            assert texts == {f"{what}; add {method} to methods"}
    lacking = [method for method in METHODS if method not in methods]
    for subset in SUBSETS:
        text = str(found["overall", subset])
        assert text.endswith(f"; add {lacking[0]} to methods") if lacking else text.startswith("a judgment is missing")


def test_the_documents_are_those_that_upstream_wrote(tmp_path: Path) -> None:
    """But for the paths, which here are those of the evidence."""
    recorded = SAMPLES / "out-mixed" / "tool_calls+capabilities+failure_cases" / "s-all"
    workspace = tmp_path / "request"
    measured(tmp_path, system(tmp_path, score_scope="tool"), SUBSETS["all"])
    names = sorted(str(path.relative_to(recorded)) for path in recorded.rglob("*.json"))
    made = sorted(name for name in tree(workspace) if name == "report.json" or name.startswith("measurements/"))
    assert made == names
    for name in names:
        text = (recorded / name).read_text().replace("audit-mixed.md", "audit.md")
        text = text.replace("samples/audit/out-mixed/tool_calls+capabilities+failure_cases/s-all/", "")
        for task, trials in SUBSETS["all"].items():
            for trial in trials:
                ours = f"evidence/{task}/{trial}/trajectory.json"
                text = text.replace(f"trials/{trial}/agent/trajectory.json", ours)
        assert (workspace / name).read_text() == text, name


def test_goals_are_the_covered_items_of_the_scope_by_task(tmp_path: Path) -> None:
    score = measured(tmp_path, system(tmp_path, score_scope="tool"), SUBSETS["all"])
    assert score == Score(
        1.0,
        None,
        Goals(
            ("customer.lookup", "ticket.create"),
            {"task-lookup": ("customer.lookup",), "task-ticket": ("ticket.create",), "task-chat": ()},
        ),
    )


def test_a_task_with_several_attempts_covers_what_any_of_them_covers(tmp_path: Path) -> None:
    score = measured(tmp_path, system(tmp_path, score_scope="tool"), {"t": {"a1": LOOKUP, "a2": TICKET, "a3": CHAT}})
    assert score.value == 1.0
    assert score.goals is not None
    assert score.goals.by_task == {"t": ("customer.lookup", "ticket.create")}


# ---------------------------------------------------------------- null


def test_scope_without_items(tmp_path: Path) -> None:
    for scope, words in (("capability", "capability"), ("failure_case", "failure case")):
        audit = system(tmp_path, audit=str(TOOLS_ONLY), score_scope=scope)
        score = measured(tmp_path, audit, SUBSETS["all"], scope)
        assert score == Score(None, f"the audit has no {words} items")


def test_overall_needs_only_the_kinds_that_the_audit_has(tmp_path: Path) -> None:
    for number, methods in enumerate((["tool_calls"], list(METHODS))):
        audit = system(tmp_path, audit=str(TOOLS_ONLY), score_scope="overall", methods=methods)
        assert measured(tmp_path, audit, SUBSETS["lookup"], f"r{number}").value == 0.5


def test_a_missing_judgment_is_named(tmp_path: Path) -> None:
    score = measured(tmp_path, system(tmp_path, score_scope="capability"), SUBSETS["all"])
    assert score.reason == (
        "a judgment is missing: evidence 0 (user_intent) of the capability account_recovery in task task-lookup, "
        "trial lookup__aaa (and 2 more)"
    )


def test_judgments_for_another_trace_are_not_used_and_the_reason_says_so(tmp_path: Path) -> None:
    audit = system(tmp_path, score_scope="capability", judgments=[str(JUDGMENTS)])
    score = measured(tmp_path, audit, SUBSETS["ticket"])
    assert score.reason == (
        "a judgment is missing: evidence 0 (user_intent) of the capability account_recovery in task task-ticket, "
        f"trial ticket__bbb; no file under judgments is for its trace, {digest(TICKET)}"
    )


def test_evidence_of_an_unknown_kind_makes_its_scope_null(tmp_path: Path) -> None:
    source = (
        "import json, runpy, sys, pathlib\n"
        "sys.path.insert(0, str(pathlib.Path(__file__).parent))\n"
        "try:\n    runpy.run_path(str(pathlib.Path(__file__).with_name('really.py')), run_name='__main__')\n"
        "except SystemExit:\n    pass\n"
        "for path in pathlib.Path('measurements').rglob('capabilities/details.json'):\n"
        "    text = path.read_text().replace('\"unjudged\"', '\"unsupported\"')\n    path.write_text(text)\n"
    )
    folder = scripts(tmp_path, measure=source)
    shutil.copy(Path(__file__).parent / "stand_in/audit_spec/measure.py", f"{folder}/really.py")
    null = measured(tmp_path, system(tmp_path, scripts=folder, score_scope="capability"), SUBSETS["lookup"], "a")
    assert null.reason == (
        "the scripts cannot measure evidence 0 (user_intent) of the capability account_recovery in task task-lookup, "
        "trial lookup__aaa"
    )
    assert measured(tmp_path, system(tmp_path, scripts=folder, score_scope="tool"), SUBSETS["lookup"], "b").value == 0.5


def test_a_task_without_a_trace_starts_nothing(tmp_path: Path) -> None:
    audit = system(tmp_path, author=["{python}", "-c", "raise SystemExit(3)"])
    tasks = {"t1": {"a": TICKET}, "t2": {"b": {"notes.txt": b"x"}}, "t3": {}}
    assert measured(tmp_path, audit, tasks) == Score(None, "task t2 left no trajectory.json (and 1 more task)")
    assert list(tree(tmp_path / "request")) == ["request.json"]


# ---------------------------------------------------------------- runs


def test_equal_trial_names_elsewhere_do_not_overwrite_one_another(tmp_path: Path) -> None:
    """The ids are ours, whatever the agent left as ``result.json`` beside its trace."""
    result = b'{"task_name": "same", "trial_name": "same"}'
    tasks = {
        "t": {
            "a1": {"agent/trajectory.json": LOOKUP, "result.json": result},
            "a2": {"agent/trajectory.json": TICKET, "result.json": result},
        }
    }
    assert measured(tmp_path, system(tmp_path, score_scope="tool"), tasks).value == 1.0
    made = tree(tmp_path / "request")
    assert {name.split("/")[2] for name in made if name.startswith("measurements/task=t/")} == {"run=a1", "run=a2"}


def test_several_traces_of_one_trial_are_runs_of_their_own(tmp_path: Path) -> None:
    tasks = {"t": {"a1": {"main/trajectory.json": LOOKUP, "other/trajectory.json": TICKET, "trajectory.json": CHAT}}}
    score = measured(tmp_path, system(tmp_path, score_scope="tool", methods=["tool_calls"]), tasks)
    assert score.value == 1.0
    report = json.loads((tmp_path / "request/report.json").read_text())
    assert [entry["subject"]["run_id"] for entry in report["input_reports"]] == ["a1", "a1~2", "a1~3"]


def test_names_that_differ_in_case_and_space(tmp_path: Path) -> None:
    tasks = {"t1": {"a1": trace(" customer.lookup ")}, "t2": {"a2": trace("Ticket.Create")}}
    score = measured(tmp_path, system(tmp_path, score_scope="tool"), tasks)
    assert score.value == 0.5
    assert score.goals is not None
    assert score.goals.by_task == {"t1": ("customer.lookup",), "t2": ()}


def test_half_a_trace_of_an_attempt_that_died_is_left_out(tmp_path: Path) -> None:
    tasks = {"t": {"a1": LOOKUP[:-40], "a2": TICKET}}
    score = measured(tmp_path, system(tmp_path, score_scope="tool"), tasks, died=["a1"])
    assert score.value == 0.5
    assert score.goals is not None
    assert score.goals.by_task == {"t": ("ticket.create",)}


def test_nothing_but_half_a_trace(tmp_path: Path) -> None:
    tasks = {"t": {"a1": LOOKUP[:-40]}, "u": {"a2": TICKET}}
    assert measured(tmp_path, system(tmp_path, score_scope="tool"), tasks, died=["a1"]) == Score(
        None,
        "task t left no trace that can be measured: what its attempts left when they died is no whole trajectory.json",
    )


def test_half_a_trace_of_an_attempt_that_was_scored(tmp_path: Path) -> None:
    with pytest.raises(CoverageError) as failed:
        measured(tmp_path, system(tmp_path, score_scope="tool"), {"t": {"a1": LOOKUP[:-40]}})
    assert str(failed.value).startswith(
        "measure.py for task t, trial a1 ended with exit status 1: the trace is not right (error_type trace): "
        "evidence/t/a1/trajectory.json is not JSON: "
    )


def test_tools_that_nested_subagents_call_count(tmp_path: Path) -> None:
    inner = json.loads(trace("ticket.create")) | {"trajectory_id": "inner"}
    inner["subagent_trajectories"] = [json.loads(trace("customer.lookup")) | {"trajectory_id": "innermost"}]
    tasks = {"t": {"a1": trace(subagent_trajectories=[inner])}}
    assert measured(tmp_path, system(tmp_path, score_scope="tool"), tasks).value == 1.0


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (trace(schema_version="ATIF-v2.0"), "$.schema_version: 'ATIF-v2.0' is not supported"),
        (trace(mood="good"), "$.mood: extra inputs are not permitted"),
        (LOOKUP.replace(b'"step_id": 2', b'"step_id": 3'), "$.steps[1].step_id: expected 2, got 3"),
        (b"", "is not JSON"),
    ],
)
def test_traces_that_are_not_right(tmp_path: Path, left: bytes, says: str) -> None:
    with pytest.raises(CoverageError) as failed:
        measured(tmp_path, system(tmp_path), {"t": {"a1": left}})
    assert str(failed.value).startswith(
        "measure.py for task t, trial a1 ended with exit status 1: the trace is not right (error_type trace): "
        "evidence/t/a1/trajectory.json"
    )
    assert says in str(failed.value)


def test_what_stands_beside_a_trace_of_harbor_must_be_right_too(tmp_path: Path) -> None:
    """Upstream reads ``result.json`` beside ``agent/`` even where both ids are given."""
    tasks = {"t": {"a1": {"agent/trajectory.json": LOOKUP, "result.json": b"[]"}}}
    with pytest.raises(CoverageError, match=r"evidence/t/a1/result\.json is no JSON object"):
        measured(tmp_path, system(tmp_path), tasks)


def test_ids_with_every_character_that_they_may_have(tmp_path: Path) -> None:
    task, trial = "a.b+c-d_e", "f.g+h-i_j.stdout"
    assert measured(tmp_path, system(tmp_path, score_scope="tool"), {task: {trial: LOOKUP}}).value == 0.5
    made = tree(tmp_path / "request")
    assert "measurements/task=a.b%2Bc-d_e/run=f.g%2Bh-i_j.stdout/tool_calls/coverage.json" in made
    assert f"logs/measure/{task}/{trial}.stdout" in made


def test_requests_at_the_same_time(tmp_path: Path) -> None:
    audit = system(tmp_path, score_scope="tool")
    names = [f"{subset}-{number}" for subset in SUBSETS for number in range(3)]
    with ThreadPoolExecutor(6) as pool:
        scores = list(pool.map(lambda name: measured(tmp_path, audit, SUBSETS[name.partition("-")[0]], name), names))
    assert [score.value for score in scores] == [0.5] * 3 + [0.5] * 3 + [0.0] * 3 + [1.0] * 3
    for subset in SUBSETS:
        trees = [tree(tmp_path / f"{subset}-{number}") for number in range(3)]
        assert trees[0] == trees[1] == trees[2]


# ---------------------------------------------------------------- the same bytes


def test_two_runs_leave_equal_bytes(tmp_path: Path) -> None:
    left = []
    for name in ("one", "another-place"):
        audit = system(tmp_path, score_scope="tool", judgments=[str(JUDGMENTS)])
        measured(tmp_path, audit, SUBSETS["all"], name)
        left.append(tree(tmp_path / name))
    assert left[0] == left[1]
    documents = 9 * 2  # three trials, three methods, two documents
    given_and_report = 4  # request.json, audit.md, one judgment file, report.json
    assert len(left[0]) == documents + given_and_report + 4 * 2  # what four steps printed
    assert not [name for name, content in left[0].items() if str(tmp_path).encode() in content]


def test_a_trace_is_measured_once_for_all_subsets_of_a_session(tmp_path: Path) -> None:
    source = Path(__file__).parent / "stand_in/audit_spec/measure.py"
    noting = source.read_text().replace(
        "def main():\n",
        f"def main():\n    open({str(tmp_path / 'calls')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n",
        1,
    )
    folder = scripts(tmp_path, measure=noting)
    audit = system(tmp_path, scripts=folder, score_scope="tool")
    for name, tasks in SUBSETS.items():
        measured(tmp_path, audit, tasks, name)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 3
    assert calls[0] == (
        "--audit audit.md --trace evidence/task-lookup/lookup__aaa/trajectory.json --task-id task-lookup "
        "--run-id lookup__aaa --measure tool_calls,capabilities,failure_cases --out-dir measurements"
    )
    fresh = system(tmp_path, scripts=folder, score_scope="tool")
    measured(tmp_path, fresh, SUBSETS["all"], "fresh")
    assert len((tmp_path / "calls").read_text().splitlines()) == 6
    assert tree(tmp_path / "fresh") == tree(tmp_path / "all")


def test_another_trace_under_the_same_names_is_measured_again(tmp_path: Path) -> None:
    audit = system(tmp_path, score_scope="tool")
    assert measured(tmp_path, audit, {"t": {"a": LOOKUP}}, "one").value == 0.5
    assert measured(tmp_path, audit, {"t": {"a": CHAT}}, "two").value == 0.0


# ---------------------------------------------------------------- a fixed audit


def with_source(path: str, content: bytes) -> str:
    block = f'sources:\n  - {{name: ethos, path: {path}, sha256: "{digest(content)}", description: Why.}}\nitems:'
    return MIXED.read_text().replace("items:", block, 1)


def test_an_audit_and_its_source_stand_as_they_stood(tmp_path: Path) -> None:
    """Eval Author keeps ``.eval-author/audit.md`` below the ``ETHOS.md`` that it was made from."""
    (tmp_path / ".eval-author").mkdir()
    (tmp_path / "ETHOS.md").write_bytes(b"Be kind.")
    (tmp_path / ".eval-author/audit.md").write_text(with_source("../ETHOS.md", b"Be kind."))
    audit = system(tmp_path, audit=".eval-author/audit.md", score_scope="tool")
    assert measured(tmp_path, audit, SUBSETS["lookup"]).value == 0.5
    made = tree(tmp_path / "request")
    assert made["ETHOS.md"] == b"Be kind."
    assert ".eval-author/audit.md" in made


def test_a_source_that_changed(tmp_path: Path) -> None:
    (tmp_path / "ETHOS.md").write_bytes(b"Be cruel.")
    (tmp_path / "audit.md").write_text(with_source("ETHOS.md", b"Be kind."))
    with pytest.raises(CoverageError) as failed:
        measured(tmp_path, system(tmp_path, audit="audit.md"), SUBSETS["lookup"])
    assert str(failed.value) == (
        "measure.py for task task-lookup, trial lookup__aaa ended with exit status 1: the audit is not right "
        f"(error_type audit_spec): audit.sources[0].sha256: ETHOS.md has {digest(b'Be cruel.')}, "
        f"not {digest(b'Be kind.')}"
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("<!-- BEGIN:nemo-eval-author-audit:v1 -->", ""), "must have exactly one block"),
        (("# Audit", "<!-- BEGIN:nemo-eval-author-audit:v1 -->\n# Audit"), "must have exactly one block"),
        (
            (
                "evidence_required:\n      - kind: output\n        description: Agent refuses direct recovery.",
                "evidence_required: []",
            ),
            "audit.items[3].evidence_required: at least one entry is needed",
        ),
        (("name: ticket.create", "name: customer.lookup"), "the name 'customer.lookup' is duplicated"),
        (("kind: user_intent", "kind: telepathy"), "'telepathy' is no kind of evidence"),
        (("kind: failure_case", "kind: wish"), "audit.items[3].kind: 'wish' is not one of"),
        (("status: approved", "status: [approved"), "audit YAML does not parse"),
        (("[customer.lookup]", "[customer.look]"), "audit.items[2]: unknown tool name 'customer.look'"),
    ],
)
def test_audits_that_are_not_right(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    (tmp_path / "audit.md").write_text(MIXED.read_text().replace(*change, 1))
    with pytest.raises(CoverageError) as failed:
        measured(tmp_path, system(tmp_path, audit="audit.md"), SUBSETS["lookup"])
    assert "the audit is not right (error_type audit_spec): " in str(failed.value)
    assert says in str(failed.value)


# ---------------------------------------------------------------- any tools, any traces


NAMES = st.sampled_from(["a.b", "c", "D", "e/f", "g-h", "i:j"])


@settings(max_examples=8)
@given(
    declared=st.sets(NAMES, min_size=1),
    called=st.lists(st.lists(st.lists(NAMES, max_size=3), min_size=1, max_size=2), min_size=1, max_size=3),
)
def test_the_score_is_the_share_of_the_declared_tools_that_are_called(
    tmp_path_factory: pytest.TempPathFactory, declared: set[str], called: list[list[list[str]]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    item = "\n".join(TOOLS_ONLY.read_text().split("items:\n")[1].splitlines()[:9])
    items = "\n".join(item.replace("customer.lookup", name) for name in sorted(declared))
    head = TOOLS_ONLY.read_text().split("items:\n")[0]
    (folder / "audit.md").write_text(f"{head}items:\n{items}\n```\n<!-- END:nemo-eval-author-audit:v1 -->\n")
    tasks = {
        f"t{number}": {f"t{number}.{index}": trace(*tools) for index, tools in enumerate(attempts)}
        for number, attempts in enumerate(called)
    }
    score = measured(folder, system(folder, audit="audit.md", score_scope="tool", methods=["tool_calls"]), tasks)
    by_task = {f"t{n}": tuple(sorted(declared & set(itertools.chain(*calls)))) for n, calls in enumerate(called)}
    covered = set(itertools.chain(*by_task.values()))
    assert score == Score(len(covered) / len(declared), None, Goals(tuple(sorted(declared)), by_task))
