"""Unified diffs, read and applied strictly: every line of a hunk stands where the hunk says, or the patch is refused.

A patch that is applied elsewhere than it was made for makes another mutant than the one that was reviewed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

_HEAD: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE: Final = "\\"
"""What a line begins with that says that the one before it ends without a newline."""
_NOWHERE: Final = "/dev/null"
_REFUSED: Final = ("GIT binary patch", "Binary files ", "rename from ", "copy from ")


class PatchError(Exception):
    """A patch that cannot be read, or does not fit; the message names the hunk and the line."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk: the lines that it expects, and those that it puts in their place; without their newlines."""

    number: int
    """Of the hunks of its file, from 1."""
    head: str
    start: int
    """Index of the first line that it expects; where it expects none, of the line that it stands before."""
    old: tuple[str, ...]
    new: tuple[str, ...]
    ends_without_newline: bool = False
    """Of its last new line."""

    @property
    def title(self) -> str:
        """How an error names it."""
        return f"hunk {self.number} ({self.head})"

    def ended(self, endings: Sequence[str]) -> list[str]:
        """The new lines, each with what stands before its newline: those that stay keep their own.

        Args:
            endings: of the lines of the source, and of a line after the last one.
        """
        head = _equal(self.old, self.new)
        tail = min(_equal(self.old[::-1], self.new[::-1]), len(self.old) - head, len(self.new) - head)
        changed = len(self.new) - head - tail
        kept = [*range(head), *[head] * changed, *range(len(self.old) - tail, len(self.old))]
        last = len(endings) - 1
        return [line + endings[min(self.start + at, last)] for line, at in zip(self.new, kept, strict=True)]


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines two lists have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


@dataclass(frozen=True, slots=True)
class FilePatch:
    """The part of a patch that is about one file."""

    name: str
    """As the patch names it after its change, with its prefix (``b/``)."""
    hunks: tuple[Hunk, ...]

    def recoded(self, encoding: str) -> "FilePatch":
        """The same of a patch that was read with a character for each byte, its lines in the encoding of its file.

        Raises:
            PatchError: they are not.
        """

        def text(line: str) -> str:
            return line.encode("latin-1").decode(encoding.removesuffix("-sig"))

        try:
            hunks = [replace(h, old=tuple(map(text, h.old)), new=tuple(map(text, h.new))) for h in self.hunks]
        except UnicodeDecodeError:
            raise PatchError(f"it is neither UTF-8 nor in {encoding}, the encoding of {self.name}") from None
        return FilePatch(self.name, tuple(hunks))

    def apply(self, source: str, file: str) -> str:
        """The patched source; its line endings are those of the source.

        Args:
            source: what stands there.
            file: how an error names it.

        Raises:
            PatchError: a hunk does not apply.
        """
        lines = source.split("\n")
        endings = ["\r" if line.endswith("\r") else "" for line in lines]
        plain = [line.removesuffix("\r") for line in lines]
        usual = endings[0]
        patched: list[str] = []
        done = 0
        for hunk in self.hunks:
            if hunk.start < done:
                raise PatchError(f"{hunk.title} begins before the one above it ends")
            _require(hunk, plain, file)
            patched += lines[done : hunk.start]
            patched += hunk.ended([*endings[:-1], usual])
            done = hunk.start + len(hunk.old)
            if hunk.ends_without_newline and done >= len(lines) - 1:
                return "\n".join(patched).removesuffix("\r")
            if done >= len(lines):  # the source ends without a newline, and its last line was replaced
                return "\n".join([*patched, ""])
        return "\n".join(patched + lines[done:])


