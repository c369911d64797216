"""Pieces of Markdown that GitHub and GitLab show as they were meant, whatever text of the user's is in them."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from pytest_metricbench.reporting.layout import one_line, shortened

MOST_OF_TEXT: Final = 500
"""Characters of a description or message."""
_MARKUP: Final = re.compile(r"[\\`*_\[\]<>&~|$]")
_AT_START: Final = re.compile(r"(?:[-+=#]|\d{1,9}[.)])")
_REFERENCE: Final = re.compile(
    r"(?<!\w)[@!~$%^](?=\w)|#(?=\d)|@(?=[\w+-]+\.)|:(?=[\w+-]+:)|:(?=//)|www(?=\.)", re.ASCII | re.IGNORECASE
)
"""Starts of what GitHub or GitLab turn into links and emoji after Markdown is done: ``@name``, ``#12``, ``:smile:``."""
_ENTITIES: Final = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_APART: Final = "<!-- -->"


def text(given: str, most: int = MOST_OF_TEXT) -> str:
    """A text of the user's as plain words on one line: no markup, no link, no mention, no formula, no cell border."""
    words = shortened(one_line(given), most)
    pieces = _REFERENCE.sub(lambda found: f"{found.group()}\0", words).split("\0")
    escaped = _APART.join(
        _MARKUP.sub(lambda found: _ENTITIES.get(found.group(), f"\\{found.group()}"), piece) for piece in pieces
    )
    start = _AT_START.match(escaped)
    return escaped if start is None else f"{escaped[: start.end() - 1]}\\{escaped[start.end() - 1 :]}"


def code(given: str, most: int = MOST_OF_TEXT) -> str:
    """An id or a gate as code: nothing in it is markup. Cell borders are escaped as tables want it."""
    words = shortened(one_line(given), most)
    if not words:
        return ""
    longest = max((len(run) for run in re.findall("`+", words)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if words.startswith("`") or words.endswith("`") else ""
    if "|" in words:  # a table cell ends at a border even in code, and in it a backslash would be shown outside tables
        return f"<code>{text(words, most)}</code>"
    return f"{fence}{pad}{words}{pad}{fence}"


def heading(level: int, words: str) -> str:
    """A heading; ``words`` is Markdown."""
    return f"{'#' * level} {words}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """The lines of a table; cells are Markdown without line ends.

    Args:
        heads: of the columns.
        rows: as many cells as heads each; none gives no table.
        right: columns, from 0, whose cells stand at the right: numbers.
    """
    lines = [_row(row) for row in rows]
    if not lines:
        return []
    rule = _row(["---:" if column in right else "---" for column in range(len(heads))])
    return [_row(heads), rule, *lines]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def bullets(items: Iterable[str]) -> list[str]:
    """The lines of a list; items are Markdown without line ends."""
    return [f"- {item}" for item in items]


def joined(blocks: Iterable[Sequence[str]], limit: int, note: str) -> str:
    """Blocks of lines with an empty line between them, cut before the first line that does not fit.

    Args:
        blocks: a table or list may be cut between its rows; a heading does not stay without a line below it.
        limit: bytes of the whole, in UTF-8, the note included.
        note: Markdown that says at the end that something was cut.
    """
    lines: list[str] = []
    for block in blocks:
        if block:
            lines += ["", *block] if lines else list(block)
    whole = "\n".join(lines) + "\n"
    if len(whole.encode()) <= limit:
        return whole
    ending = f"\n{note}\n"
    room, kept = limit - len(ending.encode()), list[str]()
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(line)
    while kept and (not kept[-1] or kept[-1].startswith("#") or _is_head(kept)):
        kept.pop()
    return "\n".join(kept) + "\n" + ending if kept else ending.lstrip()


def _is_head(lines: Sequence[str]) -> bool:
    """Whether the last line is the head of a table without a row, or its rule."""
    starts_table = lines[-1].startswith("|") and (len(lines) < 2 or not lines[-2].startswith("|"))
    return starts_table or lines[-1].startswith(("| ---", "| ---:"))
