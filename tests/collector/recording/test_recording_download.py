"""A download of a time range contains its ticks, and reads only the parts that may have them."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from collector.model.snapshot import Snapshot
from collector.recording import frames, journal_upload, recording_download, writer
from collector.recording.journal_files import info
from collector.recording.journal_upload import JournalUpload
from collector.recording.object_store import ObjectStoreError, StoredObject, part_key, parts_of
from collector.recording.reader import entries, read
from collector.recording.recording_download import download_recordings, recorded_times
from collector.recording.writer import files_of
from tests.collector.recording.recorder import BEGIN_S, CountingStore, Recorder

# A tenth of what they are in real recordings, so that a tenth of the ticks are enough.
FULL_EVERY, MARGIN_S = 60, 360.0
RECORDED_S = 2160


@pytest.fixture(scope="module", autouse=True)
def _short_frames() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "FULL_EVERY", FULL_EVERY)
        patch.setattr(frames, "FULL_EVERY", FULL_EVERY)
        patch.setattr(recording_download, "MARGIN_S", MARGIN_S)
        patch.setattr(journal_upload, "PART_S", 30.0)
        patch.setattr(recording_download, "PART_S", 30.0)
        yield


class Uploaded(NamedTuple):
    ticks: list[Snapshot]
    store: CountingStore


@pytest.fixture(scope="module")
def uploaded(tmp_path_factory: pytest.TempPathFactory) -> Uploaded:
    """Return the ticks of a journal in two files, and the store that has it."""
    folder = tmp_path_factory.mktemp("uploaded")
    recorder, store = Recorder(folder / "journal", file_s=1440), CountingStore(folder / "store")
    recorder.record(RECORDED_S)
    recorder.journal.close()
    assert len(files_of(recorder.folder)) == 2
    journal = JournalUpload(recorder.folder, store, "n1", None, pytest.fail)
    while journal.upload_next():
        pass
    return Uploaded(snapshots(recorder.folder), store)


def snapshots(folder: Path) -> list[Snapshot]:
    return [entry.snapshot for file in files_of(folder) for entry in entries(read(file))]


def within(ticks: list[Snapshot], from_s: float, to_s: float) -> list[Snapshot]:
    return [tick for tick in ticks if from_s <= tick.tick.time_s <= to_s]


@pytest.mark.parametrize("begin_s", [0, 684, 1422, 1980])
def test_a_range_is_complete(uploaded: Uploaded, tmp_path: Path, begin_s: int) -> None:
    range_s = BEGIN_S + begin_s, BEGIN_S + begin_s + 60
    uploaded.store.read_keys.clear()
    download_recordings(uploaded.store, uploaded.store.objects(), tmp_path, *range_s)
    wanted = within(uploaded.ticks, *range_s)
    assert len(wanted) == 61
    assert within(snapshots(tmp_path / "n1"), *range_s) == wanted
    read_s = FULL_EVERY * len(uploaded.store.read_keys)
    assert read_s <= 60 + 2 * MARGIN_S + 2 * FULL_EVERY


def test_without_a_range_the_times_are_those_of_the_parts(uploaded: Uploaded) -> None:
    begin_s, end_s = recorded_times(parts_of(uploaded.store.objects()))
    assert begin_s == BEGIN_S
    assert 0 <= BEGIN_S + RECORDED_S - end_s <= FULL_EVERY


def test_after_the_store_has_deleted_old_parts_nothing_counts_as_lost(uploaded: Uploaded, tmp_path: Path) -> None:
    store = uploaded.store
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
    recorder.record(FULL_EVERY + 10)
    while journal.upload_next():
        pass
    objects = store.objects()
    recorder.record(FULL_EVERY)
    while journal.upload_next():
        pass
    download_recordings(store, objects, tmp_path / "copy")
    ticks = [snapshot.tick.time_s - BEGIN_S for snapshot in snapshots(tmp_path / "copy" / "n1")]
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


def test_after_an_error_the_other_downloads_end(tmp_path: Path) -> None:
    class FailingStore(CountingStore):
        def chunks(self, key: str) -> Iterator[bytes]:
            if key == "failing":
                raise ObjectStoreError("failed")
            while True:
                yield b""

    store = FailingStore(tmp_path / "store")
    with pytest.raises(ObjectStoreError, match="failed"):
        download_recordings(store, [StoredObject("failing", 1), StoredObject("endless", 1)], tmp_path / "copy")
