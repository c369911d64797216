"""Messages between the processes of the runner suite: whole, or an error that says what came instead."""

import json
import socket
import struct
from collections.abc import Iterator

import pytest

from pytest_metricbench.suite.channel import ChannelError, receive, send


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_messages_arrive_whole_and_in_order(ends: tuple[socket.socket, socket.socket]) -> None:
    one, other = ends
    for message in ({}, {"text": "\u00e9\ud800"}, {"list": [1, None]}):
        send(one, message)
        assert receive(other, 10.0) == message
    one.close()
    assert receive(other, 10.0) is None


def test_one_that_does_not_come_in_time(ends: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(TimeoutError):
        receive(ends[0], 0.0)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"\0\0", "what was received is no message"),
        (struct.pack("!I", (256 << 20) + 1), "what was received is no message"),
        (struct.pack("!I", 5) + b"{}", "the other side has gone in the middle of a message"),
        (struct.pack("!I", 2) + json.dumps([]).encode(), "what was received is no message"),
    ],
    ids=["half a head", "too long", "half a message", "a list"],
)
def test_what_is_no_message(ends: tuple[socket.socket, socket.socket], sent: bytes, said: str) -> None:
    one, other = ends
    one.sendall(sent)
    one.close()
    with pytest.raises(ChannelError) as caught:
        receive(other, 10.0)
    assert str(caught.value) == said
