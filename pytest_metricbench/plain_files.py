"""Files that somebody else could have replaced, opened only when they are regular, and files written whole.

An agent, or whoever made a store, may leave a link, a pipe or a device under any name. A link is not followed and a
pipe is not waited for.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def strays(written: str, path: Path, folder: Path) -> bool:
    """Whether a name that stands relative to a folder leads out of it, by ``..`` or a link.

    An absolute name never strays: it says itself where it leads.

    Args:
        written: the name.
        path: where it leads from the folder.
        folder: what it is relative to. Where links go round in a circle, the place of the circle counts.
    """
    # Not Path.resolve, which raises of a circle up to Python 3.12: that there is no file behind it is said later.
    return not os.path.isabs(written) and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        FileNotFoundError: there is nothing under that name.
        OSError: something else than a regular file is, or it cannot be read; ``strerror`` says which.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EMLINK):  # a link (EMLINK on some systems), or a socket
            raise _no_regular_file(path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _no_regular_file(path)
    return os.fdopen(descriptor, "rb")


def replace_file(path: Path) -> int:
    """A new, empty file under a name, as a descriptor to read and write; what stood there is removed, not followed.

    Raises:
        OSError: a folder stands there, or the file cannot be made.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def write_whole(path: Path, text: str) -> None:
    """Write a text file whole or not at all.

    Raises:
        OSError: the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(replace_file(temporary), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _no_regular_file(path: str | os.PathLike[str]) -> OSError:
    return OSError(errno.EINVAL, "not a regular file", os.fspath(path))
