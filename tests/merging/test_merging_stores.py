from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.contracts import AttemptRecord
from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.merging import merge_stores
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
    with pytest.raises(StoreError, match="and 10 more"):
        merged(tmp_path, one, two)


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
    with pytest.raises(StoreError, match=r"different inputs \(cases\.c\.inputs\)"):
        merged(tmp_path, one, two)


def test_no_store_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="there is no store"):
        merged(tmp_path, tmp_path / "empty")


def test_changed_files_are_not_passed_on(
    tmp_path: Path, record: Callable[..., AttemptRecord], filled: Callable[..., Path]
) -> None:
    one = filled("one", [record("t1")], {"log.txt": "hello"})
    (one / "attempts/c/baseline/t1/trial-t1-1/log.txt").write_text("other")
    with pytest.raises(StoreError, match="have changed"):
        merged(tmp_path, one)
