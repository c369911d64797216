"""Damaged stores: a torn line is dropped and told, anything else is named with its file and line."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_metricbench.contracts import AttemptRecord, CoverageRecord
from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.reading import read_store
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
    assert len(contents.warnings) == 1
    assert str(path) in contents.warnings[0]
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
        assert "--metricbench-fresh" in str(caught.value)
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
    path.write_text(json.dumps(hostile) + "\n")
    with pytest.raises(StoreError, match=r"attempts\.jsonl:1: "):
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
    assert "--metricbench-fresh" in str(caught.value)
    StoreWriter(root, fresh=True).close()


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, "[]", "1"])
@pytest.mark.parametrize("opening", [read_store, StoreWriter])
def test_a_description_that_cannot_be_read_is_told(
    root: Path, attempt: Attempt, content: str, opening: Callable[..., object]
) -> None:
    fill(root, attempt())
    (root / "experiment.json").write_text(content)
    with pytest.raises(StoreError, match=r"experiment\.json: "):
        opening(root)


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
