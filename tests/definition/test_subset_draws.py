"""Subsets that are drawn: the same for a seed everywhere, and of the sizes asked for."""

import itertools
import math
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.definition.ids import subset_id_problem
from pytest_metricbench.definition.subsets import draw
from tests.definition.definition_lab import Folder

TASKS = [f"t{n:02d}" for n in range(12)]


@given(
    st.lists(st.text("abcdef-09", min_size=1, max_size=4), min_size=1, max_size=9, unique=True),
    st.data(),
    st.integers(1, 40),
    st.integers(0, 2**64 - 1),
)
def test_what_holds_of_every_draw(tasks: list[str], data: st.DataObject, per_size: int, seed: int) -> None:
    sizes = data.draw(st.lists(st.integers(1, len(tasks)), min_size=1, unique=True))
    drawn = draw(tasks, sizes, per_size, seed)
    assert drawn == draw(data.draw(st.permutations(tasks)), sizes, per_size, seed)
    assert len({entry["id"] for entry in drawn}) == len(drawn)
    assert all(subset_id_problem(entry["id"]) is None for entry in drawn)
    for size in sizes:
        own = [tuple(entry["tasks"]) for entry in drawn if len(entry["tasks"]) == size]
        assert len(own) == len(set(own)) == min(per_size, math.comb(len(tasks), size))
        assert all(list(chosen) == sorted(chosen) and set(chosen) <= set(tasks) for chosen in own)


RECORDED = [
    ("n2-01", ["t07", "t10"]),
    ("n2-02", ["t02", "t03"]),
    ("n2-03", ["t04", "t06"]),
    ("n3-01", ["t08", "t09", "t10"]),
    ("n3-02", ["t01", "t05", "t06"]),
    ("n3-03", ["t01", "t09", "t10"]),
]


def test_a_known_draw() -> None:
    # Recorded once: another Python, another machine or another version of this module must give the same.
    assert [(entry["id"], entry["tasks"]) for entry in draw(TASKS, [2, 3], 3, 7)] == RECORDED


def test_it_is_the_same_in_another_process() -> None:
    code = f"from pytest_metricbench.definition.subsets import draw; print(draw({TASKS}, [5], 9, 3))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "5"}
    )
    assert done.stdout.strip() == str(draw(TASKS, [5], 9, 3))


def test_all_subsets_of_a_size_in_order() -> None:
    drawn = [tuple(entry["tasks"]) for entry in draw(TASKS, [3], 10_000, 0)]
    assert drawn == list(itertools.combinations(TASKS, 3))


def test_a_size_does_not_depend_on_the_others() -> None:
    alone = draw(TASKS, [4], 10, 1)
    assert [entry for entry in draw(TASKS, [2, 4, 6], 10, 1) if entry["id"].startswith("n4-")] == alone


def test_a_longer_draw_begins_with_the_shorter_one() -> None:
    short, long = draw(TASKS, [4], 20, 1), draw(TASKS, [4], 90, 1)
    assert [entry["tasks"] for entry in long[:20]] == [entry["tasks"] for entry in short]


def test_seed_and_tasks_change_the_draw() -> None:
    first = [entry["tasks"] for entry in draw(TASKS, [6], 10, 1)]
    assert [entry["tasks"] for entry in draw(TASKS, [6], 10, 2)] != first
    other = [name.replace("t", "u") for name in TASKS]
    moved = [[name.replace("u", "t") for name in entry["tasks"]] for entry in draw(other, [6], 10, 1)]
    assert moved != first


def test_every_subset_is_equally_likely() -> None:
    # 15 subsets of 2 of 6 tasks, 3 drawn, 3,000 seeds: each expected 600 times, standard deviation 22
    counts = Counter(tuple(entry["tasks"]) for seed in range(3000) for entry in draw(TASKS[:6], [2], 3, seed))
    assert len(counts) == 15
    assert all(500 < count < 700 for count in counts.values())


def test_nearly_all_subsets() -> None:
    counts = Counter(tuple(entry["tasks"]) for seed in range(1500) for entry in draw(TASKS[:5], [2], 9, seed))
    # of 10 subsets 9: each is left out 150 times of 1,500, standard deviation 12
    assert all(1350 - 60 < count < 1350 + 60 for count in counts.values())


@pytest.mark.parametrize("size", [0, 13, -1])
def test_a_size_that_cannot_be(size: int) -> None:
    with pytest.raises(ValueError, match="has"):
        draw(TASKS, [size], 1, 0)


def test_ids_have_as_many_digits_as_needed() -> None:
    assert draw(TASKS, [3], 5, 0)[0]["id"] == "n3-01"
    assert draw(TASKS, [3], 150, 0)[0]["id"] == "n3-001"


def test_a_large_draw_is_fast() -> None:
    import time

    began = time.process_time()
    assert len(draw([f"t{n}" for n in range(500)], [5, 50, 250], 200, 0)) == 600
    assert time.process_time() - began < 2


def test_too_few_subsets_are_a_warning(folder: Folder, base: str) -> None:
    text = (
        base + "cases:\n  - id: a\n    tasks: [{id: t}, {id: u}, {id: v}]\n    subsets: {sizes: [2, 1], per_size: 3}\n"
    )
    assert folder.load(text).warnings == ()
    warnings = folder.load(text.replace("per_size: 3", "per_size: 4"), renew_lock=True).warnings
    assert warnings == (
        "experiment.yml:7: 4 subsets of 2 tasks are asked for, and all that there are, 3, are taken",
        "experiment.yml:7: 4 subsets of 1 task are asked for, and all that there are, 3, are taken",
    )
