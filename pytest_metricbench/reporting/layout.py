"""Lines of plain text for a terminal: numbers, tables, wrapped blocks, and hints of style that may be ignored."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Style: TypeAlias = Literal["", "bold", "light", "green", "yellow", "red"]
"""Names that pytest's TerminalWriter takes as markup; nothing is said by style alone."""
Align: TypeAlias = Literal["<", ">"]

LABEL_WIDTH: Final = 16
"""Of the words at the left of a block, with the space after them."""
UNAVAILABLE: Final = "n/a"
_GAP: Final = "  "
_INTERVAL: Final = re.compile(r"= [^ ]+ \[[^\]]+\]|\[[^\]]+\]")
_FIXED: Final = "\0"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line in one style."""

    text: str
    style: Style = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, without its newline."""

    spans: tuple[Span, ...] = ()

    @property
    def text(self) -> str:
        """The line as plain text."""
        return "".join(span.text for span in self.spans)


def line(*pieces: str | tuple[str, Style]) -> Line:
    """A line of texts and (text, style) pairs, without blanks at its end."""
    spans = [Span(piece) if isinstance(piece, str) else Span(*piece) for piece in pieces]
    while spans and not spans[-1].text.rstrip():
        spans.pop()
    if spans:
        spans[-1] = Span(spans[-1].text.rstrip(), spans[-1].style)
    return Line(tuple(spans))


# ---------------------------------------------------------------- numbers


def two_digits(value: float | None) -> str:
    """A figure to two digits. What is not quite 1 is never shown as 1; no figure is ``n/a``."""
    if value is None:
        return UNAVAILABLE
    text = f"{value:.2f}"
    if text in ("1.00", "-1.00") and abs(value) != 1:
        return "0.99" if value > 0 else "-0.99"
    return "0.00" if text == "-0.00" else text


def with_interval(value: float | None, interval: tuple[float, float] | None) -> str:
    """A figure and its interval, in a form that lines up in a column."""
    if value is None or interval is None:
        return two_digits(value)
    return f"{two_digits(value)} [{two_digits(interval[0])}, {two_digits(interval[1])}]"


# ---------------------------------------------------------------- text


