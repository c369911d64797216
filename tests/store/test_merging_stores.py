"""Stores of several machines united: what is taken over, what conflicts, what is refused."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.contracts import AttemptRecord, CoverageRecord, Goals
from pytest_metricbench.store.files import digest_folder
from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.merging import Merged, merge_stores, store_in
from pytest_metricbench.store.reading import read_store
from pytest_metricbench.store.writing import StoreWriter


def merged(tmp_path: Path, *sources: Path) -> tuple[Any, Any]:
    writer = StoreWriter(tmp_path / "target")
    try:
        return merge_stores(writer, sources), read_store(tmp_path / "target")
    finally:
        writer.close()


def test_union_by_key_with_files(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one = filled("one", [record("t1")], {"trace/log.txt": "hello"})
    two = filled("two", [record("t2"), record("t3")])
    result, store = merged(tmp_path, one, two)
    assert (result.stores, result.attempts) == (2, 3)
    assert {key[2] for key in store.attempts} == {"t1", "t2", "t3"}
    kept = store.layout.workspace("c", "baseline", "t1", "trial-t1-1") / "trace/log.txt"
    assert kept.read_text() == "hello"


def test_one_result_in_two_stores_is_no_conflict(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    result, _ = merged(tmp_path, filled("one", [record("t1")]), filled("two", [record("t1")]))
    assert result.attempts == 1


@pytest.mark.parametrize("first", ["unmeasured", "scored"])
def test_measured_beats_unmeasured(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path], first: str
) -> None:
    unmeasured = filled("a", [record("t1", outcome="unmeasured", scores={}, trial_id="x")])
    measured = filled("b", [record("t1", trial_id="y")])
    _, store = merged(tmp_path, *((unmeasured, measured) if first == "unmeasured" else (measured, unmeasured)))
    assert store.attempts["c", "baseline", "t1", 1].trial_id == "y"


def test_two_measured_results_conflict_and_nothing_is_written(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one = filled("one", [record("t1", trial_id="x"), record("t2")])
    two = filled("two", [record("t1", trial_id="y")])
    with pytest.raises(StoreError) as error:
        merged(tmp_path, one, two)
    assert "c::baseline::t1[1]" in str(error.value)
    assert str(one) in str(error.value)
    assert str(two) in str(error.value)
    assert not read_store(tmp_path / "target").attempts


def test_many_conflicts_are_counted(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one = filled("one", [record("t1", slot, trial_id=f"x{slot}") for slot in range(1, 31)])
    two = filled("two", [record("t1", slot, trial_id=f"y{slot}") for slot in range(1, 31)])
    with pytest.raises(StoreError, match="two different results of one key; nothing was merged") as error:
        merged(tmp_path, one, two)
    _, *listed, last = str(error.value).splitlines()
    assert listed == [f"attempt c::baseline::t1[{slot}]: {one} and {two}" for slot in range(1, 21)]
    assert last == "and 10 more"


def test_as_many_conflicts_as_are_listed_are_not_counted(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one = filled("one", [record("t1", slot, trial_id=f"x{slot}") for slot in range(1, 21)])
    two = filled("two", [record("t1", slot, trial_id=f"y{slot}") for slot in range(1, 21)])
    with pytest.raises(StoreError) as error:
        merged(tmp_path, one, two)
    assert len(str(error.value).splitlines()) == 21
    assert "more" not in str(error.value)


def test_another_experiment_is_refused(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one, two = filled("one", [record("t1")]), filled("two", [record("t2")], experiment="other")
    with pytest.raises(StoreError, match="only stores of one experiment"):
        merged(tmp_path, one, two)


def test_other_inputs_are_refused_by_name(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one = filled("one", [record("t1")], digests={"cases": {"c": {"inputs": "1"}}})
    two = filled("two", [record("t2")], digests={"cases": {"c": {"inputs": "2"}}})
    with pytest.raises(
        StoreError, match=r"different inputs \(cases\.c\.inputs\); run both from the same files, then merge$"
    ):
        merged(tmp_path, one, two)


def test_no_store_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        StoreError, match=r"empty: there is no store \(no attempts.jsonl\); name the folder that holds one$"
    ):
        merged(tmp_path, tmp_path / "empty")


def test_changed_files_are_not_passed_on(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one = filled("one", [record("t1")], {"log.txt": "hello"})
    (one / "attempts/c/baseline/t1/trial-t1-1/log.txt").write_text("other")
    said = "files are missing or have changed since they were recorded; that store is damaged$"
    with pytest.raises(StoreError, match=said):
        merged(tmp_path, one)


def test_inputs_that_only_one_store_names_are_other_inputs(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one = filled("one", [record("t1")], digests=None)
    two = filled("two", [record("t2")], digests={"runner": "r", "seed": "1"})
    for pair in ((one, two), (two, one)):
        with pytest.raises(StoreError, match=r"different inputs \(runner, seed\)"):
            merged(tmp_path, *pair)


def test_a_measured_result_supersedes_what_stands_in_its_place(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    filled("target", [record("t1", outcome="unmeasured", scores={}, trial_id="x")], {"log.txt": "old"})
    measured = filled("one", [record("t1", trial_id="y")], {"log.txt": "new"})
    result, store = merged(tmp_path, measured)
    assert result == Merged(stores=1, attempts=1, coverage=0)
    (kept,) = store.attempts.values()
    assert (kept.trial_id, kept.supersedes) == ("y", "x")
    assert (store.layout.stale / "c/baseline/t1/x/log.txt").read_text() == "old"
    assert (store.left_by(kept) / "log.txt").read_text() == "new"


def test_what_a_merge_that_was_interrupted_left_makes_way(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one = filled("one", [record("t1")], {"log.txt": "hello", "trace/t.json": "{}"})
    half = tmp_path / "target/attempts/c/baseline/t1/trial-t1-1"
    half.mkdir(parents=True)
    (half / "log.txt").write_text("hel")
    (half / "nobody's.txt").write_text("x")
    _, store = merged(tmp_path, one)
    (kept,) = store.attempts.values()
    assert store.is_intact(kept)
    assert sorted(path.name for path in half.iterdir()) == ["log.txt", "trace"]


def test_what_was_copied_whole_already_stays_as_it_is(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one = filled("one", [record("t1")], {"log.txt": "hello"})
    there = tmp_path / "target/attempts/c/baseline/t1/trial-t1-1/log.txt"
    there.parent.mkdir(parents=True)
    there.write_text("hello")
    before = there.stat().st_ino
    merged(tmp_path, one)
    assert there.stat().st_ino == before


def test_a_record_without_files_removes_nothing(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one = filled("one", [record("t1")])
    there = tmp_path / "target/attempts/c/baseline/t1/trial-t1-1/notes.txt"
    there.parent.mkdir(parents=True)
    there.write_text("mine")
    merged(tmp_path, one)
    assert there.read_text() == "mine"


def test_a_place_that_cannot_be_written_is_told(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one = filled("one", [record("t1")], {"log.txt": "hello"})
    in_the_way = tmp_path / "target/attempts/c/baseline/t1"
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("x")
    with pytest.raises(StoreError, match=f"^{in_the_way}/trial-t1-1: cannot be written: "):
        merged(tmp_path, one)


# ---------------------------------------------------------------- coverage


@pytest.fixture
def measured(tmp_path: Path, coverage: Callable[..., CoverageRecord]) -> Callable[..., Path]:
    """A store with the record of one coverage request, what it left, and perhaps its receipt."""

    def make(name: str, *, receipt: bool = True, **changed: object) -> Path:
        writer = StoreWriter(tmp_path / name)
        request = coverage(**changed)
        folder = writer.layout.coverage_folder(*request.key)
        if request.outcome == "measured":
            folder.mkdir(parents=True)
            (folder / "response.json").write_text(name)
            request.files.update(digest_folder(folder))
        if receipt:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "receipt.json").write_text(f"receipt of {name}")
        writer.add_coverage(request)
        writer.write_experiment({"experiment": "e"})
        writer.close()
        return tmp_path / name

    return make


def test_a_coverage_result_is_taken_over_with_its_receipt(tmp_path: Path, measured: Callable[..., Path]) -> None:
    result, store = merged(tmp_path, measured("one"), measured("two", subset="s2", receipt=False))
    assert result == Merged(stores=2, attempts=0, coverage=2)
    assert list(store.coverage) == [("refunds", "tools", "s1"), ("refunds", "tools", "s2")]
    first, second = map(store.left_by, store.coverage.values())
    assert {path.name: path.read_text() for path in first.iterdir()} == {
        "response.json": "one",
        "receipt.json": "receipt of one",
    }
    assert [path.name for path in second.iterdir()] == ["response.json"]


def test_a_receipt_that_is_a_link_is_left(tmp_path: Path, measured: Callable[..., Path]) -> None:
    one = measured("one", receipt=False)
    (tmp_path / "secret").write_text("password")
    (one / "coverage/refunds/tools/s1/receipt.json").symlink_to(tmp_path / "secret")
    _, store = merged(tmp_path, one)
    (request,) = store.coverage.values()
    assert [path.name for path in store.left_by(request).iterdir()] == ["response.json"]


FAILED = {"outcome": "failed", "value": None, "error": "no answer", "files": {"log.txt": "sha256:gone"}}
NOTHING = {"value": None, "reason": "a task left no trace"}


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [
        ({"value": 0.5}, {"value": 0.5}, "one"),
        ({"value": 0.5}, FAILED, "one"),
        (FAILED, {"value": 0.5}, "two"),
        (FAILED, FAILED | {"error": "no answer either"}, "one"),
        (NOTHING, NOTHING, "one"),
        ({"value": 0.5}, {"value": 0.75, "request_digest": "sha256:other"}, "one"),
        ({"value": 0.5}, {"value": 0.75, "settings_digest": "sha256:other"}, "one"),
        (NOTHING, {"value": 0.75, "request_digest": "sha256:other"}, "two"),
        ({"value": 0.5}, NOTHING | {"request_digest": "sha256:other"}, "one"),
        (NOTHING, NOTHING | {"request_digest": "sha256:other"}, "one"),
        (NOTHING | {"request_digest": "sha256:other"}, FAILED, "one"),
    ],
    ids=[
        "one answer",
        "a failure behind an answer",
        "an answer behind a failure",
        "two failures",
        "nothing twice",
        "of other evidence",
        "of other settings",
        "nothing, and of other evidence something",
        "something, and of other evidence nothing",
        "of other evidence nothing either",
        "nothing, and a failure of other evidence",
    ],
)
def test_which_of_two_coverage_results_counts(
    tmp_path: Path, measured: Callable[..., Path], first: dict[str, Any], second: dict[str, Any], counts: str
) -> None:
    one = measured("one", **{**first, "started": "one", "files": dict(first.get("files", {}))})
    two = measured("two", **{**second, "started": "two", "files": dict(second.get("files", {}))})
    result, store = merged(tmp_path, one, two)
    (request,) = store.coverage.values()
    assert request.started == counts
    assert result.coverage == 1


@pytest.mark.parametrize(
    "second",
    [{"value": 0.75}, NOTHING, {"goals": Goals(("a",), {"late": ("a",)})}],
    ids=["another score", "none", "other goals"],
)
def test_two_answers_to_one_question_conflict(
    tmp_path: Path, measured: Callable[..., Path], second: dict[str, Any]
) -> None:
    one, two = measured("one"), measured("two", **second)
    with pytest.raises(StoreError) as error:
        merged(tmp_path, one, two)
    assert str(error.value).splitlines()[1:] == [f"coverage refunds tools s1: {one} and {two}"]
    assert not read_store(tmp_path / "target").coverage


# ---------------------------------------------------------------- which store a folder means


def test_a_folder_of_stores_is_searched_by_name(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    store = filled("refund-agent", [record("t1")])
    assert store_in(tmp_path, "refund-agent") == store
    assert store_in(store, "refund-agent") == store
    assert store_in(tmp_path, "other") == tmp_path
    (store / "refund-agent").mkdir()
    assert store_in(store, "refund-agent") == store, "what is a store is meant itself"


def test_what_a_merge_says_is_not_changed_by_mistake() -> None:
    result = Merged(stores=1, attempts=2, coverage=3)
    with pytest.raises(FrozenInstanceError):
        result.attempts = 3  # type: ignore[misc]
    assert result == Merged(1, 2, 3)
    assert not hasattr(result, "__dict__")
