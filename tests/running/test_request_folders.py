"""The folder of a coverage request before and after: copies of its evidence, and what its system made of it."""

import hashlib
from pathlib import Path

import pytest

from pytest_metricbench.contracts import CaseRef, CoverageRequest, EvidenceFile
from pytest_metricbench.running.request_folders import copy_evidence, what_is_left
from pytest_metricbench.store.layout import RECEIPT_FILE


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "request"
    path.mkdir()
    return path


def request_of(*files: Path, digest: str | None = None) -> CoverageRequest:
    found = tuple(
        EvidenceFile(path, "trial1", path.name, digest or f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}")
        for path in files
    )
    return CoverageRequest(CaseRef("refunds"), "s1", ("late",), "tools", {}, {"late": found})


def test_evidence_is_copied_and_the_request_names_the_copies(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "trace.json").write_text("{}")
    given, problems = copy_evidence(request_of(tmp_path / "trace.json"), workspace)
    assert problems == []
    (copy,) = given.files["late"]
    assert copy.path.is_relative_to(workspace)
    assert copy.path.read_text() == "{}"


def test_evidence_that_is_gone_is_told(tmp_path: Path, workspace: Path) -> None:
    path = tmp_path / "trace.json"
    request = request_of(path, digest="sha256:0")
    said = f"the evidence {path} cannot be copied: No such file or directory"
    assert copy_evidence(request, workspace) == (request, [said])


def test_evidence_that_has_changed_is_told(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "trace.json").write_text("{}")
    request = request_of(tmp_path / "trace.json")
    (tmp_path / "trace.json").write_text("[]")
    (problem,) = copy_evidence(request, workspace)[1]
    assert problem.endswith(", since its attempt ended")
    assert "trace.json" in problem


def test_what_a_system_left(workspace: Path) -> None:
    (workspace / "below").mkdir()
    (workspace / "below/response.json").write_text("{}")
    digest = f"sha256:{hashlib.sha256(b'{}').hexdigest()}"
    assert what_is_left(workspace) == ({"below/response.json": digest}, [])


def test_a_system_that_takes_its_folder_away_or_a_name_of_ours(workspace: Path, tmp_path: Path) -> None:
    (workspace / RECEIPT_FILE).write_text("mine")
    taken = f"the system left a {RECEIPT_FILE}; that name is for the receipt of its result"
    assert what_is_left(workspace) == ({}, [taken])
    workspace.rename(tmp_path / "elsewhere")
    assert what_is_left(workspace) == ({}, ["the folder of the request is gone"])
    workspace.symlink_to(tmp_path / "elsewhere")
    replaced = ["the folder of the request was replaced by something else"]
    assert what_is_left(workspace) == ({}, replaced)
    workspace.unlink()
    workspace.write_text("a file")
    assert what_is_left(workspace) == ({}, replaced)
