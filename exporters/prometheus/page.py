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

from collector.catalogue import CATALOGUE
from collector.model.identity import Identity
from collector.model.metric import Metric
from collector.model.snapshot import Event, Snapshot
from exporters.prometheus.agent_health import AgentHealth, TickHealth
from exporters.prometheus.latest_values import LatestValues
from exporters.prometheus.rendering import Options, Part, Rendering, document
from exporters.prometheus.self_metrics import SelfMetrics
from exporters.prometheus.series_lines import Body, SeriesLines

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
        # The latest time of each metric, and of the agent's own ("").
        self._times: dict[str, float] = {}
        self._lock = Lock()
        self._rendered: _Tick | None = None
        self._parts: list[Part[Body]] = []
        self._part_times: dict[str, float] = {}
        self._self_texts: dict[bool, str] = {}
        self._pages: dict[tuple[bool, bool], bytes] = {}
        self.series = 0
        """The number of series in the text format of the page returned last."""

    def add(self, snapshot: Snapshot, identity: Identity, events: Sequence[Event] = ()) -> None:
        """Add a tick and its events. Nothing is rendered until the next request."""
        self._latest.add(snapshot, self._wall_s() - self._now_s())
        last, time_s = self._last_tick, self._forward({"": snapshot.tick.time_s}).get("")
        self._last_tick = _Tick(last.number + 1, identity, last.ticking.after(snapshot, events), time_s)

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
                # A histogram's sum is a metric of its own, which may be read more often.
                sums = {name: times.get(self._catalogue[name].total, 0.0) for name in times if name in self._catalogue}
                self._part_times = self._forward(
                    {name: max(time_s, sums.get(name, 0.0)) for name, time_s in times.items()}
                )
            return self._page(tick, openmetrics, compressed)

    def _forward(self, times: Mapping[str, float]) -> dict[str, float]:
        """Return the times that are not before an earlier one of the same metric.

        Prometheus rejects older samples. After the clock has been set back, samples get the time of the scrape.
        """
        forward = {name: time_s for name, time_s in times.items() if time_s >= self._times.get(name, 0.0)}
        self._times.update(forward)
        return forward

    def _page(self, tick: _Tick, openmetrics: bool, compressed: bool) -> bytes:
        key = openmetrics, compressed
        if key not in self._pages:
            if compressed:
                packer = zlib.compressobj(LEVEL, wbits=GZIP_WINDOW)
                page = packer.compress(self._page(tick, openmetrics, False)) + packer.flush()
            else:
                parts = document(self._parts, self._part_times, openmetrics=openmetrics)
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
