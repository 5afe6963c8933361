"""`/api/v1/samples`: recent samples as JSON, and a stream of new ones as server-sent events."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from ipaddress import IPv6Address, IPv6Network
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.model import sample_json
from collector.model.snapshot import Sample
from exporters.api.auth import ip_of
from exporters.api.endpoint import EVENTS, JSON, AgentApi, accept_quality, error_response, time_parameter
from exporters.recent_ticks import RecentTick, RecentTicks, arrivals
from exporters.series_selector import SeriesSelection, parse

HEARTBEAT_S = 15.0
MAX_LISTENERS, MAX_LISTENERS_PER_CLIENT = 32, 16
MAX_SELECTORS, MAX_SELECTOR_CHARS = 64, 200
# Providers usually assign a network of this prefix length to each customer.
IPV6_PREFIX = 64


class Samples:
    """Serves the samples in `RecentTicks`; a sample is encoded only once, unless a request selects series."""

    def __init__(self, agent: AgentApi) -> None:
        self._recent = agent.recent
        self._encoded: dict[int, bytes] = {}
        self._listeners: Counter[str] = Counter()

    def respond(self, request: Request) -> ASGIApp:
        """Return the response to a request. Raises ValueError for invalid parameters."""
        selection = _selection(request.query_params.getlist("metric"))
        since_s = time_parameter(request, "since")
        if accept_quality(request.headers.get("accept", ""), EVENTS) > accept_quality(
            request.headers.get("accept", ""), JSON
        ):
            last = request.headers.get("last-event-id", "")
            with suppress(ValueError):
                since_s = float(last)
            peer = request.client.host if request.client else ""
            return self._events(client_of(peer), since_s, selection)
        ticks = [tick for tick in self._recent.kept() if tick.sample is not None]
        chosen = ticks[-1:] if since_s is None else _later(ticks, since_s)
        return lambda scope, receive, send: self._list(chosen, selection, scope, send)

    async def _list(
        self, ticks: Sequence[RecentTick], selection: SeriesSelection | None, scope: Scope, send: Send
    ) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _headers(JSON)})
        if scope["method"] != "HEAD":
            for index, tick in enumerate(ticks):
                body = (b"," if index else b"[") + self._body(tick, selection)
                await send({"type": "http.response.body", "body": body, "more_body": True})
                # Let other requests run between samples.
                await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"]" if ticks else b"[]"})

    def _events(self, client: str, since_s: float | None, selection: SeriesSelection | None) -> ASGIApp:
        async def stream(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] == "HEAD":
                await _send_head(send)
            elif self._listeners.total() >= MAX_LISTENERS:
                await _busy_response(f"{MAX_LISTENERS} streams are already open")(scope, receive, send)
                return
            elif self._listeners[client] >= MAX_LISTENERS_PER_CLIENT:
                reason = f"this client already has {MAX_LISTENERS_PER_CLIENT} open streams, the maximum for one client"
                await _busy_response(reason)(scope, receive, send)
                return
            else:
                self._listeners[client] += 1
                try:
                    await _send_head(send)
                    # The server cancels streams when it stops; the client still gets a complete response.
                    with suppress(asyncio.CancelledError):
                        await self._follow(since_s, selection, receive, send)
                finally:
                    self._listeners -= Counter({client: 1})
            await send({"type": "http.response.body", "body": b""})

        return stream

    async def _follow(
        self, since_s: float | None, selection: SeriesSelection | None, receive: Receive, send: Send
    ) -> None:
        """Send recent and new samples until the client disconnects or falls too far behind."""
        disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            async with aclosing(_ticks_as_they_come(self._recent, since_s, disconnected)) as ticks:
                async for tick in ticks:
                    body = b": nothing yet\n\n"
                    if tick is not None:
                        time_s = tick.tick.time_s
                        body = b"id: %s\ndata: %s\n\n" % (repr(time_s).encode(), self._body(tick, selection))
                    await send({"type": "http.response.body", "body": body, "more_body": True})
        finally:
            disconnected.cancel()

    def _body(self, tick: RecentTick, selection: SeriesSelection | None) -> bytes:
        if tick.sample is None:
            return b"null"
        if selection is not None:
            return _json(selection.of(tick.sample))
        body = self._encoded.get(tick.number)
        if body is None:
            kept = {tick.number for tick in self._recent.kept()}
            self._encoded = {number: body for number, body in self._encoded.items() if number in kept}
            body = self._encoded[tick.number] = _json(tick.sample)
        return body


def client_of(peer: str) -> str:
    """Return the client that an address stands for: an IPv4 address, an IPv6 /64 network or "loopback".

    A string that is not an IP address is returned unchanged.
    """
    address = ip_of(peer)
    if address is None:
        return peer
    if address.is_loopback:
        return "loopback"
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, IPV6_PREFIX), strict=False))
    return str(address)


async def _send_head(send: Send) -> None:
    headers = [*_headers(EVENTS), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


def _busy_response(reason: str) -> ASGIApp:
    return error_response(503, reason, {"retry-after": "10"})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ticks_as_they_come(
    recent: RecentTicks, since_s: float | None, disconnected: "asyncio.Future[None]"
) -> AsyncGenerator[RecentTick | None, None]:
    """Yield the ticks after `since_s`, then each new tick, and None after each heartbeat period without a tick.

    Ends when `disconnected` is done, or when ticks have been dropped from memory before being sent.
    """
    with arrivals(recent) as new_tick:
        disconnected.add_done_callback(lambda _: new_tick.set())
        last = recent.last
        number = last.number if last else 0
        if since_s is not None:
            for tick in _later([tick for tick in recent.kept() if tick.number <= number], since_s):
                yield tick
        while not disconnected.done():
            new_tick.clear()
            ticks = recent.after(number)
            if ticks is None:
                return
            for tick in ticks:
                number = tick.number
                if tick.sample is not None:
                    yield tick
            if not ticks and not await _within(new_tick, HEARTBEAT_S):
                yield None


async def _within(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except asyncio.TimeoutError:
        return False
    return True


def _later(ticks: Sequence[RecentTick], since_s: float) -> list[RecentTick]:
    return [tick for tick in ticks if tick.sample is not None and tick.tick.time_s > since_s]


def _selection(selectors: Sequence[str]) -> SeriesSelection | None:
    """Return the selection of the series that match a selector; None for all series. Raises ValueError."""
    if not selectors:
        return None
    if len(selectors) > MAX_SELECTORS or any(len(selector) > MAX_SELECTOR_CHARS for selector in selectors):
        raise ValueError(f"metric: at most {MAX_SELECTORS} selectors of at most {MAX_SELECTOR_CHARS} characters each")
    try:
        return SeriesSelection([parse(selector) for selector in selectors])
    except ValueError as error:
        raise ValueError(f"metric: {error}") from None


def _json(sample: Sample) -> bytes:
    """Encode a sample metric by metric, because a single long call to `dumps` would block all other threads."""
    content = sample_json.encoded(sample)
    return "{{{}}}".format(",".join(f"{_dumps(key)}:{_object_json(value)}" for key, value in content.items())).encode()


def _object_json(value: Any) -> str:
    if not isinstance(value, dict):
        return _dumps(value)
    return "{{{}}}".format(",".join(f"{_dumps(key)}:{_dumps(tick)}" for key, tick in value.items()))


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _headers(media_type: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", media_type.encode()),
        (b"cache-control", b"no-store"),
        (b"vary", b"accept"),
        (b"x-accel-buffering", b"no"),
    ]
