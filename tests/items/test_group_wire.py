"""The text that crosses from a worker about an item of several attempts, and the names of items."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.definition.scoring import Status
from pytest_metricbench.reporting.words import group_word
from pytest_metricbench.running.wire import GroupMessage, LeftPart, Part, WireError, group_from_wire, group_to_wire
from tests.plugin.record_strategies import NAMES, TEXTS, records

STATUSES: st.SearchStrategy[Status] = st.sampled_from(
    ["passed", "missed", "died", "unmeasured", "not_reached", "not_needed"]
)
PARTS = st.builds(Part, NAMES, st.integers(1, 10**6), STATUSES, st.lists(records(), max_size=2).map(tuple))
LEFT = st.builds(LeftPart, NAMES, st.integers(1, 10**6), TEXTS)
WORDS = st.sampled_from(["solved", "flaky", "mixed", "missed", "died", "reused", "left", "unmeasured"])


@given(st.builds(GroupMessage, WORDS, st.lists(PARTS, max_size=3).map(tuple), st.lists(LEFT, max_size=2).map(tuple)))
def test_what_is_sent_arrives(message: GroupMessage) -> None:
    text = group_to_wire(message)
    assert text.isascii()
    assert "\n" not in text
    assert group_from_wire(text) == message


@pytest.mark.parametrize(
    "change",
    [
        lambda message: message.pop("word"),
        lambda message: message.update(word="won"),
        lambda message: message["attempts"][0].update(slot=0),
        lambda message: message["attempts"][0].update(slot="one"),
        lambda message: message["attempts"][0].update(status="reused"),
        lambda message: message.update(attempts=None),
        lambda message: message.update(left=[{"task": "t", "slot": 1}]),
    ],
)
def test_what_no_item_sends_is_an_error(change: Callable[..., Any]) -> None:
    whole = json.loads(group_to_wire(GroupMessage("solved", (Part("t", 1, "passed", ()),), ())))
    group_from_wire(json.dumps(whole))
    change(whole)
    with pytest.raises(WireError, match=r"\w"):
        group_from_wire(json.dumps(whole))


# ---------------------------------------------------------------- the word of a group


@pytest.mark.parametrize(
    ("statuses", "word"),
    [
        (["passed", "passed"], "solved"),
        (["passed", "missed"], "flaky"),
        (["passed", "died"], "flaky"),
        (["missed", "died"], "missed"),
        (["died", "died"], "died"),
        (["passed", "not_reached", "not_needed"], "solved"),
        (["missed", "not_needed"], "missed"),
        (["not_needed", "not_reached"], "not_reached"),
        (["not_needed"], "not_needed"),
    ],
)
def test_the_word_of_what_was_made(statuses: list[Status], word: str) -> None:
    made = {"is_reused": False, "lacks": False, "left": False}
    assert group_word("task", statuses, **made) == word
    assert group_word("variant", statuses, **made) == {"flaky": "mixed"}.get(word, word)


@given(st.lists(STATUSES), st.booleans(), st.booleans(), st.booleans())
def test_what_is_lacking_comes_before_what_is_left_before_what_was_reused(
    statuses: list[Status], lacks: bool, left: bool, is_reused: bool
) -> None:
    word = group_word("task", statuses, is_reused=is_reused, lacks=lacks, left=left)
    first = {"unmeasured": lacks, "left": left, "reused": is_reused}
    assert next((name for name, holds in first.items() if holds), word) == word
