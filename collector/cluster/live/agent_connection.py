"""One connection to an agent: answers taken whole, and events as they come, with bounds on their size and time.

Nothing waits by itself: whoever keeps the connections looks now and then which of them is past its deadline.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

import httptools

LARGEST_BYTES = 4 << 20
LARGEST_HEAD_BYTES = 32 << 10
ANSWER_S = 5.0
# An agent says something every 15 s, if only that there is nothing.
IDLE_S = 20.0
# At most so many events in a second: an agent has ten ticks in one, and keeps twenty.
MOST_EVENTS = 64

Events = Callable[[bytes], None]


class LinkError(Exception):
    """The other side does not say what an agent says; the message says what is wrong, in one line."""


@dataclass(frozen=True)
class Answer:
    """What an agent answers: names of headers in lower case; of events there is no body."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


class Link(asyncio.Protocol):
    """Speaks HTTP; `clock` is the loop's time, by which `deadline_s` is."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.deadline_s = inf
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._events: Events | None = None
        self._headers: dict[str, str] = {}
        self._reason = ""
        self._buffer = bytearray()
        self._head_bytes = 0
        self._second = self._in_second = 0
        self.failure: Exception | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ask(self, request: bytes, events: Events | None = None) -> "asyncio.Future[Answer]":
        """Send a request; with `events` the answer is there when it begins, and these get what comes."""
        self._parser = httptools.HttpResponseParser(self)
        self._answer = asyncio.get_running_loop().create_future()
        self._events, self._headers, self._reason = events, {}, ""
        self._buffer.clear()
        self._head_bytes = 0
        self.deadline_s = self._clock() + ANSWER_S
        if self.failure is not None or self._transport is None:
            self._answer.set_exception(self.failure or ConnectionResetError())
        else:
            self._transport.write(request)
        return self._answer

    def fail(self, error: Exception) -> None:
        """End it: whoever waits gets the error."""
        self.failure = self.failure or error
        self.deadline_s = inf
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(self.failure)
        if not self.closed.done():
            self.closed.set_result(None)
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what streams have
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        if self._parser is None or self.failure is not None:
            self.fail(LinkError("it says something before it is asked"))
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            self.fail(cause if isinstance(cause, LinkError) else LinkError("it does not speak HTTP as an agent does"))
        except httptools.HttpParserError:
            self.fail(LinkError("it does not speak HTTP as an agent does"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.fail(exc or ConnectionResetError())

    # What httptools calls.

    def on_status(self, status: bytes) -> None:
        """Take the words behind the number."""
        self._reason += status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > LARGEST_HEAD_BYTES:
            raise LinkError("the head of its answer is too large")
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Of events, answer now."""
        if self._events is not None and self._status() == 200:
            self.deadline_s = self._clock() + IDLE_S
            self._done(b"")

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._buffer += body
        if self._events is not None and self._status() == 200:
            self._split()
        if len(self._buffer) > LARGEST_BYTES:
            raise LinkError(f"its answer is larger than {LARGEST_BYTES >> 20} MiB")

    def on_message_complete(self) -> None:
        """Answer; of events this is the end."""
        if self._answer is not None and not self._answer.done():
            self.deadline_s = inf
            self._done(bytes(self._buffer))
        elif self._events is not None:
            self.fail(ConnectionResetError())

    def _status(self) -> int:
        return 0 if self._parser is None else self._parser.get_status_code()

    def _done(self, body: bytes) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(self._status(), self._reason, self._headers, body))

    def _split(self) -> None:
        """Hand on the events that are whole."""
        *whole, rest = bytes(self._buffer).split(b"\n\n") if b"\n\n" in self._buffer else [bytes(self._buffer)]
        now_s = self._clock()
        if whole:
            del self._buffer[: -len(rest) or None]
            self.deadline_s = now_s + IDLE_S
            self._count(len(whole), int(now_s))
        if rest:
            # What has begun must end soon.
            self.deadline_s = min(self.deadline_s, now_s + ANSWER_S)
        for event in whole:
            data = b"".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
            if data and self._events is not None:
                self._events(data)

    def _count(self, events: int, second: int) -> None:
        self._in_second = events + (self._in_second if second == self._second else 0)
        self._second = second
        if self._in_second > MOST_EVENTS:
            raise LinkError(f"it sends more than {MOST_EVENTS} events in a second")
