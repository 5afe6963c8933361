"""Encodes ticks as the series that a scrape of /metrics stores, including the marks at the end of a series.

A scrape stores the latest values at the time of the scrape; here, they get the time of the tick. Values that are read
less often than every tick are repeated until they are stale, as on the page. The page's self-metrics that the journal
does not contain (the process, the sinks, the journal, the runs) are sent only with ticks that are still in memory, and
are not counted in `casstat_series`.

`PageRenderer` is the base class of the renderers of these series, and `PageSink` that of the sinks.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Protocol, TypeVar

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as PrometheusMetric

from collector.model.metric import Metric, Series, Value
from collector.model.snapshot import Snapshot, with_rounded_times
from collector.node.metrics.jvm import START_TIME
from exporters.metrics_page.metric_family import UpperBounds
from exporters.metrics_page.page import LatestValues, stall_s
from exporters.metrics_page.rendering import Options, Rendering, SeriesRenderer
from exporters.metrics_page.self_metrics import TickHealth, agent_families, tick_families
from exporters.sinks.parts.sink_url import Target, external_labels, interval_s
from exporters.sinks.sink import NodeTick, Sink

SeriesPoint = tuple[bytes, bytes]
"""A point in two parts: the head of its series, which all of its points share, and the content."""

H = TypeVar("H")
"""The heads of a histogram."""


class Samples(NamedTuple):
    """Series: their heads, which are the same for all samples of a series, and their values.

    messages  encoded histograms without their time, by head.
    """

    heads: Sequence[bytes]
    values: Sequence[float]
    messages: Mapping[bytes, bytes] = {}

    @property
    def series(self) -> int:
        return len(self.heads) + len(self.messages)

    @property
    def all_heads(self) -> list[bytes]:
        """The heads of all series, including histograms."""
        return [*self.heads, *self.messages]


def between_bounds(counts: Sequence[int], last_buckets: Iterable[int]) -> list[int]:
    """Return the counts between the upper bounds that end with these buckets, and above the last bound."""
    cumulative = list(accumulate(counts))
    return differences([*(cumulative[bucket] for bucket in last_buckets), cumulative[-1]])


def differences(cumulative: Sequence[int]) -> list[int]:
    return [count - before for count, before in zip(cumulative, [0, *cumulative], strict=False)]


class PageRenderer(SeriesRenderer[Samples, bytes, H]):
    """Renders the series of one node, and those of prometheus_client, with encoded heads."""

    def plain(self, names: Sequence[Series], heads: Sequence[bytes], values: Sequence[float]) -> Samples:
        return Samples(heads, values)

    def joined(self, bodies: Iterable[Samples]) -> Samples:
        heads, values, messages = list[bytes](), list[float](), dict[bytes, bytes]()
        for body in bodies:
            heads += body.heads
            values += body.values
            messages |= body.messages
        return Samples(heads, values, messages)

    def families(self, families: Iterable[PrometheusMetric]) -> Samples:
        heads, values = list[bytes](), list[float]()
        for family in families:
            for sample in family.samples:
                heads.append(self.text_head(sample.name, sample.labels.items(), family.type, family.documentation))
                values.append(sample.value)
        return Samples(heads, values)


class SeriesFormat(Protocol):
    """Encodes series as points."""

    def renderer(
        self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, common: Mapping[str, str]
    ) -> PageRenderer[Any]:
        """Return a renderer for the series of a node; all of them get the labels in `common`."""

    def points(self, samples: Samples, time_ms: int, start_ms: int | None) -> list[SeriesPoint]:
        """Return the points of a tick; `start_ms` is the start of Cassandra's JVM, if it is known."""

    def ends(self, heads: Sequence[bytes], time_ms: int) -> list[SeriesPoint]:
        """Return points that mark the end of series."""


MS = 1000
INSTANCE = "instance"
# The first time in milliseconds, in the year 2109, that remote write's samples cannot hold.
END_MS = 1 << 42
UP = GaugeMetricFamily("up", "1 at every tick of the agent.", 1.0)
_START = START_TIME.metric


