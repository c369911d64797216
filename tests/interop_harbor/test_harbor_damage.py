"""Job folders in which any part is something else: read or refused by name, never anything else."""

import copy
import json
import tracemalloc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.interop.harbor.jobs import read
from pytest_metricbench.interop.harbor.stats import counted_trial, dataset_stats
from pytest_metricbench.interop.recorded_cases import build_case
from pytest_metricbench.interop.recordings import ReadOptions, RecordingError
from tests.interop_harbor.harbor_lab import SAMPLES, HarborLab, read_sample, result

JOB = "steps-0.26"
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@cache
def documents() -> dict[str, Any]:
    folder = SAMPLES / JOB
    names = [
        "config.json",
        "lock.json",
        "result.json",
        *(f"{trial.name}/result.json" for trial in folder.glob("two__*")),
    ]
    return {name: json.loads((folder / name).read_text()) for name in names}


def places(value: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a document."""
    yield keys
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in inner:
        yield from places(entry, (*keys, key))


def replaced(document: Any, keys: tuple[Any, ...], value: Any) -> Any:
    if not keys:
        return value
    document = copy.deepcopy(document)
    holder = document
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    return document


@settings(max_examples=150)
@given(st.data())
def test_one_part_is_something_else(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(documents())))
    by_key: dict[Any, list[tuple[Any, ...]]] = {}
    for keys in places(documents()[name]):
        by_key.setdefault(keys[-1:], []).append(keys)
    keys = data.draw(st.sampled_from(data.draw(st.sampled_from(list(by_key.values())))))
    job = tmp_path_factory.mktemp("job")
    for file, document in documents().items():
        (job / file).parent.mkdir(exist_ok=True)
        changed = replaced(document, keys, data.draw(ANYTHING)) if file == name else document
        (job / file).write_text(json.dumps(changed))
    read_and_used(job)


def read_and_used(job: Path) -> None:
    for variants in ("agent", "folder"):
        refusal = ""
        try:
            found = read({"jobs/x": job}, ReadOptions("c", variants=variants))
        except RecordingError as error:
            refusal = error.message
        if refusal:
            assert "jobs/x" in refusal
            continue
        case = build_case(found, found.attempts[0].variant)
        json.dumps(case.entries)
        assert sum(len(slots) for slots in case.slots.values()) == len(found.attempts)


@given(st.data())
@settings(max_examples=100)
def test_a_file_that_is_cut_is_named(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(documents())))
    job = tmp_path_factory.mktemp("job")
    for file, document in documents().items():
        (job / file).parent.mkdir(exist_ok=True)
        text = json.dumps(document)
        (job / file).write_text(text[: data.draw(st.integers(0, len(text) - 1))] if file == name else text)
    with pytest.raises(RecordingError) as refusal:
        read({"jobs/x": job}, ReadOptions("c"))
    folder = name.rpartition("/")[0]
    assert refusal.value.message.startswith(f"jobs/x/{folder}: result.json is" if folder else f"jobs/x: {name} is")


def test_conversations_are_not_kept_in_memory(harbor_lab: HarborLab) -> None:
    """A result may hold every token of its agent's work; what stays of it is what is scored."""
    talk = {"agent_result": {"rollout_details": [{"tokens": "x" * 500_000}]}}
    job = harbor_lab.job(*(result({"reward": 1.0}, name=f"alpha__{number:07}", **talk) for number in range(40)))
    tracemalloc.start()
    try:
        found = harbor_lab.read(job)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.attempts) == 40
    assert kept < 1_000_000
    assert most < 5_000_000


def test_the_figures_of_a_sample_do_not_depend_on_the_order_of_trials() -> None:
    trials = [counted_trial(json.loads(path.read_text())) for path in sorted((SAMPLES / JOB).glob("*/result.json"))]
    assert dataset_stats(trials, "0.26").to_json() == dataset_stats(trials[::-1], "0.26").to_json()


def test_the_sample_itself_is_read() -> None:
    assert len(read_sample(JOB).attempts) == 6
