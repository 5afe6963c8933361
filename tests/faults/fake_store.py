"""An HTTP store that sends scripted responses.

Once it has sent them, it responds with `FakeStore.always`, or accepts everything if that is None.
"""

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress

Answer = Callable[[socket.socket], None]


def status(code: int, *headers: str, body: bytes = b"") -> Answer:
    """Return a function that sends a response with this status."""
    lines = [f"HTTP/1.1 {code} x", f"Content-Length: {len(body)}", *headers, "", ""]
    return lambda stream: stream.sendall("\r\n".join(lines).encode() + body)


def black_hole(stream: socket.socket) -> None:
    """Send nothing until the client gives up."""
    stream.settimeout(60)
    stream.recv(1)


def byte_by_byte(stream: socket.socket) -> None:
    """Send a very long response, byte by byte."""
    for byte in b"HTTP/1.1 204 No Content\r\nX-Slow: " + b"s" * 10000:
        stream.sendall(bytes([byte]))
        time.sleep(0.05)


def endless(stream: socket.socket) -> None:
    """Send an endless response as fast as the client reads it."""
    stream.sendall(b"HTTP/1.1 500 x\r\n\r\n")
    while True:
        stream.sendall(b"x" * 65536)


def hang_up(stream: socket.socket) -> None:
    """Close the connection without a response."""


def not_http(stream: socket.socket) -> None:
    """Respond in a protocol other than HTTP."""
    stream.sendall(b"220 mail ready\r\n" * 3)


class FakeStore:
    """Listens on loopback and appends the points that it accepts to `accepted_lines`."""

    def __init__(self, *script: Answer, tls: ssl.SSLContext | None = None) -> None:
        self._script = list(script)
        self._tls = tls
        self._listener = socket.create_server(("127.0.62.3", 0))
        self.port = self._listener.getsockname()[1]
        self.accepted_lines: list[bytes] = []
        self.requests = 0
        self.always: Answer | None = None
        self._lock = threading.Lock()
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                stream, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, stream: socket.socket) -> None:
        with (
            suppress(OSError),
            closing(stream),
            closing(self._tls.wrap_socket(stream, server_side=True) if self._tls else stream) as secured,
        ):
            while (body := _request(secured)) is not None:
                with self._lock:
                    self.requests += 1
                    answer = self._script.pop(0) if self._script else self.always
                    if answer is None:
                        self.accepted_lines += body.splitlines()
                if answer is None:
                    status(204)(secured)
                    continue
                answer(secured)
                if answer in (black_hole, byte_by_byte, endless, hang_up, not_http):
                    return


def _request(stream: socket.socket) -> bytes | None:
    """Return the body of the next request, or None at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = stream.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < int(lengths[0]):
        body += stream.recv(65536)
    return body
