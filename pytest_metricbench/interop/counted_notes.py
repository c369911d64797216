"""Notes that say how many of something there are, in words that fit one and many."""

from collections import Counter
from collections.abc import Iterable, Iterator

from pytest_metricbench.definition.experiment import Note


def counted_note(text: str, count: int) -> Note:
    """A note whose ``text`` follows the count in the report: ``{s}`` in it is the plural's ending."""
    return Note(text.replace("{s}", "" if count == 1 else "s", 1), count)


def counted_notes(texts: Iterable[str], counted: Counter[str]) -> Iterator[Note]:
    """The notes of what occurred at all, in the order of ``texts``."""
    return (counted_note(text, counted[text]) for text in texts if counted[text])
