"""JSONL files of strangers, read line by line: memory for one line at a time, and errors that name the line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.answers import RepeatedKeyError, without_repeats
from pytest_metricbench.interop.recordings import RecordingError
from pytest_metricbench.plain_files import open_regular

LINE_LIMIT: Final = 64 << 20
"""Bytes that a line may have: a rollout carries its whole conversation."""
_BOM: Final = b"\xef\xbb\xbf"


class JsonLines:
    """The mappings of a JSONL file with the numbers of their lines, from 1. Blank lines are passed over.

    A last line that is cut (no line end, and no JSON) is an error, unless ``may_be_torn``: then it is left out and
    its number kept in :attr:`torn`.
    """

    def __init__(
        self, path: Path, name: str, *, may_be_torn: bool = False, unique_keys: bool = False, limit: int = LINE_LIMIT
    ) -> None:
        """Nothing is opened yet.

        Args:
            path: where the file is.
            name: what errors call it.
            may_be_torn: whether whoever writes it may still be writing.
            unique_keys: refuse a mapping that has a key twice.
            limit: bytes that a line may have.
        """
        self._path: Final = path
        self._name: Final = name
        self._may_be_torn: Final = may_be_torn
        self._hook: Final = without_repeats if unique_keys else None
        self._limit: Final = limit
        self.torn: int | None = None
        """The line that is cut, once everything was read."""

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The lines in their order.

        Raises:
            RecordingError: the file cannot be read, or a line is too long, no UTF-8, no JSON or no mapping.
        """
        number = 0
        try:
            with open_regular(self._path) as file:
                while line := file.readline(self._limit + 1):
                    number += 1
                    if number == 1:
                        line = line.removeprefix(_BOM)
                    if len(line) > self._limit:
                        raise RecordingError(f"{self._name}:{number}: the line has more than {self._limit} bytes")
                    if not line.isspace() and line:
                        row = self._row(number, line)
                        if row is not None:
                            yield number, row
        except OSError as error:
            raise RecordingError(f"{self._name} cannot be read: {error.strerror}") from None

    def _row(self, number: int, line: bytes) -> dict[str, Any] | None:
        where = f"{self._name}:{number}"
        try:
            row = json.loads(line.decode("utf-8").rstrip("\r\n"), object_pairs_hook=self._hook)
        except RepeatedKeyError as error:
            raise RecordingError(f"{where}: the key {error} stands twice", "keep one of the two") from None
        except (ValueError, RecursionError) as error:
            if not line.endswith(b"\n") and not isinstance(error, RecursionError):
                self._cut(number, where)
                return None
            if isinstance(error, UnicodeDecodeError):
                raise RecordingError(f"{where}: byte {error.start + 1} is not UTF-8", "save it as UTF-8") from None
            raise RecordingError(f"{where}: is not JSON: {_said(error)}", _ONE_MAPPING) from None
        if not isinstance(row, dict):
            raise RecordingError(f"{where}: is {_kind(row)}, not a mapping", _ONE_MAPPING)
        return row

    def _cut(self, number: int, where: str) -> None:
        if not self._may_be_torn:
            message = f"{where}: the last line is cut: it is no JSON and has no line end"
            raise RecordingError(message, "write the file whole, or remove that line")
        self.torn = number


_ONE_MAPPING: Final = "every line is one JSON mapping"


def _said(error: ValueError | RecursionError) -> str:
    """What a parser says, its place as a column: the line is known."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.removesuffix(' at')} at column {error.colno}"
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


def _kind(value: object) -> str:
    kinds = {list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")
