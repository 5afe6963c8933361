"""`/metrics`: the exposition in the format and encoding that the client prefers, and the moment to send it."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from starlette.requests import Request
from starlette.responses import Response

from exporters.api.endpoint import accept_quality, parse_accept
from exporters.recent_ticks import RecentTick, RecentTicks, arrivals

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# A request waits for a tick that is expected within SOON_S. If its client already has the last tick, it waits for up to
# NEXT_S, and if it had the one before, only within IMMINENT_S: otherwise, jitter could make it skip the last one. These
# times are for intervals of a second or longer. A request gives up when the tick is late by more than LATE_S.
IMMINENT_S, SOON_S, NEXT_S, LATE_S = 0.1, 0.15, 0.3, 0.4
# The number of connections whose last tick is known: those with the latest requests.
KEPT = 1024
# The number of ticks whose delays are compared.
RECENT = 10


def prefers_openmetrics(accept: str) -> bool:
    """Return whether an Accept header prefers OpenMetrics to the text format."""
    openmetrics = text = 0.0
    for name, parameters, quality in parse_accept(accept):
        version = parameters.get("version", "")
        if name == "application/openmetrics-text" and version in ("", "1.0.0"):
            openmetrics = max(openmetrics, quality)
        elif name == "text/plain" and version in ("", "0.0.4"):
            text = max(text, quality)
    return openmetrics > text


class Page(Protocol):
    """An object with metrics to expose."""

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        """Return the exposition, compressed with gzip if `compressed`."""


class _Arrival(NamedTuple):
    """The number of a tick, and the monotonic time at which the next one is expected."""

    number: int
    next_s: float
    interval_s: float


class Turns:
    """Delays requests so that a client that asks once per tick gets every tick.

    Without a delay, the scrapes of a Prometheus server whose scrapes coincide with the ticks would return some ticks
    twice and miss others. A client whose requests come just before a tick waits for it. The client's state prevents
    that jitter at the beginning of this short time has the same effect.
    """

    def __init__(self, recent: RecentTicks, now_s: Callable[[], float] = time.monotonic) -> None:
        self._recent = recent
        self._now_s = now_s
        self._previous_s: float | None = None
        # By how much the last ticks arrived after their time, up to a constant.
        self._delays_s: deque[float] = deque(maxlen=RECENT)
        self._arrival: _Arrival | None = None
        self._served: dict[object, int] = {}
        recent.subscribe(self._arrived)

    async def take(self, client: object) -> None:
        """Wait for the next tick if it is about to arrive; `client` identifies the connection."""
        arrival = self._arrival
        if arrival is None:
            return
        remaining_s, limit_s = arrival.next_s - self._now_s(), self._limit_s(client, arrival)
        if -LATE_S <= remaining_s <= limit_s:
            await self._next(arrival.number, remaining_s + LATE_S)
        self._served.pop(client, None)
        self._served[client] = self._arrival.number if self._arrival else 0
        if len(self._served) > KEPT:
            # The clients are in the order of their last requests.
            del self._served[next(iter(self._served))]

    def _limit_s(self, client: object, arrival: _Arrival) -> float:
        limits_s = {arrival.number: NEXT_S, arrival.number - 1: IMMINENT_S}
        return limits_s.get(self._served.get(client, -1), SOON_S) * min(arrival.interval_s, 1.0)

    async def _next(self, number: int, timeout_s: float) -> None:
        with arrivals(self._recent) as arrived:
            if self._arrival is not None and self._arrival.number == number:
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(arrived.wait(), timeout_s)

    def _arrived(self, recent: RecentTick) -> None:
        """Take a tick; the sampling thread calls this.

        A late tick does not delay the next one, so that is expected after the smallest delay of the last ticks.
        """
        time_s, now_s, previous_s = recent.tick.time_s, self._now_s(), self._previous_s
        self._previous_s = time_s
        if previous_s is None or time_s <= previous_s:
            self._delays_s.clear()
        self._delays_s.append(now_s - time_s)
        if previous_s is not None and time_s > previous_s:
            interval_s = (time_s - previous_s) / (recent.tick.missed + 1)
            self._arrival = _Arrival(recent.number, time_s + min(self._delays_s) + interval_s, interval_s)


def exposition(page: Page, request: Request) -> Response:
    openmetrics = prefers_openmetrics(request.headers.get("accept", ""))
    compressed = accept_quality(request.headers.get("accept-encoding", ""), "gzip") > 0
    headers = {
        "content-type": OPENMETRICS if openmetrics else TEXT,
        "cache-control": "no-store",
        "vary": "accept, accept-encoding",
    }
    if compressed:
        headers["content-encoding"] = "gzip"
    return Response(page.metrics(openmetrics=openmetrics, compressed=compressed), 200, headers)
