"""The page at /metrics: the latest values, rendered at most once per tick, on the first request, and cached.

Counters and histograms have the time at which they were read, so that a rate covers the time between two readings,
whenever the scrapes occur. Gauges have no time: Prometheus keeps a series with times for five minutes after its last
sample. For cumulative metrics, this does not matter, because a range contains only the samples within it.
"""

import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as PrometheusMetric

from collector.model.clock import clock_difference
from collector.model.metric import Metric, Series, Value
from collector.model.snapshot import Event, Identity, Scrape, Snapshot
from collector.node.catalogue import CATALOGUE
from exporters.bounded_labels import BoundedLabels
from exporters.metrics_page.metric_family import GZIP_LEVEL
from exporters.metrics_page.rendering import Body, Options, Part, Rendering, SeriesLines, document
from exporters.metrics_page.self_metrics import AgentHealth, SelfMetrics, TickHealth

GZIP_WINDOW = 31
# A series becomes stale PERIODS periods after its last reading.
PERIODS = 2.5
# Until the second reading of a series, its period is assumed to be at least FIRST_S.
FIRST_S = 10.0
# A series' period is capped at MAX_PERIOD_S, or at the metric's scrape interval if that is longer.
MAX_PERIOD_S = 300.0
# All values are stale after STALL_S or PERIODS intervals without a tick, whichever is longer.
STALL_S = 30.0
# A decrease of a counter that may decrease is not exported, because stores take it for a reset and add the whole value.
# From HELD on, in the metric's unit (seconds of CPU time), it is one.
HELD = 3.0
# Values that have been stale for longer than FORGET_S are deleted.
FORGET_S = 600.0
# The clocks are read again, if possible, unless the times of readings are exact to half of READING_S.
READING_S = 0.001


def stall_s(interval_s: float) -> float:
    """Return the time without a tick after which all values are stale."""
    return max(PERIODS * interval_s, STALL_S)


class _Latest:
    """The latest value of a series, its time, and when it becomes stale.

    wall_s  the wall clock's time of the reading, None if the source had been read at a later one; `at_s` and `until_s`
            are on the scrapes' clock.
    held    the largest decrease, in raw units, for which the value is kept.
    """

    __slots__ = ("at_s", "held", "min_period_s", "until_s", "value", "wall_s")

    def __init__(
        self, value: Value, at_s: float, wall_s: float | None, metric: Metric | None, interval_s: float
    ) -> None:
        self.value = value
        self.at_s = at_s
        self.wall_s = wall_s
        self.held = HELD / metric.scale if metric and metric.may_decrease else 0.0
        scrape_interval_s = metric.scrape_interval.value if metric else 0.0
        self.min_period_s = scrape_interval_s
        self.until_s = at_s + PERIODS * max(scrape_interval_s, interval_s, FIRST_S)


@dataclass
class _Source:
    """A source's latest values.

    failed  whether its last read reported a problem and returned no values.
    wall_s  the wall clock's highest time of a reading.
    """

    origin: str = ""
    failed: bool = False
    wall_s: float = 0.0
    latest: dict[Series, _Latest] = field(default_factory=dict)


def _is_slight_decrease(last: _Latest, value: Value) -> bool:
    before = last.value
    return isinstance(before, int | float) and isinstance(value, int | float) and 0 < before - value < last.held


