"""A journal on disk: what was appended is what is read, whatever happens to the file, but for what was lost."""

import json
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.journal import writer
from collector.journal.encoding import DeltaState, encoded
from collector.journal.footer import Footer
from collector.journal.frames import Damage
from collector.journal.header import Header
from collector.journal.reader import Entry, Reader, read
from collector.journal.record_lines import sealed
from collector.journal.summary import size_of
from collector.journal.writer import LOCK, SUFFIX, Journal, JournalError, Limits, files_of
from collector.model.metric import Kind, Metric
from collector.model.snapshot import Scrape, Snapshot, Tick
from tests.collector.journal.recorded import SNAPSHOTS

METRIC = Metric("a_total", Kind.COUNTER, "1", "")
HEAD = Header(
    writer="1.0",
    interval_s=1.0,
    zone=3600,
    boot="boot",
    process="77@db1 1795000000000",
    error_s=0.002,
    way="jolokia",
    sources=("cassandra",),
    disk="vda",
    interface="lo",
    metrics=(METRIC,),
)
LISTS = st.lists(SNAPSHOTS, min_size=1, max_size=8)
NO_SYNC = Limits(file_s=float("inf"), sync="never")
shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def tick(number: int) -> Snapshot:
    return Snapshot("n", Tick(1_795_000_000.0 + number), (Scrape("cpu", 5.0 + number, {("a_total",): 7 * number}),))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "node"


@pytest.fixture(autouse=True)
def _short_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FULL_EVERY", 3)


def fresh(folder: Path) -> Path:
    for file in files_of(folder) if folder.exists() else ():
        file.unlink()
    return folder


def written(folder: Path, snapshots: list[Snapshot], limits: Limits = NO_SYNC) -> Path:
    with closing(Journal(fresh(folder), lambda: HEAD, limits, pytest.fail)) as journal:
        for snapshot in snapshots:
            journal.append(snapshot)
    return files_of(folder)[0]


def split(found: Iterator[Entry | Damage | Footer]) -> tuple[list[Snapshot], list[Damage]]:
    every = list(found)
    entries = [each.snapshot for each in every if isinstance(each, Entry)]
    return entries, [each for each in every if isinstance(each, Damage)]


@given(LISTS)
@shared
def test_what_is_appended_is_what_is_read(folder: Path, snapshots: list[Snapshot]) -> None:
    folder = fresh(folder)
    with closing(Journal(folder, lambda: HEAD, NO_SYNC, pytest.fail)) as journal:
        for snapshot in snapshots:
            journal.append(snapshot)
    found = [each for file in files_of(folder) for each in read(file)]
    assert [each.snapshot for each in found if isinstance(each, Entry)] == snapshots
    assert {each.head for each in found if isinstance(each, Entry)} == {HEAD}


def test_every_tick_can_be_read_as_soon_as_it_is_appended(folder: Path) -> None:
    reader, begun = Reader(), 0
    with closing(Journal(folder, lambda: HEAD, NO_SYNC, pytest.fail)) as journal:
        for number in range(10):
            journal.append(tick(number))
            data = files_of(folder)[0].read_bytes()
            assert split(reader.feed(data[begun:])) == ([tick(number)], [])
            begun = len(data)


def test_whoever_reads_zstd_reads_it_too(folder: Path) -> None:
    file = written(folder, [tick(number) for number in range(7)])
    with zstandard.open(file, "rt", encoding="utf-8") as lines:
        *ticks, footer = map(json.loads, lines)
    assert [line["t"] for line in ticks] == [tick(number).tick.time_s for number in range(7)]
    assert [line["q"] for line in ticks] == list(range(7))
    assert (footer["end"]["first"], footer["end"]["next"], footer["end"]["more"]) == (0, 7, False)


@given(st.data())
@shared
def test_cut_anywhere_all_whole_ticks_before_are_read(folder: Path, data: st.DataObject) -> None:
    ticks = [tick(number) for number in range(10)]
    whole = written(folder, ticks).read_bytes()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    reader = Reader()
    found, damage = split(iter([*reader.feed(cut), *reader.end()]))
    assert found == ticks[: len(found)]
    assert len(damage) <= 1


