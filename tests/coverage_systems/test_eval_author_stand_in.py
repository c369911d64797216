"""The scripts that stand in for Eval Author's own: what they write equals what was recorded of upstream, byte for byte.

What is recorded are outputs of the real scripts over the samples (``samples/audit``), so the stand-in is held to them
and not to the code under test.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SAMPLES = Path(__file__).parent / "samples" / "audit"
SCRIPTS = Path(__file__).parent / "stand_in" / "audit_spec"
TRIALS = {"s-lookup": ["lookup__aaa"], "s-ticket": ["ticket__bbb"], "s-chat": ["chat__ccc"]}
TRIALS["s-all"] = [trial for trials in TRIALS.values() for trial in trials]
ALL_METHODS = "tool_calls,capabilities,failure_cases"

Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the inputs of the samples and nothing that was recorded."""
    for name in ("audit-mixed.md", "audit-tool-only.md", "capability-judgments.json"):
        shutil.copy(SAMPLES / name, tmp_path)
    shutil.copytree(SAMPLES / "trials", tmp_path / "trials")
    return tmp_path


@pytest.fixture
def call(place: Path) -> Call:
    def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, str(SCRIPTS / script), *arguments]
        env = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, timeout=60, check=False)

    return run


def same_files(made: Path, recorded: Path) -> None:
    names = sorted(str(path.relative_to(recorded)) for path in recorded.rglob("*.json"))
    assert names
    assert sorted(str(path.relative_to(made)) for path in made.rglob("*.json")) == names
    for name in names:
        assert (made / name).read_bytes() == (recorded / name).read_bytes(), name


@pytest.mark.parametrize("subset", TRIALS)
@pytest.mark.parametrize("methods", ["tool_calls", ALL_METHODS])
def test_mixed_audit(place: Path, call: Call, methods: str, subset: str) -> None:
    recorded = SAMPLES / "out-mixed" / methods.replace(",", "+") / subset
    out = f"samples/audit/out-mixed/{recorded.parent.name}/{subset}"  # as the recorded report names it
    for trial in TRIALS[subset]:
        ended = call(
            "measure.py", "--audit", "audit-mixed.md", "--trial-dir", f"trials/{trial}", "--measure", methods,
            "--out-dir", f"{out}/measurements",
        )  # fmt: skip
        assert ended.returncode == 0, ended
        assert json.loads(ended.stdout)["methods"] == methods.split(",")
    ended = call(
        "report.py", "--audit", "audit-mixed.md", "--coverage-dir", f"{out}/measurements", "--out", f"{out}/report.json"
    )
    assert ended.returncode == 0, ended
    same_files(place / out, recorded)


def test_audit_of_tools_only(place: Path, call: Call) -> None:
    for trial in TRIALS["s-all"]:
        ended = call(
            "measure.py", "--audit", "audit-tool-only.md", "--trial-dir", f"trials/{trial}", "--measure", "tool_calls",
            "--out-dir", "out-tool-only/measurements",
        )  # fmt: skip
        assert ended.returncode == 0, ended
    ended = call(
        "report.py", "--audit", "audit-tool-only.md", "--coverage-dir", "out-tool-only/measurements",
        "--out", "out-tool-only/report.json",
    )  # fmt: skip
    assert json.loads(ended.stdout) == {
        "audit": "audit-tool-only.md",
        "coverage_input_count": 3,
        "coverage_report": "out-tool-only/report.json",
        "covered_count": 2,
        "measured_kinds": ["tool"],
        "uncovered": [],
        "uncovered_count": 0,
        "valid": True,
        "warning_count": 0,
        "warnings": [],
        "written": True,
    }
    same_files(place / "out-tool-only", SAMPLES / "out-tool-only")