def one_line(text: str) -> str:
    """A text of unknown origin as one line without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def told_apart(names: Sequence[str], width: int) -> list[str]:
    """Names in at most ``width`` columns that still differ where they can: what all begin with is left out first.

    Ids made of node ids have their file in front, and cut at the end they would all look alike.
    """
    if len(names) < 2 or all(len(name) <= width for name in names):
        return [shortened(name, width) for name in names]
    first, last = min(names), max(names)  # what these two share, all share
    shared = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    begin = max(first.rfind(mark, 0, shared) for mark in "-.+") + 1
    if begin < 4:
        return [shortened(name, width) for name in names]
    return [shortened(f"..{name[begin:]}", width) for name in names]


def shortened(text: str, width: int) -> str:
    """The text, or its beginning and two points where it is longer than ``width``."""
    return text if len(text) <= width else text[: max(width - 2, 1)].rstrip() + ".."


def cut_apart(names: Sequence[str], width: int) -> list[str]:
    """Names in at most ``width`` columns; those that would look alike when cut at the end are cut in the middle."""
    cut = [shortened(name, width) for name in names]
    often = Counter(cut)
    tail = max(width - 2, 2) // 2
    head = max(width - 2 - tail, 1)
    return [
        f"{name[:head]}..{name[-tail:]}" if often[short] > 1 and len(name) > width else short
        for name, short in zip(names, cut, strict=True)
    ]


def block(label: str, texts: Iterable[str], width: int, style: Style = "") -> list[Line]:
    """Texts beside a label, each wrapped under itself; the label in its style, on the first line only."""
    lines: list[Line] = []
    for text in texts:
        pieces = _wrapped(text, max(width - LABEL_WIDTH, 20)) or [""]
        for piece in pieces:
            lines.append(line((f"{label:<{LABEL_WIDTH}}", style), piece))
            label = ""
    return lines


def named(pairs: Sequence[tuple[str, str]], width: int, most_lines: int = 1) -> list[str]:
    """Names with what they mean, the meanings below each other, for :func:`listing`.

    Args:
        pairs: name and meaning.
        width: of the terminal, label included.
        most_lines: lines that a meaning may take; a longer one is cut.
    """
    room = width - LABEL_WIDTH
    column = min(max((len(name) for name, _ in pairs), default=0), max(room // 2, 10))
    beside = max(room - column - len(_GAP), 8)
    texts = []
    for short, (_, meaning) in zip(cut_apart([name for name, _ in pairs], column), pairs, strict=True):
        lines = _wrapped(meaning, beside) or [""]
        if len(lines) > most_lines:
            lines = [*lines[: most_lines - 1], shortened(" ".join(lines[most_lines - 1 :]), beside)]
        for index, text in enumerate(lines):
            start = short if index == 0 else ""
            texts.append(f"{start:<{column}}{_GAP}{text}".rstrip())
    return texts


def flowing(texts: Sequence[str], width: int) -> list[str]:
    """Short texts in columns of one width, as many a line as fit."""
    column = max(len(text) for text in texts) + len(_GAP)
    per_line = max(width // column, 1)
    return [
        "".join(f"{text:<{column}}" for text in texts[start : start + per_line]).rstrip()
        for start in range(0, len(texts), per_line)
    ]


def paragraph(text: str, width: int, style: Style = "", indent: str = "") -> list[Line]:
    """A text without a label, wrapped."""
    return [line((indent + piece, style)) for piece in _wrapped(text, width - len(indent))]


def _wrapped(text: str, width: int) -> list[str]:
    """The text in lines; an interval stays in one piece."""
    whole = _INTERVAL.sub(lambda found: found.group().replace(" ", _FIXED), one_line(text))
    return [piece.replace(_FIXED, " ") for piece in textwrap.wrap(whole, width, break_on_hyphens=False)]


def listing(label: str, texts: Sequence[str], width: int, style: Style = "") -> list[Line]:
    """Texts that fit their line already, beside a label; unlike :func:`block`, blanks inside them stay."""
    return [
        line((f"{label if index == 0 else '':<{LABEL_WIDTH}}", style), text[: max(width - LABEL_WIDTH, 20)])
        for index, text in enumerate(texts)
    ]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its head, a cell a row, and how it stands in the line."""

    head: str
    cells: Sequence[str]
    align: Align = ">"
    gap: int = 2
    """Blanks before it, where it is not the first."""

    @property
    def width(self) -> int:
        """Of its widest cell."""
        return max(len(cell) for cell in (self.head, *self.cells))


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns, from the left, that fit in a width; at least the first."""
    used, fit = 0, 0
    for column in columns:
        used += column.width + (column.gap if fit else 0)
        if used > width:
            break
        fit += 1
    return list(columns[: max(fit, 1)])


def table(columns: Sequence[Column], width: int, rows_left_out: tuple[int, str] | None = None) -> list[Line]:
    """A table with its heads; columns that do not fit are named below it.

    Args:
        columns: equally long, the first one first.
        width: of the terminal.
        rows_left_out: after how many rows to say, and what, that rows are left out there.
    """
    shown = fitting(columns, width)
    texts = []
    for row in zip(*([column.head, *column.cells] for column in shown), strict=True):
        cells = [
            f"{' ' * (column.gap if index else 0)}{cell:{column.align}{column.width}}"
            for index, (column, cell) in enumerate(zip(shown, row, strict=True))
        ]
        texts.append("".join(cells))
    lines = [line((texts[0], "bold")), *(line(text) for text in texts[1:])]
    if rows_left_out is not None:
        after, text = rows_left_out
        lines.insert(1 + after, line((shortened(f".. {text}", width), "light")))
    if len(shown) < len(columns):
        heads = ", ".join(column.head for column in columns[len(shown) :])
        lines += paragraph(f"no room for {heads}: summary.json", width, "light")
    return lines
