"""Where a run's Markdown goes: a file that was asked for, and the job summary of a GitHub step."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.plain_files import write_whole
from pytest_metricbench.reporting.markdown import LIMIT, markdown_text

STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""The variable in which a GitHub runner names the file that becomes the summary of the step."""
_LEAST: Final = 2_000
"""Bytes: with less room left nothing useful can be said."""


class MarkdownError(Exception):
    """A file of Markdown cannot be written; the message says which, why and what to do."""


class MarkdownWriter:
    """Writes the Markdown of a session: its experiments one after the other in one file."""

    def __init__(self, file: Path | None, environment: Mapping[str, str]) -> None:
        """Nothing is written yet.

        Args:
            file: the one that was asked for, absolute; None: none was.
            environment: where a GitHub runner says where its job summary is.
        """
        named = environment.get(STEP_SUMMARY, "")
        self._step: Final = Path(os.path.realpath(named)) if named else None
        wanted = None if file is None else Path(os.path.realpath(file))
        self._file: Final = None if wanted == self._step else wanted
        """A file that is the job summary is not written over: other programs of the step write there too."""
        self._texts: Final[list[str]] = []

    def check(self) -> None:
        """See, before anything runs, that the file that was asked for can be written.

        Raises:
            MarkdownError: it cannot.
        """
        file = self._file
        if file is None:
            return
        if os.path.lexists(file) and not file.is_file():
            raise MarkdownError(f"{file} is no file; name another one")
        if not file.parent.is_dir():
            raise MarkdownError(f"there is no folder {file.parent}; make it, or name another file")
        if not os.access(file.parent, os.W_OK | os.X_OK) or (file.exists() and not os.access(file, os.W_OK)):
            raise MarkdownError(f"{file} cannot be written; name another file")

    def write(self, summary: Summary, summary_path: str | None = None) -> list[str]:
        """Write one experiment's Markdown to the places that want it; sentences on what was asked for, or had no room.

        Args:
            summary: of this run, with its comparison.
            summary_path: where ``summary.json`` is, for readers.

        Raises:
            MarkdownError: a place could not be written; the other one was.
        """
        failed = []
        said = []
        if self._file is not None:
            room = max(LIMIT - sum(len(text.encode()) + 1 for text in self._texts), _LEAST)
            self._texts.append(markdown_text(summary, summary_path=summary_path, limit=room))
            try:
                write_whole(self._file, "\n".join(self._texts))
                said.append(f"wrote {self._file}")
            except OSError as error:
                failed.append(f"{self._file}: {error.strerror}")
        if self._step is not None:
            try:
                said += _append(self._step, summary, summary_path)
            except OSError as error:
                failed.append(f"{self._step} ({STEP_SUMMARY}): {error.strerror}")
        if failed:
            raise MarkdownError("; ".join(failed))
        return said


def _append(file: Path, summary: Summary, summary_path: str | None) -> list[str]:
    """Append to the summary of a step, whose limit holds for everything that the step writes there."""
    with file.open("ab") as opened:
        used = opened.tell()
        room = LIMIT - used - 1
        if room < _LEAST:
            return [f"{STEP_SUMMARY} has no room left for {summary.experiment}: a step's summary has a limit"]
        text = markdown_text(summary, summary_path=summary_path, limit=room)
        opened.write((b"\n" if used else b"") + text.encode())
    return []
