"""The operators over texts: what each of them finds, and that none of them trips over any text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.generating.prose import blocks_of, lines_of, sentences_of, without
from pytest_metricbench.generating.text_operators import BUILTIN

PIECES = [
    "must",
    "Must",
    "MUST",
    "not",
    "never",
    "always",
    "do",
    "May",
    "30",
    "500",
    "2024-01-05",
    "18:00",
    "ten",
    "don't",
]
PIECES += [
    "e.g.",
    "(e.g. x)",
    "for example",
    "Example:",
    "a.",
    "b!",
    "<example>",
    "</example>",
    "```",
    "~~~",
    "|",
    "-",
    "*",
]
PIECES += [
    "1.",
    "#",
    "---",
    "\t",
    "\n",
    "\n\n",
    "\u2028",
    "\x0c",
    "\r\n",
    "\ufeff",
    "caf\xe9",
    "at least",
    "more than",
    "before",
]
WORDS = st.sampled_from(PIECES)
TEXTS = st.one_of(st.lists(WORDS, max_size=40).map(" ".join), st.lists(WORDS, max_size=40).map("".join), st.text())


def changed(operator: str, text: str) -> list[str]:
    return [change.text for change in BUILTIN[operator].find(text)]


# ---------------------------------------------------------------- any text


@settings(max_examples=150)
@given(text=TEXTS)
@pytest.mark.parametrize("operator", BUILTIN)
def test_any_text_can_be_looked_at_and_gives_the_same_twice(operator: str, text: str) -> None:
    first = list(BUILTIN[operator].find(text))
    assert first == list(BUILTIN[operator].find(text))
    for change in first:
        assert change.description
        assert "\n" not in change.description
        assert change.target


@settings(max_examples=200)
@given(text=TEXTS)
def test_lines_and_blocks_lie_within_the_text_and_in_order(text: str) -> None:
    lines = lines_of(text)
    assert "".join(line.span.of(text) for line in lines) == text
    before = 0
    for block in blocks_of(text):
        assert block.whole.start >= before
        before = block.whole.start
        assert block.whole.start <= block.prose.start <= block.prose.end <= block.whole.end <= len(text)
        for sentence in sentences_of(text, block.prose):
            assert block.prose.start <= sentence.start < sentence.end <= block.prose.end
            assert sentence.of(text).strip() == sentence.of(text)
            assert len(without(text, sentence)) < len(text)


# ---------------------------------------------------------------- dropping


def test_a_sentence_is_dropped_and_no_space_is_left() -> None:
    text = "One must ask. Mr. Smith pays 3.50 EUR, e.g. now. Is\nthat all? Yes.\n"
    assert changed("drop-sentence", text) == [
        "Mr. Smith pays 3.50 EUR, e.g. now. Is\nthat all? Yes.\n",
        "One must ask. Is\nthat all? Yes.\n",
        "One must ask. Mr. Smith pays 3.50 EUR, e.g. now. Yes.\n",
        "One must ask. Mr. Smith pays 3.50 EUR, e.g. now. Is\nthat all?\n",
    ]


def test_the_only_sentence_of_a_paragraph_takes_its_empty_line_along() -> None:
    assert changed("drop-sentence", "First.\n\nSecond.\n\nThird.\n") == [
        "Second.\n\nThird.\n",
        "First.\n\nThird.\n",
        "First.\n\nSecond.\n\n",
    ]


def test_headings_code_and_tables_hold_no_sentences() -> None:
    assert changed(
        "drop-sentence", "# You must. Really.\n```\nYou must. Now.\n```\n| must. | now. |\n---\na: b.\n"
    ) == ["# You must. Really.\n```\nYou must. Now.\n```\n| must. | now. |\n---\n"]


def test_a_rule_goes_with_what_stands_below_it_and_the_others_stay() -> None:
    text = "Rules:\n\n1. First\n   goes on\n   - below\n\n   still below\n2) Second\n* third\n\nEnd.\n"
    assert changed("drop-rule", text) == [
        "Rules:\n\n2) Second\n* third\n\nEnd.\n",
        "Rules:\n\n1. First\n   goes on\n\n   still below\n2) Second\n* third\n\nEnd.\n",
        "Rules:\n\n1. First\n   goes on\n   - below\n\n   still below\n* third\n\nEnd.\n",
        "Rules:\n\n1. First\n   goes on\n   - below\n\n   still below\n2) Second\n\nEnd.\n",
    ]


def test_front_matter_is_no_prose() -> None:
    text = "---\nname: skill\n- never\n---\nYou must.\n"
    assert changed("drop-rule", text) == []
    assert changed("weaken-modal", text) == ["---\nname: skill\n- never\n---\nYou may.\n"]


# ---------------------------------------------------------------- modals and bounds


@pytest.mark.parametrize(
    ("text", "weaker", "opposite"),
    [
        ("You must ask.", "You may ask.", "You must not ask."),
        ("You MUST NOT ask.", "You SHOULD PREFERABLY NOT ask.", "You MUST ask."),
        ("Always ask.", "Sometimes ask.", "Never ask."),
        ("Never ask.", "Rarely ask.", "Always ask."),
        ("Do not ask.", "Try not to ask.", "Do ask."),
        ("Don\u2019t ask.", "Try not to ask.", "Do ask."),
        ("You must\nnot ask.", "You should preferably not ask.", "You must ask."),
        ("May not ask.", "Should preferably not ask.", "May ask."),
    ],
)
def test_modals_are_weakened_and_inverted_in_their_case(text: str, weaker: str, opposite: str) -> None:
    assert changed("weaken-modal", text) == [weaker]
    assert changed("invert-modal", text) == [opposite]


@pytest.mark.parametrize(
    "text", ["In May 2024 it rains.", "Since May nothing is left.", "the mustard", "a must-have", "canny"]
)
def test_months_and_parts_of_words_are_no_modals(text: str) -> None:
    assert changed("invert-modal", text) == changed("weaken-modal", text) == []


def test_bounds_are_turned_round() -> None:
    assert changed("invert-bound", "No more than 3. At least 2, before noon.") == [
        "No less than 3. At least 2, before noon.",
        "No more than 3. At most 2, before noon.",
        "No more than 3. At least 2, after noon.",
    ]


# ---------------------------------------------------------------- values


def test_each_number_changes_places_with_the_next_other_one() -> None:
    assert changed("swap-numbers", "Within 30 days, at most 1,000.50 EUR, ten times, 30-day limit.\n") == [
        "Within 1,000.50 days, at most 30 EUR, ten times, 30-day limit.\n",
        "Within 30 days, at most ten EUR, 1,000.50 times, 30-day limit.\n",
        "Within 30 days, at most 1,000.50 EUR, 30 times, ten-day limit.\n",
    ]


def test_equal_numbers_marks_of_items_dates_and_versions_are_left() -> None:
    assert changed("swap-numbers", "1. ten and 10\n2. on 2024-01-05 at 18:30\n3. v1.2.3-4 a4\n") == []


def test_dates_and_times_change_places_with_their_own_kind() -> None:
    assert changed("swap-dates", "From 2024-01-05 to March 3, 2024, 9:00 to 6 pm.\n") == [
        "From March 3, 2024 to 2024-01-05, 9:00 to 6 pm.\n",
        "From 2024-01-05 to March 3, 2024, 6 pm to 9:00.\n",
    ]


# ---------------------------------------------------------------- examples and the end


def test_examples_are_removed_wherever_they_stand() -> None:
    text = (
        "Ask (e.g. by mail) first. Be short, for example two lines.\n\n"
        "For example, say hello. Then go on.\n\n"
        "Example:\n\n```\nUser: hi\n```\n\n<example>\nhi\n</example>\n\nEnd.\n"
    )
    assert [text.replace(part, "", 1) for part in (" (e.g. by mail)", ", for example two lines")] == changed(
        "remove-example", text
    )[:2]
    rest = changed("remove-example", text)[2:]
    assert rest[0] == text.replace("For example, say hello. ", "")
    assert rest[1] == text.replace("Example:\n\n```\nUser: hi\n```\n\n", "")
    assert rest[2] == text.replace("<example>\nhi\n</example>\n\n", "")
    assert len(rest) == 3


def test_the_text_is_cut_at_a_line() -> None:
    text = "".join(f"line {number}\n" for number in range(8))
    assert [cut.count("\n") for cut in changed("truncate", text)] == [2, 4, 6]
    assert changed("truncate", "one line only\n") == []
