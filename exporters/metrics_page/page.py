"""The page at /metrics: rendered at most once per tick, on the first request, and cached.

Counters and histograms have the time at which they were read, so that a rate covers the time between two readings,
whenever the scrapes occur. Gauges have no time: Prometheus keeps a series with times for five minutes after its last
sample. For cumulative metrics, this does not matter, because a range contains only the samples within it.
"""

import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as PrometheusMetric

from collector.model.identity import Identity
from collector.model.metric import Metric, Series
from collector.model.snapshot import Event, Snapshot
from collector.node.catalogue import CATALOGUE
from exporters.metrics_page.agent_health import AgentHealth, TickHealth
from exporters.metrics_page.latest_values import LatestValues
from exporters.metrics_page.rendering import Options, Part, Rendering, document
from exporters.metrics_page.self_metrics import SelfMetrics
from exporters.metrics_page.series_lines import Body, SeriesLines

# gzip level: a higher one would cost the node more CPU time than the saved network traffic is worth.
LEVEL = 1
GZIP_WINDOW = 31


class _Tick(NamedTuple):
    """The last tick: the node's identity, the totals over all ticks, and whether ticks have stopped.

    time_s  the time of the agent's own cumulative metrics; None for that of the scrape.
    """

    number: int
    identity: Identity
    ticking: TickHealth
    time_s: float | None = None
    stalled: bool = False


class Page:
    """Renders the latest values. The sampler thread adds ticks; any thread may get the page."""

    def __init__(
        self,
        options: Options,
        registry: CollectorRegistry,
        health: Callable[[], AgentHealth],
        log: Callable[[str], None],
        now_s: Callable[[], float],
        interval_s: float = 1.0,
        wall_s: Callable[[], float] = time.time,
        catalogue: Mapping[str, Metric] = CATALOGUE,
    ) -> None:
        """Add self-metrics to `registry`; `health` returns the agent's health.

        `now_s` reads the scrapes' clock, and `wall_s` the wall clock.
        """
        self._latest = LatestValues(catalogue, interval_s)
        self._self_metrics = SelfMetrics(registry, health)
        self._catalogue, self._log = self._latest.catalogue, log
        self._rendering = Rendering(options, self._catalogue, log, SeriesLines)
        self._now_s, self._wall_s = now_s, wall_s
        self._last_tick = _Tick(0, Identity(), TickHealth())
        self._totals = {name: metric.total for name, metric in self._catalogue.items() if metric.total}
        # The highest time of a tick.
        self._tick_s = 0.0
        self._lock = Lock()
        self._rendered: _Tick | None = None
        self._parts: list[Part[Body]] = []
        self._times: dict[Series, float | None] = {}
        self._self_texts: dict[bool, str] = {}
        self._pages: dict[tuple[bool, bool], bytes] = {}
        self.series = 0
        """The number of series in the text format of the page returned last."""

    def add(self, snapshot: Snapshot, identity: Identity, events: Sequence[Event] = ()) -> None:
        """Add a tick and its events. Nothing is rendered until the next request."""
        self._latest.add(snapshot, self._wall_s() - self._now_s())
        last, time_s = self._last_tick, snapshot.tick.time_s
        # Prometheus rejects earlier samples. After the clock has been set back, samples get the time of the scrape.
        is_later = time_s >= self._tick_s
        self._tick_s = max(self._tick_s, time_s)
        ticking = last.ticking.after(snapshot, events)
        self._last_tick = _Tick(last.number + 1, identity, ticking, time_s if is_later else None)

    def live_families(self) -> Iterator[PrometheusMetric]:
        """Yield the self-metrics that only a running agent knows, as opposed to those in its journal."""
        return self._self_metrics.live_families()

    def change(self, options: Options) -> None:
        """Render with new options from now on."""
        with self._lock:
            self._rendering, self._rendered = Rendering(options, self._catalogue, self._log, SeriesLines), None

    def get(self, *, openmetrics: bool, compressed: bool) -> bytes:
        """Return the exposition of the last tick, gzipped if `compressed`.

        If ticks have stopped, it contains only the agent's self-metrics.
        """
        with self._lock:
            tick = self._last_tick
            if self._latest.stalled(self._now_s()):
                tick = tick._replace(time_s=None, stalled=True)
            if self._rendered is None or tick != self._rendered:
                self._pages, self._self_texts, self._rendered = {}, {}, tick
                self_text = self._self_text(tick, openmetrics)
                current, times = ({}, {}) if tick.stalled else self._latest.current_and_times()
                others = _series_count(self_text)
                self._parts = self._rendering.parts(current, tick.identity.labels(), others)
                self.series = sum(part.body.series for part in self._parts) + others
                self._times = times | self._histogram_times(times)
            return self._page(tick, openmetrics, compressed)

    def _histogram_times(self, times: Mapping[Series, float | None]) -> dict[Series, float | None]:
        """Return the times of histograms: the later one of their own and that of their sum, a metric of its own."""
        later: dict[Series, float | None] = {}
        for series, time_s in times.items():
            total = self._totals.get(series[0])
            if total:
                total_s = times.get((total, *series[1:]), 0.0)
                later[series] = None if time_s is None or total_s is None else max(time_s, total_s)
        return later

    def _page(self, tick: _Tick, openmetrics: bool, compressed: bool) -> bytes:
        key = openmetrics, compressed
        if key not in self._pages:
            if compressed:
                packer = zlib.compressobj(LEVEL, wbits=GZIP_WINDOW)
                page = packer.compress(self._page(tick, openmetrics, False)) + packer.flush()
            else:
                parts = document(self._parts, self._times, openmetrics=openmetrics)
                page = (parts + self._self_text(tick, openmetrics)).encode()
            self._pages[key] = page
        return self._pages[key]

    def _self_text(self, tick: _Tick, openmetrics: bool) -> str:
        """Return the agent's self-metrics; in OpenMetrics, they end with the page's end marker."""
        if openmetrics not in self._self_texts:
            self._self_texts[openmetrics] = self._self_metrics.text(
                tick.ticking, tick.identity.labels(), tick.time_s, openmetrics=openmetrics
            )
        return self._self_texts[openmetrics]


def _series_count(text: str) -> int:
    """Return the number of series in an exposition."""
    return text.count("\n") - f"\n{text}".count("\n#")
