"""The parts of an experiment for several machines: disjoint, whole, and the same everywhere."""

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.contracts import AttemptKey, AttemptRecord
from pytest_metricbench.running.naming import ItemName
from pytest_metricbench.running.sharding import Shard, read_durations, shards
from pytest_metricbench.store.journal import StoreError

NAMES = [("c", variant, f"t{task}", slot) for variant in ("baseline", "m") for task in range(20) for slot in (1, 2, 3)]


KEYS: dict[ItemName, tuple[AttemptKey]] = {name: (name,) for name in NAMES}
"""Items that are one attempt each."""


@pytest.mark.parametrize(("text", "expected"), [("1/1", Shard(1, 1)), ("2/5", Shard(2, 5)), ("10/10", Shard(10, 10))])
def test_parse(text: str, expected: Shard) -> None:
    assert Shard.parse(text) == expected


@pytest.mark.parametrize("text", ["", "2", "2/", "/5", "0/5", "6/5", "a/b", "1/0", "-1/5", "1/5/2", "1.5/2"])
def test_no_shard(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no shard; write the number of the part and of all parts, as in 2/5$"):
        Shard.parse(text)


@given(st.integers(1, 9), st.permutations(NAMES))
def test_a_balanced_partition_whatever_the_order(count: int, names: list[tuple[str, str, str, int]]) -> None:
    dealt = shards({name: KEYS[name] for name in names}, count, {})
    assert dealt == shards(KEYS, count, {})
    sizes = Counter(dealt.values())
    assert set(sizes) == set(range(1, count + 1))
    assert max(sizes.values()) - min(sizes.values()) <= 1


def test_shards_stay_what_they_are() -> None:
    # A changed way of dealing would run attempts twice in a pipeline that is half way through.
    dealt = shards(KEYS, 5, {})
    assert [dealt["c", "baseline", f"t{task}", 1] for task in range(8)] == [3, 4, 2, 2, 4, 4, 5, 3]
    assert Counter(dealt.values()) == {1: 24, 2: 24, 3: 24, 4: 24, 5: 24}


def test_durations_balance_the_work(record: Callable[..., AttemptRecord]) -> None:
    known = {key: record(key[2], key[3], variant=key[1], duration=100.0 if key[2] == "t0" else 1.0) for key in NAMES}
    dealt = shards(KEYS, 3, known)
    loads: dict[int, float] = defaultdict(float)
    for name, number in dealt.items():
        loads[number] += known[KEYS[name][0]].duration
    assert max(loads.values()) - min(loads.values()) <= 1
    assert shards({name: KEYS[name] for name in reversed(NAMES)}, 3, known) == dealt


@pytest.mark.parametrize("parts", [2, 3], ids=["variant", "task"])
def test_items_of_several_attempts_are_dealt_whole_and_balanced(
    record: Callable[..., AttemptRecord], parts: int
) -> None:
    groups: dict[ItemName, list[AttemptKey]] = {}
    for key in NAMES:
        groups.setdefault(key[:parts], []).append(key)
    known = {key: record(key[2], key[3], variant=key[1], duration=100.0 if key[2] == "t0" else 1.0) for key in NAMES}
    dealt = shards(groups, 2, known)
    assert set(dealt) == set(groups)
    loads: dict[int, float] = defaultdict(float)
    for name, number in dealt.items():
        loads[number] += sum(known[key].duration for key in groups[name])
    assert max(loads.values()) - min(loads.values()) <= (3 if parts == 3 else 0)
    assert set(shards(groups, 2, {}).values()) == {1, 2}


def test_read_durations(filled: Callable[..., Path], record: Callable[..., AttemptRecord]) -> None:
    store = filled("one", [record("t1", duration=3.0)])
    assert read_durations(store / "attempts.jsonl")["c", "baseline", "t1", 1].duration == 3.0


def test_unreadable_durations(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file"):
        read_durations(tmp_path / "x.jsonl")
    (tmp_path / "x.jsonl").write_text("{}\n")
    with pytest.raises(StoreError, match=r"x\.jsonl:1"):
        read_durations(tmp_path / "x.jsonl")
