"""JSON read from a file piece by piece: what is asked for is given, the rest is checked and skipped.

Memory is bounded by the piece and the longest text asked for, whatever the file holds: a trace may have hundreds of
megabytes, and one of its texts may be nearly all of them. What counts as JSON is what :func:`json.loads` takes (bare
NaN and Infinity included, UTF-8, -16 or -32 with or without a byte order mark), except that nesting deeper than
:data:`DEPTH_LIMIT` and numbers longer than :data:`NUMBER_LIMIT` may be refused.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Final, Literal, Protocol, TypeAlias

Kind: TypeAlias = Literal["object", "array", "text", "number", "boolean", "null"]

PIECE: Final = 1 << 18
"""Bytes that are read at a time."""
DEPTH_LIMIT: Final = 500
"""Levels of lists and mappings."""
NUMBER_LIMIT: Final = 4300
"""Characters of a number: more digits Python turns into none."""
TEXT_LIMIT: Final = 1 << 16
"""Characters of a text that is asked for, and of a key."""

_SPACE: Final = re.compile(r"[ \t\n\r]*+")
_TEXT_PART: Final = re.compile(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+')
_ESCAPE_BEGUN: Final = re.compile(r"\\(?:u[0-9A-Fa-f]{0,3})?")
_WORD: Final = re.compile(r"[-+.0-9A-Za-z]*+")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?P<rest>(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)")
_WORDS: Final[dict[str, bool | float | None]] = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_KINDS: Final[dict[str, Kind]] = {"{": "object", "[": "array", '"': "text", "t": "boolean", "f": "boolean", "n": "null"}
_NUMBER_BEGINS: Final = frozenset("-0123456789NI")

# Runs of plain values inside a list or a mapping that is skipped, so that lists of a million numbers go by at once.
# Whatever does not match (a value cut by the end of the piece, a nested one, a mistake) is looked at one by one.
_S: Final = r"[ \t\n\r]*+"
_QUOTED: Final = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+"'
_SHORT: Final = r"-?(?:0|[1-9][0-9]{0,99}+)(?:\.[0-9]{1,99}+)?(?:[eE][-+]?[0-9]{1,9}+)?"
_PLAIN: Final = rf"(?:{_SHORT}|{_QUOTED}|true|false|null)(?=[ \t\n\r,\]}}])"
_RUNS: Final = {
    "]": re.compile(rf"(?:{_S},{_S}{_PLAIN})*+"),
    "}": re.compile(rf"(?:{_S},{_S}{_QUOTED}{_S}:{_S}{_PLAIN})*+"),
}

_scan_whole: Final = json.JSONDecoder().raw_decode
"""Reads a value that lies wholly in a text, much faster than Python can look at its parts."""
_VAIN_SCANS: Final = 16
"""Scans of one piece that may end in vain, at its end: each costs as much as the rest of the piece is long."""


class Readable(Protocol):
    """A binary file, or what reads like one."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""
        ...


class JsonError(ValueError):
    """The file is no JSON; the message says what is wrong and in which line and column."""


class LongTextError(JsonError):
    """The file may be JSON, and has a text too long for what it stands for."""


