"""The agent's API on a free port, and clients that use sockets directly."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

from exporters.api.app import build
from exporters.api.server import Server
from tests.exporters.api.scripted_agent import Scripted, journal
from tests.faults.program import is_one_line

HOST = "127.0.63.1"
PATIENCE_S = 60.0


class Api:
    """An API server for a scripted agent, and the lines of the server's log."""

    def __init__(self, folder: Path, web_config: Path | None = None, most: int = 512) -> None:
        self.agent = Scripted(journal(folder / "journal"), b"up 1\n" * 60_000)
        self.agent.tick(first=True)
        self.agent.tick(3)
        self.log_lines: list[str] = []
        self.server = Server(build(self.agent), f"{HOST}:0", web_config, self.log_lines.append, most)
        self.port = self.server.address[1]

    def connect(self, timeout_s: float = PATIENCE_S) -> socket.socket:
        return socket.create_connection((HOST, self.port), timeout_s)

    def ask(self, request: bytes) -> bytes:
        """Send bytes, and return everything received until the connection ends."""
        with self.connect() as stream:
            with contextlib.suppress(OSError):
                stream.sendall(request)
            return read_all(stream)

    def get(self, path: str, *headers: str) -> bytes:
        """Return the response to a GET request, including its head."""
        head = "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {HOST}", "Connection: close", *headers])
        return self.ask(f"{head}\r\n\r\n".encode())

    def is_sound(self) -> bool:
        """Return whether the server is still responding and its log is free of tracebacks and multi-line entries."""
        answers = status(self.get("/metrics")) == 200 and status(self.get("/-/healthy")) == 200
        return answers and all(is_one_line(line) and "Traceback" not in line for line in self.log_lines)


@contextlib.contextmanager
def running(folder: Path, web_config: Path | None = None, most: int = 512) -> Iterator[Api]:
    """Yield an API, and stop it afterwards."""
    api = Api(folder, web_config, most)
    try:
        yield api
    finally:
        api.server.stop()


def read_all(stream: socket.socket | ssl.SSLSocket) -> bytes:
    """Return everything received until the peer closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := stream.recv(1 << 16):
            received += data
    return received


def read_until(stream: socket.socket | ssl.SSLSocket, *ends: bytes) -> bytes:
    """Receive data until it ends with one of `ends`, and return it."""
    received = stream.recv(1 << 16)
    while not received.endswith(ends):
        more = stream.recv(1 << 16)
        assert more, received
        received += more
    return received


def status(answer: bytes) -> int:
    """Return the status of a response, or 0 if it is empty or not HTTP/1.1."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0