def test_what_measure_prints(call: Call) -> None:
    ended = call(
        "measure.py", "--audit", "audit-tool-only.md", "--trial-dir", "trials/lookup__aaa", "--measure", "tool_calls",
        "--out-dir", "out-tool-only/measurements",
    )  # fmt: skip
    folder = "out-tool-only/measurements/task=task-lookup/run=lookup__aaa/tool_calls"
    assert json.loads(ended.stdout) == {
        "audit": "audit-tool-only.md",
        "measurements": [
            {
                "coverage": f"{folder}/coverage.json",
                "covered": ["customer.lookup"],
                "covered_count": 1,
                "details": f"{folder}/details.json",
                "item_kind": "tool",
                "method": "tool_calls",
            }
        ],
        "methods": ["tool_calls"],
        "run_id": "lookup__aaa",
        "task_id": "task-lookup",
        "trace": "trials/lookup__aaa/agent/trajectory.json",
        "valid": True,
        "written": True,
    }


def test_judgments_and_compact_documents(place: Path, call: Call) -> None:
    ended = call(
        "measure.py", "--audit", "audit-mixed.md", "--trial-dir", "trials/lookup__aaa", "--measure", "capabilities",
        "--capability-judgments", "capability-judgments.json", "--out-dir", "out-judged", "--compact",
    )  # fmt: skip
    assert ended.returncode == 0, ended
    same_files(place / "out-judged", SAMPLES / "out-judged")


def test_ids_are_quoted_in_the_layout_and_overwrite_when_equal(place: Path, call: Call) -> None:
    for trial in ("lookup__aaa", "ticket__bbb"):
        ended = call(
            "measure.py", "--audit", "audit-tool-only.md", "--trace", f"trials/{trial}/agent/trajectory.json",
            "--task-id", "org/t 1", "--run-id", "same", "--out-dir", "out",
        )  # fmt: skip
        assert ended.returncode == 0
    found = [str(path.relative_to(place)) for path in place.rglob("coverage.json")]
    assert found == ["out/task=org%2Ft%201/run=same/tool_calls/coverage.json"]
    assert json.loads((place / found[0]).read_text())["covered"] == ["ticket.create"]


MEASURE = ["measure.py", "--audit", "audit-mixed.md", "--trial-dir", "trials/lookup__aaa", "--out-dir", "out"]


@pytest.mark.parametrize(
    ("arguments", "status", "error_type", "says"),
    [
        ([*MEASURE, "--measure", "trace_tools"], 1, "measurement",
         "unknown measurement method(s): trace_tools; available: capabilities, failure_cases, tool_calls"),
        ([*MEASURE[:2], "gone.md", *MEASURE[3:]], 1, "audit_spec", "gone.md cannot be read"),
        (["measure.py", "--audit", "audit-mixed.md", "--trial-dir", "trials", "--out-dir", "out"], 1, "trace",
         "no ATIF trace at trials/agent/trajectory.json"),
        ([*MEASURE, "--measure", "failure_cases", "--failure-case-judgments", "capability-judgments.json"], 1,
         "measurement", "schema is not"),
        (["measure.py", "--audit", "audit-mixed.md", "--trial-dir", "trials/chat__ccc", "--out-dir", "out",
          "--measure", "capabilities", "--capability-judgments", "capability-judgments.json"], 1,
         "measurement", "is not that of the trace"),
        (["report.py", "--audit", "audit-mixed.md", "--coverage-dir", "trials", "--out", "report.json"], 1,
         "coverage_input", "no coverage.json files found"),
        ([*MEASURE, "--nonsense"], 2, None, "unrecognized arguments: --nonsense"),
    ],
)  # fmt: skip
def test_refusals(
    place: Path, call: Call, arguments: list[str], status: int, error_type: str | None, says: str
) -> None:
    ended = call(*arguments)
    assert ended.returncode == status
    if error_type is None:
        assert says in ended.stderr
    else:
        answer: dict[str, Any] = json.loads(ended.stdout)
        assert (answer["written"], answer["error_type"]) == (False, error_type)
        assert says in answer["error"]
    assert not (place / "out").exists()
    assert not (place / "report.json").exists()
