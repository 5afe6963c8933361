"""What an upload stores is exactly the journal, however often it is interrupted."""

import os
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.journal.format_version import FULL_EVERY
from collector.journal.writer import files_of
from collector.objects.journal_upload import JournalUpload
from collector.objects.object_store import ObjectStoreError
from collector.objects.recording_download import download_recordings
from tests.collector.objects.recorder import BEGIN_S, CountingStore, Recorder

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


@given(
    st.lists(st.tuples(st.integers(1, 500), st.booleans(), st.integers(0, 4)), min_size=1, max_size=5),
    st.sampled_from((1e9, 400.0)),
    st.booleans(),
)
@settings(max_examples=25, deadline=None)
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
    assert problem == f"{first}: deleted before all of it was uploaded"
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


def test_two_nodes_of_one_name_are_an_error(tmp_path: Path) -> None:
    store = CountingStore(tmp_path / "store")
    for number, ticks in enumerate((100, 200)):
        recorder = Recorder(tmp_path / str(number))
        recorder.record(ticks)
        if number:
            path = files_of(recorder.folder)[0]
            data = bytearray(path.read_bytes())
            data[len(data) // 3] ^= 1
            path.write_bytes(data)
            with pytest.raises(ObjectStoreError, match="contains another recording"):
                upload(recorder, store)
        else:
            upload(recorder, store)


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
def test_a_malformed_checkpoint_is_an_error(tmp_path: Path, content: str) -> None:
    recorder, store = Recorder(tmp_path / "journal"), CountingStore(tmp_path / "store")
    recorder.record(1)
    (tmp_path / "checkpoint.json").write_text(content)
    with pytest.raises(ObjectStoreError, match="malformed checkpoint"):
        upload(recorder, store, tmp_path / "checkpoint.json")
