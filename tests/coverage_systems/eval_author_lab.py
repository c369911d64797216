"""What the tests of ``eval-author`` share: requests over the traces of the samples, systems, scripts that misbehave."""

import hashlib
import json
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pytest_metricbench.contracts import CaseRef, CoverageRequest, EvidenceFile, Score
from pytest_metricbench.coverage.eval_author.system import EvalAuthorCoverage

HERE = Path(__file__).parent
SAMPLES = HERE / "samples" / "audit"
SCRIPTS = HERE / "stand_in" / "audit_spec"
MIXED, TOOLS_ONLY = SAMPLES / "audit-mixed.md", SAMPLES / "audit-tool-only.md"
JUDGMENTS = SAMPLES / "capability-judgments.json"
METHODS = ("tool_calls", "capabilities", "failure_cases")
SCOPES = ("overall", "tool", "capability", "failure_case")


def trace_of(trial: str) -> bytes:
    """The trace of a sample's trial, as it is."""
    return (SAMPLES / "trials" / trial / "agent" / "trajectory.json").read_bytes()


LOOKUP, TICKET, CHAT = trace_of("lookup__aaa"), trace_of("ticket__bbb"), trace_of("chat__ccc")
SUBSETS = {
    "lookup": {"task-lookup": {"lookup__aaa": LOOKUP}},
    "ticket": {"task-ticket": {"ticket__bbb": TICKET}},
    "chat": {"task-chat": {"chat__ccc": CHAT}},
}
SUBSETS["all"] = {task: trials for subset in list(SUBSETS.values()) for task, trials in subset.items()}
"""The subsets of the recorded runs: task id -> trial id -> trace."""

Left = bytes | Mapping[str, bytes]
"""What a trial left: its trace, or several files by their names."""


def digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def trace(*tools: str, **more: Any) -> bytes:
    """A trace whose agent calls these tools."""
    calls = [
        {"tool_call_id": f"c{number}", "function_name": tool, "arguments": {}} for number, tool in enumerate(tools)
    ]
    step = {"step_id": 2, "source": "agent", "message": "done", **({"tool_calls": calls} if calls else {})}
    return json.dumps(
        {
            "schema_version": "ATIF-v1.7",
            "session_id": "s",
            "agent": {"name": "a", "version": "1"},
            "steps": [{"step_id": 1, "source": "user", "message": "hi"}, step],
            **more,
        }
    ).encode()


def system(folder: Path, **keys: Any) -> EvalAuthorCoverage:
    """A system over the stand-in and the mixed audit, where nothing else is given."""
    given = {"scripts": str(SCRIPTS), "interpreter": "{python}", **keys}
    if "author" not in given:
        given.setdefault("audit", str(MIXED))
    return EvalAuthorCoverage.model_validate_json(json.dumps(given), strict=True, context={"folder": folder})


def request(
    workspace: Path,
    tasks: Mapping[str, Mapping[str, Left]],
    *,
    died: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> CoverageRequest:
    """A request over task id -> trial id -> what it left, its evidence copied as it is for a system."""
    workspace.mkdir(exist_ok=True)
    files: dict[str, tuple[EvidenceFile, ...]] = {}
    for task, trials in tasks.items():
        found = []
        for trial, left in trials.items():
            for name, content in ({"trajectory.json": left} if isinstance(left, bytes) else left).items():
                path = workspace / f"evidence/{task}/{trial}/{name}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                outcome: Literal["scored", "died"] = "died" if trial in died else "scored"
                found.append(EvidenceFile(path, trial, name, digest(content), outcome))
        files[task] = tuple(found)
    made = CoverageRequest(CaseRef("help", "Answers customers."), "s1", tuple(tasks), "audit", settings or {}, files)
    (workspace / "request.json").write_text(json.dumps(made.to_json(), indent=1))
    return made


def measured(folder: Path, audit: EvalAuthorCoverage, tasks: Any, name: str = "request", **more: Any) -> Score:
    """The score of a request over these tasks, measured in a folder of that name."""
    workspace = folder / name
    return audit.measure(request(workspace, tasks, **more), workspace)


def tree(workspace: Path) -> dict[str, bytes]:
    """Path -> content of every file of a request's folder, without its evidence."""
    paths = [path for path in workspace.rglob("*") if path.is_file()]
    names = {str(path.relative_to(workspace)): path.read_bytes() for path in paths}
    return {name: content for name, content in names.items() if not name.startswith("evidence/")}


def scripts(folder: Path, *, measure: str | None = None, report: str | None = None) -> str:
    """A folder of scripts: those of the stand-in, or other sources where they are given."""
    target = folder / "scripts"
    target.mkdir()
    for path in SCRIPTS.glob("*.py"):
        (target / path.name).write_bytes(path.read_bytes())
    for name, source in (("measure.py", measure), ("report.py", report)):
        if source is not None:
            (target / name).write_text(source)
    return str(target)


def executable(path: Path, source: str) -> str:
    """A script that can be run by its path."""
    path.write_text(source)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
