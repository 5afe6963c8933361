"""Replays a recording at its own interval or at a longer one."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from collector.model.metric import Series, Value
from collector.model.snapshot import Scrape, Snapshot, Tick
from collector.recording.reader import Entry


def at_interval(entries: Iterable[Entry], interval_s: float) -> Iterator[Entry]:
    """Yield the entries at multiples of the interval, or all entries if it is 0.

    Each entry also contains the series and events that occur only in the entries dropped before it. Rates and
    percentiles remain exact, because they are computed from the raw counts at both ends of the interval.
    """
    pending: _Pending | None = None
    for entry in entries:
        if pending is None:
            pending = _Pending(entry)
        else:
            pending.add(entry)
        if not interval_s or is_multiple(entry.snapshot.tick.time_s, interval_s):
            yield pending.joined()
            pending = None


def is_multiple(time_s: float, interval_s: float) -> bool:
    """Return whether a time is within 1 ms of a multiple of the interval."""
    steps = time_s / interval_s
    return abs(steps - round(steps)) * interval_s < 1e-3


class _Pending:
    """Holds the last entry, all earlier events, and the latest values of series that the last entry lacks."""

    def __init__(self, entry: Entry) -> None:
        self._last = entry
        self._missed = entry.snapshot.tick.missed
        self._number = 0
        self._earlier: dict[int, tuple[Scrape, dict[Series, Value]]] = {}
        self._holder: dict[tuple[str, Series], int] = {}

    def add(self, entry: Entry) -> None:
        for scrape in self._last.snapshot.scrapes:
            if not scrape.values and not scrape.events:
                continue
            self._number += 1
            self._earlier[self._number] = scrape, dict(scrape.values)
            self._holder.update(dict.fromkeys(((scrape.source, series) for series in scrape.values), self._number))
        for scrape in entry.snapshot.scrapes:
            for series in scrape.values:
                self._drop(scrape.source, series)
        self._last = entry
        self._missed += entry.snapshot.tick.missed

    def _drop(self, source: str, series: Series) -> None:
        number = self._holder.pop((source, series), None)
        if number is None:
            return
        scrape, values = self._earlier[number]
        del values[series]
        if not values and not scrape.events:
            del self._earlier[number]

    def joined(self) -> Entry:
        """Return the last entry, with the values and events that only earlier entries contain."""
        snapshot = self._last.snapshot
        earlier = [
            replace(scrape, values=values, problem="")
            for scrape, values in self._earlier.values()
            if values or scrape.events
        ]
        tick = Tick(snapshot.tick.time_s, snapshot.tick.late_s, self._missed)
        return replace(self._last, snapshot=Snapshot(snapshot.node, tick, (*earlier, *snapshot.scrapes)))
