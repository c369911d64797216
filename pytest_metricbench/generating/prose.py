"""The parts of a prompt or a policy: paragraphs, list items, sentences. Code, tables and headings are told apart.

Markdown is read as people write it in prompts, line by line, and nothing is ever refused: what is not understood is a
paragraph. Positions are offsets in the text, whose lines end with a newline.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

LineKind: TypeAlias = Literal["blank", "code", "heading", "item", "table", "tag", "text"]

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM: Final = re.compile(r"([ \t]*)(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+(?=\S)")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_RULE: Final = re.compile(r"[ \t]*(?:-[ \t]*){3,}$|[ \t]*(?:\*[ \t]*){3,}$|[ \t]*(?:_[ \t]*){3,}$|[ \t]*=+[ \t]*$")
_TAG: Final = re.compile(r"[ \t]*</?[A-Za-z][^<>]*>[ \t]*$")
_FRONT_MATTER: Final = re.compile(r"\ufeff?---[ \t]*\n(?:.*\n)*?---[ \t]*(?:\n|\Z)")

_END: Final = re.compile(r"[.!?\u2026]+[\"'\u2019\u201d)\]*_`]*(?=\s|\Z)")
_NEVER_AN_END: Final = frozenset(
    {"e.g", "i.e", "mr", "mrs", "ms", "dr", "prof", "st", "vs", "cf", "approx", "incl", "excl", "fig", "sec"}
)
"""What a full stop may follow without ending a sentence."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text: ``text[start:end]``."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """The part itself."""
        return text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Line:
    """One line: what it is, where it stands, and where its own words begin."""

    kind: LineKind
    span: Span
    """With its newline, where it has one."""
    content: int
    """Behind indentation and the mark of a list item."""
    indent: int


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, or a list item with what belongs to it."""

    kind: Literal["paragraph", "item"]
    whole: Span
    """Whole lines; of an item, the items below it included."""
    prose: Span
    """Its own words, behind the mark of an item, without the newline at the end."""


def lines_of(text: str) -> list[Line]:
    """Every line of a text."""
    front = _FRONT_MATTER.match(text)
    code_until = front.end() if front else 0
    fence: str | None = None
    lines: list[Line] = []
    position = 0
    for raw in text.split("\n"):
        end = min(position + len(raw) + 1, len(text))
        if position == end:  # behind the last newline
            break
        opened = _FENCE.match(raw)
        is_code = position < code_until or fence is not None or opened is not None
        kind: LineKind = "code" if is_code else _kind(raw)
        if position >= code_until and opened:
            fence = _fence_after(fence, opened[1], raw)
        mark = _ITEM.match(raw) if kind == "item" else None
        stripped = raw.lstrip(" \t\ufeff")
        indent = len(raw) - len(stripped)
        content = mark.end() if mark else indent
        lines.append(Line(kind, Span(position, end), position + content, indent))
        position = end
    return lines


def _fence_after(fence: str | None, mark: str, line: str) -> str | None:
    """The fence that is open after a line that looks like one."""
    if fence is None:
        return mark
    closes = mark[0] == fence[0] and len(mark) >= len(fence) and not line.strip().strip(mark[0])
    return None if closes else fence


def _kind(raw: str) -> LineKind:
    if not raw.strip(" \t\ufeff"):
        return "blank"
    if _HEADING.match(raw) or _RULE.match(raw):
        return "heading"
    if _ITEM.match(raw):
        return "item"
    if _TAG.match(raw):
        return "tag"
    return "table" if raw.lstrip().startswith("|") else "text"


def blocks_of(text: str) -> list[Block]:
    """The paragraphs and list items of a text, in order; an item stands before those below it."""
    lines = lines_of(text)
    blocks = []
    number = 0
    while number < len(lines):
        line = lines[number]
        if line.kind not in ("item", "text"):
            number += 1
            continue
        last = number
        while last + 1 < len(lines) and lines[last + 1].kind == "text":
            last += 1
        prose = Span(line.content, lines[last].span.end)
        prose = Span(prose.start, prose.start + len(prose.of(text).rstrip()))
        kind: Literal["paragraph", "item"] = "item" if line.kind == "item" else "paragraph"
        end = lines[_last_below(lines, number, last) if kind == "item" else last].span.end
        blocks.append(Block(kind, Span(line.span.start, end), prose))
        number = last + 1
    return blocks


def _last_below(lines: list[Line], first: int, last: int) -> int:
    """The last line that belongs to an item: what is indented further, blank lines between included."""
    for number in range(last + 1, len(lines)):
        line = lines[number]
        if line.kind == "blank":
            continue
        if line.indent <= lines[first].indent:
            break
        last = number
    return last


def sentences_of(text: str, prose: Span) -> Iterator[Span]:
    """The sentences of a block's prose, without the space around them."""
    start = prose.start
    for end in _END.finditer(text, prose.start, prose.end):
        if end.end() < prose.end and not _ends_here(text, end, prose):
            continue
        if text[start : end.end()].strip():
            yield _stripped(text, Span(start, end.end()))
        start = end.end()
    if text[start : prose.end].strip():
        yield _stripped(text, Span(start, prose.end))


def _ends_here(text: str, end: re.Match[str], prose: Span) -> bool:
    """Whether a full stop in the middle of a block ends a sentence."""
    following = text[end.end() : prose.end].lstrip()
    if following[:1].islower():
        return False
    if not end[0].startswith(".") or end[0].startswith(".."):
        return True
    words = text[prose.start : end.start()].split()
    before = words[-1].lstrip("([\"'*_").casefold() if words else ""
    is_number = before == "no" and following[:1].isdigit()
    return before not in _NEVER_AN_END and not (len(before) == 1 and before.isalpha()) and not is_number


def _stripped(text: str, span: Span) -> Span:
    found = span.of(text)
    start = span.start + len(found) - len(found.lstrip())
    return Span(start, start + len(found.strip()))


def without(text: str, span: Span) -> str:
    """A text without one part, and without the space or the empty line that would be left where it was."""
    start, end = span.start, span.end
    line_start = text.rfind("\n", 0, start) + 1
    begins_line = not text[line_start:start].strip(" \t")
    while end < len(text) and text[end] in " \t":
        end += 1
    ends_line = end == len(text) or text[end] == "\n" or text[end - 1 : end] == "\n"
    if begins_line and ends_line:
        start = line_start
        if end < len(text) and text[end - 1 : end] != "\n":
            end += 1
        above_blank = start == 0 or text[:start].endswith("\n\n")
        if above_blank and text.startswith("\n", end):
            end += 1
    elif ends_line or text[end] in ".,;:!?)":
        while start > line_start and text[start - 1] in " \t":
            start -= 1
        if text[end - 1 : end] == "\n":
            end -= 1
    return text[:start] + text[end:]


def in_words(text: str, limit: int = 60) -> str:
    """A part of a text as a description shows it: on one line, cut at a word."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    return f"{line[: limit - 3].rsplit(' ', 1)[0].rstrip('.,;:')}..."
