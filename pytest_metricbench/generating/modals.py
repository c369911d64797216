"""Operators over the words that bind: modals weakened or inverted, bounds turned round. English."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pytest_metricbench.generating.base import TextChange, TextOperator
from pytest_metricbench.generating.prose import Span, blocks_of, in_words, sentences_of

WEAKER: Final[dict[str, str]] = {
    "must": "may",
    "must not": "should preferably not",
    "mustn't": "should preferably not",
    "shall": "may",
    "shall not": "should preferably not",
    "have to": "may",
    "has to": "may",
    "need to": "may",
    "needs to": "may",
    "cannot": "should preferably not",
    "can not": "should preferably not",
    "can't": "should preferably not",
    "may not": "should preferably not",
    "do not": "try not to",
    "don't": "try not to",
    "always": "sometimes",
    "never": "rarely",
    "only": "preferably",
    "required": "recommended",
    "mandatory": "optional",
}
"""What a modal becomes when it is weakened."""

OPPOSITE: Final[dict[str, str]] = {
    "must": "must not",
    "must not": "must",
    "mustn't": "must",
    "shall": "shall not",
    "shall not": "shall",
    "should": "should not",
    "should not": "should",
    "shouldn't": "should",
    "may": "may not",
    "may not": "may",
    "can": "cannot",
    "can not": "can",
    "cannot": "can",
    "can't": "can",
    "do not": "do",
    "don't": "do",
    "does not": "does",
    "doesn't": "does",
    "is allowed": "is not allowed",
    "is not allowed": "is allowed",
    "are allowed": "are not allowed",
    "are not allowed": "are allowed",
    "always": "never",
    "never": "always",
}
"""What a modal becomes when it is inverted."""

OTHER_BOUND: Final[dict[str, str]] = {
    "at least": "at most",
    "at most": "at least",
    "more than": "less than",
    "less than": "more than",
    "fewer than": "more than",
    "no more than": "no less than",
    "no less than": "no more than",
    "before": "after",
    "after": "before",
    "above": "below",
    "below": "above",
    "minimum": "maximum",
    "maximum": "minimum",
    "earliest": "latest",
    "latest": "earliest",
}
"""What a bound becomes when it is turned round."""


def _replaced(name: str, words: Mapping[str, str]) -> TextOperator:
    """An operator that replaces one of these words at a time, wherever prose has it."""
    longest_first = sorted(words, key=len, reverse=True)
    alternatives = "|".join(re.escape(word).replace(r"\ ", r"\s+").replace("'", "['\u2019]") for word in longest_first)
    pattern = re.compile(rf"(?<![\w'\u2019-])(?:{alternatives})(?![\w'\u2019-])", re.IGNORECASE)

    def find(text: str) -> Iterator[TextChange]:
        for block in blocks_of(text):
            for sentence in sentences_of(text, block.prose):
                for match in pattern.finditer(text, sentence.start, sentence.end):
                    if not _is_month(text, match, sentence):
                        yield _change(text, match, sentence, words)

    return TextOperator(name, find)


def _change(text: str, match: re.Match[str], sentence: Span, words: Mapping[str, str]) -> TextChange:
    found = match[0]
    plain = " ".join(found.replace("\u2019", "'").split()).casefold()
    new = _in_case_of(found, words[plain])
    there = text[match.start() : sentence.end]
    following = " ".join(text[match.end() : sentence.end].split()[:3])
    return TextChange(
        text[: match.start()] + new + text[match.end() :],
        f"{' '.join(found.split())} {following}",
        f"{in_words(found)!r} became {new!r} in {in_words(there)!r}",
    )


def _in_case_of(found: str, new: str) -> str:
    letters = [character for character in found if character.isalpha()]
    if len(letters) > 1 and all(character.isupper() for character in letters):
        return new.upper()
    return new[0].upper() + new[1:] if found[0].isupper() else new


def _is_month(text: str, match: re.Match[str], sentence: Span) -> bool:
    """Whether this is the month of May."""
    if match[0] != "May":
        return False
    return match.start() != sentence.start or bool(re.match(r"\s+\d", text[match.end() : match.end() + 5]))


WEAKEN: Final = _replaced("weaken-modal", WEAKER)
INVERT: Final = _replaced("invert-modal", OPPOSITE)
BOUND: Final = _replaced("invert-bound", OTHER_BOUND)
