"""What an upload stores is exactly the journal, however often it is interrupted."""

import json
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.printable import local_time
from collector.recording.header import FULL_EVERY
from collector.recording.journal_upload import JournalUpload, lost_ticks
from collector.recording.object_store import ObjectStoreError, StoredObject, parts_of
from collector.recording.recording_download import download_recordings
from collector.recording.writer import files_of
from tests.collector.recording.recorder import BEGIN_S, HEAD, CountingStore, Recorder
from tests.examples import examples

ALL = 10_000


def upload(recorder: Recorder, store: CountingStore, checkpoint: Path | None = None, at_most: int = ALL) -> list[str]:
    """Upload parts like a new process, and return the notes."""
    notes: list[str] = []
    journal = JournalUpload(recorder.folder, store, "n1", checkpoint, notes.append)
    for _ in range(at_most):
        if not journal.upload_next():
            break
    return notes


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in files_of(folder)}


def downloaded(store: CountingStore, folder: Path) -> dict[str, bytes]:
    download_recordings(store, store.objects(), folder)
    return contents(folder / "n1")


def stored(store: CountingStore) -> dict[str, bytes]:
    """Return the content of the parts by file, including ticks that a download leaves out of a growing file."""
    files = parts_of(store.objects()).items()
    return {file: b"".join(store.read(part.stored.key) for part in parts) for (_, file), parts in files}


@given(
    st.lists(st.tuples(st.integers(1, 500), st.booleans(), st.integers(0, 4)), min_size=1, max_size=5),
    st.sampled_from((1e9, 400.0)),
    st.booleans(),
)
@settings(max_examples=examples(25), deadline=None)
def test_the_store_contains_the_journal(parts: list[tuple[int, bool, int]], file_s: float, has_state: bool) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        recorder, store = Recorder(folder / "journal", file_s), CountingStore(folder / "store")
        checkpoint = folder / "checkpoint.json" if has_state else None
        for ticks, is_killed, at_most in parts:
            recorder.record(ticks)
            upload(recorder, store, checkpoint, at_most)
            if is_killed:
                recorder.restart()
        recorder.record(1)
        recorder.journal.close()
        assert upload(recorder, store, checkpoint) == []
        assert downloaded(store, folder / "copy") == contents(folder / "journal")


def test_a_part_consists_of_whole_frames(tmp_path: Path) -> None:
    recorder, store = Recorder(tmp_path / "journal"), CountingStore(tmp_path / "store")
    recorder.record(2 * FULL_EVERY + 1)
    upload(recorder, store)
    begins_ms = [int(key.rpartition("-")[2].removesuffix(".zst")) for key in store.written]
    assert begins_ms == [round(1000 * (BEGIN_S + second)) for second in (0, FULL_EVERY, 2 * FULL_EVERY)]
    for key in store.written:
        assert zstandard.ZstdDecompressor().decompressobj().decompress(store.read(key)).startswith(b'{"head":')


def test_only_new_ticks_are_uploaded(tmp_path: Path) -> None:
    recorder, store = Recorder(tmp_path / "journal"), CountingStore(tmp_path / "store")
    recorder.record(2 * FULL_EVERY + 100)
    journal = JournalUpload(recorder.folder, store, "n1", None, pytest.fail)
    while journal.upload_next():
        pass
    first = list(store.written)
    assert len(first) == 3
    assert journal.upload_next() == 0
    recorder.record(10)
    assert journal.upload_next() > 0
    assert journal.upload_next() == 0
    # The part at the end has grown.
    assert store.written == [*first, first[-1]]
    upload(recorder, store)
    assert len(store.written) == 4


def test_an_unavailable_store_loses_nothing(tmp_path: Path) -> None:
    recorder, store = Recorder(tmp_path / "journal", file_s=400), CountingStore(tmp_path / "store")
    journal = JournalUpload(recorder.folder, store, "n1", tmp_path / "checkpoint.json", pytest.fail)
    for failure in ("", "down", "down", ""):
        recorder.record(350)
        store.failure = failure
        with pytest.raises(ObjectStoreError, match=failure) if failure else nullcontext():
            while journal.upload_next():
                pass
    recorder.journal.close()
    assert journal.upload_next() > 0
    assert downloaded(store, tmp_path / "copy") == contents(recorder.folder)


