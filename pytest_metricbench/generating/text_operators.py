"""The operators over texts that need no plugin: parts dropped, examples removed, the text cut, values swapped."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_metricbench.generating import modals
from pytest_metricbench.generating.base import TextChange, TextOperator
from pytest_metricbench.generating.prose import Block, Span, blocks_of, in_words, lines_of, sentences_of, without
from pytest_metricbench.messages import counted

_EXAMPLE_TAG: Final = re.compile(r"<(example|few_shot|sample)s?\b[^>]*>.*?</\1s?>", re.IGNORECASE | re.DOTALL)
_IN_BRACKETS: Final = re.compile(r"\((?:e\.g\.|for example|for instance|such as)[^()\n]*\)", re.IGNORECASE)
_NAMED_EXAMPLE: Final = re.compile(r"[\W_]*(?:for )?(?:examples?|instance)\b(?:[ \t]*\w{1,3})?[\W_]*?:", re.IGNORECASE)
_SPEAKS_OF_ONE: Final = re.compile(
    r"\s*[,;:\u2013\u2014-]?\s*\b(?:for example|for instance|e\.g\.|such as)", re.IGNORECASE
)
_SENTENCE_END: Final = re.compile(r"[.!?\u2026]*[\"'\u2019\u201d)\]*_`]*\Z")

_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_DATES: Final = re.compile(
    r"(?<![\w.])(?:"
    r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?{_MONTH}(?:,? \d{{4}})?"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:, \d{{4}})?|{_MONTH} \d{{4}}"
    r")(?![\w])"
)
_TIMES: Final = re.compile(r"(?<![\w:.])(?:\d{1,2}:\d{2}(?: ?[ap]m)?|\d{1,2} ?[ap]m)(?![\w:])", re.IGNORECASE)
_SMALL: Final = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_WORDS: Final = {
    **{word: value for value, word in enumerate(_SMALL, start=2)},
    "fourteen": 14,
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "ninety": 90,
}
_NUMBERS: Final = re.compile(
    rf"(?<![\w.,:/-])(?:\d+(?:[.,]\d+)*|(?:{'|'.join(_WORDS)}))(?![\w:/]|[.,]\d|-\d)", re.IGNORECASE
)
_SHARES: Final = ((1, "a quarter"), (2, "half"), (3, "three quarters"))


# ---------------------------------------------------------------- dropping


def _drop_sentence(text: str) -> Iterator[TextChange]:
    for block in blocks_of(text):
        sentences = list(sentences_of(text, block.prose))
        if block.kind == "item" and len(sentences) < 2:
            continue  # that is the whole rule
        for sentence in sentences:
            words = sentence.of(text)
            yield TextChange(without(text, sentence), words, f"the sentence {in_words(words)!r} is missing")


def _drop_rule(text: str) -> Iterator[TextChange]:
    for block in blocks_of(text):
        if block.kind == "item":
            words = block.prose.of(text)
            yield TextChange(without(text, block.whole), words, f"the rule {in_words(words)!r} is missing")


# ---------------------------------------------------------------- examples


def _remove_example(text: str) -> Iterator[TextChange]:
    seen: set[Span] = set()
    for example in sorted((*_marked_examples(text), *_spoken_examples(text)), key=lambda span: span.start):
        if example not in seen:
            seen.add(example)
            words = example.of(text)
            yield TextChange(without(text, example), words, f"the example {in_words(words)!r} is missing")


def _marked_examples(text: str) -> Iterator[Span]:
    """Examples between tags or in brackets."""
    for match in (*_EXAMPLE_TAG.finditer(text), *_IN_BRACKETS.finditer(text)):
        yield Span(match.start(), match.end())


def _spoken_examples(text: str) -> Iterator[Span]:
    """Paragraphs and items that call themselves an example, with the listing below; what a sentence gives as one."""
    for block in blocks_of(text):
        if _NAMED_EXAMPLE.match(block.prose.of(text)):
            yield Span(block.whole.start, _end_of_listing(text, block))
            continue
        in_brackets = [match.span() for match in _IN_BRACKETS.finditer(text, block.prose.start, block.prose.end)]
        for sentence in sentences_of(text, block.prose):
            begun = _SPEAKS_OF_ONE.search(text, sentence.start, sentence.end)
            if begun is None or any(start <= begun.start() < end for start, end in in_brackets):
                continue
            closing = _SENTENCE_END.search(sentence.of(text))
            kept = len(closing[0]) if closing is not None and begun.start() > sentence.start else 0
            yield Span(begun.start(), sentence.end - kept)


def _end_of_listing(text: str, block: Block) -> int:
    """Where a paragraph ends, or the code that follows it."""
    end = block.whole.end
    for line in lines_of(text):
        if line.span.start < block.whole.end or line.kind == "blank":
            continue
        if line.kind != "code":
            break
        end = line.span.end
    return end


# ---------------------------------------------------------------- cutting


def _truncate(text: str) -> Iterator[TextChange]:
    ends = [line.span.end for line in lines_of(text) if line.kind != "blank"]
    for quarters, name in _SHARES:
        kept = [end for end in ends if end * 4 <= len(text) * quarters]
        if kept and text[kept[-1] :].strip():
            left = text[: kept[-1]].count("\n")
            lines = f"{left} of {text.count(chr(10), 0, len(text) - 1) + 1} lines"
            yield TextChange(text[: kept[-1]], f"after {name}", f"the text ends after about {name} of it, {lines}")


# ---------------------------------------------------------------- swapping


@dataclass(frozen=True, slots=True)
class _Value:
    span: Span
    value: object


def _swapped(text: str, values: Sequence[_Value]) -> Iterator[TextChange]:
    """Each value with the next one that differs."""
    for number, first in enumerate(values):
        second = next((other for other in values[number + 1 :] if other.value != first.value), None)
        if second is None:
            continue
        one, other = first.span.of(text), second.span.of(text)
        between = text[first.span.end : second.span.start]
        yield TextChange(
            text[: first.span.start] + other + between + one + text[second.span.end :],
            f"{one} and {other}",
            f"{in_words(one)!r} and {in_words(other)!r} changed places{_distance(between)}",
        )


def _distance(between: str) -> str:
    lines = between.count("\n")
    return "" if not lines else f" ({counted(lines, 'line')} apart)"


def _places(text: str) -> Iterator[Span]:
    """Where values are looked for: prose and the cells of tables, and neither code nor the marks of items."""
    for line in lines_of(text):
        if line.kind in ("item", "text", "table"):
            yield Span(line.content, line.span.end)


def _found(text: str, pattern: re.Pattern[str]) -> list[_Value]:
    return [
        _Value(Span(match.start(), match.end()), " ".join(match[0].casefold().split()))
        for place in _places(text)
        for match in pattern.finditer(text, place.start, place.end)
    ]


def _swap_dates(text: str) -> Iterator[TextChange]:
    yield from _swapped(text, _found(text, _DATES))
    yield from _swapped(text, _found(text, _TIMES))


def _swap_numbers(text: str) -> Iterator[TextChange]:
    taken = [value.span for value in (*_found(text, _DATES), *_found(text, _TIMES))]
    numbers = []
    for found in _found(text, _NUMBERS):
        if not any(span.start < found.span.end and found.span.start < span.end for span in taken):
            word = str(found.value)
            numbers.append(_Value(found.span, str(_WORDS.get(word, word))))
    yield from _swapped(text, numbers)


BUILTIN: Final[dict[str, TextOperator]] = {
    operator.name: operator
    for operator in (
        TextOperator("drop-sentence", _drop_sentence),
        TextOperator("drop-rule", _drop_rule),
        modals.WEAKEN,
        modals.INVERT,
        modals.BOUND,
        TextOperator("swap-numbers", _swap_numbers),
        TextOperator("swap-dates", _swap_dates),
        TextOperator("remove-example", _remove_example),
        TextOperator("truncate", _truncate),
    )
}
"""The operators that need no plugin, by their names."""
