"""One connection's requests, within bounds: uvicorn's own protocol, which has few of its own."""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from http import HTTPStatus

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from exporters.api.connections import ClientConnection

HEAD_BYTES, BODY_BYTES = 16 << 10, 64 << 10
# With the sizes of its chunks and what else may stand around a body.
MESSAGE_BYTES = 8 * BODY_BYTES
MOST_PIPELINED = 64


class _BoundError(Exception):
    """A bound was exceeded: the parser hands it on as an error of its own."""


class BoundedProtocol(HttpToolsProtocol):
    """Refuses heads and bodies that are too large, and tells its visit how far it is."""

    def __init__(
        self,
        config: Config,
        state: ServerState,
        loop: asyncio.AbstractEventLoop,
        visit: ClientConnection,
        log: logging.Logger,
        admitted: Callable[[asyncio.Transport], bool],
        left: Callable[[ClientConnection], None],
    ) -> None:
        """Take, beside what uvicorn's takes, whom to tell, and who says whether somebody is let in at all."""
        super().__init__(config, state, {}, loop)
        self.logger, self.access_log = log, False
        self._visit = visit
        self._admitted = admitted
        self._left = left
        self._refused = (400, "this is no request of HTTP")
        self._in_head, self._ended = True, False
        self._head = self._body = self._received = 0
        self._certified = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless this one is not let in."""
        super().connection_made(transport)
        self._visit.end = transport.abort
        self._certified = bool(transport.get_extra_info("peercert"))
        if not self._admitted(transport):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._left(self._visit)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._visit.begins(self.loop.time())
        self._ended = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Nothing else is spoken here: what follows is no request.
            self.cycle.keep_alive = False
            self.flow.pause_reading()
        except httptools.HttpParserError:
            self.refuse()
        else:
            self._bound(len(data))

    def _bound(self, came: int) -> None:
        """Bound what the parser keeps of something that is not whole yet."""
        self._received = 0 if self._ended else self._received + came
        if self._in_head and self._received > HEAD_BYTES:
            self._refused = 431, f"the head of a request has at most {HEAD_BYTES} bytes"
            self.refuse()
        elif self._received > MESSAGE_BYTES:
            self._refused = 413, f"a body has at most {BODY_BYTES} bytes"
            self.refuse()

    def refuse(self) -> None:
        """Answer that this cannot be, unless another answer is on its way, and close the connection."""
        if not getattr(self.cycle, "response_complete", True):
            self.transport.abort()
            return
        status, why = self._refused
        body = json.dumps({"error": why}).encode()
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
        self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._head = self._body = 0
        scope: dict[str, object] = self.scope  # type: ignore[assignment]
        scope["casstat.received_s"] = time.time()
        scope["casstat.certified"] = self._certified

    def on_url(self, url: bytes) -> None:
        """Take a piece of the request's target."""
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._count_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End the head."""
        self._in_head = False
        self._visit.sends(self.loop.time())
        if len(self.pipeline) >= MOST_PIPELINED:
            raise _BoundError
        for name, value in self.headers:
            if name == b"content-length" and (len(value) > 9 or int(value) > BODY_BYTES):
                self._too_large()
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            self._refused = 400, "a request of HTTP/1.1 has exactly one Host header"
            raise _BoundError
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._body += len(body)
        if self._body > BODY_BYTES:
            self._too_large()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._in_head = self._ended = True
        if self.cycle.response_complete:
            # It was answered before it was whole, such as by a refusal.
            self._visit.is_idle(self.loop.time())
        else:
            self._visit.is_served()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End an answer."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self._visit.is_idle(self.loop.time())

    def pause_writing(self) -> None:
        """Wait, for the other side does not read."""
        super().pause_writing()
        self._visit.stalls(self.loop.time())

    def resume_writing(self) -> None:
        """Go on, for the other side reads."""
        super().resume_writing()
        self._visit.reads()

    def _count_head(self, size: int) -> None:
        self._head += size
        if self._head > HEAD_BYTES:
            self._refused = 431, f"the head of a request has at most {HEAD_BYTES} bytes"
            raise _BoundError

    def _too_large(self) -> None:
        self._refused = 413, f"a body has at most {BODY_BYTES} bytes"
        raise _BoundError
