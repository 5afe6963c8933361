"""What is known of a node now: the last raw value of every series, for as long as it is true."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from collector.model.metric import Metric, Series, Value
from collector.model.snapshot import Scrape, Snapshot
from exporters.bounded_labels import BoundedLabels

# A series is shown for so many of its own periods after its last reading.
PERIODS = 2.5
# At first sight nothing tells how often it is read; after a long pause, the pause does not.
FIRST_S = 10.0
LONGEST_S = 300.0
# Without any tick for so long, nothing is known any more.
PATIENCE_S = 30.0
# What is not shown is forgotten after so long.
FORGET_S = 600.0


class _Held:
    """A series' last value, when it was read, and until when it is shown."""

    __slots__ = ("at_s", "least_s", "until_s", "value")

    def __init__(self, value: Value, at_s: float, tier_s: float, interval_s: float) -> None:
        self.value = value
        self.at_s = at_s
        self.least_s = tier_s
        self.until_s = at_s + PERIODS * max(tier_s, interval_s, FIRST_S)


@dataclass
class _Source:
    """What a source has said; `silent` while it has a problem and says nothing."""

    origin: str = ""
    silent: bool = False
    held: dict[Series, _Held] = field(default_factory=dict)


class LatestValues:
    """Takes every snapshot from one thread; any thread may ask what is known."""

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
        """The metrics of the series that are known."""
        return self._bounded.catalogue

    def take(self, snapshot: Snapshot) -> None:
        """Take up what was read in a tick."""
        with self._lock:
            for scrape in snapshot.scrapes:
                self._take(scrape)
            self._at_s = max((scrape.at_s for scrape in snapshot.scrapes), default=self._at_s)
            if not 0 <= self._at_s - self._swept_s < FORGET_S:
                self._sweep()
            self.ticks += 1

    def stalled(self, now_s: float) -> bool:
        """Return whether no tick has come for so long that nothing is known, by the clock of the batches."""
        return now_s - self._at_s > max(PERIODS * self._interval_s, PATIENCE_S)

    def shown(self) -> dict[Series, Value]:
        """Return what was true at the last tick; of a series that two sources tell, what the later one says."""
        with self._lock:
            now_s = self._at_s
            return {
                series: held.value
                for source in self._sources.values()
                if not source.silent
                for series, held in source.held.items()
                if held.until_s >= now_s
            }

    def _take(self, scrape: Scrape) -> None:
        source = self._sources.get(scrape.source)
        if source is None:
            source = self._sources[scrape.source] = _Source()
        if scrape.origin and scrape.origin != source.origin:
            if source.origin:
                self._forget(source.origin)
            source.origin = scrape.origin
        if scrape.values or scrape.problem:
            source.silent = not scrape.values
        held, at_s = source.held, scrape.at_s
        for series, value in self._bounded.values(scrape.values).items():
            last = held.get(series)
            if last is None:
                metric = self.catalogue.get(series[0])
                held[series] = _Held(value, at_s, metric.scrape_interval.value if metric else 0.0, self._interval_s)
                continue
            last.value = value
            period_s = at_s - last.at_s
            if period_s > 0:
                if not last.least_s < period_s < LONGEST_S:
                    period_s = max(last.least_s, min(period_s, LONGEST_S))
                last.at_s, last.until_s = at_s, at_s + PERIODS * period_s

    def _forget(self, origin: str) -> None:
        """Forget what counted from an origin that is over, whichever source told it."""
        for source in self._sources.values():
            if source.origin == origin:
                source.held.clear()

    def _sweep(self) -> None:
        """Forget what has not been shown for long, such as the tables that are gone."""
        self._swept_s = self._at_s
        for source in self._sources.values():
            gone = [series for series, held in source.held.items() if held.until_s + FORGET_S < self._at_s]
            for series in gone:
                del source.held[series]
