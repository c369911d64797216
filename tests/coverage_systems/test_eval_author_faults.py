"""``eval-author`` with authors and scripts that fail, hang, or leave something else than they should."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

from pytest_metricbench.contracts import CoverageError, Score
from pytest_metricbench.coverage.eval_author.memory import Memory
from pytest_metricbench.coverage.eval_author.system import EvalAuthorCoverage
from tests.coverage_systems.eval_author_lab import (
    JUDGMENTS,
    LOOKUP,
    MIXED,
    SUBSETS,
    digest,
    request,
    scripts,
    system,
    tree,
)

COPY = f"import shutil; shutil.copy({str(MIXED)!r}, 'audit.md')\n"


JUDGING = """
import json, os, sys
request = json.load(open("request.json"))
entry = {"failure_case": "unverified_identity", "evidence_index": 0, "kind": "output", "confidence": "low",
         "description": "Agent refuses direct recovery.", "status": "satisfied", "rationale": "It does."}
for task, files in request["evidence"].items():
    for file in files:
        assert os.path.isfile(file["path"]), file
        os.makedirs(f"judgments/{file['trial_id']}")
        schema = "nemo.eval_author.audit_failure_case_judgments.v1"
        judged = {"schema": schema, "trace_sha256": file["sha256"], "judgments": [entry]}
        json.dump(judged, open(f"judgments/{file['trial_id']}/failure_cases.json", "w"))