def test_files_deleted_before_the_upload_are_reported(tmp_path: Path) -> None:
    recorder, store = Recorder(tmp_path / "journal", file_s=400), CountingStore(tmp_path / "store")
    recorder.record(350)
    checkpoint = tmp_path / "checkpoint.json"
    assert upload(recorder, store, checkpoint) == []
    recorder.record(1000)
    first, *_ = files_of(recorder.folder)
    first.unlink()
    (problem,) = upload(recorder, store, checkpoint)
    before = local_time(BEGIN_S + 400)
    assert problem == f"{first}: deleted before all of it was uploaded: lost 50 ticks before {before}"
    assert lost_ticks(checkpoint) == 50
    assert downloaded(store, tmp_path / "copy").keys() > contents(recorder.folder).keys()
    assert upload(recorder, store, checkpoint) == []


def test_files_deleted_after_the_upload_are_not_lost(tmp_path: Path) -> None:
    recorder, store = Recorder(tmp_path / "journal", file_s=400), CountingStore(tmp_path / "store")
    recorder.record(1000)
    recorder.journal.close()
    whole, checkpoint = contents(recorder.folder), tmp_path / "checkpoint.json"
    upload(recorder, store, checkpoint)
    for path in files_of(recorder.folder):
        path.unlink()
    assert upload(recorder, store, checkpoint) == []
    assert downloaded(store, tmp_path / "copy") == whole


@pytest.mark.parametrize("uploaded_ticks", [400, 350])
def test_files_that_were_never_seen_count_by_their_sequence_numbers(tmp_path: Path, uploaded_ticks: int) -> None:
    recorder, store = Recorder(tmp_path / "journal", file_s=400), CountingStore(tmp_path / "store")
    recorder.record(uploaded_ticks)
    checkpoint = tmp_path / "checkpoint.json"
    upload(recorder, store, checkpoint)
    recorder.record(1300 - uploaded_ticks)
    for path in files_of(recorder.folder)[:-1]:
        path.unlink()
    (problem,) = upload(recorder, store, checkpoint)
    assert f": lost {1200 - uploaded_ticks} ticks before " in problem
    assert lost_ticks(checkpoint) == 1200 - uploaded_ticks


def test_files_after_a_completely_uploaded_one_count(tmp_path: Path) -> None:
    recorder, store = Recorder(tmp_path / "journal"), CountingStore(tmp_path / "store")
    checkpoint = tmp_path / "checkpoint.json"
    recorder.record(100)
    upload(recorder, store, checkpoint)
    for session in ("two", "three"):
        recorder.head = replace(HEAD, session=session)
        recorder.restart()
        recorder.record(100)
        store.failure = "down"
        with pytest.raises(ObjectStoreError, match="down"):
            upload(recorder, store, checkpoint)
    store.failure = ""
    _, second, _ = files_of(recorder.folder)
    second.unlink()
    (problem,) = upload(recorder, store, checkpoint)
    assert problem.startswith(f"{second}: deleted before all of it was uploaded: lost at most 100 ticks before ")
    assert lost_ticks(checkpoint) == 100


class UnavailableStore(CountingStore):
    def objects(self, folder: str = "") -> list[StoredObject]:
        raise ObjectStoreError("down")


def test_files_deleted_before_the_store_is_first_available_count(tmp_path: Path) -> None:
    recorder, checkpoint = Recorder(tmp_path / "journal"), tmp_path / "checkpoint.json"
    recorder.record(100)
    with pytest.raises(ObjectStoreError, match="down"):
        upload(recorder, UnavailableStore(tmp_path / "store"), checkpoint)
    (first,) = files_of(recorder.folder)
    recorder.head = replace(HEAD, session="two")
    recorder.restart()
    recorder.record(10)
    first.unlink()
    store = CountingStore(tmp_path / "store")
    (problem,) = upload(recorder, store, checkpoint)
    assert problem.startswith(f"{first}: deleted before all of it was uploaded: lost at most 100 ticks before ")
    assert lost_ticks(checkpoint) == 100
    assert stored(store) == contents(recorder.folder)


def test_two_nodes_of_one_name_are_an_error(tmp_path: Path) -> None:
    store = CountingStore(tmp_path / "store")
    for session, ticks in (("one", 100), ("two", 200)):
        recorder = Recorder(tmp_path / session, session=session)
        recorder.record(ticks)
        with pytest.raises(ObjectStoreError, match="contains another recording") if ticks == 200 else nullcontext():
            upload(recorder, store)


