"""Files on their way between machines: packed into one byte string, and unpacked whole or not at all.

A pack is a ZIP archive whose bytes are a function of the names and contents alone. Whoever unpacks one says which
files must be in it and their digests; a name that leads out of the folder, a file too many or too few, another
content: nothing is left of any of it then.
"""

import io
import os
import secrets
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_metricbench.digests import digest_bytes
from pytest_metricbench.plain_files import open_regular

MIB: Final = 1 << 20
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_BROKEN: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(EOFError, NotImplementedError, OSError, OverflowError, RuntimeError, ValueError),
)
"""What reading an archive raises that is none."""


class PackError(Exception):
    """Files that cannot be packed, or a pack that is not what it should be; the message says why."""


def pack(files: Mapping[str, Path], limit: int, what: str) -> bytes:
    """Pack files under their names, at most ``limit`` bytes of them, since a pack is held in memory.

    Args:
        files: name with forward slashes -> where the file is.
        limit: bytes.
        what: what they are, for the message of an error.

    Raises:
        PackError: they are larger, or one of them cannot be read.
    """
    buffer, total = io.BytesIO(), 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in sorted(files):
            try:
                with open_regular(files[name]) as file:
                    content = file.read(limit - total + 1)
                    mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            except OSError as error:
                raise PackError(f"{what}: {name} cannot be read: {error.strerror or error}") from None
            total += len(content)
            if total > limit:
                raise PackError(f"{what}: larger than {limit / MIB:,g} MiB, the limit")
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if mode & 0o111 else 0o644) << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def unpack(content: bytes, folder: Path, digests: Mapping[str, str], limit: int) -> None:
    """Make ``folder`` with exactly these files in it; where that fails there is no such folder.

    Args:
        content: a pack.
        folder: where; it must not be there.
        digests: name -> digest of each file.
        limit: bytes of all files together.

    Raises:
        PackError: the pack does not hold just these files with these contents, or is no pack.
        OSError: they cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = folder.with_name(f".{folder.name[:80]}.{secrets.token_hex(4)}")
    staging.mkdir()
    try:
        with _opened(content) as archive:
            _extract(archive, staging, digests, limit)
        os.rename(staging, folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _opened(content: bytes) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(io.BytesIO(content))
    except _BROKEN as error:
        raise PackError(f"what arrived is no pack of files: {error}") from None


def _extract(archive: zipfile.ZipFile, folder: Path, digests: Mapping[str, str], limit: int) -> None:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    for name in names:
        if not _stays_inside(name):
            raise PackError(f"what arrived names {name!r}, which is no file below its folder")
    if sorted(names) != sorted(digests):
        strange = sorted(set(names) ^ set(digests)) or sorted(names)
        raise PackError(f"what arrived is not what was announced; the first difference is {strange[0]!r}")
    if sum(entry.file_size for entry in entries) > limit:
        raise PackError(f"what arrived is larger than {limit / MIB:,g} MiB, the limit")
    for entry in entries:
        _extract_one(archive, entry, folder, digests[entry.filename])


def _extract_one(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path, digest: str) -> None:
    try:
        with archive.open(entry) as file:
            content = file.read(entry.file_size + 1)
    except _BROKEN as error:
        raise PackError(f"{entry.filename} arrived damaged: {error}") from None
    if digest_bytes(content) != digest:
        raise PackError(f"{entry.filename} arrived with another content than was announced")
    path = folder / entry.filename
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as target:
        target.write(content)
        if entry.external_attr >> 16 & 0o111:
            os.fchmod(target.fileno(), 0o755)


def _stays_inside(name: str) -> bool:
    """Whether a name is that of a file below the folder, as :func:`.store.files.regular_files` writes it."""
    return "\0" not in name and all(part not in ("", ".", "..") for part in name.split("/"))
