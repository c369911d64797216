"""Tables of strangers, CSV and JSONL, read row by row: memory for one row at a time, and errors that name the line."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from pytest_metricbench.interop.json_lines import JsonLines
from pytest_metricbench.interop.recordings import RecordingError
from pytest_metricbench.plain_files import open_regular

CELL_LIMIT: Final = 16 << 20
"""Characters that a cell of a CSV file may have: some tables carry whole traces."""
ROW_LIMIT: Final = 64 << 20
"""Bytes that a line may have."""
_BOM: Final = b"\xef\xbb\xbf"
_DELIMITERS: Final = (",", ";", "\t", "|")
_CSV: Final = frozenset({".csv", ".tsv", ".tab", ".txt"})
_JSONL: Final = frozenset({".jsonl", ".ndjson"})
_SAVE: Final = "save it as CSV in UTF-8, or as JSONL"


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row: its cells by the name of the column. An empty cell of a CSV file is ``""``, as it stands there."""

    line: int
    """The line that it begins in, from 1."""
    number: int
    """Its place among the rows of its file, from 1."""
    cells: Mapping[str, Any]


class Table:
    """One file of a table.

    CSV: the first row names the columns; the delimiter is the one of comma, semicolon, tab and bar that splits it into
    the columns that are wanted. JSONL: a mapping a line, whose keys are the columns.
    """

    def __init__(self, path: Path, name: str, wanted: Sequence[str]) -> None:
        """Look at the beginning of the file.

        Args:
            path: where the file is.
            name: what errors call it.
            wanted: columns that are known to be needed; they decide the delimiter where it is in doubt.

        Raises:
            RecordingError: it cannot be read, or is no text, or nothing is in it.
        """
        self._path: Final = path
        self._name: Final = name
        self.is_json: Final = _is_json(path, name)
        self.columns: list[str] = self._first_keys() if self.is_json else self._header(wanted)
        """Of a CSV file in their order; of a JSONL file those of its first row, and of all that were read since."""

    def rows(self) -> Iterator[TableRow]:
        """The rows in their order; blank lines are passed over.

        Raises:
            RecordingError: a line is too long, no UTF-8, cut, or not of the table's form.
        """
        return self._json_rows() if self.is_json else self._csv_rows()

    def _json_rows(self) -> Iterator[TableRow]:
        seen = dict.fromkeys(self.columns)
        lines = JsonLines(self._path, self._name, unique_keys=True, limit=ROW_LIMIT)
        for number, (line, row) in enumerate(lines, 1):
            new = row.keys() - seen.keys()
            if new:
                seen.update(dict.fromkeys(name for name in row if name in new))
                self.columns = list(seen)
            yield TableRow(line, number, row)

    def _first_keys(self) -> list[str]:
        for _, row in JsonLines(self._path, self._name, unique_keys=True, limit=ROW_LIMIT):
            return list(row)
        raise RecordingError(f"{self._name} is empty", "every line is one JSON mapping")

    def _header(self, wanted: Sequence[str]) -> list[str]:
        """The names of the columns, and by them the delimiter."""
        best: list[str] = []
        self._delimiter = ","
        refused: RecordingError | None = None
        for delimiter in _DELIMITERS:
            try:
                names = self._names(delimiter)
            except RecordingError as error:
                refused = refused or error  # quotes that do not suit one delimiter may suit another
                continue
            if _fits(names, wanted) > _fits(best, wanted):
                best, self._delimiter = names, delimiter
        if refused is not None and not best:
            raise refused
        twice = sorted({name for name in best if name and best.count(name) > 1})
        if twice:
            raise RecordingError(f"{self._name}:1: the column {twice[0]!r} stands twice", "rename one of the two")
        return best

    def _names(self, delimiter: str) -> list[str]:
        for _, cells in self._parsed(delimiter):
            return [cell.strip() for cell in cells]
        raise RecordingError(f"{self._name} is empty", "its first row names the columns")

    def _csv_rows(self) -> Iterator[TableRow]:
        columns = self.columns
        for number, (line, cells) in enumerate(self._parsed(self._delimiter)):
            if number == 0:  # the header
                continue
            if len(cells) != len(columns):
                message = f"{self._name}:{line}: the row has {len(cells)} cells, the header {len(columns)}"
                raise RecordingError(message, "a cell with the delimiter or a line end in it stands in double quotes")
            yield TableRow(line, number, dict(zip(columns, cells, strict=True)))

    def _parsed(self, delimiter: str) -> Iterator[tuple[int, list[str]]]:
        """Rows of cells with the line that each begins in."""
        line = 1
        try:
            with open_regular(self._path) as file:
                reader = csv.reader(self._lines(file), delimiter=delimiter, strict=True)
                for cells in reader:
                    if cells:
                        yield line, cells
                    line = reader.line_num + 1
        except csv.Error as error:
            remedy = "line ends are LF or CR LF" if "new-line" in str(error) else "quotes in a quoted cell are doubled"
            raise RecordingError(f"{self._name}:{line}: is no CSV: {error}", remedy) from None
        except OSError as error:
            raise RecordingError(f"{self._name} cannot be read: {error.strerror}") from None

    def _lines(self, file: BinaryIO) -> Iterator[str]:
        number = 0
        while line := file.readline(ROW_LIMIT + 1):
            number += 1
            if number == 1:
                line = line.removeprefix(_BOM)
            if len(line) > ROW_LIMIT:
                raise RecordingError(f"{self._name}:{number}: the line has more than {ROW_LIMIT} bytes")
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                message = f"{self._name}:{number}: byte {error.start + 1} of the line is not UTF-8"
                raise RecordingError(message, _SAVE) from None
            if "\0" in text:
                raise RecordingError(f"{self._name}:{number}: has a null character: it is no text", _SAVE)
            yield text


def _fits(names: Sequence[str], wanted: Sequence[str]) -> tuple[int, int]:
    """How well a header suits: the wanted columns that it has, then how many it has."""
    return sum(name in names for name in wanted), len(names)


def _is_json(path: Path, name: str) -> bool:
    """Whether a file is JSONL: by its suffix, or else by how it begins."""
    try:
        with open_regular(path) as file:
            start = file.read(4096)
    except OSError as error:
        problem = "is a folder; name the files in it" if path.is_dir() else f"cannot be read: {error.strerror}"
        raise RecordingError(f"{name} {problem}") from None
    suffix = path.suffix.lower()
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise RecordingError(f"{name} is UTF-16, as some spreadsheets save it", _SAVE)
    if start.startswith((b"PK\x03\x04", b"PAR1", b"\x1f\x8b")):
        raise RecordingError(f"{name} is no text: a workbook, a Parquet or a compressed file", _SAVE)
    if suffix in _CSV | _JSONL:
        return suffix in _JSONL
    start = start.removeprefix(_BOM).lstrip()
    if start.startswith(b"["):
        raise RecordingError(f"{name} is one JSON list", "write one mapping a line: JSONL")
    return start.startswith(b"{")


@contextmanager
def large_cells() -> Iterator[None]:
    """While tables are read: the limit of a cell, which :mod:`csv` keeps for the whole process, raised."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, CELL_LIMIT))
    try:
        yield
    finally:
        csv.field_size_limit(before)
