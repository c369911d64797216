"""Damaged stores: a torn line is dropped and told, anything else is named with its file and line."""

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from pytest_metricbench.contracts import AttemptRecord, CoverageRecord
from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.layout import Layout
from pytest_metricbench.store.reading import read_store
from pytest_metricbench.store.records import seal
from pytest_metricbench.store.writing import StoreWriter
from tests.store.store_files import everything, fill

Attempt = Callable[..., AttemptRecord]
Coverage = Callable[..., CoverageRecord]


def test_a_torn_last_line_is_told_and_its_record_is_gone(root: Path, attempt: Attempt) -> None:
    fill(root, attempt(), attempt(attempt=2))
    path = root / "attempts.jsonl"
    path.write_bytes(path.read_bytes()[:-10])
    contents = read_store(root)
    assert [record.attempt for record in contents.attempts.values()] == [1]
    assert contents.warnings == [f"{path}: the last line is torn (a crash while it was written) and is dropped"]
    writer = StoreWriter(root)
    assert writer.contents.warnings == contents.warnings
    writer.add_attempt(attempt(attempt=2))
    writer.close()
    assert read_store(root).warnings == []
    assert len(read_store(root).attempts) == 2


@pytest.mark.parametrize("journal", ["attempts.jsonl", "coverage.jsonl"])
@pytest.mark.parametrize("line", [b"{}", b"", b"{", b"null", b"\0\0", b"\xff"])
def test_damage_is_named_with_file_and_line(
    root: Path, attempt: Attempt, coverage: Coverage, journal: str, line: bytes
) -> None:
    fill(root, attempt(), attempt(attempt=2), coverage(), coverage(subset="s2"))
    path = root / journal
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + line + b"\n" + second)
    before = everything(root)
    for opening in (read_store, StoreWriter):
        with pytest.raises(StoreError) as caught:
            opening(root)
        assert str(caught.value).startswith(f"{path}:2: ")
        advice = "; the store is damaged: mend or remove that line, or start over with --metricbench-fresh"
        assert str(caught.value).endswith(advice)
    assert everything(root) | {"lock": b""} == before | {"lock": b""}
    path.write_bytes(first + second)
    StoreWriter(root).close()


def test_two_lines_run_together_are_damage(root: Path, attempt: Attempt) -> None:
    fill(root, *(attempt(attempt=number) for number in range(1, 5)))
    path = root / "attempts.jsonl"
    path.write_bytes(path.read_bytes().replace(b"}\n{", b"} {", 1))
    with pytest.raises(StoreError, match=r"attempts\.jsonl:1: "):
        read_store(root)


@pytest.mark.parametrize(
    "changed", [{"case": "../../etc"}, {"trial_id": "/etc"}, {"files": {"../../secret": "sha256:x"}}, {"folder": ".."}]
)
def test_a_record_that_leads_out_of_the_store_is_damage(
    root: Path, attempt: Attempt, changed: dict[str, object]
) -> None:
    fill(root, attempt())
    path = root / "attempts.jsonl"
    hostile = json.loads(path.read_text()) | changed
    del hostile["check"]
    path.write_text(seal(json.dumps(hostile)) + "\n")
    with pytest.raises(StoreError, match=rf"attempts\.jsonl:1: {next(iter(changed))}: "):
        StoreWriter(root)


@pytest.mark.parametrize("version", [2, 99, "1", None, 1.5, [1]])
@pytest.mark.parametrize("opening", [read_store, StoreWriter])
def test_another_format_is_refused(
    root: Path, attempt: Attempt, version: object, opening: Callable[..., object]
) -> None:
    fill(root, attempt())
    (root / "experiment.json").write_text(json.dumps({"metricbench": version}))
    with pytest.raises(StoreError, match=r"experiment\.json: the store has format version") as caught:
        opening(root)
    assert str(caught.value) == (
        f"{root / 'experiment.json'}: the store has format version {version!r}, this is a plugin for version 1; "
        "use the version that wrote it, or start over with --metricbench-fresh"
    )
    StoreWriter(root, fresh=True).close()


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, "[]", "1"])
@pytest.mark.parametrize("opening", [read_store, StoreWriter])
def test_a_description_that_cannot_be_read_is_told(
    root: Path, attempt: Attempt, content: str, opening: Callable[..., object]
) -> None:
    fill(root, attempt())
    (root / "experiment.json").write_text(content)
    with pytest.raises(StoreError, match=r"experiment\.json: ") as caught:
        opening(root)
    if content in ("", "{"):
        assert str(caught.value).startswith(f"{root / 'experiment.json'}: cannot be read (")
        assert str(caught.value).endswith("); remove it, it is written anew by each run")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
