"""SHA-256 digests of values and files: the one spelling that fingerprints, receipts and requests share."""

import hashlib
import json
from pathlib import Path
from typing import BinaryIO, Final

PREFIX: Final = "sha256:"
_CHUNK: Final = 1 << 20
_encode: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


def canonical_json(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII only; NaN and infinities as their names.

    Raises:
        TypeError: the value holds something that JSON has no word for.
    """
    return _encode(value)


def digest_value(value: object) -> str:
    """Digest of a JSON value, independent of the order of its mappings' keys."""
    return PREFIX + hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def digest_bytes(content: bytes) -> str:
    """Digest of a byte string."""
    return PREFIX + hashlib.sha256(content).hexdigest()


def digest_file(path: Path) -> str:
    """Digest of a file's content, read in pieces.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return digest_stream(file)


def digest_stream(file: BinaryIO) -> str:
    """Digest of what is left to read of an open file.

    Raises:
        OSError: it cannot be read.
    """
    state = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        state.update(chunk)
    return PREFIX + state.hexdigest()
