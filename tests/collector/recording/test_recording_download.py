"""A download of a time range contains its ticks, and reads only the parts that may have them."""

from pathlib import Path

import pytest

from collector.model.snapshot import Snapshot
from collector.recording.header import FULL_EVERY
from collector.recording.journal_files import info
from collector.recording.journal_upload import JournalUpload
from collector.recording.object_store import ObjectStoreError, StoredObject, part_key, parts_of
from collector.recording.reader import entries, read
from collector.recording.recording_download import MARGIN_S, download_recordings, recorded_times
from collector.recording.writer import files_of
from tests.collector.recording.recorder import BEGIN_S, CountingStore, Recorder

HOURS = 6


@pytest.fixture(scope="module")
def uploaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CountingStore]:
    """Return a journal of six hours in two files, and the store that has it."""
    folder = tmp_path_factory.mktemp("uploaded")
    recorder, store = Recorder(folder / "journal", file_s=4 * 3600), CountingStore(folder / "store")
    recorder.record(HOURS * 3600)
    recorder.journal.close()
    journal = JournalUpload(recorder.folder, store, "n1", None, pytest.fail)
    while journal.upload_next():
        pass
    return recorder.folder, store


def snapshots(folder: Path, from_s: float, to_s: float) -> list[Snapshot]:
    ticks = [entry.snapshot for file in files_of(folder) for entry in entries(read(file))]
    return [tick for tick in ticks if from_s <= tick.tick.time_s <= to_s]


@pytest.mark.parametrize("from_h", [0.0, 1.9, 3.95, 5.5])
def test_a_range_is_complete(uploaded: tuple[Path, CountingStore], tmp_path: Path, from_h: float) -> None:
    journal, store = uploaded
    range_s = BEGIN_S + 3600 * from_h, BEGIN_S + 3600 * from_h + 600
    store.read_keys.clear()
    objects = store.objects()
    download_recordings(store, objects, tmp_path, *range_s)
    wanted = snapshots(journal, *range_s)
    assert len(wanted) == 601
    assert snapshots(tmp_path / "n1", *range_s) == wanted
    read_s = FULL_EVERY * len(store.read_keys)
    assert read_s <= 600 + 2 * MARGIN_S + 2 * FULL_EVERY


def test_without_a_range_the_times_are_those_of_the_parts(uploaded: tuple[Path, CountingStore]) -> None:
    _, store = uploaded
    begin_s, end_s = recorded_times(parts_of(store.objects()))
    assert begin_s == BEGIN_S
    assert 0 <= BEGIN_S + HOURS * 3600 - end_s <= FULL_EVERY


def test_after_the_store_has_deleted_old_parts_nothing_counts_as_lost(
    uploaded: tuple[Path, CountingStore], tmp_path: Path
) -> None:
    _, store = uploaded
    objects = [stored for stored in store.objects() if stored.key > store.objects()[10].key]
    download_recordings(store, objects, tmp_path)
    assert info([tmp_path]).integrity.lost == 0


@pytest.mark.parametrize("key", ["../evil", "n1/../../evil", "..", "n1/x\0y"])
def test_a_key_cannot_refer_to_another_directory(tmp_path: Path, key: str) -> None:
    store = CountingStore(tmp_path / "store")
    with pytest.raises(ObjectStoreError, match="not a valid name"):
        download_recordings(store, [StoredObject(key, 1)], tmp_path / "copy")
    hostile = StoredObject(f"../{part_key('x.jsonl.zst', 0, 1.0)}", 1)
    with pytest.raises(ObjectStoreError, match="not a valid name"):
        download_recordings(store, [hostile], tmp_path / "copy")


def test_a_part_that_grows_after_the_list_was_made_is_complete(tmp_path: Path) -> None:
    recorder, store = Recorder(tmp_path / "journal"), CountingStore(tmp_path / "store")
    journal = JournalUpload(recorder.folder, store, "n1", None, pytest.fail)
    recorder.record(FULL_EVERY + 100)
    while journal.upload_next():
        pass
    objects = store.objects()
    recorder.record(FULL_EVERY)
    while journal.upload_next():
        pass
    download_recordings(store, objects, tmp_path / "copy")
    ticks = [snapshot.tick.time_s - BEGIN_S for snapshot in snapshots(tmp_path / "copy" / "n1", 0.0, 2 * BEGIN_S)]
    # The last part of the list has grown to a whole frame; the next one is not in the list.
    assert ticks == list(range(2 * FULL_EVERY))
    assert info([tmp_path / "copy"]).integrity.lost == 0


def test_a_part_that_is_deleted_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    recorder, store = Recorder(tmp_path / "journal"), CountingStore(tmp_path / "store")
    recorder.record(10)
    JournalUpload(recorder.folder, store, "n1", None, pytest.fail).upload_next()
    (part,) = objects = store.objects()
    (tmp_path / "store" / part.key).unlink()
    with pytest.raises(ObjectStoreError, match=f"{part.key}: no such object or bucket"):
        download_recordings(store, objects, tmp_path / "copy")
