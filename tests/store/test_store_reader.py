"""What a script reads from a store: the records that count, all that ever were, and what an attempt left."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from pytest_metricbench import AttemptRecord, CoverageRecord, Store, StoreError, open_store
from pytest_metricbench.store.files import digest_folder
from pytest_metricbench.store.layout import Layout
from tests.store.store_files import everything, fill

Attempt = Callable[..., AttemptRecord]
Coverage = Callable[..., CoverageRecord]


def left(folder: Path, **contents: str) -> dict[str, str]:
    """Leave files in a folder, and give their digests."""
    for name, content in contents.items():
        path = folder / "trace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return digest_folder(folder)


def test_history_has_every_record_as_it_arrived_and_attempts_the_last_of_each_key(root: Path, attempt: Attempt) -> None:
    first = attempt(outcome="unmeasured", scores={}, trial_id="first")
    other = attempt(attempt=2, trial_id="other")
    again = attempt(trial_id="again", supersedes="first")
    fill(root, first, other, again)
    store = open_store(root)
    assert isinstance(store, Store)
    assert list(store.history()) == [first, other, again]
    assert list(store.attempts.values()) == [again, other]
    assert list(store.attempts) == [first.key, other.key], "keys stand in the order in which they first arrived"


def test_the_folders_of_superseded_attempts_are_known(root: Path, attempt: Attempt) -> None:
    first = attempt(trial_id="first", outcome="unmeasured", scores={})
    again = attempt(trial_id="first", folder="scored-again", supersedes="first")
    fill(root, first, attempt(attempt=2, trial_id="other"))
    assert open_store(root).superseded == set()
    fill(root, again)
    assert open_store(root).superseded == {"first"}
    fill(root, attempt(trial_id="third", supersedes="first"))
    assert open_store(root).superseded == {"first", "scored-again"}


def test_history_reads_the_journal_as_it_is_now(root: Path, attempt: Attempt) -> None:
    fill(root, attempt())
    store = open_store(root)
    fill(root, attempt(attempt=2, trial_id="later"))
    assert [record.trial_id for record in store.history()] == ["a1b2c3", "later"]
    assert len(store.attempts) == 1, "what was read stays as it was read"


def test_history_of_no_store_is_empty(root: Path) -> None:
    assert list(open_store(root).history()) == []
    assert not root.exists()


def test_history_names_a_damaged_line_when_it_comes_to_it(root: Path, attempt: Attempt) -> None:
    fill(root, attempt(), attempt(attempt=2, trial_id="b"))
    history = open_store(root).history()
    journal = root / "attempts.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"attempt":2', b'"attempt":3'))
    assert next(history).attempt == 1
    with pytest.raises(StoreError, match=r"attempts\.jsonl:2: .*checksum.*; the store is damaged"):
        next(history)


def test_what_records_left(root: Path, attempt: Attempt, coverage: Coverage) -> None:
    layout = Layout(root)
    of_attempt = left(layout.workspace("refunds", "baseline", "late", "a1b2c3"), a="1", b="2")
    of_rescored = left(layout.workspace("refunds", "baseline", "early", "scored-again"), a="3")
    of_request = left(layout.coverage_folder("refunds", "tools", "s1"), c="4")
    records: tuple[AttemptRecord | CoverageRecord, ...] = (
        attempt(files=of_attempt),
        attempt(task="early", trial_id="b", folder="scored-again", files=of_rescored),
        coverage(files=of_request),
    )
    fill(root, *records)
    before = everything(root)
    store = open_store(root)
    for record, content in zip(records, ("1", "3", "4"), strict=True):
        name = "c" if isinstance(record, CoverageRecord) else "a"
        assert (store.left_by(record) / "trace" / name).read_text(encoding="utf-8") == content
        assert store.is_intact(record)
    assert everything(root) == before, "reading writes nothing"


@pytest.mark.parametrize("damage", ["changed", "missing", "link"])
def test_what_an_attempt_left_is_not_intact_when(root: Path, attempt: Attempt, damage: str) -> None:
    folder = Layout(root).workspace("refunds", "baseline", "late", "a1b2c3")
    record = attempt(files=left(folder, a="1", b="2"))
    fill(root, record)
    store = open_store(root)
    path = folder / "trace" / "a"
    path.unlink()
    if damage == "changed":
        path.write_text("2", encoding="utf-8")
    elif damage == "link":
        path.symlink_to(folder / "trace" / "b")
    assert not store.is_intact(record)


def test_more_files_than_a_record_names_are_no_damage(root: Path, attempt: Attempt) -> None:
    folder = Layout(root).workspace("refunds", "baseline", "late", "a1b2c3")
    record = attempt(files=left(folder, a="1"))
    fill(root, record)
    left(folder, notes="of somebody who looked at it")
    assert open_store(root).is_intact(record)


def test_an_attempt_that_left_nothing_is_intact(root: Path, attempt: Attempt) -> None:
    fill(root, attempt(files={}))
    store = open_store(root)
    (record,) = store.attempts.values()
    assert store.is_intact(record)
    assert not store.left_by(record).exists()


def test_every_failed_request_has_a_folder_of_its_own(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for number in (1, 2, 3):
        folder = layout.failed_coverage_folder("refunds", "tools", "s1")
        assert folder == tmp_path / "coverage" / "refunds" / "tools" / f"failed-s1-{number}"
        folder.mkdir(parents=True)
    assert layout.failed_coverage_folder("refunds", "tools", "s2").name == "failed-s2-1"


def test_where_everything_lies(tmp_path: Path) -> None:
    """docs/store.md shows it; a store of an older version is found by it."""
    layout = Layout(tmp_path)
    files = (layout.experiment, layout.attempts, layout.coverage, layout.summary, layout.partial_summary, layout.lock)
    assert [path.relative_to(tmp_path).as_posix() for path in files] == [
        "experiment.json",
        "attempts.jsonl",
        "coverage.jsonl",
        "summary.json",
        "summary.partial.json",
        "lock",
    ]
    assert layout.workspace("c", "v", "t", "trial") == tmp_path / "attempts" / "c" / "v" / "t" / "trial"
    assert layout.coverage_folder("c", "tools", "s") == tmp_path / "coverage" / "c" / "tools" / "s"
    assert layout.stale == tmp_path / "stale"
    assert layout.interrupted == tmp_path / "interrupted"


@pytest.mark.parametrize(
    "name",
    ["experiment.json", "attempts.jsonl", "coverage.jsonl", "summary.json", "summary.partial.json", "attempts", "stale",
     "interrupted", "coverage"],
)  # fmt: skip
def test_one_thing_of_a_store_is_enough_to_know_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("of somebody who looked at it")
    (tmp_path / name).mkdir() if "." not in name else (tmp_path / name).write_text("")
    known = Layout(tmp_path).known
    assert tmp_path / name in known
    assert tmp_path / "notes.txt" not in known
    assert tmp_path / "lock" not in known, "a folder with nothing but a lock is anybody's"


def test_what_was_read_is_not_changed_by_mistake(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    with pytest.raises(FrozenInstanceError):
        layout.root = tmp_path / "other"  # type: ignore[misc]
    assert layout == Layout(tmp_path)
    assert len({layout, Layout(tmp_path)}) == 1
    assert not hasattr(layout, "__dict__"), "what has no place for it cannot be given an attribute by mistake"
