"""A recording replayed at a longer interval: nothing that was read is lost, and the work grows with the recording."""

from hypothesis import given
from hypothesis import strategies as st

from collector.journal.header import Header
from collector.journal.reader import Entry
from collector.journal.replay import at_interval
from collector.model.metric import Series
from collector.model.snapshot import Scrape, Snapshot, Tick
from tests.collector.journal.recorded import SNAPSHOTS

HEAD = Header("1", 1.0)


class CountedSeries(tuple[str, ...]):
    """A series that counts how often any of them is hashed."""

    hashed = 0
    __slots__ = ()

    def __hash__(self) -> int:
        CountedSeries.hashed += 1
        return super().__hash__()


def entries_of(snapshots: list[Snapshot]) -> list[Entry]:
    return [
        Entry(HEAD, Snapshot(each.node, Tick(float(number), 0.0, each.tick.missed), each.scrapes))
        for number, each in enumerate(snapshots, 1)
    ]


@given(st.lists(SNAPSHOTS, min_size=4, max_size=4))
def test_the_entry_that_is_kept_has_the_last_value_of_every_series_and_all_events(snapshots: list[Snapshot]) -> None:
    entries = entries_of(snapshots)
    (joined,) = at_interval(entries, 4.0)
    last: dict[tuple[str, Series], object] = {}
    for entry in entries:
        last.update({(b.source, series): value for b in entry.snapshot.scrapes for series, value in b.values.items()})
    scrapes = joined.snapshot.scrapes
    assert {(b.source, series): value for b in scrapes for series, value in b.values.items()} == last
    assert sum(len(b.values) for b in scrapes) == len(last)
    every = [event for entry in entries for b in entry.snapshot.scrapes for event in b.events]
    assert [event for b in scrapes for event in b.events] == every
    assert joined.snapshot.tick.missed == sum(each.tick.missed for each in snapshots)
    own = snapshots[-1].scrapes
    assert scrapes[len(scrapes) - len(own) :] == own


def hashes(ticks: int) -> int:
    """Return how often a series is hashed to join so many ticks."""
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
