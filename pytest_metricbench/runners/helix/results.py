"""What a job handed back, read with care: its report, and the agent's workspace laid out here."""

import errno
import gzip
import io
import os
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_metricbench.contracts import REQUEST_FILE
from pytest_metricbench.plain_files import replace_file
from pytest_metricbench.processes import Finished

WORKSPACE_LIMIT: Final = 256 << 20
"""Bytes of an agent's workspace that are handed back."""
FILES_LIMIT: Final = 50_000
"""Files of an agent's workspace that are handed back."""
_REPORT: Final = "report.json"
_REPORT_LIMIT: Final = 1 << 20
_BESIDE: Final = 4 << 20
"""Bytes of the agent's logs, which count in there and not here."""
_BELOW: Final = "workspace/"
_OF_THIS_MACHINE: Final = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EACCES)
)
"""Why a whole archive may not be unpacked here, and may be elsewhere or later."""


class ResultError(Exception):
    """A result that is not of the form that the program in the job gives it; the message says what is wrong."""


class Report(BaseModel):
    """How the agent ended, as the program in the job saw it."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    metricbench: int = Field(ge=1, le=1)
    timeout: float = Field(gt=0, allow_inf_nan=False)
    """Seconds that it might take: those of the run that submitted the job."""
    not_started: str | None
    """Why it could not be started."""
    returncode: int | None
    """Its exit status, -N when signal N killed it; None where it was not started."""
    timed_out: bool
    overflowed: bool
    duration: float = Field(ge=0, allow_inf_nan=False)
    too_large: int | None
    """Bytes of its workspace, where those are more than are handed back."""

    @property
    def ended(self) -> Finished:
        """How its process ended."""
        return Finished(self.returncode or 0, self.timed_out, self.overflowed, self.duration)


@dataclass(slots=True)
class _Room:
    """What may still be unpacked."""

    bytes: int
    files: int

    def take(self, size: int) -> None:
        self.bytes -= size
        self.files -= 1
        if self.bytes < 0 or self.files < 0:
            message = f"more than {WORKSPACE_LIMIT >> 20} MiB or {FILES_LIMIT} files"
            raise ResultError(f"it holds {message}, which is what may be handed back")


class _Bounded(io.RawIOBase):
    """A file of which no more is read than an archive of ours can have: also its headers could be of any size."""

    def __init__(self, file: BinaryIO | gzip.GzipFile) -> None:
        headers = 2048 * FILES_LIMIT + (1 << 20)
        self._file, self._left = file, WORKSPACE_LIMIT + _BESIDE + headers

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes.

        Raises:
            ResultError: there are more than there may be.
        """
        content = self._file.read(size)
        self._left -= len(content)
        if self._left < 0:
            raise ResultError(f"it holds more than {WORKSPACE_LIMIT >> 20} MiB, which is what may be handed back")
        return content


def unpack(archive: IO[bytes], workspace: Path) -> Report:
    """Lay the agent's files out in a folder and give the report.

    Only regular files are written, below the folder and nowhere else, each anew.

    Raises:
        ResultError: the archive is damaged, or not of the form that the program in the job gives it.
        OSError: this machine is at fault: its disk is full, say.
    """
    report: Report | None = None
    room = _Room(WORKSPACE_LIMIT + _BESIDE, FILES_LIMIT)
    archive.seek(0)
    try:
        with gzip.open(archive) as content, tarfile.open(fileobj=_Bounded(content), mode="r|") as tar:
            for entry in tar:
                if report is None:
                    report = _report(tar, entry)
                elif entry.name != _BELOW + REQUEST_FILE:
                    room.take(entry.size)
                    _write(tar, entry, workspace)
    except (tarfile.TarError, zlib.error, EOFError, ValueError, OverflowError) as error:  # headers are parsed lightly
        raise ResultError(f"it is damaged: {error or type(error).__name__}") from None
    except OSError as error:  # of gzip too
        if error.errno in _OF_THIS_MACHINE:
            raise
        raise ResultError(f"it cannot be unpacked: {error}") from None
    if report is None:
        raise ResultError("it is empty")
    return report


def clear(workspace: Path) -> None:
    """Remove everything in a folder: it was laid out for a result that is another run's."""
    for path in workspace.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _report(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> Report:
    if entry.name != _REPORT or not entry.isreg() or entry.size > _REPORT_LIMIT:
        raise ResultError(f"it begins with {entry.name[:100]!r}; {_REPORT} is expected")
    content = _content(tar, entry).read()
    try:
        return Report.model_validate_json(content)
    except ValidationError as error:
        first: Any = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise ResultError(f"its {_REPORT} is not of the known form: {where}: {first['msg']}") from None


def _write(tar: tarfile.TarFile, entry: tarfile.TarInfo, workspace: Path) -> None:
    parts = entry.name.removeprefix(_BELOW).split("/")
    is_below = entry.name.startswith(_BELOW) and "\0" not in entry.name and not {"", ".", ".."} & set(parts)
    if not is_below or not entry.isreg():
        raise ResultError(f"it holds {entry.name[:100]!r}; regular files below {_BELOW} are expected")
    path = workspace.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(replace_file(path), "wb") as file:
        shutil.copyfileobj(_content(tar, entry), file)


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(entry)
    if content is None:
        raise ResultError(f"it holds {entry.name[:100]!r} without a content")
    return content
