"""Tables in a folder, read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_metricbench.interop.counted_notes import counted_note
from pytest_metricbench.interop.recordings import ReadOptions, RecordingError, Recordings
from pytest_metricbench.interop.table import reading as tables


class TableLab:
    """A folder with tables in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, text: str | bytes, name: str = "results.csv") -> str:
        """Write a table exactly as given; gives its name."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return name

    def read(self, *names: str, case: str = "case", **options: Any) -> Recordings:
        paths = {name: self.folder / name for name in names or ("results.csv",)}
        return tables.read(paths, ReadOptions(case, **options))

    def refused(self, *names: str, **options: Any) -> tuple[str, str]:
        """What is said about a table that cannot be read, and what to do."""
        try:
            self.read(*names, **options)
        except RecordingError as error:
            return error.message, error.remedy
        raise AssertionError("it was read")


def rows(recordings: Recordings) -> list[tuple[str, str, str, str, dict[str, Any]]]:
    """Variant, task, what the attempt is called, what it counts as, and its scores."""
    return [
        (found.variant, found.task, found.trial, found.outcome.kind, dict(found.outcome.scores))
        for found in recordings.attempts
    ]


def notes(recordings: Recordings) -> dict[str, int]:
    return {note.text: note.count for note in recordings.notes}


def said(counts: Mapping[str, int]) -> dict[str, int]:
    """The notes of texts with these counts."""
    return {counted_note(text, count).text: count for text, count in counts.items()}
