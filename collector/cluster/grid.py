"""A node's recording on a grid of times: the plain way, tick by tick, which says what is meant."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import floor

from collector.catalogue import CATALOGUE
from collector.cluster.aggregation import WATCHED, Placement
from collector.journal.header import Header
from collector.journal.reader import Entry
from collector.model.metric import Series
from collector.model.rates import Readings, Summary, rates, remember
from collector.model.sample import Derived, Sample
from collector.model.snapshot import Event, Tick


def placement(head: Header) -> Placement:
    """Return where a recorded node runs."""
    return Placement(head.boot, head.network, head.disk, head.interface)


@dataclass(frozen=True)
class Grid:
    """Intervals whose ends are multiples of `interval_s`, those of which the ticks from `begin_s` to `end_s` tell."""

    interval_s: float
    begin_s: float = float("-inf")
    end_s: float = float("inf")

    def place(self, time_s: float, covered_s: float) -> int | None:
        """Return which interval a tick belongs to that tells of the `covered_s` before it; None for outside.

        Its middle tells: where clocks are a little apart, its end may already lie in the next.
        """
        if not self.begin_s <= time_s <= self.end_s:
            return None
        return floor((time_s - min(covered_s, self.interval_s) / 2) / self.interval_s)

    def end(self, place: int) -> float:
        """Return when an interval ends, seconds since the epoch."""
        return (place + 1) * self.interval_s


@dataclass
class Bin:
    """What a node did in one interval of the grid."""

    sample: Sample
    ticks: int


def bins(entries: Iterable[Entry], grid: Grid, offset_s: float = 0.0) -> dict[int, Bin]:
    """Return the intervals that a node's sessions tell of, by place; its clock is ahead by `offset_s`.

    What could not be told apart, as after ticks that were missed, belongs to the interval of the tick that tells it.
    """
    before: Readings = {}
    found: dict[int, _Held] = {}
    session = None
    for entry in entries:
        # The first tick of a session tells of nothing before it.
        begins = entry.head.session != session
        if begins:
            before, session = {}, entry.head.session
        sample = rates(entry.head.catalogue, before, entry.snapshot)
        remember(before, entry.snapshot)
        place = grid.place(entry.snapshot.tick.time_s - offset_s, entry.head.interval_s)
        if place is not None and not begins:
            found.setdefault(place, _Held()).add(_named(entry.head, sample))
    return {place: held.bin(grid.end(place)) for place, held in sorted(found.items())}


class _Held:
    def __init__(self) -> None:
        self._summary = Summary()
        self._events: list[Event] = []
        self._late_s = 0.0
        self._missed = 0
        self.ticks = 0

    def add(self, sample: Sample) -> None:
        self._summary.add(sample)
        self._events += sample.events
        self._late_s = max(self._late_s, sample.tick.late_s)
        self._missed += sample.tick.missed
        self.ticks += 1

    def bin(self, end_s: float) -> Bin:
        # Without a sample there is nothing to tell.
        whole = self._summary.sample() or Sample("", Tick(end_s), {}, {})
        tick = Tick(end_s, self._late_s, self._missed)
        return Bin(replace(whole, tick=tick, events=tuple(self._events)), self.ticks)


def _named(head: Header, sample: Sample) -> Sample:
    values: dict[Series, Derived] = {renamed(head, series): value for series, value in sample.values.items()}
    return replace(sample, values=values)


def renamed(head: Header, series: Series) -> Series:
    """Return what a series is called here."""
    metric = CATALOGUE.get(series[0])
    if metric is not None and metric.labels == ("device",) and series[1:] in ((head.disk,), (head.interface,)):
        return series[0], WATCHED
    return series
