"""An HTTP connection to an agent: complete responses and server-sent events, bounded in size and time.

Connections have no timers of their own, because hundreds of timers would be expensive. Instead, the owner periodically
compares each connection's `deadline_s` with the loop's time.
"""

import asyncio
from collections.abc import Callable
from math import inf

import httptools

from collector.http.deadline_connection import Response

MAX_BODY_BYTES = 4 << 20
MAX_HEAD_BYTES = 32 << 10
RESPONSE_TIMEOUT_S = 5.0
# Longer than the 15 s after which an agent without new samples sends a comment.
IDLE_TIMEOUT_S = 20.0
# More than an agent can send in one second: it keeps the last twenty samples and produces at most ten per second.
MAX_EVENTS_PER_S = 64
OK = 200

EventHandler = Callable[[bytes], None]


class AgentError(Exception):
    """A request failed, or the peer does not behave like an agent; the message is a single line."""


class AgentConnection(asyncio.Protocol):
    """A client connection. Its owner closes it after `deadline_s`, a time on the event loop's clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.deadline_s = inf
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._response: asyncio.Future[Response] | None = None
        self._on_event: EventHandler | None = None
        self._headers: dict[str, str] = {}
        self._reason = ""
        self._buffer = bytearray()
        self._head_bytes = 0
        self._second = self._events_in_second = 0
        self.failure: Exception | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def send(self, request: bytes, on_event: EventHandler | None = None) -> "asyncio.Future[Response]":
        """Send a request and return a future for its response.

        With `on_event`, the response for an event stream is complete once its head has arrived, without a body;
        `on_event` is then called with each event's data.
        """
        self._parser = httptools.HttpResponseParser(self)
        self._response = asyncio.get_running_loop().create_future()
        self._on_event, self._headers, self._reason = on_event, {}, ""
        self._buffer.clear()
        self._head_bytes = 0
        self.deadline_s = self._clock() + RESPONSE_TIMEOUT_S
        if self.failure is not None or self._transport is None:
            self._response.set_exception(self.failure or ConnectionResetError())
        else:
            self._transport.write(request)
        return self._response

    def fail(self, error: Exception) -> None:
        """Abort the connection; awaiting a pending response raises the error."""
        self.failure = self.failure or error
        self.deadline_s = inf
        if self._response is not None and not self._response.done():
            self._response.set_exception(self.failure)
        if not self.closed.done():
            self.closed.set_result(None)
        if self._transport is not None:
            self._transport.abort()

    # Callbacks from asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - true for streams
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._parser is None or self.failure is not None:
            self.fail(AgentError("unexpected data before a request"))
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            # One of the callbacks below raised the exception in `__context__`: an AgentError or an unexpected one.
            cause = error.__context__
            self.fail(cause if isinstance(cause, Exception) else AgentError("malformed HTTP response"))
        except httptools.HttpParserError:
            self.fail(AgentError("malformed HTTP response"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the pending response."""
        self.fail(exc or ConnectionResetError())

    # Callbacks from httptools.

    def on_status(self, status: bytes) -> None:
        self._reason += status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header. Raises AgentError if the head is too large."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MAX_HEAD_BYTES:
            raise AgentError(f"response head larger than {MAX_HEAD_BYTES >> 10} KiB")
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Complete the response now if it is an event stream."""
        if self._is_event_stream():
            self.deadline_s = self._clock() + IDLE_TIMEOUT_S
            self._complete(b"")

    def on_body(self, body: bytes) -> None:
        """Append to the body. Raises AgentError if it is too large."""
        self._buffer += body
        if self._is_event_stream():
            self._dispatch_events()
        if len(self._buffer) > MAX_BODY_BYTES:
            raise AgentError(f"response larger than {MAX_BODY_BYTES >> 20} MiB")

    def on_message_complete(self) -> None:
        """Complete the response; the end of an event stream closes the connection."""
        if self._response is not None and not self._response.done():
            self.deadline_s = inf
            self._complete(bytes(self._buffer))
        elif self._on_event is not None:
            self.fail(ConnectionResetError())

    def _status(self) -> int:
        return 0 if self._parser is None else self._parser.get_status_code()

    def _is_event_stream(self) -> bool:
        return self._on_event is not None and self._status() == OK

    def _complete(self, body: bytes) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_result(Response(self._status(), self._reason, self._headers, body))

    def _dispatch_events(self) -> None:
        """Call `on_event` with the data of each complete event."""
        *events, incomplete = bytes(self._buffer).split(b"\n\n") if b"\n\n" in self._buffer else [bytes(self._buffer)]
        now_s = self._clock()
        if events:
            del self._buffer[: -len(incomplete) or None]
            self.deadline_s = now_s + IDLE_TIMEOUT_S
            self._limit_rate(len(events), int(now_s))
        if incomplete:
            # The rest of an incomplete event must arrive within the response timeout, not just the idle timeout.
            self.deadline_s = min(self.deadline_s, now_s + RESPONSE_TIMEOUT_S)
        for event in events:
            data = b"".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
            if data and self._on_event is not None:
                self._on_event(data)

    def _limit_rate(self, events: int, second: int) -> None:
        self._events_in_second = events + (self._events_in_second if second == self._second else 0)
        self._second = second
        if self._events_in_second > MAX_EVENTS_PER_S:
            raise AgentError(f"more than {MAX_EVENTS_PER_S} events per second")
