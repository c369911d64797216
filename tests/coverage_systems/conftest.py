"""What tests of coverage systems share: requests with evidence, and systems made as the definition layer makes them."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.bases import CoverageSystem
from pytest_metricbench.contracts import CaseRef, CoverageRequest, EvidenceFile
from tests.experiment_folder import folder, module

__all__ = ["folder", "module"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The private folder of the request."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace


@pytest.fixture
def make(folder: Path) -> Callable[..., Any]:
    """Makes a system from its YAML keys, files relative to the experiment's folder."""

    def build(kind: type[CoverageSystem], /, **keys: Any) -> CoverageSystem:
        return kind.model_validate(keys, context={"folder": folder})

    return build


@pytest.fixture
def request_for(workspace: Path) -> Callable[..., CoverageRequest]:
    """Makes a request whose evidence is task id -> name below the trial -> content; copied as measuring does it."""

    def make_request(
        evidence: Mapping[str, Mapping[str, bytes]], settings: Mapping[str, Any] | None = None
    ) -> CoverageRequest:
        files: dict[str, tuple[EvidenceFile, ...]] = {}
        for task, contents in evidence.items():
            found = []
            for name, content in contents.items():
                digest = "sha256:" + hashlib.sha256(content).hexdigest()
                file = EvidenceFile(workspace / f"evidence/{task}/trial1/{name}", "trial1", name, digest)
                file.path.parent.mkdir(parents=True, exist_ok=True)
                file.path.write_bytes(content)
                found.append(file)
            files[task] = tuple(found)
        request = CoverageRequest(
            CaseRef("refunds", "Answers refund requests."), "s1", tuple(evidence), "house", settings or {}, files
        )
        (workspace / "request.json").write_text(json.dumps(request.to_json()))
        return request

    return make_request
