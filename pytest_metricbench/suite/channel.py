"""JSON messages over a stream socket, each with its length before it."""

import json
import socket
import struct
import time
from typing import Any, Final

_HEAD: Final = struct.Struct("!I")
_LIMIT: Final = 256 << 20
"""Bytes of the longest message: a list of a large suite's tests, or the source of a mutant."""


class ChannelError(Exception):
    """The other side has gone in the middle of a message, or says something that is none."""


def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """Send a message whole.

    Raises:
        OSError: the other side has gone.
    """
    content = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    channel.settimeout(None)
    channel.sendall(_HEAD.pack(len(content)) + content)


def receive(channel: socket.socket, seconds: float | None = None) -> dict[str, Any] | None:
    """The next message; None when the other side has gone.

    Args:
        channel: a connected stream socket.
        seconds: how long to wait for the whole of it; None: for ever.

    Raises:
        TimeoutError: it did not come in time.
        ChannelError: it is cut off, or no message.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    head = _read(channel, _HEAD.size, deadline)
    if not head:
        return None
    (length,) = _HEAD.unpack(head) if len(head) == _HEAD.size else (_LIMIT + 1,)
    if length > _LIMIT:
        raise ChannelError("what was received is no message")
    content = _read(channel, length, deadline)
    if len(content) < length:
        raise ChannelError("the other side has gone in the middle of a message")
    message = json.loads(content)
    if not isinstance(message, dict):
        raise ChannelError("what was received is no message")
    return message


def _read(channel: socket.socket, count: int, deadline: float | None) -> bytes:
    """So many bytes, or fewer when the other side has gone."""
    pieces = []
    while count:
        if deadline is not None:
            channel.settimeout(max(deadline - time.monotonic(), 0.0001))
        else:
            channel.settimeout(None)
        try:
            piece = channel.recv(min(count, 1 << 20))
        except ConnectionError:
            piece = b""
        if not piece:
            break
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)
