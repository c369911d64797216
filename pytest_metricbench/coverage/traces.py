"""The traces among a request's evidence: each read once in a process, and only while it is the one that was kept."""

import hashlib
from pathlib import Path
from typing import BinaryIO, Final

from pytest_metricbench.atif.trace import TRACE_NAME, Trace, TraceError, read_trace
from pytest_metricbench.contracts import CoverageError, EvidenceFile
from pytest_metricbench.digests import PREFIX
from pytest_metricbench.messages import and_more
from pytest_metricbench.plain_files import open_regular

_PIECE: Final = 1 << 20


class Traces:
    """Reads traces and keeps what it read: most of them belong to many subsets."""

    def __init__(self) -> None:
        """Begin with none."""
        self._read: dict[str, Trace | TraceError] = {}

    def of(self, file: EvidenceFile) -> Trace:
        """The trace in a file.

        Raises:
            TraceError: it is none.
            CoverageError: it cannot be read, or has changed since its attempt ended.
        """
        if file.sha256 not in self._read:
            self._read[file.sha256] = _read(file)
        found = self._read[file.sha256]
        if isinstance(found, TraceError):
            raise found
        return found


def is_trace(file: EvidenceFile) -> bool:
    """Whether a file of an attempt is a trace, by its name."""
    return file.name.rpartition("/")[2] == TRACE_NAME


def without_trace(tasks: list[str]) -> str:
    """Why a score is null when these tasks (at least one) left no trace."""
    return f"task {min(tasks)} left no {TRACE_NAME}{and_more(len(tasks) - 1, 'task')}"


def changed(path: Path) -> CoverageError:
    """What is raised for evidence that is not what its attempt left."""
    return CoverageError(f"{path} has changed since its attempt ended; run the attempt again")


class _Digesting:
    """A file that digests what is read of it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._state = hashlib.sha256()

    def read(self, size: int, /) -> bytes:
        data = self._file.read(size)
        self._state.update(data)
        return data

    def digest(self) -> str:
        """The digest of the whole file, whatever of it was read."""
        while self.read(_PIECE):
            pass
        return PREFIX + self._state.hexdigest()


def _read(file: EvidenceFile) -> Trace | TraceError:
    found: Trace | TraceError
    try:
        with open_regular(file.path) as opened:
            digesting = _Digesting(opened)
            try:
                found = read_trace(digesting)
            except TraceError as error:
                found = error
            if digesting.digest() != file.sha256:
                raise changed(file.path)
    except OSError as error:
        raise CoverageError(f"{file.path} cannot be read: {error.strerror}") from None
    return found
