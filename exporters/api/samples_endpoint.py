"""`/api/v1/samples`: the last ticks as JSON, and those to come as server-sent events."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from fnmatch import translate
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.model import sample_json
from collector.model.metric import Series
from collector.model.sample import Sample
from exporters.api.agent_api import AgentApi
from exporters.api.client_addresses import client_of
from exporters.api.responses import EVENTS, JSON, number, refusal, takes
from exporters.recent_ticks import Moment, RecentTicks

HEARTBEAT_S = 15.0
MOST_LISTENERS, MOST_LISTENERS_PER_CLIENT = 32, 16
MOST_PATTERNS, LONGEST_PATTERN = 32, 200

Fits = Callable[[str], bool]
_V = TypeVar("_V")
_Moments = AsyncGenerator[Moment | None, None]


class Samples:
    """Serves the samples that `RecentTicks` keeps; what is asked for without a choice is encoded once a tick."""

    def __init__(self, served: AgentApi) -> None:
        self._recent = served.recent
        self._encoded: dict[int, bytes] = {}
        self._listeners: Counter[str] = Counter()

    def answered(self, request: Request) -> ASGIApp:
        """Return the answer to a request. Raises ValueError with a message when it asks for what cannot be."""
        fits = _choice(request.query_params.getlist("metric"))
        since_s = number(request, "since")
        if takes(request.headers.get("accept", ""), EVENTS) > takes(request.headers.get("accept", ""), JSON):
            last = request.headers.get("last-event-id", "")
            with suppress(ValueError):
                since_s = float(last)
            peer = request.client.host if request.client else ""
            return self._events(client_of(peer), since_s, fits)
        moments = [each for each in self._recent.kept() if each.sample is not None]
        chosen = moments[-1:] if since_s is None else _later(moments, since_s)
        return lambda scope, receive, send: self._list(chosen, fits, scope, send)

    async def _list(self, moments: Sequence[Moment], fits: Fits | None, scope: Scope, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _headers(JSON)})
        if scope["method"] != "HEAD":
            for index, moment in enumerate(moments):
                body = (b"," if index else b"[") + self._body(moment, fits)
                await send({"type": "http.response.body", "body": body, "more_body": True})
                # Others are answered between two of them.
                await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"]" if moments else b"[]"})

    def _events(self, client: str, since_s: float | None, fits: Fits | None) -> ASGIApp:
        async def stream(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] == "HEAD":
                await _begin(send)
            elif self._listeners.total() >= MOST_LISTENERS:
                await _busy(f"{MOST_LISTENERS} clients follow already")(scope, receive, send)
                return
            elif self._listeners[client] >= MOST_LISTENERS_PER_CLIENT:
                reason = f"this address has {MOST_LISTENERS_PER_CLIENT} streams of the {MOST_LISTENERS} already"
                await _busy(reason)(scope, receive, send)
                return
            else:
                self._listeners[client] += 1
                try:
                    await _begin(send)
                    # What ends the stream is the agent's own end: the listener sees a whole answer.
                    with suppress(asyncio.CancelledError):
                        await self._follow(since_s, fits, receive, send)
                finally:
                    self._listeners -= Counter({client: 1})
            await send({"type": "http.response.body", "body": b""})

        return stream

    async def _follow(self, since_s: float | None, fits: Fits | None, receive: Receive, send: Send) -> None:
        """Send what there is and what comes, until the listener is gone or too slow for what is kept."""
        gone = asyncio.ensure_future(_gone(receive))
        try:
            async with aclosing(_live(self._recent, since_s, gone)) as moments:
                async for moment in moments:
                    body = b": nothing yet\n\n"
                    if moment is not None:
                        time_s = moment.tick.time_s
                        body = b"id: %s\ndata: %s\n\n" % (repr(time_s).encode(), self._body(moment, fits))
                    await send({"type": "http.response.body", "body": body, "more_body": True})
        finally:
            gone.cancel()

    def _body(self, moment: Moment, fits: Fits | None) -> bytes:
        if moment.sample is None:
            return b"null"
        if fits is not None:
            return _json(_chosen(moment.sample, fits))
        found = self._encoded.get(moment.number)
        if found is None:
            kept = {each.number for each in self._recent.kept()}
            self._encoded = {number: body for number, body in self._encoded.items() if number in kept}
            found = self._encoded[moment.number] = _json(moment.sample)
        return found


async def _begin(send: Send) -> None:
    headers = [*_headers(EVENTS), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


def _busy(reason: str) -> ASGIApp:
    return refusal(503, reason, {"retry-after": "10"})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _live(
    recent: RecentTicks, since_s: float | None, gone: "asyncio.Future[None]"
) -> AsyncGenerator[Moment | None, None]:
    """Yield the moments after that time, then each one as it comes, and None while there are none for a while.

    Ends when `gone` is done, or when moments have come faster than they were taken.
    """
    news, loop = asyncio.Event(), asyncio.get_running_loop()

    def tell(_: Moment) -> None:
        # Called by the thread that samples, which has nothing to do with a loop that has ended.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(news.set)

    gone.add_done_callback(lambda _: news.set())
    forget = recent.listen(tell)
    try:
        last = recent.last
        number = last.number if last else 0
        if since_s is not None:
            for moment in _later([each for each in recent.kept() if each.number <= number], since_s):
                yield moment
        while not gone.done():
            news.clear()
            moments = recent.after(number)
            if moments is None:
                return
            for moment in moments:
                number = moment.number
                if moment.sample is not None:
                    yield moment
            if not moments and not await _within(news, HEARTBEAT_S):
                yield None
    finally:
        forget()


async def _within(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except asyncio.TimeoutError:
        return False
    return True


def _later(moments: Sequence[Moment], since_s: float) -> list[Moment]:
    return [each for each in moments if each.sample is not None and each.tick.time_s > since_s]


def _choice(patterns: Sequence[str]) -> Fits | None:
    """Return what says whether a metric is asked for; None for all of them. Raises ValueError."""
    if not patterns:
        return None
    if len(patterns) > MOST_PATTERNS or any(len(pattern) > LONGEST_PATTERN for pattern in patterns):
        raise ValueError(f"metric: at most {MOST_PATTERNS} patterns of {LONGEST_PATTERN} characters")
    expression = re.compile("|".join(f"(?:{translate(pattern)})" for pattern in patterns))
    return lambda name: expression.match(name) is not None


def _chosen(sample: Sample, fits: Fits) -> Sample:
    names = {series[0] for mapping in (sample.values, sample.last_known, sample.spread) for series in mapping}
    wanted = {name for name in names if fits(name)}
    return replace(
        sample,
        values=_of(sample.values.items(), wanted),
        last_known=_of(sample.last_known.items(), wanted),
        spread=_of(sample.spread.items(), wanted),
    )


def _of(items: Collection[tuple[Series, _V]], wanted: set[str]) -> dict[Series, _V]:
    return {series: value for series, value in items if series[0] in wanted}


def _json(sample: Sample) -> bytes:
    """Return a sample metric by metric: while one call of `dumps` works no other thread does."""
    whole = sample_json.encoded(sample)
    return "{{{}}}".format(",".join(f"{_dumps(key)}:{_spelled(value)}" for key, value in whole.items())).encode()


def _spelled(value: Any) -> str:
    if not isinstance(value, dict):
        return _dumps(value)
    return "{{{}}}".format(",".join(f"{_dumps(key)}:{_dumps(each)}" for key, each in value.items()))


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _headers(media_type: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", media_type.encode()),
        (b"cache-control", b"no-store"),
        (b"vary", b"accept"),
        (b"x-accel-buffering", b"no"),
    ]