class TickEncoder:
    """Encodes the ticks of one node in order."""

    def __init__(
        self, series_format: SeriesFormat, options: Options, labels: Mapping[str, str], interval_s: float = 0.0
    ) -> None:
        """Add `labels` to all series that do not have them; encode only the first tick in each `interval_s`."""
        self._format = series_format
        self._options = options
        self._interval_s = interval_s
        self._labels = labels
        self._session = ""
        self._health = TickHealth()
        # The time of the last tick in the totals that were restored; None from the next tick on.
        self._restored_s: float | None = None
        self._last: NodeTick | None = None
        # The heads of the series that were encoded last; None if they have not been determined.
        self._heads: list[bytes] | None = None
        self._common: Mapping[str, str] = {}

    def replay(self, tick: NodeTick) -> None:
        """Take the values of a tick that was encoded before, so that the next one is complete."""
        is_due = self._take(tick)
        if not self._interval_s:
            self._heads = None
        elif is_due:
            self._heads = self._samples(tick, self._latest.current()).all_heads

    def encode(self, tick: NodeTick) -> list[SeriesPoint]:
        """Return the points of a tick: those that end series, and one for each series; none if it is not due."""
        time_ms, last = _time_ms(tick), self._last
        if not 0 <= time_ms < END_MS:
            return []
        if self._is_encoded(tick):
            self.replay(tick)
            return []
        heads = self._last_heads()
        is_due = self._take(tick)
        if tick.header.session != self._session or (last is not None and not _follows(last, tick)):
            self._session, self._health = tick.header.session, TickHealth()
        # The journal contains rounded times; a tick from memory must give the same totals.
        self._health = self._health.after(with_rounded_times(tick.snapshot), tick.sample.events if tick.sample else ())
        if not is_due:
            return []
        current = self._latest.current()
        samples = self._samples(tick, current)
        self._heads = samples.all_heads
        ends = [] if last is None else self._ends(last, heads, tick, self._heads)
        return ends + self._format.points(samples, time_ms, _start_ms(current))

    def state(self) -> Mapping[str, Any]:
        """Return the totals of the session, which `replay` cannot restore."""
        last_s = None if self._last is None else self._last.snapshot.tick.time_s
        return {"session": self._session, "tick_health": self._health.content(), "time_s": last_s}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the totals. Raises TypeError, ValueError or KeyError."""
        if state:
            self._session, self._health = state["session"], TickHealth.of_content(state["tick_health"])
            restored_s = state.get("time_s")
            self._restored_s = None if restored_s is None else float(restored_s)

    def _is_encoded(self, tick: NodeTick) -> bool:
        """Return whether the totals that were restored contain a tick.

        After damage to the journal, ticks before the last one sent can be read a second time.
        """
        if self._restored_s is None or tick.header.session != self._session:
            return False
        if tick.snapshot.tick.time_s <= self._restored_s:
            return True
        self._restored_s = None
        return False

    def _take(self, tick: NodeTick) -> bool:
        """Take the values of a tick; return whether it is due: whether it is the first in its interval."""
        last, self._last = self._last, tick
        if last is None or not _follows(last, tick):
            self._begin(tick)
        self._latest.add(tick.snapshot)
        if last is None:
            return True
        last_s, time_s = (of.snapshot.tick.time_s for of in (last, tick))
        return last_s != time_s and (not self._interval_s or last_s // self._interval_s != time_s // self._interval_s)

    def _begin(self, tick: NodeTick) -> None:
        """Begin a session: like a new agent, it has no values yet."""
        self._latest = LatestValues(tick.header.catalogue, tick.header.interval_s)
        # Nothing is logged: the page reports what the limit leaves out.
        self._rendering = Rendering(self._options, self._latest.catalogue, lambda _: None, self._format.renderer)

    def _last_heads(self) -> list[bytes]:
        if self._heads is None:
            self._heads = [] if self._last is None else self._samples(self._last, self._latest.current()).all_heads
        return self._heads

    def _samples(self, tick: NodeTick, current: Mapping[Series, Value]) -> Samples:
        """Return the series of a tick; `current` are the node's latest values."""
        placement, identity = tick.placement, tick.identity.labels()
        common = {INSTANCE: tick.identity.node, **self._labels, **identity}
        if common != self._common:
            self._common, self._own_renderer = common, self._format.renderer({}, self._options.upper_bounds, common)
        own = (
            UP,
            *tick_families(self._health),
            *agent_families(tick.header.writer, tick.identity.node, placement.machine, placement.network),
        )
        counted = self._own_renderer.families(own)
        parts = self._rendering.parts(current, common, counted.series)
        # These are not counted, so that a tick from the journal has the same series as from memory.
        live = self._own_renderer.families(tick.live())
        self._own_renderer.keep({})
        return self._own_renderer.joined((counted, *(part.body for part in parts), live))

    def _ends(
        self, last: NodeTick, heads: Sequence[bytes], tick: NodeTick, current: Sequence[bytes]
    ) -> list[SeriesPoint]:
        """Return the points that end series: all if ticks stopped for long, else those that are gone."""
        stalled_ms = _time_ms(last) + round(stall_s(last.header.interval_s) * MS)
        time_ms = _time_ms(tick)
        if time_ms < _time_ms(last):
            # The clock was set back, or the ticks are encoded a second time: the store has later samples already.
            return []
        if stalled_ms < time_ms:
            return self._format.ends(heads, stalled_ms)
        if heads == current:
            return []
        present = set(current)
        return self._format.ends([head for head in heads if head not in present], time_ms)


def _start_ms(current: Mapping[Series, Value]) -> int | None:
    """Return the start of Cassandra's JVM in milliseconds since the epoch; None if it is unknown or impossible."""
    value = current.get((_START.name,))
    start_ms = value * _START.scale * MS if isinstance(value, int | float) else 0
    return round(start_ms) if 0 < start_ms < END_MS else None


def _follows(last: NodeTick, tick: NodeTick) -> bool:
    """Return whether a tick is a later one of the same session."""
    return last.header.session == tick.header.session and _at_s(last.snapshot) <= _at_s(tick.snapshot)


def _at_s(snapshot: Snapshot) -> float:
    return max((scrape.at_s for scrape in snapshot.scrapes), default=0.0)


def _time_ms(tick: NodeTick) -> int:
    return round(tick.snapshot.tick.time_s * MS)


class PageSink(TickEncoder, Sink[SeriesPoint]):
    """A sink that encodes a point for each series."""

    exports_page = True

    def __init__(self, target: Target, series_format: SeriesFormat, options: Options) -> None:
        """Encode series in a format, with the labels and the interval of a URL. Raises SinkUrlError."""
        super().__init__(series_format, options, external_labels(target), interval_s(target))
        self.name = target.name

    def size_bytes(self, point: SeriesPoint) -> int:
        head, content = point
        return len(head) + len(content)
