"""Limits the size and pipelining of requests, because uvicorn's own protocol has few limits."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import Callable
from http import HTTPStatus

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from exporters.api.connections import ClientConnection

HEAD_BYTES, BODY_BYTES = 16 << 10, 64 << 10
# The maximum number of bytes received for an incomplete message, including chunk headers and trailers.
MESSAGE_BYTES = 8 * BODY_BYTES
MAX_PIPELINED = 64
# A UNIX socket's clients are programs on this machine, like those of the loopback interface.
UNIX_CLIENT = ("127.0.0.1", 0)


class _BoundError(Exception):
    """Raised in a parser callback to reject a request; httptools turns it into an HttpParserError."""


class BoundedProtocol(HttpToolsProtocol):
    """Rejects request heads and bodies that are too large, and keeps its `ClientConnection` up to date."""

    def __init__(
        self,
        config: Config,
        state: ServerState,
        loop: asyncio.AbstractEventLoop,
        connection: ClientConnection,
        log: logging.Logger,
        is_admitted: Callable[[asyncio.Transport], bool],
        closed: Callable[[ClientConnection], None],
    ) -> None:
        """Create a protocol that keeps `connection` up to date, and calls `closed` when the connection ends."""
        super().__init__(config, state, {}, loop)
        self.logger, self.access_log = log, False
        self._connection = connection
        self._is_admitted = is_admitted
        self._closed = closed
        self._refused = (400, "malformed HTTP request")
        self._in_head, self._ended = True, False
        self._head = self._body = self._received = 0
        self._certified = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the connection, or abort it if the client is not admitted."""
        super().connection_made(transport)
        if transport.get_extra_info("socket").family == socket.AF_UNIX:
            self.client = UNIX_CLIENT
        self._connection.abort = transport.abort
        self._certified = bool(transport.get_extra_info("peercert"))
        if not self._is_admitted(transport):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the connection has ended."""
        self._closed(self._connection)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the received bytes, and refuse a request that is malformed or too large."""
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._connection.request_begins(self.loop.time())
        self._ended = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Upgrades to other protocols are not supported, and the bytes that follow must not be parsed as a request.
            self.cycle.keep_alive = False
            self.flow.pause_reading()
        except httptools.HttpParserError:
            self.refuse()
        else:
            self._bound(len(data))

    def _bound(self, received_bytes: int) -> None:
        """Limit the bytes that the parser buffers for an incomplete message."""
        self._received = 0 if self._ended else self._received + received_bytes
        if self._in_head and self._received > HEAD_BYTES:
            self._refused = 431, f"the request head is larger than {HEAD_BYTES} bytes"
            self.refuse()
        elif self._received > MESSAGE_BYTES:
            self._refused = 413, f"the body is larger than {BODY_BYTES} bytes"
            self.refuse()

    def refuse(self) -> None:
        """Send an error and close the connection, or abort it if another response is in progress."""
        if not getattr(self.cycle, "response_complete", True):
            self.transport.abort()
            return
        status, reason = self._refused
        body = json.dumps({"error": reason}).encode()
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
        self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def on_message_begin(self) -> None:
        """Reset the counters for a new request, and record its time and whether the client has a certificate."""
        super().on_message_begin()
        self._head = self._body = 0
        scope: dict[str, object] = self.scope  # type: ignore[assignment]
        scope["casstat.received_s"] = time.time()
        scope["casstat.certified"] = self._certified

    def on_url(self, url: bytes) -> None:
        """Count the bytes of the request target, which may arrive in parts."""
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the bytes of a header."""
        self._count_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Reject oversized bodies, too many pipelined requests, and a missing (in HTTP/1.1) or repeated Host header."""
        self._in_head = False
        self._connection.head_complete(self.loop.time())
        if len(self.pipeline) >= MAX_PIPELINED:
            raise _BoundError
        for name, value in self.headers:
            if name == b"content-length" and (len(value) > 9 or int(value) > BODY_BYTES):
                self._too_large()
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            self._refused = 400, "the Host header is missing or repeated"
            raise _BoundError
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count the bytes of a part of the body."""
        self._body += len(body)
        if self._body > BODY_BYTES:
            self._too_large()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Record that a request is complete."""
        self._in_head = self._ended = True
        if self.cycle.response_complete:
            # The response was completed before the request, for example because of an error.
            self._connection.idle(self.loop.time())
        else:
            self._connection.request_complete()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Record that a response is complete."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self._connection.idle(self.loop.time())

    def pause_writing(self) -> None:
        """Stop writing and start the timeout, because the client is not reading."""
        super().pause_writing()
        self._connection.write_stalled(self.loop.time())

    def resume_writing(self) -> None:
        """Resume writing and cancel the timeout, because the client is reading again."""
        super().resume_writing()
        self._connection.write_resumed()

    def _count_head(self, size: int) -> None:
        self._head += size
        if self._head > HEAD_BYTES:
            self._refused = 431, f"the request head is larger than {HEAD_BYTES} bytes"
            raise _BoundError

    def _too_large(self) -> None:
        self._refused = 413, f"the body is larger than {BODY_BYTES} bytes"
        raise _BoundError