class JsonReader:
    """Walks through one JSON file from its beginning to its end.

    The next value is taken whole with :meth:`text`, :meth:`scalar` or :meth:`skip`, or entered with :meth:`members`
    or :meth:`items`, whose caller takes one value for each key or position it is given before it asks for the next.

    Raises:
        JsonError: (every method) what comes next is no JSON.
        OSError: (every method) the file cannot be read.
    """

    def __init__(self, file: Readable, *, piece: int = PIECE) -> None:
        """Begin at the file's current position."""
        self._file = file
        self._piece = piece
        self._decoder: codecs.IncrementalDecoder | None = None
        self._text = ""
        self._at = 0
        self._ended = False
        self._depth = 0
        self._vain_scans_left = _VAIN_SCANS
        self._lines = 0
        self._before = 0  # characters of the current line that are dropped already

    # ------------------------------------------------------------ what comes next

    @property
    def kind(self) -> Kind:
        """What the next value is."""
        begins = self._next()
        kind = _KINDS.get(begins)
        if kind is not None:
            return kind
        if begins in _NUMBER_BEGINS and begins:
            return "number"
        raise self.error("a value is expected")

    def text(self, limit: int = TEXT_LIMIT) -> str:
        """The next value, which is a text of at most so many characters as written (an escape has several).

        Raises:
            LongTextError: it has more.
        """
        self._take('"', "a text in quotes is expected")
        parts: list[str] = []
        size = 0
        while True:
            begin, ends = self._at, self._to_end_of_part()
            parts.append(self._text[begin : self._at])
            size += self._at - begin
            if size > limit:
                problem = f"a text of more than {limit} characters stands where a short one is expected"
                raise LongTextError(str(self.error(problem)))
            if ends:
                self._at += 1
                return str(json.loads(f'"{"".join(parts)}"'))
            self._fill("the text has no end")

    def scalar(self) -> bool | int | float | None:
        """The next value, which is a number, a boolean or null."""
        self._next()
        while True:
            end = _match_end(_WORD, self._text, self._at)
            word = self._text[self._at : end]
            if len(word) > NUMBER_LIMIT:
                raise self.error(f"a number has more than {NUMBER_LIMIT} characters")
            if end < len(self._text) or not self._more():
                break
        number = _NUMBER.fullmatch(word)
        if number is None and word not in _WORDS:
            raise self.error("a value is expected")
        self._at += len(word)
        if number is None:
            return _WORDS[word]
        return float(word) if number["rest"] else int(word)

    def members(self) -> Iterator[str]:
        """The keys of the next value, which is a mapping."""
        self._open("{", "a mapping is expected")
        if self._next() != "}":
            while True:
                yield self._key()
                if not self._goes_on("}"):
                    break
        self._close()

    def items(self) -> Iterator[int]:
        """The positions of the next value, which is a list."""
        self._open("[", "a list is expected")
        index = 0
        if self._next() != "]":
            while True:
                yield index
                index += 1
                if not self._goes_on("]"):
                    break
        self._close()

    def skip(self) -> None:
        """Check the next value and go behind it, however large it is."""
        closers: list[str] = []
        while True:
            if self._skip_begin(closers):
                continue
            while closers:
                self._at = _match_end(_RUNS[closers[-1]], self._text, self._at)
                if self._goes_on(closers[-1]):
                    if closers[-1] == "}":
                        self._skip_key()
                    break
                self._close()
                closers.pop()
            else:
                return

    def end(self) -> None:
        """Make sure that nothing but blanks follows."""
        if self._next():
            raise self.error("something follows the value")

    def error(self, message: str) -> JsonError:
        """An error at the current place."""
        begin = self._text.rfind("\n", 0, self._at) + 1
        line = self._lines + self._text.count("\n", 0, self._at) + 1
        column = self._at - begin + 1 + (0 if begin else self._before)
        return JsonError(f"{message} (line {line}, column {column})")

    # ------------------------------------------------------------ parts

    def _skip_begin(self, closers: list[str]) -> bool:
        """Skip a plain value or an empty list or mapping, or enter one; whether a value comes next."""
        begins = self._next()
        if begins == '"':
            self._skip_text()
            return False
        if begins not in ("{", "["):
            self.scalar()
            return False
        if self._skip_whole():
            return False
        self._open(begins, "")
        closer = "}" if begins == "{" else "]"
        if self._next() == closer:
            self._close()
            return False
        closers.append(closer)
        if begins == "{":
            self._skip_key()
        return True

    def _skip_whole(self) -> bool:
        """Go behind a list or a mapping that lies wholly in the piece; False where it does not, or is wrong."""
        if not self._vain_scans_left:
            return False
        try:
            _, self._at = _scan_whole(self._text, self._at)
        except (ValueError, RecursionError):
            self._vain_scans_left -= 1
            return False
        return True

    def _skip_key(self) -> None:
        if self._next() != '"':
            raise self.error("a key in quotes is expected")
        self._skip_text()
        self._take(":", "':' is expected after the key")

    def _skip_text(self) -> None:
        self._at += 1
        while not self._to_end_of_part():
            self._fill("the text has no end")
        self._at += 1

    def _key(self) -> str:
        if self._next() != '"':
            raise self.error("a key in quotes is expected")
        key = self.text()
        self._take(":", "':' is expected after the key")
        return key

    def _to_end_of_part(self) -> bool:
        """Go to the quote that ends a text, or as far as the piece reaches; whether it is the quote."""
        self._at = _match_end(_TEXT_PART, self._text, self._at)
        rest = self._text[self._at : self._at + 6]
        if rest[:1] == '"':
            return True
        if rest and not (len(rest) < 6 and _ESCAPE_BEGUN.fullmatch(rest)):
            wrong = "an escape that there is not" if rest[0] == "\\" else "a control character"
            raise self.error(f"a text has {wrong}")
        return False

    def _goes_on(self, closer: str) -> bool:
        """Whether a comma follows a value of a list or a mapping, and not its end."""
        begins = self._next()
        if begins == ",":
            self._at += 1
            return True
        if begins != closer:
            raise self.error(f"',' or {closer!r} is expected")
        return False

    def _open(self, bracket: str, expected: str) -> None:
        self._take(bracket, expected)
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise self.error(f"lists and mappings are nested deeper than {DEPTH_LIMIT} levels")

    def _close(self) -> None:
        self._at += 1
        self._depth -= 1

    def _take(self, character: str, expected: str) -> None:
        if self._next() != character:
            raise self.error(expected)
        self._at += 1

    def _next(self) -> str:
        """The next character that is no blank; empty at the end of the file."""
        while True:
            self._at = _match_end(_SPACE, self._text, self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    # ------------------------------------------------------------ the file

    def _fill(self, missing: str) -> None:
        if not self._more():
            raise self.error(missing)

    def _more(self) -> bool:
        """Drop what was read and add the next piece; False at the end of the file."""
        while not self._ended:
            added = self._decoded()
            if added:
                last = self._text.rfind("\n", 0, self._at)
                self._lines += self._text.count("\n", 0, self._at)
                self._before = self._at - last - 1 if last >= 0 else self._before + self._at
                self._text = self._text[self._at :] + added
                self._at = 0
                self._vain_scans_left = _VAIN_SCANS
                return True
        return False

    def _decoded(self) -> str:
        data = self._file.read(self._piece)
        if self._decoder is None:
            while len(data) < 4 and (more := self._file.read(self._piece)):
                data += more
            self._decoder = codecs.getincrementaldecoder(json.detect_encoding(data))("surrogatepass")
        self._ended = not data
        try:
            return self._decoder.decode(data, self._ended)
        except UnicodeDecodeError as error:
            raise self.error(f"the file is not {error.encoding.upper()} text, soon after") from None


def _match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where a match of a pattern that matches the empty text ends."""
    match = pattern.match(text, at)
    return at if match is None else match.end()
