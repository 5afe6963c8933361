"""HTTP over a connection with one deadline for connecting, sending and receiving, however slowly bytes arrive."""

import http.client
import io
import select
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from collector.http.access import CLOSED, Access, CheckPeer, Diagnostics, Failure, UntrustedServerError

CHUNK_BYTES = 1 << 16


class ExchangeError(Exception):
    """A request failed; `failure` is the cause, and `is_closed` states whether the server closed the connection."""

    def __init__(self, failure: Failure, *, is_closed: bool = False) -> None:
        super().__init__(failure.text)
        self.failure, self.is_closed = failure, is_closed


@dataclass(frozen=True)
class Response:
    """A complete HTTP response; header names are in lower case."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


class DeadlineConnection(http.client.HTTPConnection):
    """A connection on which every operation raises TimeoutError once the monotonic time `deadline_s` has passed.

    Name lookup is not covered, because the system's resolver has no deadline. A request opens the connection if it is
    closed, and `is_open` states whether it can be reused. Redirects are not followed.
    """

    deadline_s = 0.0
    _is_handshaking = False
    _has_answered = False
    _socket: "DeadlineSocket | None" = None
    _stream: socket.socket | None = None

    def __init__(
        self,
        host: str,
        port: int | None,
        tls: ssl.SSLContext | None,
        access: Access,
        *,
        unix_path: str = "",
        check_peer: CheckPeer | None = None,
    ) -> None:
        """Prepare a connection to a server, with `access` to explain failures.

        With `unix_path`, connect to a UNIX socket; `host` and `port` then appear only in the Host header.

        `check_peer` is called once a connection is open, when nobody else can take the server's place; the default is
        that of `access`.
        """
        # Also the port that the Host header omits.
        self.default_port = http.client.HTTP_PORT if tls is None else http.client.HTTPS_PORT
        super().__init__(host, port or self.default_port)
        self._tls = tls
        self._unix_path = unix_path
        self._check_peer = check_peer or access.check_peer
        self.diagnostics = Diagnostics(host, tls is not None, access)

    @property
    def is_open(self) -> bool:
        return self.sock is not None

    @contextmanager
    def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], deadline_s: float
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request and yield its response, before `deadline_s`; the body is read in the `with` block.

        The connection stays open if the block has read the whole body. Raises ExchangeError, also for errors of the
        connection in the block.
        """
        if self.has_unread_input():
            # The server has closed the connection, or has sent data that must not be mistaken for the next response.
            self.close()
        self.deadline_s = deadline_s
        is_reusable = False
        try:
            self.request(method, path, body, headers)
            with self.getresponse() as response:
                self._has_answered = True
                yield response
                is_reusable = response.isclosed() and not response.will_close
        except (http.client.HTTPException, OSError, UnicodeError) as error:
            failure = self.diagnostics.of_error(error, handshaking=self._is_handshaking, answered=self._has_answered)
            raise ExchangeError(failure, is_closed=isinstance(error, CLOSED)) from None
        finally:
            if not is_reusable:
                self.close()

    def post(self, path: str, body: bytes, headers: Mapping[str, str], timeout_s: float, max_bytes: int) -> Response:
        """Send a POST request and return the response; its body is cut to `max_bytes`. Raises ExchangeError."""
        with self.exchange("POST", path, body, headers, time.monotonic() + timeout_s) as response:
            content = body_of(response, max_bytes)[:max_bytes]
            lower = {name.lower(): value for name, value in response.headers.items()}
            return Response(response.status, response.reason, lower, content)

    def shut_down(self) -> None:
        """Make the current operation fail at once; may be called from any thread. Name lookup is not interrupted."""
        stream = self._stream
        if stream is not None:
            with suppress(OSError):
                # SSLSocket's own method would also change the state of the socket, which another thread is using.
                socket.socket.shutdown(stream, socket.SHUT_RDWR)

    def connect(self) -> None:
        """Connect to the first of the host's addresses that accepts a connection, within the remaining time."""
        self._is_handshaking = False
        stream = self._connected_socket()
        if self._check_peer is not None and not self._unix_path:
            host, port = stream.getpeername()[:2]
            if problem := self._check_peer(host, port):
                stream.close()
                raise UntrustedServerError(problem)
        if not self._unix_path:
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            stream = self._tls_socket(stream, self._tls)
        self.sock = self._socket = DeadlineSocket(stream, self)

    def _tls_socket(self, stream: socket.socket, tls: ssl.SSLContext) -> ssl.SSLSocket:
        self._is_handshaking = True
        try:
            stream.settimeout(self.left_s())
            tls_stream = tls.wrap_socket(stream, server_hostname=self.host.rstrip("."), do_handshake_on_connect=False)
            stream = self._stream = tls_stream
            tls_stream.do_handshake()
        except BaseException:
            stream.close()
            raise
        self._is_handshaking = False
        return tls_stream

    def _connected_socket(self) -> socket.socket:
        last_error: OSError | None = None
        addresses: Sequence[tuple[Any, Any, Any, Any, Any]]
        if self._unix_path:
            addresses = [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", self._unix_path)]
        else:
            addresses = socket.getaddrinfo(self.host, self.port, 0, socket.SOCK_STREAM)
        for family, kind, protocol, _, address in addresses:
            stream = self._stream = socket.socket(family, kind, protocol)
            try:
                stream.settimeout(self.left_s())
                stream.connect(address)
            except OSError as error:
                stream.close()
                last_error = error
            else:
                return stream
        raise last_error or OSError("the host name has no address")

    def has_unread_input(self) -> bool:
        """Return whether there are unread bytes or the server has closed the connection."""
        return self.sock is not None and self._socket is not None and self._socket.has_unread_input()

    def left_s(self) -> float:
        """Return the remaining time. Raises TimeoutError if there is none."""
        left_s = self.deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


def body_of(response: http.client.HTTPResponse, max_bytes: int) -> bytes:
    """Return a response's body; if it is larger than `max_bytes`, only its beginning, which is also larger.

    Raises IncompleteRead, and OSError.
    """
    body = bytearray()
    try:
        for part in parts_of(response):
            body += part
            if len(body) > max_bytes:
                break
    except http.client.IncompleteRead:
        raise http.client.IncompleteRead(bytes(body)) from None
    return bytes(body)


def parts_of(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield the parts of a response's body as they arrive. Raises IncompleteRead, and OSError."""
    while part := response.read1(CHUNK_BYTES):
        yield part
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    # Before Python 3.12.2, read1 does not close the response, so the connection would not be reused.
    response.close()


class DeadlineSocket:
    """A socket with the methods that http.client uses; the connection's deadline limits every call."""

    def __init__(self, stream: socket.socket, connection: DeadlineConnection) -> None:
        self._stream, self._connection = stream, connection

    def sendall(self, data: bytes) -> None:
        """Send all bytes before the deadline. Raises OSError."""
        self._stream.settimeout(self._connection.left_s())
        self._stream.sendall(data)

    def has_unread_input(self) -> bool:
        """Return whether there are unread bytes or the server has closed the connection."""
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        decrypted = self._stream.pending() if isinstance(self._stream, ssl.SSLSocket) else 0
        return decrypted > 0 or bool(poll.poll(0))

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return a file object that reads from the socket."""
        return io.BufferedReader(_DeadlineReader(self._stream, self._connection), CHUNK_BYTES)

    def close(self) -> None:
        """Close the socket once all files made from it are closed."""
        self._stream.close()


class _DeadlineReader(io.RawIOBase):
    """A raw file object that reads from a socket before the connection's deadline."""

    def __init__(self, stream: socket.socket, connection: DeadlineConnection) -> None:
        self._stream, self._connection = stream, connection
        self._file = stream.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._stream.settimeout(self._connection.left_s())
        return self._file.readinto(buffer)

    def close(self) -> None:
        super().close()
        self._file.close()
