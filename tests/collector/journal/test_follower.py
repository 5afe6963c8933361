"""A journal followed as it grows, from its beginning or from a place that was reached before."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.journal import writer
from collector.journal.follower import JournalFollower, Removed
from collector.journal.header import Header
from collector.journal.reader import Entry
from collector.journal.tick_order import LostTicks
from collector.journal.writer import Journal, Limits, Position, files_of
from collector.model.metric import Kind, Metric
from collector.model.snapshot import Scrape, Snapshot, Tick

HEAD = Header(writer="1.0", interval_s=1.0, metrics=(Metric("a_total", Kind.COUNTER, "1", ""),))
LIMITS = Limits(file_bytes=1500, sync="never")
TICKS = 50


def tick(number: int) -> Snapshot:
    return Snapshot("n", Tick(1_795_000_000.0 + number), (Scrape("cpu", 5.0 + number, {("a_total",): 7 * number}),))


@pytest.fixture(autouse=True)
def _short_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FULL_EVERY", 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "node"


def snapshots(tail: JournalFollower) -> list[Snapshot]:
    found = []
    for each in tail.poll():
        assert isinstance(each, Entry)
        found.append(each.snapshot)
    return found


def test_what_is_appended_is_followed_from_file_to_file(folder: Path) -> None:
    with (
        closing(Journal(folder, lambda: HEAD, LIMITS, pytest.fail)) as journal,
        closing(JournalFollower(folder)) as tail,
    ):
        assert list(tail.poll()) == []
        for number in range(TICKS):
            journal.append(tick(number))
            assert snapshots(tail) == [tick(number)]
            assert list(tail.poll()) == []
        whole = sum(file.stat().st_size for file in files_of(folder))
        assert len(files_of(folder)) > 3
        assert tail.read_bytes <= whole


@given(st.integers(0, TICKS - 1))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reading_begins_at_any_place_that_was_reached(folder: Path, reached: int) -> None:
    for file in files_of(folder) if folder.exists() else ():
        file.unlink()
    places: list[Position] = []
    with (
        closing(Journal(folder, lambda: HEAD, LIMITS, pytest.fail)) as journal,
        closing(JournalFollower(folder)) as tail,
    ):
        for number in range(TICKS):
            journal.append(tick(number))
            (entry,) = (each for each in tail.poll() if isinstance(each, Entry))
            assert tail.position(entry) == journal.position
            places.append(journal.position)
    with closing(JournalFollower(folder, places[reached])) as again:
        assert snapshots(again) == [tick(number) for number in range(places.index(places[reached]), TICKS)]


def test_where_the_file_is_gone_that_is_told_and_the_next_one_read(folder: Path) -> None:
    places = []
    with closing(Journal(folder, lambda: HEAD, LIMITS, pytest.fail)) as journal:
        for number in range(TICKS):
            journal.append(tick(number))
            places.append(journal.position)
    gone = [place.file for place in places].count(places[0].file)
    files_of(folder)[0].unlink()
    with closing(JournalFollower(folder, places[1])) as tail:
        removed, *rest = tail.poll()
    assert removed == Removed()
    assert [each.snapshot for each in rest if isinstance(each, Entry)] == [tick(n) for n in range(gone, TICKS)]


def test_files_that_are_removed_while_one_is_read_are_told(folder: Path) -> None:
    with (
        closing(Journal(folder, lambda: HEAD, LIMITS, pytest.fail)) as journal,
        closing(JournalFollower(folder)) as tail,
    ):
        journal.append(tick(0))
        assert snapshots(tail) == [tick(0)]
        number = 0
        while len(files_of(folder)) < 3:
            number += 1
            journal.append(tick(number))
        for file in files_of(folder)[:2]:
            file.unlink()
        found = list(tail.poll())
    told = [each.snapshot.tick.time_s if isinstance(each, Entry) else each for each in found]
    # What was in the file that is still open is not lost.
    read = told.index(Removed())
    assert told == [
        *(tick(n).tick.time_s for n in range(1, read + 1)),
        Removed(),
        LostTicks(0, number - read - 1),
        tick(number).tick.time_s,
    ]


def test_a_place_beyond_the_end_of_its_file_is_none(folder: Path) -> None:
    with closing(Journal(folder, lambda: HEAD, LIMITS, pytest.fail)) as journal:
        journal.append(tick(0))
        name = journal.position.file
    with closing(JournalFollower(folder, Position(name, 10**6))) as tail:
        assert list(tail.poll()) == [Removed()]
