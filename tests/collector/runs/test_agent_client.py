"""The agent client sends each change once, even if the connection was closed; only other requests are retried."""

import io
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from collector.agents.addresses import parse_address
from collector.agents.agent_client import AgentClient, AgentStatusError, AgentUnavailableError
from collector.http.access import Access
from tests.waiting import eventually

HOST = "127.0.63.6"


class OneRequestServer:
    """A server that responds to one request per connection with `response`, and then closes it without notice.

    Every request must end with `end`.

    requests  the methods and paths of the requests.
    """

    def __init__(self, response: bytes, end: bytes = b"\r\n\r\n{}") -> None:
        self._end = end
        self.requests: list[bytes] = []
        self._response = response
        self._listener = socket.create_server((HOST, 0))
        self.address = f"{HOST}:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            with stream:
                request = b""
                while not request.endswith(self._end):
                    request += stream.recv(1 << 16)
                self.requests.append(request.partition(b" HTTP")[0])
                stream.sendall(self._response)


@pytest.fixture
def server() -> Iterator[OneRequestServer]:
    with closing(OneRequestServer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")) as started:
        yield started


def client_of(server: OneRequestServer) -> AgentClient:
    return AgentClient(parse_address(server.address, "http"), Access())


def test_a_change_is_sent_although_the_agent_has_closed_the_idle_connection(server: OneRequestServer) -> None:
    with closing(client_of(server)) as client:
        for number in range(3):
            assert client.post(f"/{number}", {}) == {}
            connection = client._connection
            eventually(connection.has_unread_input)
    assert server.requests == [b"POST /0", b"POST /1", b"POST /2"]


def test_an_error_has_the_status_of_the_response() -> None:
    with closing(OneRequestServer(b"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n")) as server:
        with closing(client_of(server)) as client, pytest.raises(AgentStatusError, match="HTTP 409 Conflict") as raised:
            client.post("/", {})
        assert raised.value.status == 409


class SlowToOpen(AgentClient):
    """A client whose first `failures` attempts to connect fail; it does not wait between attempts."""

    def __init__(self, address: str, failures: int, patience_s: float) -> None:
        super().__init__(parse_address(address, "http"), Access(), patience_s=patience_s)
        self.attempts = 0
        self._failures = failures
        self._interrupted.wait = lambda timeout=None: False  # type: ignore[method-assign]
        self._connect = self._connection.connect
        self._connection.connect = self._try_to_connect  # type: ignore[method-assign]

    def _try_to_connect(self) -> None:
        self.attempts += 1
        if self.attempts <= self._failures:
            raise ConnectionRefusedError
        self._connect()


def test_a_patient_client_repeats_requests_without_side_effects() -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"
    with closing(OneRequestServer(body, end=b"\r\n\r\n")) as server:
        with closing(SlowToOpen(server.address, 20, patience_s=30.0)) as client:
            assert client.json("/") == []
            assert client.attempts == 21
        with closing(SlowToOpen(server.address, 20, patience_s=30.0)) as client:
            file = io.BytesIO()
            client.download("/", 2, file)
            assert file.getvalue() == b"[]"
        with closing(SlowToOpen(server.address, 1, patience_s=30.0)) as client, pytest.raises(AgentUnavailableError):
            client.post("/", {})
        with closing(SlowToOpen(server.address, 1, patience_s=0.0)) as client, pytest.raises(AgentUnavailableError):
            client.json("/")


def test_a_listener_that_is_not_trusted_receives_nothing() -> None:
    access = Access("me", "secret", check_peer=lambda *_: "it belongs to user nobody")
    with socket.create_server((HOST, 0)) as listener:
        client = AgentClient(parse_address(f"{HOST}:{listener.getsockname()[1]}"), access)
        with closing(client), pytest.raises(AgentUnavailableError, match="not trusted: it belongs to user nobody"):
            client.json("/api/v1/node")
        stream, _ = listener.accept()
        with stream:
            assert stream.recv(1) == b""
