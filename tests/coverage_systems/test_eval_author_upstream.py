"""The same over Eval Author's real scripts, when the environment says where they are.

``METRICBENCH_EVAL_AUTHOR_SCRIPTS`` names the folder of ``measure.py`` and ``report.py``, and
``METRICBENCH_EVAL_AUTHOR_PYTHON`` a Python that has Harbor, jsonschema and PyYAML; run with ``-m upstream``.
"""

import os
from pathlib import Path

import pytest

from pytest_metricbench.contracts import CoverageError
from pytest_metricbench.coverage.eval_author.system import EvalAuthorCoverage
from tests.coverage_systems.eval_author_lab import (
    JUDGMENTS,
    LOOKUP,
    METHODS,
    SAMPLES,
    SCOPES,
    SUBSETS,
    request,
    system,
    trace,
    tree,
)

SCRIPTS = os.environ.get("METRICBENCH_EVAL_AUTHOR_SCRIPTS")
PYTHON = os.environ.get("METRICBENCH_EVAL_AUTHOR_PYTHON")

pytestmark = [
    pytest.mark.upstream,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (SCRIPTS and PYTHON),
        reason="METRICBENCH_EVAL_AUTHOR_SCRIPTS and METRICBENCH_EVAL_AUTHOR_PYTHON do not name the real scripts",
    ),
]


def upstream(tmp_path: Path, **keys: object) -> EvalAuthorCoverage:
    return system(tmp_path, scripts=SCRIPTS, interpreter=PYTHON, **keys)


def test_the_table_and_the_documents(tmp_path: Path) -> None:
    """Every scope of every method set that was recorded, and the recorded documents but for their paths."""
    values = {}
    for methods in (["tool_calls"], list(METHODS)):
        first = upstream(tmp_path, methods=methods)
        for scope in SCOPES:
            audit = first.model_copy(update={"score_scope": scope})
            for subset, tasks in SUBSETS.items():
                workspace = tmp_path / f"{len(methods)}-{scope}-{subset}"
                values[len(methods), scope, subset] = audit.measure(request(workspace, tasks), workspace).value
    for count in (1, 3):
        assert [values[count, "tool", subset] for subset in SUBSETS] == [0.5, 0.5, 0.0, 1.0]
        assert {values[count, scope, subset] for scope in SCOPES if scope != "tool" for subset in SUBSETS} == {None}
    recorded = SAMPLES / "out-mixed" / "+".join(METHODS) / "s-all"
    made = tree(tmp_path / "3-tool-all")
    for path in recorded.rglob("*.json"):
        name = str(path.relative_to(recorded))
        text = path.read_text().replace("audit-mixed.md", "audit.md")
        text = text.replace(f"samples/audit/out-mixed/{'+'.join(METHODS)}/s-all/", "")
        for task, trials in SUBSETS["all"].items():
            for trial in trials:
                ours = f"evidence/{task}/{trial}/trajectory.json"
                text = text.replace(f"trials/{trial}/agent/trajectory.json", ours)
        assert made[name].decode() == text, name


def test_the_stand_in_writes_the_same_bytes(tmp_path: Path) -> None:
    keys = {"judgments": [str(JUDGMENTS)], "score_scope": "capability"}
    tasks = {"t": {"a1": LOOKUP}}
    one, other = tmp_path / "upstream", tmp_path / "stand-in"
    assert upstream(tmp_path, **keys).measure(request(one, tasks), one).value == 1.0
    assert system(tmp_path, **keys).measure(request(other, tasks), other).value == 1.0
    assert tree(one) == tree(other)


@pytest.mark.parametrize(
    ("keys", "left", "error_type"),
    [
        ({}, b"{", "trace"),
        ({}, trace(unknown=1), "trace"),
        ({"audit": "not.md"}, LOOKUP, "audit_spec"),
    ],
)
def test_refusals(tmp_path: Path, keys: dict[str, str], left: bytes, error_type: str) -> None:
    (tmp_path / "not.md").write_text("no block")
    workspace = tmp_path / "request"
    with pytest.raises(CoverageError, match=f"ended with exit status 1: .*error_type {error_type}"):
        upstream(tmp_path, **keys).measure(request(workspace, {"t": {"a1": left}}), workspace)
