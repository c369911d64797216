"""The summary of an earlier run, found and read from what somebody named, or refused with what to do."""

import json
import os
from pathlib import Path

import pytest

from pytest_metricbench.analysis.comparing_terms import ComparisonError
from pytest_metricbench.analysis.summary_json import summary_to_json
from pytest_metricbench.running.earlier import read_earlier
from tests.comparing.comparing_lab import BASE, summary_of, table

SUMMARY = summary_of(table({"m": {**BASE, "c": [0] * 5}}))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A folder of stores with the one of the experiment ``built``."""
    root = tmp_path / ".metricbench" / "built"
    root.mkdir(parents=True)
    (root / "summary.json").write_text(summary_to_json(SUMMARY))
    return root


def refused(path: Path) -> str:
    with pytest.raises(ComparisonError) as raised:
        read_earlier(path, "built")
    return str(raised.value)


def test_from_a_store_its_folder_or_a_file(store: Path, tmp_path: Path) -> None:
    copied = tmp_path / "main.json"
    copied.write_text((store / "summary.json").read_text())
    for path in (store, store.parent, store / "summary.json", copied):
        assert read_earlier(path, "built") == SUMMARY


def test_a_part_is_taken_only_when_it_is_named(store: Path) -> None:
    (store / "summary.json").rename(store / "summary.partial.json")
    said = "there is no summary of a whole run in it; finish that run, or name its summary.partial.json"
    assert refused(store) == refused(store.parent) == f"{store}: {said}"
    assert read_earlier(store / "summary.partial.json", "built") == SUMMARY


def test_nothing_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "gone") == f"{tmp_path / 'gone'}: there is no such file or folder"
    assert refused(tmp_path) == f"{tmp_path}: there is no summary.json in it, nor a store of 'built' with one"


AGAIN = "; a store gives its summary anew with --metricbench-cached-only"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", f"the summary is no JSON: Expecting value: line 1 column 1 (char 0){AGAIN}"),
        (b"[" * 100_000, f"the summary is nested too deeply{AGAIN}"),
        (b'{"metricbench": 2}', f"the summary has the format version 2; this version reads 1{AGAIN}"),
        (b"[1]", f"the summary has the format version null; this version reads 1{AGAIN}"),
        (b'{"metricbench": 1}', f"the summary is not as documented at experiment: Field required{AGAIN}"),
        (b'{"metricbench": "\xff"}', "it is no UTF-8 text: byte 18 is wrong"),
    ],
    ids=["empty", "deep", "newer", "list", "bare", "bytes"],
)
def test_a_file_that_is_no_summary(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "summary.json"
    path.write_bytes(content)
    assert refused(path) == f"{path}: {said}"


def test_a_summary_that_contradicts_itself(store: Path) -> None:
    path = store / "summary.json"
    content = json.loads(path.read_text())
    del content["cases"]["c"]["variants"]["baseline"]
    path.write_text(json.dumps(content))
    assert refused(store) == (f"{path}: the summary contradicts itself at cases.c.variants: it has no baseline{AGAIN}")


def test_what_is_no_file_is_not_waited_for(store: Path) -> None:
    path = store / "summary.json"
    path.unlink()
    os.mkfifo(path)
    assert refused(store) == f"{path}: cannot be read: not a regular file"


def test_a_link_in_a_store_is_not_followed(store: Path, tmp_path: Path) -> None:
    path = store / "summary.json"
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    assert refused(store) == f"{path}: cannot be read: not a regular file"


def test_a_link_that_is_named_is_meant(store: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(store)
    (tmp_path / "latest.json").symlink_to(store / "summary.json")
    assert read_earlier(tmp_path / "latest", "built") == read_earlier(tmp_path / "latest.json", "built") == SUMMARY


def test_a_file_without_end_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_metricbench.running.earlier.LIMIT", 1000)
    path = tmp_path / "big.json"
    path.write_text(summary_to_json(SUMMARY))
    assert refused(path) == f"{path}: it has more than 1,000 bytes, so it is no summary"
