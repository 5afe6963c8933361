"""A journal on disk: appended ticks are read back, and damage loses ticks but never changes them."""

import json
import os
import stat
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.model.metric import Kind, Metric
from collector.model.snapshot import Scrape, Snapshot, Tick
from collector.recording import writer
from collector.recording.codec import DeltaState, encoded
from collector.recording.frames import Damage, Footer, sealed
from collector.recording.header import Header
from collector.recording.journal_files import size_of
from collector.recording.reader import Entry, Reader, read
from collector.recording.writer import LOCK, SUFFIX, Journal, JournalError, Limits, files_of
from tests.collector.fakes import file_size_limit
from tests.collector.recording.recorded import SNAPSHOTS
from tests.examples import some_of

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


def split(records: Iterable[Entry | Damage | Footer]) -> tuple[list[Snapshot], list[Damage]]:
    all_records = list(records)
    entries = [record.snapshot for record in all_records if isinstance(record, Entry)]
    return entries, [record for record in all_records if isinstance(record, Damage)]


@given(LISTS)
@shared
def test_appended_ticks_are_read_back(folder: Path, snapshots: list[Snapshot]) -> None:
    folder = fresh(folder)
    with closing(Journal(folder, lambda: HEAD, NO_SYNC, pytest.fail)) as journal:
        for snapshot in snapshots:
            journal.append(snapshot)
    entries = [record for file in files_of(folder) for record in read(file) if isinstance(record, Entry)]
    assert [entry.snapshot for entry in entries] == snapshots
    assert {entry.head for entry in entries} == {HEAD}


def test_a_changed_header_applies_from_the_next_tick_on(folder: Path) -> None:
    head, interfaces = HEAD, ("lo", "eth0", "eth0", "lo", "")
    with closing(Journal(folder, lambda: head, NO_SYNC, pytest.fail, lambda: head.interface)) as journal:
        for number, interface in enumerate(interfaces):
            head = replace(HEAD, interface=interface)
            journal.append(tick(number))
    entries = [record for record in read(files_of(folder)[0]) if isinstance(record, Entry)]
    assert [entry.head.interface for entry in entries] == list(interfaces)
    assert [entry.snapshot for entry in entries] == [tick(number) for number in range(len(interfaces))]


def test_every_tick_can_be_read_immediately_after_it_is_appended(folder: Path) -> None:
    reader, begun = Reader(), 0
    with closing(Journal(folder, lambda: HEAD, NO_SYNC, pytest.fail)) as journal:
        for number in range(10):
            journal.append(tick(number))
            data = files_of(folder)[0].read_bytes()
            assert split(reader.feed(data[begun:])) == ([tick(number)], [])
            begun = len(data)


def test_the_file_can_be_read_with_zstd_and_json(folder: Path) -> None:
    file = written(folder, [tick(number) for number in range(7)])
    with zstandard.open(file, "rt", encoding="utf-8") as lines:
        *ticks, footer = map(json.loads, lines)
    assert [line["t"] for line in ticks] == [tick(number).tick.time_s for number in range(7)]
    assert [line["q"] for line in ticks] == list(range(7))
    assert (footer["end"]["first"], footer["end"]["next"], footer["end"]["more"]) == (0, 7, False)


@given(st.data())
@shared
def test_the_ticks_before_a_truncation_are_read(folder: Path, data: st.DataObject) -> None:
    ticks = [tick(number) for number in range(10)]
    content = written(folder, ticks).read_bytes()
    truncated = content[: data.draw(st.integers(0, len(content)))]
    reader = Reader()
    read_ticks, damage = split([*reader.feed(truncated), *reader.end()])
    assert read_ticks == ticks[: len(read_ticks)]
    assert len(damage) <= 1


