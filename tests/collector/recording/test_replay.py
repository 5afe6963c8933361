"""Replaying a recording at a longer interval loses no values, and takes time proportional to the number of ticks."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Series
from collector.model.snapshot import Scrape, Snapshot, Tick
from collector.recording.header import Header
from collector.recording.reader import Entry, at_interval
from tests.collector.recording.recorded import SNAPSHOTS

HEAD = Header("1", 1.0)


class CountedSeries(tuple[str, ...]):
    """A series type that counts how many times its instances are hashed."""

    hashed = 0
    __slots__ = ()

    def __hash__(self) -> int:
        CountedSeries.hashed += 1
        return super().__hash__()


def entries_of(snapshots: list[Snapshot]) -> list[Entry]:
    return [
        Entry(HEAD, Snapshot(snapshot.node, Tick(float(number), 0.0, snapshot.tick.missed), snapshot.scrapes))
        for number, snapshot in enumerate(snapshots, 1)
    ]


def values_of(scrapes: Iterable[Scrape]) -> dict[tuple[str, Series], object]:
    return {(scrape.source, series): value for scrape in scrapes for series, value in scrape.values.items()}


@given(st.lists(SNAPSHOTS, min_size=4, max_size=4))
def test_the_joined_entry_has_the_last_values_and_all_events(snapshots: list[Snapshot]) -> None:
    entries = entries_of(snapshots)
    (joined,) = at_interval(entries, 4.0)
    last: dict[tuple[str, Series], object] = {}
    for entry in entries:
        last |= values_of(entry.snapshot.scrapes)
    scrapes = joined.snapshot.scrapes
    assert values_of(scrapes) == last
    assert sum(len(scrape.values) for scrape in scrapes) == len(last)
    events = [event for entry in entries for scrape in entry.snapshot.scrapes for event in scrape.events]
    assert [event for scrape in scrapes for event in scrape.events] == events
    assert joined.snapshot.tick.missed == sum(snapshot.tick.missed for snapshot in snapshots)
    last_scrapes = snapshots[-1].scrapes
    assert scrapes[len(scrapes) - len(last_scrapes) :] == last_scrapes


def hashes(ticks: int) -> int:
    """Return how many times series are hashed when this many ticks are joined into one."""
    series = [CountedSeries((f"s{number}",)) for number in range(20)]
    snapshots = [
        Snapshot("n", Tick(float(tick)), (Scrape("cassandra", float(tick), dict.fromkeys(series, tick)),))
        for tick in range(ticks)
    ]
    entries = entries_of(snapshots)
    CountedSeries.hashed = 0
    assert len(list(at_interval(entries, float(ticks)))) == 1
    return CountedSeries.hashed


def test_the_work_for_a_tick_does_not_grow_with_the_interval() -> None:
    assert hashes(200) < 2.2 * hashes(100)
