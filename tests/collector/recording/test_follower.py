"""Following a growing journal, from its beginning or from an earlier position."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.model.metric import Kind, Metric
from collector.model.snapshot import Scrape, Snapshot, Tick
from collector.recording import writer
from collector.recording.header import Header
from collector.recording.reader import Entry, JournalFollower, LostTicks, Removed
from collector.recording.writer import Journal, Limits, Position, files_of
from tests.examples import examples

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


def snapshots(follower: JournalFollower) -> list[Snapshot]:
    entries = []
    for record in follower.poll():
        assert isinstance(record, Entry)
        entries.append(record.snapshot)
    return entries


def test_appended_ticks_are_followed_across_files(folder: Path) -> None:
    with (
        closing(Journal(folder, lambda: HEAD, LIMITS, pytest.fail)) as journal,
        closing(JournalFollower(folder)) as follower,
    ):
        assert list(follower.poll()) == []
        for number in range(TICKS):
            journal.append(tick(number))
            assert snapshots(follower) == [tick(number)]
            assert list(follower.poll()) == []
        total_bytes = sum(file.stat().st_size for file in files_of(folder))
        assert len(files_of(folder)) > 3
        assert follower.read_bytes <= total_bytes


@given(st.integers(0, TICKS - 1))
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_following_can_resume_at_any_earlier_position(folder: Path, reached: int) -> None:
    for file in files_of(folder) if folder.exists() else ():
        file.unlink()
    positions: list[Position] = []
    with (
        closing(Journal(folder, lambda: HEAD, LIMITS, pytest.fail)) as journal,
        closing(JournalFollower(folder)) as follower,
    ):
        for number in range(TICKS):
            journal.append(tick(number))
            (entry,) = (record for record in follower.poll() if isinstance(record, Entry))
            assert follower.position(entry) == journal.position
            positions.append(journal.position)
    with closing(JournalFollower(folder, positions[reached])) as resumed:
        assert snapshots(resumed) == [tick(number) for number in range(positions.index(positions[reached]), TICKS)]


def test_a_removed_file_is_reported_and_the_next_one_is_read(folder: Path) -> None:
    positions = []
    with closing(Journal(folder, lambda: HEAD, LIMITS, pytest.fail)) as journal:
        for number in range(TICKS):
            journal.append(tick(number))
            positions.append(journal.position)
    removed_ticks = [position.file for position in positions].count(positions[0].file)
    files_of(folder)[0].unlink()
    with closing(JournalFollower(folder, positions[1])) as follower:
        removed, *rest = follower.poll()
    assert removed == Removed()
    assert [record.snapshot for record in rest if isinstance(record, Entry)] == [
        tick(n) for n in range(removed_ticks, TICKS)
    ]


def test_files_removed_during_reading_are_reported(folder: Path) -> None:
    with (
        closing(Journal(folder, lambda: HEAD, LIMITS, pytest.fail)) as journal,
        closing(JournalFollower(folder)) as follower,
    ):
        journal.append(tick(0))
        assert snapshots(follower) == [tick(0)]
        number = 0
        while len(files_of(folder)) < 3:
            number += 1
            journal.append(tick(number))
        for file in files_of(folder)[:2]:
            file.unlink()
        records = list(follower.poll())
    events = [record.snapshot.tick.time_s if isinstance(record, Entry) else record for record in records]
    # The ticks in the file that the follower still has open are not lost.
    read = events.index(Removed())
    assert events == [
        *(tick(n).tick.time_s for n in range(1, read + 1)),
        Removed(),
        LostTicks(0, number - read - 1),
        tick(number).tick.time_s,
    ]


def test_a_position_beyond_the_end_of_its_file_counts_as_removed(folder: Path) -> None:
    with closing(Journal(folder, lambda: HEAD, LIMITS, pytest.fail)) as journal:
        journal.append(tick(0))
        name = journal.position.file
    with closing(JournalFollower(folder, Position(name, 10**6))) as follower:
        assert list(follower.poll()) == [Removed()]
