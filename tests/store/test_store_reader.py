"""What a script reads from a store: the records that count, all that ever were, and what an attempt left."""

from collections.abc import Callable
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
    records = (
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