def parse_patch(text: str) -> list[FilePatch]:
    """The files of a unified diff, as ``diff -u`` and ``git diff`` write it.

    Raises:
        PatchError: it is none, or does something else than change the text of files that exist.
    """
    lines = text.split("\n")
    files: list[FilePatch] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        refused = next((word for word in _REFUSED if line.startswith(word)), None)
        if refused is not None:
            raise PatchError(
                f"line {position + 1} is {line.strip()!r}; a mutant changes the text of files, nothing else"
            )
        if line.startswith("--- ") and position + 1 < len(lines) and lines[position + 1].startswith("+++ "):
            old, new = _name(line), _name(lines[position + 1])
            if _NOWHERE in (old, new):
                what = f"adds the file {new}" if old == _NOWHERE else f"removes the file {old}"
                raise PatchError(f"it {what}; a mutant changes files that exist")
            hunks, position = _hunks(lines, position + 2)
            files.append(FilePatch(new, tuple(hunks)))
        elif _HEAD.match(line):
            raise PatchError(f"line {position + 1}: a hunk without a file above it ('--- a/FILE', '+++ b/FILE')")
        else:
            position += 1
    if not files:
        raise PatchError("no '--- a/FILE' line followed by '+++ b/FILE': it is no unified diff")
    return files


def _name(line: str) -> str:
    return line[4:].partition("\t")[0].strip().strip('"')


def _hunks(lines: Sequence[str], position: int) -> tuple[list[Hunk], int]:
    hunks: list[Hunk] = []
    while position < len(lines) and (head := _HEAD.match(lines[position])):
        reader = _HunkReader(lines, position)
        hunks.append(reader.read(len(hunks) + 1, head))
        position = reader.position
    if not hunks:
        raise PatchError(f"line {position + 1}: '@@ -N,N +N,N @@' is expected after the names of the file")
    return hunks, position


@dataclass
class _HunkReader:
    """Reads the lines of a hunk, as many as its head says."""

    lines: Sequence[str]
    position: int
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    def read(self, number: int, head: re.Match[str]) -> Hunk:
        old_count, new_count = int(head[2] or 1), int(head[4] or 1)
        bare = False
        for mark, content in self._body(old_count, new_count):
            bare = mark == _NO_NEWLINE
            if mark in " -":
                self.old.append(content)
            if mark in " +":
                self.new.append(content)
        if (len(self.old), len(self.new)) != (old_count, new_count):
            counted = f"{len(self.old)} old and {len(self.new)} new lines"
            raise PatchError(f"hunk {number} ({head.group()}) has {counted}; its head says {old_count} and {new_count}")
        start = int(head[1]) - 1 if old_count else int(head[1])
        return Hunk(number, head.group(), start, tuple(self.old), tuple(self.new), bare and self._new_is_bare())

    def _new_is_bare(self) -> bool:
        """Whether the last remark on a missing newline is about a new line, and not only about the old one."""
        before = self.lines[self.position - 2] if self.position >= 2 else ""
        return before[:1] in ("+", " ")

    def _body(self, old_count: int, new_count: int) -> Iterator[tuple[str, str]]:
        self.position += 1
        while self.position < len(self.lines):
            line = self.lines[self.position].removesuffix("\r")
            whole = len(self.old) >= old_count and len(self.new) >= new_count
            if whole and not line.startswith(_NO_NEWLINE):
                return
            if line[:1] not in (" ", "-", "+", _NO_NEWLINE) and line:
                return
            if not line and self.position == len(self.lines) - 1:
                return
            self.position += 1
            yield (line[0], line[1:]) if line else (" ", "")  # an editor took the space of an empty line


def _require(hunk: Hunk, plain: Sequence[str], file: str) -> None:
    end = len(plain) if plain[-1] else len(plain) - 1  # what follows the last newline is no line
    for number, expected in enumerate(hunk.old, start=hunk.start):
        found = plain[number] if number < end else None
        if found == expected:
            continue
        there = "does not exist" if found is None else f"is {found!r}"
        elsewhere = _elsewhere(hunk, plain)
        message = f"{hunk.title} does not apply: line {number + 1} of {file} {there}, the patch expects {expected!r}"
        raise PatchError(message + (f" (it fits at line {elsewhere}: make the patch again)" if elsewhere else ""))
    if not hunk.old and hunk.start > end:
        raise PatchError(f"{hunk.title} does not apply: {file} has {end} lines")


def _elsewhere(hunk: Hunk, plain: Sequence[str]) -> int | None:
    """The line at which a hunk would fit, where that is one only."""
    size = len(hunk.old)
    found = [at for at in range(len(plain) - size + 1) if tuple(plain[at : at + size]) == hunk.old] if size else []
    return found[0] + 1 if len(found) == 1 else None
