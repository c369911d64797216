"""What comes back from a job is somebody else's file: it is read with care and written below one folder only."""

import contextlib
import gzip
import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.runners.helix import results as helix_results
from pytest_metricbench.runners.helix.results import Report, ResultError, unpack

REPORT: dict[str, Any] = {
    "metricbench": 1,
    "timeout": 5.0,
    "not_started": None,
    "returncode": 0,
    "timed_out": False,
    "overflowed": False,
    "duration": 0.5,
    "too_large": None,
}


def packed(*entries: tuple[tarfile.TarInfo | str, bytes], report: Any = REPORT) -> io.BytesIO:
    """An archive with a report and some entries."""
    first = [("report.json", json.dumps(report).encode())] if report is not None else []
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for named, content in [*first, *entries]:
            entry = tarfile.TarInfo(named) if isinstance(named, str) else named
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return file


TAR = gzip.decompress(packed(("workspace/a", bytes(range(256))), ("workspace/" + "ä" * 120, b"x" * 700)).getvalue())
WHOLE = gzip.compress(TAR, mtime=0)


def entry(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "there"
    folder.mkdir()
    return folder


def test_files_are_laid_out(workspace: Path) -> None:
    archive = packed(("workspace/a", b"1"), ("workspace/b/c d/ä", b"2"), ("workspace/request.json", b"theirs"))
    assert unpack(archive, workspace) == Report(**REPORT)
    found = {str(path.relative_to(workspace)): path.read_bytes() for path in workspace.rglob("*") if path.is_file()}
    assert found == {"a": b"1", "b/c d/ä": b"2"}


@pytest.mark.parametrize(
    "name",
    [
        "workspace/../../escaped",
        "workspace/a/../../../escaped",
        "/workspace/escaped",
        "escaped",
        "workspace/",
        "workspace//escaped",
        "workspace/./escaped",
        "workspace/..",
        "other/escaped",
    ],
)
def test_names_that_lead_elsewhere_are_refused(workspace: Path, name: str) -> None:
    with pytest.raises(
        ResultError, match=rf"^it holds {re.escape(repr(name))}; regular files below workspace/ are expected$"
    ):
        unpack(packed((name, b"x")), workspace)
    assert [path for path in workspace.parent.rglob("*") if path != workspace] == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
def test_what_is_no_regular_file_is_refused(workspace: Path, kind: bytes) -> None:
    with pytest.raises(ResultError, match="it holds 'workspace/x'"):
        unpack(packed((entry("workspace/x", kind, "/etc/passwd"), b"")), workspace)
    assert not list(workspace.iterdir())


def test_a_link_that_stands_there_already_is_not_followed(workspace: Path) -> None:
    target = workspace.parent / "target"
    target.write_text("mine")
    (workspace / "a").symlink_to(target)
    unpack(packed(("workspace/a", b"theirs")), workspace)
    assert target.read_text() == "mine"
    assert (workspace / "a").read_text() == "theirs"
    assert not (workspace / "a").is_symlink()


def test_a_file_in_the_way_of_a_folder(workspace: Path) -> None:
    with pytest.raises(ResultError, match=r"^it cannot be unpacked: "):
        unpack(packed(("workspace/a", b""), ("workspace/a/b", b"")), workspace)


def test_bounds_of_size_and_number(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helix_results, "FILES_LIMIT", 3)
    monkeypatch.setattr(helix_results, "WORKSPACE_LIMIT", 10)
    monkeypatch.setattr(helix_results, "_BESIDE", 0)
    with pytest.raises(ResultError, match="which is what may be handed back"):
        unpack(packed(("workspace/zeros", bytes(11))), workspace)
    with pytest.raises(ResultError, match="3 files"):
        unpack(packed(*((f"workspace/{number}", b"") for number in range(4))), workspace)
    assert unpack(packed(("workspace/a", bytes(10))), workspace).returncode == 0


def test_a_bomb_is_not_unpacked(workspace: Path) -> None:
    size = helix_results.WORKSPACE_LIMIT + (5 << 20)
    head = tarfile.TarInfo("workspace/zeros")
    head.size = size
    file = packed()
    raw = gzip.decompress(file.getvalue())[:1024]  # the report's header and block
    bomb = io.BytesIO(gzip.compress(raw + head.tobuf() + bytes(1 << 20)))
    with pytest.raises(ResultError, match="it holds more than 256 MiB or 50000 files"):
        unpack(bomb, workspace)
    assert not list(workspace.iterdir())


def test_a_header_of_any_size_is_not_read(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helix_results, "WORKSPACE_LIMIT", 1 << 20)
    monkeypatch.setattr(helix_results, "FILES_LIMIT", 10)
    head = entry("pax", tarfile.XHDTYPE)
    head.size = 5 << 30
    bomb = io.BytesIO(gzip.compress(TAR[:1024] + head.tobuf(tarfile.USTAR_FORMAT) + bytes(20 << 20)))
    with pytest.raises(ResultError, match="it holds more than 1 MiB"):
        unpack(bomb, workspace)


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (None, "it is empty"),
        ({}, "report.json is not of the known form: metricbench: Field required"),
        ([], "report.json is not of the known form"),
        ({**REPORT, "metricbench": 2}, "metricbench: Input should be less than or equal to 1"),
        ({**REPORT, "returncode": "0"}, "returncode: Input should be a valid integer"),
        ({**REPORT, "timeout": 0}, "timeout: Input should be greater than 0"),
        ({**REPORT, "timed_out": 1}, "timed_out: Input should be a valid boolean"),
    ],
)
def test_reports_of_another_form(workspace: Path, report: Any, said: str) -> None:
    with pytest.raises(ResultError, match=said):
        unpack(packed(report=report), workspace)


def test_an_archive_that_begins_with_something_else(workspace: Path) -> None:
    with pytest.raises(ResultError, match=r"it begins with 'workspace/a'; report.json is expected"):
        unpack(packed(("workspace/a", b""), report=None), workspace)


@pytest.mark.parametrize(  # with ids: a compressed text holds the time at which it was made
    "content",
    [b"", b"{}", b"\x1f\x8b", gzip.compress(b""), gzip.compress(b"x" * 2000)],
    ids=["empty", "json", "cut off", "of nothing", "of something else"],
)
def test_what_is_no_archive(workspace: Path, content: bytes) -> None:
    with pytest.raises(ResultError, match=r"^it (is damaged: .|cannot be unpacked: .|is empty$)"):
        unpack(io.BytesIO(content), workspace)


@settings(max_examples=300)
@given(data=st.data())
def test_a_damaged_archive_is_refused_or_read_and_never_more(workspace: Path, data: st.DataObject) -> None:
    inside = data.draw(st.booleans())
    whole = TAR.rstrip(b"\0") if inside else WHOLE
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ResultError):
        assert unpack(io.BytesIO(gzip.compress(damaged) if inside else bytes(damaged)), workspace).metricbench == 1
    assert {path.name for path in workspace.parent.iterdir()} == {"there"}


@settings(max_examples=60)
@given(name=st.text(max_size=20).filter(lambda name: "\0" not in name))
def test_any_name_stays_below_the_folder(workspace: Path, name: str) -> None:
    archive = packed((f"workspace/{name}", b"x"))
    with contextlib.suppress(ResultError):
        unpack(archive, workspace)
    assert {path.name for path in workspace.parent.iterdir()} == {"there"}
