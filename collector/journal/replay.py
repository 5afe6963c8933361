"""A recording played again: what it tells row by row, at the interval at which it was made or at a longer one."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from collector.journal.reading import Entry
from collector.model import Batch, Snapshot, Tick


def at_interval(entries: Iterable[Entry], interval_s: float) -> Iterator[Entry]:
    """Yield the entries at multiples of the interval, all of them for 0, each with what those before it said besides.

    What was read more rarely, and every event, is in the next entry that is kept, so nothing is lost: rates and
    percentiles are those of the raw counts at its two ends.
    """
    held: list[Entry] = []
    for entry in entries:
        held.append(entry)
        if not interval_s or is_multiple(entry.snapshot.tick.time_s, interval_s):
            yield joined(held)
            held.clear()


def is_multiple(time_s: float, interval_s: float) -> bool:
    """Return whether a tick falls on the grid of the interval."""
    steps = time_s / interval_s
    return abs(steps - round(steps)) * interval_s < 1e-3


def joined(entries: list[Entry]) -> Entry:
    """Return the last of the entries with what the others said besides."""
    last = entries[-1]
    batches = tuple(batch for place in range(len(entries)) for batch in _besides(entries, place))
    tick = last.snapshot.tick
    missed = sum(entry.snapshot.tick.missed for entry in entries)
    return replace(last, snapshot=Snapshot(last.snapshot.node, Tick(tick.time_s, tick.late_s, missed), batches))


def _besides(entries: list[Entry], place: int) -> Iterator[Batch]:
    """Yield of an entry's batches what no later entry says anew: values of other series, and all events."""
    if place == len(entries) - 1:
        yield from entries[place].snapshot.batches
        return
    later = {
        (batch.source, series)
        for entry in entries[place + 1 :]
        for batch in entry.snapshot.batches
        for series in batch.values
    }
    for batch in entries[place].snapshot.batches:
        values = {series: value for series, value in batch.values.items() if (batch.source, series) not in later}
        if values or batch.events:
            yield replace(batch, values=values, problem="")