@given(st.data())
@shared
def test_with_a_byte_that_is_another_no_tick_is_wrong_and_the_next_frames_are_read(
    folder: Path, data: st.DataObject
) -> None:
    ticks = [tick(number) for number in range(12)]
    whole = bytearray(written(folder, ticks).read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    pieces = data.draw(st.integers(1, len(whole)))
    reader = Reader()
    events = [each for at in range(0, len(whole), pieces) for each in reader.feed(bytes(whole[at : at + pieces]))]
    found, damage = split(iter([*events, *reader.end()]))
    assert all(each in ticks for each in found)
    # Of one frame at most is anything lost. Some bits of a frame's header mean nothing.
    assert len(found) >= 12 - 3
    assert damage or found == ticks


def test_a_block_that_says_it_is_larger_does_not_swallow_the_frames_behind_it(folder: Path) -> None:
    ticks = [tick(number) for number in range(12)]
    whole = written(folder, ticks).read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x80
        reader = Reader()
        found, _ = split(iter([*reader.feed(bytes(damaged)), *reader.end()]))
        assert all(each in ticks for each in found)
        assert len(found) >= 12 - 3


def test_a_file_of_somebody_else_is_damage_and_nothing_else(tmp_path: Path) -> None:
    for content in (b"", b"{}\n" * 1000, os.urandom(10_000), b"\x28\xb5\x2f\xfd" * 100):
        (tmp_path / "x").write_bytes(content)
        found, damage = split(read(tmp_path / "x"))
        assert found == []
        assert bool(damage) == bool(content)


def test_a_second_writer_is_refused(folder: Path) -> None:
    first = Journal(folder, lambda: HEAD, NO_SYNC, pytest.fail)
    with closing(first), pytest.raises(JournalError, match="another casstat is recording there"):
        Journal(folder, lambda: HEAD, NO_SYNC, pytest.fail)
    Journal(folder, lambda: HEAD, NO_SYNC, pytest.fail).close()


def test_the_lock_can_be_opened_by_its_owner_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / LOCK).touch(0o644)
    with closing(Journal(folder, lambda: HEAD, NO_SYNC, pytest.fail)):
        assert stat.S_IMODE((folder / LOCK).stat().st_mode) == 0o600


def test_files_are_rotated_and_the_oldest_go_first(folder: Path) -> None:
    limits = Limits(file_bytes=1500, total_bytes=6000, sync="never")
    said: list[str] = []
    with closing(Journal(folder, lambda: HEAD, limits, said.append)) as journal:
        for number in range(300):
            journal.append(tick(number))
        assert journal.removed > 1
        assert len(said) == 1
        assert sum(file.stat().st_size for file in files_of(folder)) <= limits.total_bytes
    assert said[1:] == [f"{folder}: removed the {journal.removed} oldest files"]
    found = [each.snapshot for file in files_of(folder) for each in read(file) if isinstance(each, Entry)]
    assert found == [tick(number) for number in range(300)][-len(found) :]


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes: what is beyond is refused as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@given(st.integers(0, 2500), st.integers(1, 12), st.integers(1, 6))
@shared
def test_on_a_full_disk_what_is_lost_is_counted_and_the_rest_read(
    folder: Path, size: int, full: int, after: int
) -> None:
    said: list[str] = []
    with closing(Journal(fresh(folder), lambda: HEAD, NO_SYNC, said.append)) as journal:
        with room_for(size):
            for number in range(full):
                journal.append(tick(number))
        for number in range(full, full + after):
            journal.append(tick(number))
        lost = journal.lost
    found, damage = split(each for file in files_of(folder) for each in read(file))
    assert damage == []
    assert len(found) + lost == full + after
    assert found[-after:] == [tick(number) for number in range(full, full + after)]
    assert bool(said) == bool(lost)


def test_a_newer_writers_fields_are_kept(folder: Path) -> None:
    content = {"head": {**HEAD.content(), "moon": "full"}, **encoded(DeltaState(), tick(0)), "weather": [1, 2]}
    reader = Reader()
    (entry,) = reader.feed(zstandard.compress(sealed(content)))
    assert isinstance(entry, Entry)
    assert entry == Entry(HEAD, tick(0), {"weather": [1, 2]})


def test_gaps_suspends_and_restarts_stand_there_in_words(folder: Path) -> None:
    one, other = tick(0), replace(tick(5), tick=Tick(1_795_000_005.0, 0.0, 4, 3.5))
    later = [replace(scrape, origin="later") for scrape in other.scrapes]
    ticks = [replace(one, scrapes=(replace(one.scrapes[0], origin="early"),)), replace(other, scrapes=tuple(later))]
    with zstandard.open(written(folder, ticks), "rt", encoding="utf-8") as lines:
        records = [json.loads(line).get("r") for line in lines]
    told = [["gap", "4 ticks missed"], ["suspend", "suspended for 3.5 s"], ["restart", "cpu counted anew"]]
    assert records == [None, told, None]


def test_the_size_of_a_journal_that_is_being_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape must not fail because the oldest file is removed between listing and asking."""
    kept = tmp_path / f"b{SUFFIX}"
    kept.write_bytes(b"12345")
    assert size_of(tmp_path) == 5
    monkeypatch.setattr("collector.journal.summary.files_of", lambda _: [tmp_path / f"a{SUFFIX}", kept])
    assert size_of(tmp_path) == 5
    monkeypatch.undo()
    assert size_of(tmp_path / "gone") is None