@pytest.mark.parametrize("keep_state", [True, False])
@pytest.mark.parametrize("begin", [0, 1, 200, -50])
def test_damage_to_an_uploaded_tail_does_not_stop_uploads(tmp_path: Path, begin: int, keep_state: bool) -> None:
    """After a power failure, blocks that were never written to the disk are zeros."""
    recorder, store = Recorder(tmp_path / "journal"), CountingStore(tmp_path / "store")
    recorder.record(400)
    checkpoint = tmp_path / "checkpoint.json" if keep_state else None
    upload(recorder, store, checkpoint)
    (path,) = files_of(recorder.folder)
    uploaded_bytes = path.stat().st_size
    recorder.record(50)
    whole = path.read_bytes()
    recorder.head = replace(HEAD, session="two")
    recorder.restart()
    recorder.record(10)
    at = begin % uploaded_bytes
    path.write_bytes(whole[:at] + bytes(uploaded_bytes - at) + whole[uploaded_bytes:])
    (problem,) = upload(recorder, store, checkpoint)
    assert problem == f"{path}: damaged at byte {at}: the part in the store is kept"
    assert stored(store) == {**contents(recorder.folder), path.name: whole}
    assert upload(recorder, store, tmp_path / "checkpoint.json") == ([] if keep_state else [problem])


def test_parts_in_a_store_that_was_first_unavailable_are_kept(tmp_path: Path) -> None:
    recorder, store = Recorder(tmp_path / "journal"), CountingStore(tmp_path / "store")
    recorder.record(1900)
    upload(recorder, store)
    uploaded = {key: store.read(key) for key in store.written}
    (path,) = files_of(recorder.folder)
    second = sorted(uploaded)[1]
    data = bytearray(path.read_bytes())
    data[len(uploaded[min(uploaded)]) + len(uploaded[second]) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ObjectStoreError, match="down"):
        upload(recorder, UnavailableStore(tmp_path / "store"), tmp_path / "checkpoint.json")
    store.written.clear()
    (problem,) = upload(recorder, store, tmp_path / "checkpoint.json")
    assert problem.endswith("the part in the store is kept")
    assert store.written == []
    assert {key: store.read(key) for key in uploaded} == uploaded


def test_damage_to_a_part_in_the_store_is_repaired(tmp_path: Path) -> None:
    recorder, store = Recorder(tmp_path / "journal"), CountingStore(tmp_path / "store")
    recorder.record(400)
    upload(recorder, store)
    (key,) = store.written
    store.write(key, bytes(len(store.read(key))))
    (problem,) = upload(recorder, store)
    assert problem.endswith(f"{key}: damaged; replaced from {files_of(recorder.folder)[0]}")
    assert stored(store) == contents(recorder.folder)


def test_ticks_that_only_the_store_has_are_kept(tmp_path: Path) -> None:
    """After a crash of the machine, the end of a file may be missing."""
    recorder, store = Recorder(tmp_path / "journal"), CountingStore(tmp_path / "store")
    recorder.record(400)
    checkpoint = tmp_path / "checkpoint.json"
    upload(recorder, store, checkpoint)
    (path,) = files_of(recorder.folder)
    whole = path.read_bytes()
    recorder.restart()
    os.truncate(path, len(whole) - 50)
    recorder.record(10)
    assert upload(recorder, store, checkpoint) == []
    assert downloaded(store, tmp_path / "copy")[path.name] == whole


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", "\0", '{"file": 1, "offset": 0, "is_end": false}', '{"file": "a", "offset": -1, "is_end": true}'],
)
def test_a_malformed_checkpoint_does_not_stop_uploads(tmp_path: Path, content: str) -> None:
    recorder, store = Recorder(tmp_path / "journal"), CountingStore(tmp_path / "store")
    checkpoint = tmp_path / "checkpoint.json"
    recorder.record(700)
    upload(recorder, store, checkpoint)
    recorder.record(10)
    checkpoint.write_text(content)
    (problem,) = upload(recorder, store, checkpoint)
    assert problem == f"{checkpoint}: malformed checkpoint: continuing after the parts in the store"
    assert stored(store) == contents(recorder.folder)
    assert upload(recorder, store, checkpoint) == []


def test_a_checkpoint_of_an_earlier_version_is_continued(tmp_path: Path) -> None:
    recorder, store = Recorder(tmp_path / "journal"), CountingStore(tmp_path / "store")
    recorder.record(10)
    checkpoint = tmp_path / "checkpoint.json"
    (path,) = files_of(recorder.folder)
    checkpoint.write_text(json.dumps({"file": path.name, "offset": 0, "is_end": False}))
    assert upload(recorder, store, checkpoint) == []
    assert stored(store) == contents(recorder.folder)