@given(st.data())
@shared
def test_a_changed_byte_loses_at_most_one_frame_and_changes_no_tick(folder: Path, data: st.DataObject) -> None:
    ticks = [tick(number) for number in range(12)]
    content = bytearray(written(folder, ticks).read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    size = data.draw(st.integers(1, len(content)))
    reader = Reader()
    records = [record for at in range(0, len(content), size) for record in reader.feed(bytes(content[at : at + size]))]
    read_ticks, damage = split([*records, *reader.end()])
    assert all(snapshot in ticks for snapshot in read_ticks)
    # A frame contains three ticks, so at most three are lost; changes to some header bits have no effect at all.
    assert len(read_ticks) >= 12 - 3
    assert damage or read_ticks == ticks


def test_a_wrong_block_size_loses_at_most_one_frame(folder: Path) -> None:
    ticks = [tick(number) for number in range(12)]
    content = written(folder, ticks).read_bytes()
    for index in some_of(range(len(content))):
        damaged = bytearray(content)
        damaged[index] ^= 0x80
        reader = Reader()
        read_ticks, _ = split([*reader.feed(bytes(damaged)), *reader.end()])
        assert all(snapshot in ticks for snapshot in read_ticks)
        assert len(read_ticks) >= 12 - 3


def test_a_foreign_file_is_reported_only_as_damage(tmp_path: Path) -> None:
    for content in (b"", b"{}\n" * 1000, os.urandom(10_000), b"\x28\xb5\x2f\xfd" * 100):
        (tmp_path / "x").write_bytes(content)
        snapshots, damage = split(read(tmp_path / "x"))
        assert snapshots == []
        assert bool(damage) == bool(content)


def test_a_second_writer_is_rejected(folder: Path) -> None:
    first = Journal(folder, lambda: HEAD, NO_SYNC, pytest.fail)
    with closing(first), pytest.raises(JournalError, match="another casstat is recording to this directory"):
        Journal(folder, lambda: HEAD, NO_SYNC, pytest.fail)
    Journal(folder, lambda: HEAD, NO_SYNC, pytest.fail).close()


def test_only_the_owner_can_open_the_lock_file(folder: Path) -> None:
    folder.mkdir()
    (folder / LOCK).touch(0o644)
    with closing(Journal(folder, lambda: HEAD, NO_SYNC, pytest.fail)):
        assert stat.S_IMODE((folder / LOCK).stat().st_mode) == 0o600


def test_files_are_rotated_and_the_oldest_are_removed_first(folder: Path) -> None:
    limits = Limits(file_bytes=1500, total_bytes=6000, sync="never")
    messages: list[str] = []
    with closing(Journal(folder, lambda: HEAD, limits, messages.append)) as journal:
        for number in range(300):
            journal.append(tick(number))
        assert journal.removed > 1
        assert len(messages) == 1
        assert sum(file.stat().st_size for file in files_of(folder)) <= limits.total_bytes
    assert messages[1:] == [f"{folder}: removed the {journal.removed} oldest files"]
    kept, _ = split(record for file in files_of(folder) for record in read(file))
    assert kept == [tick(number) for number in range(300)][-len(kept) :]


@given(st.integers(0, 2500), st.integers(1, 12), st.integers(1, 6))
@shared
def test_on_a_full_disk_lost_ticks_are_counted_and_the_others_are_read(
    folder: Path, size: int, full: int, after: int
) -> None:
    messages: list[str] = []
    with closing(Journal(fresh(folder), lambda: HEAD, NO_SYNC, messages.append)) as journal:
        with file_size_limit(size):
            for number in range(full):
                journal.append(tick(number))
        for number in range(full, full + after):
            journal.append(tick(number))
        lost = journal.lost
    read_ticks, damage = split(record for file in files_of(folder) for record in read(file))
    assert damage == []
    assert len(read_ticks) + lost == full + after
    assert read_ticks[-after:] == [tick(number) for number in range(full, full + after)]
    assert bool(messages) == bool(lost)


def test_fields_of_a_newer_writer_are_ignored(folder: Path) -> None:
    content = {"head": {**HEAD.content(), "moon": "full"}, **encoded(DeltaState(), tick(0)), "weather": [1, 2]}
    reader = Reader()
    (entry,) = reader.feed(zstandard.compress(sealed(content)))
    assert isinstance(entry, Entry)
    assert entry == Entry(HEAD, tick(0))


def test_gaps_suspensions_and_restarts_are_recorded_as_text(folder: Path) -> None:
    first, second = tick(0), replace(tick(5), tick=Tick(1_795_000_005.0, 0.0, 4, 3.5))
    later = [replace(scrape, origin="later") for scrape in second.scrapes]
    early = [replace(scrape, origin="early") for scrape in first.scrapes]
    ticks = [replace(first, scrapes=tuple(early)), replace(second, scrapes=tuple(later))]
    with zstandard.open(written(folder, ticks), "rt", encoding="utf-8") as lines:
        records = [json.loads(line).get("r") for line in lines]
    expected = [
        ["gap", "4 ticks missed"],
        ["suspend", "suspended for 3.5 s"],
        ["restart", "counters of cpu were reset"],
    ]
    assert records == [None, expected, None]


def test_the_size_ignores_files_removed_while_it_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / f"b{SUFFIX}"
    kept.write_bytes(b"12345")
    assert size_of(tmp_path) == 5
    monkeypatch.setattr("collector.recording.journal_files.files_of", lambda _: [tmp_path / f"a{SUFFIX}", kept])
    assert size_of(tmp_path) == 5
    monkeypatch.undo()
    assert size_of(tmp_path / "gone") is None