@pytest.mark.parametrize("name", ["attempts.jsonl", "coverage.jsonl", "experiment.json"])
def test_something_else_in_place_of_a_file(root: Path, attempt: Attempt, tmp_path: Path, name: str, kind: str) -> None:
    fill(root, attempt())
    (tmp_path / "secret").write_text("{}\n")
    (root / name).unlink()
    if kind == "pipe":
        os.mkfifo(root / name)
    elif kind == "folder":
        (root / name).mkdir()
    else:
        (root / name).symlink_to(tmp_path / "secret")
    for opening in (read_store, StoreWriter):
        with pytest.raises(StoreError, match=name):
            opening(root)
    assert (tmp_path / "secret").read_text() == "{}\n"


def test_a_missing_file_is_an_empty_one(root: Path, attempt: Attempt, coverage: Coverage) -> None:
    fill(root, attempt(), coverage())
    (root / "coverage.jsonl").unlink()
    (root / "experiment.json").unlink()
    contents = read_store(root)
    assert len(contents.attempts) == 1
    assert contents.coverage == {}


# ---------------------------------------------------------------- links in place of folders


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("tree", ["attempts", "stale", "interrupted", "coverage"])
def test_a_folder_that_is_a_link_is_refused(root: Path, tmp_path: Path, tree: str, depth: int) -> None:
    link = root.joinpath(tree, *("abc"[:depth]))
    link.parent.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    for opening in (read_store, StoreWriter):
        with pytest.raises(
            StoreError, match="this is a link, and a store is never read or written through one"
        ) as caught:
            opening(root)
        assert str(caught.value).startswith(f"{link}: ")


@pytest.mark.parametrize("tree", ["attempts", "stale", "interrupted", "coverage"])
def test_a_link_that_an_attempt_left_is_no_damage(root: Path, tree: str) -> None:
    """Workspaces and what is in them are looked at when they are read, and a link is never read then."""
    link = root / tree / "a" / "b" / "c" / "d"
    link.parent.mkdir(parents=True)
    link.symlink_to("/etc")
    assert read_store(root).attempts == {}


def test_the_folder_of_the_store_itself_may_be_a_link(root: Path, tmp_path: Path, attempt: Attempt) -> None:
    fill(tmp_path / "elsewhere", attempt())
    root.parent.mkdir(parents=True)
    root.symlink_to(tmp_path / "elsewhere")
    assert list(read_store(root).attempts.values()) == [attempt()]


def test_a_file_in_place_of_a_folder_has_no_links(root: Path) -> None:
    root.mkdir(parents=True)
    (root / "stale").write_text("x")
    assert read_store(root).attempts == {}


def test_a_folder_that_may_not_be_looked_into_is_told(
    unprivileged: tuple[Path, Callable[[], AbstractContextManager[None]]],
) -> None:
    folder, as_nobody = unprivileged
    shut = folder / "attempts" / "refunds"
    shut.mkdir(parents=True)
    shut.chmod(0)
    with as_nobody(), pytest.raises(StoreError, match=f"^{shut}: cannot be read: Permission denied$"):
        read_store(folder)


# ---------------------------------------------------------------- a journal that is gone


def test_attempts_that_are_gone_behind_a_summary_are_told(root: Path, attempt: Attempt, coverage: Coverage) -> None:
    fill(root, attempt(), coverage())
    (root / "summary.json").write_text("{}")
    assert read_store(root).warnings == []
    (root / "attempts.jsonl").unlink()
    (warning,) = read_store(root).warnings
    assert warning.startswith(
        f"{root / 'attempts.jsonl'}: there is no attempt in it although the store has the summary"
    )


def test_coverage_that_is_gone_behind_its_folders_is_told(root: Path, attempt: Attempt, coverage: Coverage) -> None:
    fill(root, attempt(), coverage())
    Layout(root).coverage_folder("refunds", "tools", "s1").mkdir(parents=True)
    assert read_store(root).warnings == []
    (root / "coverage.jsonl").unlink()
    (warning,) = read_store(root).warnings
    assert warning.startswith(f"{root / 'coverage.jsonl'}: there is no result in it although the store has folders of")


def test_a_store_of_a_run_that_has_just_begun_is_whole(root: Path) -> None:
    fill(root)
    assert read_store(root).warnings == []
