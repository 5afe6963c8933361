"""Keeps the latest raw value of each of a node's series until it is stale."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from collector.model.metric import Metric, Series, Value
from collector.model.snapshot import Scrape, Snapshot
from exporters.bounded_labels import BoundedLabels

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
