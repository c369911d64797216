"""What messages of all parts have in common: counts, the word that was meant, and what was raised."""

import re
import traceback
from collections.abc import Iterable
from typing import Final

_LONGEST: Final = 100
"""Characters of a misspelt word that are looked at: no id, key or option is longer."""


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 task``, ``1,200 tasks``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def and_more(others: int, noun: str) -> str:
    """What follows the first of several: `` (and 1 more task)``, `` (and 2 more tasks)``; empty for no others."""
    return f" (and {counted(others, f'more {noun}')})" if others else ""


def unheard(text: str) -> None:
    """Hear what goes on and tell nobody: the progress of where there is no terminal to show it."""


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known word that a misspelt one most probably means; None when none is near.

    Case and the characters ``-``, ``_``, ``.`` and space do not count as differences.

    Args:
        word: as it was written.
        known: the words that there are.
        cutoff: how near is near, from 0 (anything) to 1 (equal): the ratio of :mod:`difflib`.
    """
    import difflib  # only a mistake pays for it

    plain: dict[str, str] = {}
    for candidate in sorted(known):
        plain.setdefault(_plain(candidate), candidate)
    close = difflib.get_close_matches(_plain(word)[:_LONGEST], list(plain), n=1, cutoff=cutoff)
    return plain[close[0]] if close else None


def _plain(word: str) -> str:
    return re.sub(r"[-_. ]", "", word).casefold()


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """``did you mean 'x'?`` for the :func:`nearest` known word; empty when none is near."""
    near = nearest(word, known, cutoff=cutoff)
    return f"did you mean {near!r}?" if near is not None else ""


def joined(*parts: str) -> str:
    """The parts of a message that are not empty, as one: ``there is no 'x'; did you mean 'y'? there are 'z'``."""
    return "; ".join(part for part in parts if part).replace("?; ", "? ")


def without_traceback(error: BaseException) -> str:
    """What was raised, without its traceback: ``ValueError: message``."""
    return "".join(traceback.format_exception_only(error)).strip()