json.dump([request, sorted(os.environ), os.getcwd()], open("seen.json", "w"))
print("done")
print("a word", file=sys.stderr)
"""


def author(tmp_path: Path, source: str, **keys: object) -> EvalAuthorCoverage:
    (tmp_path / "author.py").write_text(source)
    return system(tmp_path, author=["{python}", "author.py"], **{"score_scope": "tool", **keys})


def measured(tmp_path: Path, audit: EvalAuthorCoverage, subset: str = "lookup") -> Score:
    workspace = tmp_path / "request"
    return audit.measure(request(workspace, SUBSETS[subset], settings=audit.request_settings), workspace)


def failure(tmp_path: Path, audit: EvalAuthorCoverage) -> str:
    with pytest.raises(CoverageError) as failed:
        measured(tmp_path, audit)
    return str(failed.value)


# ---------------------------------------------------------------- authors


def test_what_an_author_sees_and_writes(tmp_path: Path) -> None:
    source = COPY + JUDGING
    score = measured(tmp_path, author(tmp_path, source, score_scope="failure_case", env={"KEY": "x"}), "all")
    assert score.value == 1.0
    assert score.goals is not None
    assert score.goals.universe == ("unverified_identity",)
    assert all(goals == ("unverified_identity",) for goals in score.goals.by_task.values())
    left = tree(tmp_path / "request")
    seen, names, cwd = json.loads(left["seen.json"])
    assert seen["case"] == {"id": "help", "description": "Answers customers."}
    assert seen["tasks"] == list(SUBSETS["all"])
    assert seen["settings"] == {
        "methods": ["tool_calls", "capabilities", "failure_cases"],
        "score_scope": "failure_case",
    }
    assert seen["evidence"]["task-lookup"][0]["sha256"] == digest(LOOKUP)
    assert set(names) <= {"HOME", "KEY", "LANG", "LC_CTYPE", "PATH"}
    assert Path(cwd) == (tmp_path / "request").resolve()
    assert (left["logs/author.stdout"], left["logs/author.stderr"]) == (b"done\n", b"a word\n")


def test_an_author_beside_a_fixed_audit_writes_judgments(tmp_path: Path) -> None:
    source = (
        "import os, shutil\nassert os.path.isfile('audit.md')\nos.makedirs('judgments/lookup__aaa')\n"
        f"shutil.copy({str(JUDGMENTS)!r}, 'judgments/lookup__aaa/capabilities.json')\n"
    )
    audit = author(tmp_path, source, audit=str(MIXED), score_scope="capability")
    assert measured(tmp_path, audit).value == 1.0


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import sys; sys.exit('no model today')",
         "the author command ended with exit status 1; the end of its stderr:\nno model today"),
        ("", "the author command wrote no audit.md; it writes it into its working directory"),
        ("import os; os.mkfifo('audit.md')",
         "the author command left something else than a file as audit.md; it writes it into its working directory"),
        ("import os; os.symlink('/etc/passwd', 'audit.md')",
         "the author command left something else than a file as audit.md; it writes it into its working directory"),
        ("import os; os.rename('logs', 'old'); os.symlink('/tmp', 'logs')",
         "the author command replaced the folder logs, which keeps what the steps print"),
        ("import os; os.mkdir('measurements')",
         "the author command left measurements; that name is for what comes after it"),
        ("open('response.json', 'w')", "the author command left response.json; that name is for what comes after it"),
        ("import os; os.makedirs('judgments/lookup__aab'); open('judgments/lookup__aab/capabilities.json', 'w')",
         "the author command left judgments/lookup__aab/capabilities.json, which belongs to no trial of this request; "
         "judgments stand in judgments/<trial id>/capabilities.json and failure_cases.json, and the trials are "
         "lookup__aaa"),
        ("import os; os.makedirs('judgments'); os.symlink('/tmp', 'judgments/lookup__aaa')",
         "the author command left judgments/lookup__aaa, which belongs to no trial of this request; judgments stand in "
         "judgments/<trial id>/capabilities.json and failure_cases.json, and the trials are lookup__aaa"),
        ("import os; os.symlink('/tmp', 'judgments')",
         "the author command left judgments, which belongs to no trial of this request; judgments stand in "
         "judgments/<trial id>/capabilities.json and failure_cases.json, and the trials are lookup__aaa"),
    ],
)  # fmt: skip
def test_authors_that_fail(tmp_path: Path, source: str, says: str) -> None:
    assert failure(tmp_path, author(tmp_path, source)) == says
    assert "report.json" not in tree(tmp_path / "request")


def test_an_author_that_changes_what_is_fixed(tmp_path: Path) -> None:
    audit = author(tmp_path, "open('audit.md', 'a').write('more')", audit=str(MIXED))
    assert failure(tmp_path, audit) == (
        "the author command changed audit.md, which the key audit fixes; leave the key out where the author is to "
        "write it"
    )


def test_an_author_that_changes_fixed_judgments(tmp_path: Path) -> None:
    source = "open('judgments/lookup__aaa/capabilities.json', 'a').write(' ')"
    audit = author(tmp_path, source, audit=str(MIXED), judgments=[str(JUDGMENTS)])
    assert failure(tmp_path, audit) == (
        "the author command changed judgments/lookup__aaa/capabilities.json, which the key judgments fixes; leave the "
        "key out where the author is to write it"
    )


def test_an_author_whose_executable_is_gone(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/nowhere/python\n")
    program.chmod(0o755)
    audit = system(tmp_path, author=[str(program)])
    program.unlink()
    assert failure(tmp_path, audit) == (
        f"the author command cannot be run: {program} cannot be started: [Errno 2] No such file or directory: "
        f"'{program}'"
    )


def test_a_variable_that_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODEL_KEY", raising=False)
    audit = author(tmp_path, COPY, env={"MODEL_KEY": None})
    assert failure(tmp_path, audit) == "env takes MODEL_KEY from the environment, and it is not set there"


# ---------------------------------------------------------------- time


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


def test_a_slow_author_is_killed_with_its_children(tmp_path: Path) -> None:
    source = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('child', 'w').write(str(child.pid))\ntime.sleep(60)\n"
    )
    began = time.monotonic()
    assert failure(tmp_path, author(tmp_path, source, timeout=3)) == (
        "the request took longer than 3 s, all its steps together, and was stopped in the author command; give it a "
        "longer timeout"
    )
    assert time.monotonic() - began < 20
    assert gone(int((tmp_path / "request/child").read_text()))


@pytest.mark.benchmark
def test_a_slow_script_is_killed_and_has_only_the_time_that_is_left(tmp_path: Path) -> None:
    hanging = scripts(tmp_path, measure="import time\ntime.sleep(60)\n")
    audit = author(tmp_path, COPY + "import time; time.sleep(1)", scripts=hanging, timeout=4)
    began = time.monotonic()
    assert failure(tmp_path, audit) == (
        "the request took longer than 4 s, all its steps together, and was stopped in measure.py for task "
        "task-lookup, trial lookup__aaa; give it a longer timeout"
    )
    assert time.monotonic() - began < 20


def test_one_that_waits_for_another_request_waits_no_longer_than_its_time() -> None:
    memory = Memory()
    with (
        memory.only_one("key", 1, RuntimeError),
        pytest.raises(CoverageError, match="late"),
        memory.only_one("key", 0.05, lambda: CoverageError("late")),
    ):
        pytest.fail("two at a time")
    with memory.only_one("key", 0, RuntimeError):
        pass  # it is free again


def test_what_does_not_fit_is_not_kept(tmp_path: Path) -> None:
    memory = Memory(limit=5)
    (tmp_path / "a").write_bytes(b"123456")
    (tmp_path / "b").write_bytes(b"1234")
    memory.keep("large", tmp_path, ["a"])
    memory.keep("small", tmp_path, ["b"])
    (tmp_path / "b").unlink()
    assert not memory.write("large", tmp_path)
    assert memory.write("small", tmp_path)
    assert (tmp_path / "b").read_bytes() == b"1234"


# ---------------------------------------------------------------- scripts


def refusing(status: int, printed: object = None, error: str = "") -> str:
    text = printed if isinstance(printed, str) else json.dumps(printed)
    return f"import sys\nprint({text!r})\nprint({error!r}, file=sys.stderr)\nsys.exit({status})\n"


ABOUT = "measure.py for task task-lookup, trial lookup__aaa"
REFUSAL = {"valid": None, "written": False}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (refusing(2, {**REFUSAL, "error_type": "environment", "error": "Harbor is required"}),
         f"{ABOUT} ended with exit status 2: the interpreter's environment lacks something that the scripts need "
         "(error_type environment): Harbor is required\ninstall it with {python} -m pip install 'harbor>=0.16.1' "
         "'jsonschema>=4.0' 'PyYAML>=6.0' (Python 3.12 or newer)"),
        (refusing(1, {**REFUSAL, "error_type": "novel", "error": "something new"}),
         f"{ABOUT} ended with exit status 1: it says (error_type novel): something new"),
        (refusing(1, {**REFUSAL, "error_type": "trace"}),
         f'{ABOUT} ended with exit status 1: the trace is not right (error_type trace): {{"error_type": "trace", '
         '"valid": null, "written": false}'),
        (refusing(2, "", "usage: measure.py\nmeasure.py: error: unrecognized arguments: --run-id"),
         f"{ABOUT} ended with exit status 2; the end of its stderr:\nusage: measure.py\nmeasure.py: error: "
         "unrecognized arguments: --run-id"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", f"{ABOUT} was killed by SIGKILL"),
        ("print('hello')\n",
         f"{ABOUT} ended without an error and printed no JSON object; are these Eval Author's scripts? The end of its "
         "stdout:\nhello"),
        ("print('[1]')\n",
         f"{ABOUT} ended without an error and printed no JSON object; are these Eval Author's scripts? The end of its "
         "stdout:\n[1]"),
        ("print('{}')\n",
         "{folder}: coverage.json was not written"),
    ],
)  # fmt: skip
def test_scripts_that_refuse_or_are_something_else(tmp_path: Path, source: str, says: str) -> None:
    said = failure(tmp_path, system(tmp_path, scripts=scripts(tmp_path, measure=source)))
    folder = "measurements/task=task-lookup/run=lookup__aaa/tool_calls"
    assert said == says.replace("{python}", sys.executable).replace("{folder}", folder)


def test_a_report_that_is_refused(tmp_path: Path) -> None:
    refusal = refusing(1, {**REFUSAL, "error_type": "coverage_input", "error": "x/coverage.json: stale"})
    assert failure(tmp_path, system(tmp_path, scripts=scripts(tmp_path, report=refusal))) == (
        "report.py ended with exit status 1: a coverage.json cannot be added up (error_type coverage_input): "
        "x/coverage.json: stale"
    )


COUNTS = {
    "by_kind": {
        kind: {"item_count": n, "covered_count": c}
        for kind, n, c in (("tool", 2, 1), ("capability", 1, 0), ("failure_case", 1, 0))
    }
}
UNCOVERED = [
    {"name": "ticket.create", "kind": "tool"},
    {"name": "account_recovery", "kind": "capability"},
    {"name": "unverified_identity", "kind": "failure_case"},
]
INPUTS = [
    {"item_kind": "tool", "covered": ["customer.lookup"]},
    {"item_kind": "capability", "covered": []},
    {"item_kind": "failure_case", "covered": []},
]
REPORT = {"coverage": COUNTS, "input_reports": INPUTS, "uncovered_items": UNCOVERED}
SCRIPTS_OF = "; are these the scripts of Eval Author's audit?"


def test_the_smallest_report_that_will_do(tmp_path: Path) -> None:
    assert measured(tmp_path, reporting(tmp_path, REPORT)).value == 0.5


def reporting(tmp_path: Path, report: object) -> EvalAuthorCoverage:
    text = report if isinstance(report, str) else json.dumps(report)
    source = f"open('report.json', 'w').write({text!r})\nprint('{{}}')\n"
    return system(tmp_path, score_scope="tool", scripts=scripts(tmp_path, report=source))


@pytest.mark.parametrize(
    ("report", "says"),
    [
        ("", "the report: report.json is empty"),
        ("[]", f"report.json: it holds a list []; a mapping is expected{SCRIPTS_OF}"),
        ({**REPORT, "coverage": 1}, f"report.json: coverage is the number 1{SCRIPTS_OF}"),
        ({**REPORT, "coverage": {"by_kind": {}}},
         f"report.json: coverage.by_kind.tool is null; item_count and covered_count are expected{SCRIPTS_OF}"),
        ({**REPORT, "coverage": {"by_kind": {**COUNTS["by_kind"], "tool": {"item_count": 1, "covered_count": 2}}}},
         'report.json: coverage.by_kind.tool is a mapping {"item_count": 1, "covered_count": 2}; item_count and '
         f"covered_count are expected{SCRIPTS_OF}"),
        ({**REPORT, "coverage": {"by_kind": {**COUNTS["by_kind"], "tool": {"item_count": True, "covered_count": 1}}}},
         'report.json: coverage.by_kind.tool is a mapping {"item_count": true, "covered_count": 1}; item_count and '
         f"covered_count are expected{SCRIPTS_OF}"),
        ({**REPORT, "uncovered_items": UNCOVERED[1:]},
         "report.json: covered and uncovered items are not as many as coverage.by_kind counts" + SCRIPTS_OF),
        ({**REPORT, "input_reports": INPUTS[:1]}, "report.json adds up 1 measurements, and 3 were made"),
        ({**REPORT, "input_reports": [{"item_kind": "wish"}]},
         f'report.json: the kind the text "wish" is none of tool, capability, failure_case{SCRIPTS_OF}'),
        ({**REPORT, "input_reports": ["tool"]},
         f"report.json: an entry of input_reports or uncovered_items is no mapping{SCRIPTS_OF}"),
        ({**REPORT, "coverage": {"by_kind": {**COUNTS["by_kind"], "tool": {"item_count": 2, "covered_count": 2}}}},
         "report.json counts 2 covered items, and the measurements cover 1: customer.lookup"),
    ],
)  # fmt: skip
def test_reports_that_contradict_themselves(tmp_path: Path, report: object, says: str) -> None:
    assert failure(tmp_path, reporting(tmp_path, report)) == says


def writing_otherwise(folder: Path, change: str) -> str:
    """A folder of scripts of which the one that measures changes what it writes."""
    script = Path(scripts(folder)) / "measure.py"
    head = "def write(folder, coverage, details, compact):\n"
    script.write_text(script.read_text().replace(head, f"{head}    {change}\n"))
    return str(script.parent)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("details.pop('capability_results', None)", "capability_results is null"),
        ("if 'capability_results' in details: details['capability_results']['more'] = {}",
         "capability_results has 2 entries, and the audit 1 such items"),
        ("if 'capability_results' in details: details['capability_results'] = {'account_recovery': {}}",
         "capability_results of account_recovery has no list evidence_results"),
        ("if 'capability_results' in details: "
         "details['capability_results'] = {'account_recovery': {'evidence_results': [{'status': 1}]}}",
         "evidence 0 of account_recovery has no status"),
    ],
)  # fmt: skip
def test_details_that_say_nothing_of_an_item(tmp_path: Path, change: str, says: str) -> None:
    audit = system(tmp_path, scripts=writing_otherwise(tmp_path, change), score_scope="capability")
    name = "measurements/task=task-lookup/run=lookup__aaa/capabilities/details.json"
    assert failure(tmp_path, audit) == f"{name}: {says}{SCRIPTS_OF}"


def test_a_measurement_whose_covered_items_are_no_names(tmp_path: Path) -> None:
    audit = system(tmp_path, scripts=writing_otherwise(tmp_path, "coverage['covered'] = ['a', 1]"), score_scope="tool")
    name = "measurements/task=task-lookup/run=lookup__aaa/tool_calls/coverage.json"
    assert failure(tmp_path, audit) == f"{name}: covered is no list of names{SCRIPTS_OF}"


def test_an_audit_of_any_size_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "audit.md"
    path.write_bytes(MIXED.read_bytes())
    audit = system(tmp_path, audit="audit.md", score_scope="tool")
    os.truncate(path, (16 << 20) + 1)
    assert failure(tmp_path, audit) == f"{path} has more than 16 MiB, which is the limit"


def test_nothing_is_written_into_the_checkout(tmp_path: Path) -> None:
    folder = scripts(tmp_path)
    before = sorted(os.listdir(folder))
    measured(tmp_path, system(tmp_path, scripts=folder, score_scope="tool"))
    assert sorted(os.listdir(folder)) == before
