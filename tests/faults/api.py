"""The agent's API on a port of its own, and clients that speak to it over plain sockets."""

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from exporters.api.app import build
from exporters.api.server import Server
from tests.exporters.api.served import Scripted, journal
from tests.faults.program import is_one_line

HOST = "127.0.63.1"
PATIENCE_S = 20.0


class Api:
    """A server with a scripted agent behind it, and what it says."""

    def __init__(self, folder: Path, web_config: Path | None = None, most: int = 512) -> None:
        self.served = Scripted(journal(folder / "journal"), b"up 1\n" * 60_000)
        self.served.tick(first=True)
        self.served.tick(3)
        self.said: list[str] = []
        self.server = Server(build(self.served), f"{HOST}:0", web_config, self.said.append, most)
        self.port = self.server.address[1]

    def connect(self, timeout_s: float = PATIENCE_S) -> socket.socket:
        return socket.create_connection((HOST, self.port), timeout_s)

    def ask(self, request: bytes) -> bytes:
        """Send bytes, and return all that comes until the connection ends; nothing when it is cut off."""
        with self.connect() as stream:
            with contextlib.suppress(OSError):
                stream.sendall(request)
            return everything(stream)

    def get(self, path: str, *headers: str) -> bytes:
        """Return the whole answer."""
        head = "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {HOST}", "Connection: close", *headers])
        return self.ask(f"{head}\r\n\r\n".encode())

    def is_sound(self) -> bool:
        """Return whether the server still answers, and all it ever said is a line without a traceback."""
        answers = status(self.get("/metrics")) == 200 and status(self.get("/-/healthy")) == 200
        return answers and all(is_one_line(line) and "Traceback" not in line for line in self.said)


@contextlib.contextmanager
def running(folder: Path, web_config: Path | None = None, most: int = 512) -> Iterator[Api]:
    """Yield an API that is stopped afterwards."""
    api = Api(folder, web_config, most)
    try:
        yield api
    finally:
        api.server.stop()


def everything(stream: socket.socket | ssl.SSLSocket) -> bytes:
    """Return what comes until the other side ends it."""
    came = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := stream.recv(1 << 16):
            came += data
    return came


def came(stream: socket.socket | ssl.SSLSocket, *ends: bytes) -> bytes:
    """Return what comes up to one of the ends."""
    found = stream.recv(1 << 16)
    while not found.endswith(ends):
        more = stream.recv(1 << 16)
        assert more, found
        found += more
    return found


def status(answer: bytes) -> int:
    """Return the status of an answer; 0 for none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    ends_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends_s
        time.sleep(0.01)
