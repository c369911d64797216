"""Addresses, answers and environments that no Helix server has, as somebody may meet them on the first day."""

import re
import socket
import threading
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from pytest_metricbench.runners.helix.client import HelixClient, HelixError
from pytest_metricbench.runners.helix.runner import HelixRunner

pytest.importorskip("httpx")

DAMAGED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 7\r\nConnection: close\r\n\r\ngarbage"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]"


class _Server:
    """Answers with the given bytes, the last ones for ever, whatever is asked."""

    def __init__(self) -> None:
        self.answers = [WHOLE]
        self.asked = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(self.answers[min(self.asked, len(self.answers) - 1)])
                self.asked += 1

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


@pytest.fixture
def server() -> Iterator[_Server]:
    made = _Server()
    yield made
    made.close()


@pytest.fixture
def client(server: _Server) -> Iterator[HelixClient]:
    made = HelixClient(server.url, "default", retries=2, sleep=lambda seconds: None)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def test_an_answer_that_came_damaged_is_asked_for_again(server: _Server, client: HelixClient) -> None:
    server.answers = [DAMAGED, WHOLE]
    assert client.profiles() == []
    assert server.asked == 2


def test_answers_that_stay_damaged_are_told_in_words(server: _Server, client: HelixClient) -> None:
    server.answers = [DAMAGED]
    with pytest.raises(HelixError, match=r"DecodingError: .*; tried 3 times") as caught:
        client.profiles()
    assert caught.value.kind == "HelixUnreachable"


@pytest.mark.parametrize(
    "address",
    ["http://h:abc", "http://h:999999", "http://[::1", "http://:80", "http://a..b", "https://" + "x" * 64 + ".org"],
)
def test_an_address_that_there_cannot_be_is_told_at_collection(address: str) -> None:
    keys = {"base_url": address, "executor": {"provider": "subprocess"}, "command": ["/bin/true"]}
    with pytest.raises(ValidationError) as caught:
        HelixRunner.model_validate(keys)
    (error,) = caught.value.errors()
    assert error["loc"] == ("base_url",)
    assert f"{address!r} is no address of a server" in error["msg"]


@pytest.mark.parametrize("address", ["http://[::1]:9", "http://a_b:9/under", "https://ä.example", "http://localhost"])
def test_an_address_that_there_may_be_is_taken(address: str) -> None:
    keys = {"base_url": address, "executor": {"provider": "subprocess"}, "command": ["/bin/true"]}
    assert HelixRunner.model_validate(keys).base_url == address


def test_an_address_that_only_the_client_refuses_is_an_error_in_words() -> None:
    client = HelixClient("http://xn--a.com", "default", retries=0)
    with pytest.raises(HelixError, match=r"^http://xn--a\.com/apis/\S+ is no address: .*; set base_url right$"):
        client.profiles()
    client.close()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HTTP_PROXY", "foo://x", "Unknown scheme for proxy URL"),
        ("HTTP_PROXY", "http://x:abc", "Invalid port: 'abc'"),
        ("SSL_CERT_FILE", "/no/such/file", "No such file or directory"),
    ],
)
def test_an_environment_that_no_client_can_use_is_an_error_in_words(
    client: HelixClient, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(HelixError, match=re.escape(said)) as caught:
        client.profiles()
    assert "what the environment says of proxies or certificates cannot be used" in str(caught.value)
