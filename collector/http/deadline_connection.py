"""An HTTP connection whose every wait ends at one deadline, however slowly the bytes trickle in."""

import http.client
import io
import select
import socket
import ssl
import time
from typing import Any, Protocol

CHUNK_BYTES = 1 << 16


class BoundedConnection(http.client.HTTPConnection):
    """Connects, sends and receives until `deadline_s` (monotonic) at most; then raises TimeoutError.

    Only looking up a name is the system's own affair and takes as long as it takes.
    """

    deadline_s = 0.0
    greets = False
    """Whether it is connected, but TLS is still being agreed upon."""
    _stream: "BoundedSocket | None" = None

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        super().__init__(host, port)
        self._tls = tls

    def connect(self) -> None:
        """Connect to the first of the host's addresses that answers; all of them share the time that is left."""
        stream = self._first_that_answers()
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            stream = self._secured(stream, self._tls)
        self.sock = self._stream = BoundedSocket(stream, self)

    def _secured(self, stream: socket.socket, tls: ssl.SSLContext) -> ssl.SSLSocket:
        self.greets = True
        try:
            stream.settimeout(self.left_s())
            secured = tls.wrap_socket(stream, server_hostname=self.host)
        except BaseException:
            stream.close()
            raise
        self.greets = False
        return secured

    def _first_that_answers(self) -> socket.socket:
        refused: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(self.host, self.port, 0, socket.SOCK_STREAM):
            stream = socket.socket(family, kind, protocol)
            try:
                stream.settimeout(self.left_s())
                stream.connect(address)
            except OSError as error:
                stream.close()
                refused = error
            else:
                return stream
        raise refused or OSError("the name has no address")

    def has_news(self) -> bool:
        """Return whether something arrived (its end, perhaps) that nobody has read."""
        return self.sock is not None and self._stream is not None and self._stream.has_news()

    def left_s(self) -> float:
        """Return the time that is left. Raises TimeoutError when there is none."""
        left_s = self.deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


class Deadline(Protocol):
    """What knows how long may be waited."""

    def left_s(self) -> float:
        """Return the time that is left. Raises TimeoutError when there is none."""


class BoundedSocket:
    """As much of a socket as http.client and urllib3 use, each call bounded by its connection's deadline."""

    def __init__(self, stream: socket.socket, connection: Deadline) -> None:
        self._stream = stream
        self._connection = connection
        self._readers = 0
        self._closed = False

    def sendall(self, data: bytes) -> None:
        """Send all. Raises OSError."""
        self._stream.settimeout(self._connection.left_s())
        self._stream.sendall(data)

    def recv_into(self, buffer: Any) -> int:
        """Return how much came, 0 at the end. Raises OSError."""
        self._stream.settimeout(self._connection.left_s())
        return self._stream.recv_into(buffer)

    def settimeout(self, _timeout_s: float | None) -> None:
        """Do nothing: the deadline is the connection's."""

    def fileno(self) -> int:
        """Return what the system knows it by."""
        return self._stream.fileno()

    def has_news(self) -> bool:
        """Return whether something arrived that nobody has read."""
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        decrypted = self._stream.pending() if isinstance(self._stream, ssl.SSLSocket) else 0
        return decrypted > 0 or bool(poll.poll(0))

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the receiving side as a file."""
        self._readers += 1
        return io.BufferedReader(_Incoming(self), CHUNK_BYTES)

    def close(self) -> None:
        """Close it."""
        # As with a real socket, who still reads the last answer may do so to its end.
        self._closed = True
        self._close_unused()

    def reader_closed(self) -> None:
        """Take note that one of the files is closed."""
        self._readers -= 1
        self._close_unused()

    def _close_unused(self) -> None:
        if self._closed and not self._readers:
            self._stream.close()


class _Incoming(io.RawIOBase):
    """The receiving side as a file."""

    def __init__(self, stream: BoundedSocket) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._stream.recv_into(buffer)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._stream.reader_closed()
