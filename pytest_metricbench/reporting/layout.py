"""Lines of plain text for a terminal: numbers, tables, wrapped blocks, and hints of style that may be ignored."""

import textwrap
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


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 task``, ``1,200 tasks``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# ---------------------------------------------------------------- text


def one_line(text: str) -> str:
    """A text of unknown origin as one line without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def shortened(text: str, width: int) -> str:
    """The text, or its beginning and two points where it is longer than ``width``."""
    return text if len(text) <= width else text[: max(width - 2, 1)].rstrip() + ".."


def block(label: str, texts: Iterable[str], width: int, style: Style = "") -> list[Line]:
    """Texts beside a label, each wrapped under itself; the label in its style, on the first line only."""
    lines: list[Line] = []
    for text in texts:
        pieces = textwrap.wrap(one_line(text), max(width - LABEL_WIDTH, 20), break_on_hyphens=False) or [""]
        for piece in pieces:
            lines.append(line((f"{label:<{LABEL_WIDTH}}", style), piece))
            label = ""
    return lines


def named(pairs: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Names with what they mean, the meanings below each other and each cut to what is left of a block's width."""
    room = width - LABEL_WIDTH
    column = min(max((len(name) for name, _ in pairs), default=0), max(room // 2, 10))
    texts = []
    for name, meaning in pairs:
        start = f"{shortened(name, column):<{column}}"
        texts.append(shortened(f"{start}{_GAP}{one_line(meaning)}", room).rstrip() if meaning else start.rstrip())
    return texts


def listing(label: str, texts: Sequence[str], width: int, style: Style = "") -> list[Line]:
    """Texts that fit their line already, beside a label; unlike :func:`block`, blanks inside them stay."""
    return [
        line((f"{label if index == 0 else '':<{LABEL_WIDTH}}", style), text[: max(width - LABEL_WIDTH, 20)])
        for index, text in enumerate(texts)
    ]


def table(rows: Sequence[Sequence[str]], aligns: Sequence[Align], indent: str = "") -> list[str]:
    """Rows of equal length as aligned columns; the first column is on the left, as wide as it needs to be."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(aligns))]
    lines = []
    for row in rows:
        cells = [f"{cell:{align}{size}}" for cell, align, size in zip(row, aligns, widths, strict=True)]
        lines.append((indent + _GAP.join(cells)).rstrip())
    return lines


def fitting(columns: Sequence[Sequence[str]], width: int) -> int:
    """How many of the columns, from the left, fit in a width; at least one."""
    used, fit = 0, 0
    for column in columns:
        used += max(len(cell) for cell in column) + (len(_GAP) if fit else 0)
        if used > width:
            break
        fit += 1
    return max(fit, 1)
