"""The order of a run as a function of known durations, and the text that crosses from a worker."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.contracts import AttemptError, AttemptRecord
from pytest_metricbench.definition.scoring import Status
from pytest_metricbench.running.ordering import Order
from pytest_metricbench.running.wire import WireError, from_wire, to_wire
from tests.plugin.record_strategies import records
from tests.present import present

KEYS = st.tuples(
    st.sampled_from(["a", "b"]), st.sampled_from(["baseline", "m1"]), st.sampled_from("tuv"), st.integers(1, 3)
)


# ---------------------------------------------------------------- wire


@given(st.sampled_from(["passed", "missed", "died", "unmeasured"]), st.lists(records(), max_size=3))
def test_what_is_sent_arrives(status: Status, sent: list[AttemptRecord]) -> None:
    text = to_wire(status, sent)
    assert text.isascii()
    assert "\n" not in text
    message = from_wire(text)
    assert message.status == status
    assert list(message.records) == sent


@given(records(st.just("scored")), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_numbers_that_are_not_finite_arrive(record: AttemptRecord, value: float) -> None:
    sent = {**record.scores, "reward": value}
    (arrived,) = from_wire(to_wire("missed", [replace(record, scores=sent)])).records
    assert type(arrived.scores["reward"]) is float
    assert str(arrived.scores["reward"]) == str(value)


def test_texts_that_no_transport_takes_are_made_harmless() -> None:
    """A lone surrogate (an undecodable byte of an agent's output) would end the whole run under pytest-xdist."""
    record = _record(error=AttemptError("Bad\udcff", "caf\udce9 \x00", "agent"))
    text = to_wire("died", [record])
    assert text.isascii()
    text.encode("utf-8")
    (arrived,) = from_wire(text).records
    assert present(arrived.error).phase == "agent"


def _record(**values: Any) -> AttemptRecord:
    usual = {"case": "c", "variant": "v", "task": "t", "attempt": 1, "trial_id": "x", "outcome": "died", "scores": {}}
    usual |= {"error": None, "time_limit": None, "fingerprint": "f", "verifier": "g", "seed": 1, "started": ""}
    usual |= {"duration": 0.0, "files": {}, "supersedes": None}
    return AttemptRecord(**{**usual, **values})


@pytest.mark.parametrize(
    "text",
    [
        *("", "passed", "{}", "null", "[]", "{", '{"status": "passed"}', '{"status": "won", "records": []}'),
        '{"status": "passed", "records": [{}]}',
        '{"status": "passed", "records": [null]}',
    ],
)
def test_what_no_item_sends_is_an_error(text: str) -> None:
    with pytest.raises(WireError, match=r"\w"):
        from_wire(text)


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", "x" * 101, ".hidden"])
def test_a_name_that_leads_elsewhere_is_an_error(name: str) -> None:
    message = json.loads(to_wire("died", [_record()]))
    message["records"][0]["task"] = name
    with pytest.raises(WireError):
        from_wire(json.dumps(message))


# ---------------------------------------------------------------- order


@given(st.dictionaries(KEYS, st.floats(0, 1e3)), st.lists(KEYS, unique=True))
def test_ranks(known: dict[tuple[str, str, str, int], float], keys: list[tuple[str, str, str, int]]) -> None:
    order = Order({key: _record(duration=duration) for key, duration in known.items()})
    ranked = sorted(keys, key=order.rank)
    baselines = [key for key in ranked if key[1] == "baseline"]
    assert ranked[: len(baselines)] == baselines
    for phase in (baselines, ranked[len(baselines) :]):
        durations = [order.duration(key) for key in phase]
        assert durations == sorted(durations, reverse=True)


def test_a_duration_is_what_is_known_of_the_attempt_else_of_its_task_else_endless() -> None:
    order = Order({("c", "baseline", "t", 1): _record(duration=2.0), ("c", "m1", "t", 1): _record(duration=4.0)})
    assert order.duration(("c", "m1", "t", 1)) == 4.0
    assert order.duration(("c", "m2", "t", 7)) == 3.0
    assert order.duration(("c", "m2", "u", 1)) == math.inf
    assert order.duration(("d", "m2", "t", 1)) == math.inf


def test_equal_ranks_keep_the_order_of_the_file() -> None:
    keys = [("c", "m1", task, slot) for task in "tuv" for slot in (1, 2)]
    assert sorted(keys, key=Order({}).rank) == keys