class LatestValues:
    """Keeps the latest values. One thread adds snapshots; any thread may read."""

    def __init__(self, catalogue: Mapping[str, Metric], interval_s: float = 1.0) -> None:
        self._bounded = BoundedLabels(catalogue)
        self._interval_s = interval_s
        self._sources: dict[str, _Source] = {}
        self._lock = Lock()
        self._swept_s = 0.0
        self._at_s = 0.0
        self.ticks = 0

    @property
    def catalogue(self) -> Mapping[str, Metric]:
        """The metric definitions, without unbounded labels."""
        return self._bounded.catalogue

    def add(self, snapshot: Snapshot, offset_s: float = 0.0) -> None:
        """Add a tick; `offset_s` is the wall clock's time at time 0 of the scrapes' clock."""
        with self._lock:
            for scrape in snapshot.scrapes:
                self._add(scrape, offset_s)
            self._at_s = max((scrape.at_s for scrape in snapshot.scrapes), default=self._at_s)
            if not 0 <= self._at_s - self._swept_s < FORGET_S:
                self._sweep()
            self.ticks += 1

    def stalled(self, now_s: float) -> bool:
        """Return whether all values are stale because ticks have stopped; `now_s` is the time on the scrapes' clock."""
        return now_s - self._at_s > stall_s(self._interval_s)

    def current(self) -> dict[Series, Value]:
        """Return all values that are not stale. If sources share a series, the source added last wins."""
        with self._lock:
            return {series: latest.value for series, latest in self._current().items()}

    def current_and_times(self) -> tuple[dict[Series, Value], dict[Series, float | None]]:
        """Return all values that are not stale, and the wall clock's times of their readings.

        After the clock has been set back, a time is None until it is no longer before an earlier one of its source.
        """
        with self._lock:
            current = self._current()
            values = {series: latest.value for series, latest in current.items()}
            return values, {series: latest.wall_s for series, latest in current.items()}

    def _current(self) -> dict[Series, _Latest]:
        now_s = self._at_s
        return {
            series: latest
            for source in self._sources.values()
            if not source.failed
            for series, latest in source.latest.items()
            if latest.until_s >= now_s
        }

    def _add(self, scrape: Scrape, offset_s: float) -> None:
        source = self._sources.get(scrape.source)
        if source is None:
            source = self._sources[scrape.source] = _Source()
        if scrape.origin and scrape.origin != source.origin:
            if source.origin:
                self._delete_origin(source.origin)
            source.origin = scrape.origin
        if scrape.values or scrape.problem:
            source.failed = not scrape.values
        latest, at_s = source.latest, scrape.at_s
        read_s = at_s + offset_s
        wall_s = read_s if read_s >= source.wall_s else None
        source.wall_s = max(source.wall_s, read_s)
        for series, value in self._bounded.values(scrape.values).items():
            last = latest.get(series)
            if last is None:
                latest[series] = _Latest(value, at_s, wall_s, self.catalogue.get(series[0]), self._interval_s)
                continue
            last.wall_s = wall_s
            if not last.held or not _is_slight_decrease(last, value):
                last.value = value
            period_s = at_s - last.at_s
            if period_s > 0:
                if not last.min_period_s < period_s < MAX_PERIOD_S:
                    period_s = max(last.min_period_s, min(period_s, MAX_PERIOD_S))
                last.at_s, last.until_s = at_s, at_s + PERIODS * period_s

    def _delete_origin(self, origin: str) -> None:
        """Delete the values of all sources whose origin is `origin`, which has ended."""
        for source in self._sources.values():
            if source.origin == origin:
                source.latest.clear()

    def _sweep(self) -> None:
        """Delete values that have been stale for a long time, such as those of dropped tables."""
        self._swept_s = self._at_s
        for source in self._sources.values():
            expired = [series for series, latest in source.latest.items() if latest.until_s + FORGET_S < self._at_s]
            for series in expired:
                del source.latest[series]


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
        # `_adding` keeps the values and the totals of a tick together. Rendering takes longer, and the sampler thread
        # must not wait for it, so it has a lock of its own.
        self._lock, self._adding = Lock(), Lock()
        self._rendered: _Tick | None = None
        self._parts: list[Part[Body]] = []
        self._times: dict[Series, float | None] = {}
        self._self_texts: dict[bool, str] = {}
        self._pages: dict[tuple[bool, bool], bytes] = {}
        self.series = 0
        """The number of series in the text format of the page returned last."""

    def add(self, snapshot: Snapshot, identity: Identity, events: Sequence[Event] = ()) -> None:
        """Add a tick and its events. Nothing is rendered until the next request."""
        last, time_s = self._last_tick, snapshot.tick.time_s
        # Prometheus rejects earlier samples. After the clock has been set back, samples get the time of the scrape.
        is_later = time_s >= self._tick_s
        self._tick_s = max(self._tick_s, time_s)
        ticking = last.ticking.after(snapshot, events)
        with self._adding:
            offset_s, _ = clock_difference(self._wall_s, self._now_s, READING_S)
            self._latest.add(snapshot, offset_s)
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
            with self._adding:
                tick = self._last_tick
                if self._latest.stalled(self._now_s()):
                    tick = tick._replace(time_s=None, stalled=True)
                is_rendered = tick == self._rendered
                current, times = ({}, {}) if is_rendered or tick.stalled else self._latest.current_and_times()
            if not is_rendered:
                self._pages, self._self_texts, self._rendered = {}, {}, tick
                self_text = self._self_text(tick, openmetrics)
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
                packer = zlib.compressobj(GZIP_LEVEL, wbits=GZIP_WINDOW)
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
