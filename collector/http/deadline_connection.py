"""An HTTP connection with one deadline for connecting, sending and receiving, however slowly bytes arrive."""

import http.client
import io
import select
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from collector.http.access import Access, CheckPeer
from collector.http.failures import (
    Failure,
    Reason,
    client_certificate_failure,
    connection_failure,
    http_failure,
    timeout_failure,
    tls_failure,
)
from collector.printable import one_line

CHUNK_BYTES = 1 << 16


class UntrustedServerError(OSError):
    """The server that accepted the connection is not trusted, and nothing was sent to it."""


class DeadlineConnection(http.client.HTTPConnection):
    """A connection on which every operation raises TimeoutError once the monotonic time `deadline_s` has passed.

    Name lookup is not covered, because the system's resolver has no deadline.
    """

    deadline_s = 0.0
    is_handshaking = False
    """Whether a TLS handshake has begun but has not succeeded."""
    _socket: "DeadlineSocket | None" = None
    _stream: socket.socket | None = None

    def __init__(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        unix_path: str = "",
        check_peer: CheckPeer | None = None,
    ) -> None:
        """With `unix_path`, connect to a UNIX socket; `host` and `port` then appear only in the Host header.

        `check_peer` is called once a connection is open, when nobody else can take the server's place.
        """
        super().__init__(host, port)
        self._tls = tls
        self._unix_path = unix_path
        self._check_peer = check_peer

    def shut_down(self) -> None:
        """Make the current operation fail at once; may be called from any thread. Name lookup is not interrupted."""
        stream = self._stream
        if stream is not None:
            with suppress(OSError):
                # SSLSocket's own method would also change the state of the socket, which another thread is using.
                socket.socket.shutdown(stream, socket.SHUT_RDWR)

    def connect(self) -> None:
        """Connect to the first of the host's addresses that accepts a connection, within the remaining time."""
        stream = self._connected_socket()
        if self._check_peer is not None:
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
        self.is_handshaking = True
        try:
            stream.settimeout(self.left_s())
            tls_stream = tls.wrap_socket(stream, server_hostname=self.host, do_handshake_on_connect=False)
        except BaseException:
            stream.close()
            raise
        self._stream = tls_stream
        try:
            tls_stream.do_handshake()
        except BaseException:
            tls_stream.close()
            raise
        self.is_handshaking = False
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


class Deadline(Protocol):
    """Something that has a deadline, such as a connection."""

    def left_s(self) -> float:
        """Return the remaining time. Raises TimeoutError if there is none."""


class DeadlineSocket:
    """A socket with the methods that http.client and urllib3 use; the connection's deadline limits every call."""

    def __init__(self, stream: socket.socket, connection: Deadline) -> None:
        self._stream = stream
        self._connection = connection
        self._readers = 0
        self._closed = False

    def sendall(self, data: bytes) -> None:
        """Send all bytes before the deadline. Raises OSError."""
        self._stream.settimeout(self._connection.left_s())
        self._stream.sendall(data)

    def recv_into(self, buffer: Any) -> int:
        """Receive into `buffer` and return the number of bytes, or 0 at the end of the stream. Raises OSError."""
        self._stream.settimeout(self._connection.left_s())
        return self._stream.recv_into(buffer)

    def settimeout(self, _timeout_s: float | None) -> None:
        """Do nothing, because the connection's deadline replaces the timeout."""

    def fileno(self) -> int:
        return self._stream.fileno()

    def has_unread_input(self) -> bool:
        """Return whether there are unread bytes or the server has closed the connection."""
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        decrypted = self._stream.pending() if isinstance(self._stream, ssl.SSLSocket) else 0
        return decrypted > 0 or bool(poll.poll(0))

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return a file object that reads from the socket."""
        self._readers += 1
        return io.BufferedReader(_SocketReader(self), CHUNK_BYTES)

    def close(self) -> None:
        """Close the socket once all files made from it are closed, as a real socket does."""
        self._closed = True
        self._close_unused()

    def reader_closed(self) -> None:
        """Record that a file made from the socket has been closed, and close the socket if it is no longer used."""
        self._readers -= 1
        self._close_unused()

    def _close_unused(self) -> None:
        if self._closed and not self._readers:
            self._stream.close()


class _SocketReader(io.RawIOBase):
    """A raw file object that reads from the socket."""

    def __init__(self, stream: DeadlineSocket) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._stream.recv_into(buffer)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._stream.reader_closed()


class ConnectionClosedError(Exception):
    """The server closed the connection before it responded."""


@dataclass(frozen=True)
class Diagnostics:
    """Interprets failures of requests sent to `host` with `access`, over TLS if `tls` is set."""

    host: str
    tls: bool
    access: Access

    def of_error(self, error: Exception, *, handshaking: bool) -> Failure:
        """Return the `Failure` for an exception; `handshaking` states whether TLS was being negotiated.

        Raises ConnectionClosedError if the server has closed the connection.
        """
        if isinstance(error, UntrustedServerError):
            return Failure(f"not trusted: {error}", Reason.UNTRUSTED)
        if isinstance(error, TimeoutError):
            if handshaking:
                return Failure("TLS handshake timed out", Reason.PLAIN_HTTP_SUSPECTED)
            return timeout_failure()
        if isinstance(error, ConnectionResetError | BrokenPipeError):
            raise ConnectionClosedError from error
        if isinstance(error, http.client.HTTPException):
            return http_failure(error)
        if isinstance(error, ssl.SSLError):
            return tls_failure(error, self.host, self.access.ca, self.access.certificate)
        return connection_failure(error) if isinstance(error, OSError) else Failure(one_line(error))

    def of_closed_connection(self, *, answered: bool) -> Failure:
        """Return the `Failure` for a closed connection; `answered` states whether the server has ever responded."""
        text = "connection closed without a response"
        if answered:
            return Failure(text)
        if not self.tls:
            return Failure(text, Reason.TLS_SUSPECTED)
        refused = client_certificate_failure(self.access.certificate)
        return Failure(f"{text}: {refused.text}", refused.reason)

    def of_status(self, status: int, phrase: str, location: str | None = None) -> Failure:
        """Return the `Failure` for a status other than 200; `location` is a redirect's target."""
        user = self.access.user
        if status == http.client.UNAUTHORIZED:
            if user:
                text = f"HTTP 401: credentials of user '{one_line(user)}' rejected"
                return Failure(text, Reason.CREDENTIALS_REJECTED)
            return Failure("HTTP 401: credentials required", Reason.CREDENTIALS_REQUIRED)
        if status == http.client.FORBIDDEN:
            text = "HTTP 403: the server's policy denies this host or user"
            if not self.tls:
                return Failure(text, Reason.FORBIDDEN)
            refused = client_certificate_failure(self.access.certificate)
            return Failure(f"{text}, or {refused.text}", refused.reason)
        if status == http.client.NOT_FOUND:
            return Failure("HTTP 404: path not found", Reason.NOT_FOUND)
        if 300 <= status < 400:
            return Failure(f"HTTP {status}: redirect to {self.quoted(location)}", Reason.REDIRECTED)
        reason = Reason.TLS_SUSPECTED if status == http.client.BAD_REQUEST and not self.tls else Reason.OTHER
        return Failure(f"HTTP {status} {self.quoted(phrase)}", reason)

    def quoted(self, text: object) -> str:
        """Return text from a server for use in a message: on one line, with secrets masked."""
        return one_line(self.access.hide(str(text)))
