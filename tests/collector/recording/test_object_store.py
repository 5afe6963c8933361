"""Objects are read and written in parts, so that their size does not matter, and every write is verified."""

import errno
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.recording import object_store
from collector.recording.object_store import ObjectMissingError, ObjectStore, ObjectStoreError
from collector.recording.recording_download import download_recordings

CONTENT = bytes(range(250)) * 14
CHUNK = 1000


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    monkeypatch.setattr(object_store, "CHUNK_BYTES", CHUNK)
    store = ObjectStore(f"file://{tmp_path}/store")

    def whole(*_: object, **__: object) -> bytes:
        raise AssertionError("read as a whole")

    monkeypatch.setattr(store._system, "cat_file", whole)
    return store


def test_an_object_is_read_in_parts(store: ObjectStore) -> None:
    store.write("a/b", CONTENT)
    assert [len(chunk) for chunk in store.chunks("a/b")] == [CHUNK, CHUNK, CHUNK, 500]
    assert store.read("a/b") == CONTENT
    assert store.read("a/b", len(CONTENT)) == CONTENT
    with pytest.raises(ObjectStoreError, match="a/b: larger than 0 MiB"):
        store.read("a/b", len(CONTENT) - 1)
    with pytest.raises(ObjectMissingError):
        store.read("a/c")


@pytest.mark.parametrize("size_bytes", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 500])
def test_a_file_is_written_and_compared_in_parts(store: ObjectStore, tmp_path: Path, size_bytes: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT[:size_bytes])
    assert not store.contains("k", path)
    assert store.write_file("k", path) == size_bytes
    assert store.read("k") == CONTENT[:size_bytes]
    assert store.contains("k", path)
    for other in (CONTENT[:size_bytes] + b"x", CONTENT[: size_bytes - 1] if size_bytes else b"y"):
        path.write_bytes(other)
        assert not store.contains("k", path)


def test_a_local_file_that_cannot_be_read_is_no_error_of_the_store(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(Path, "open", lambda *_: Broken())
    with pytest.raises(OSError, match="broken disk"):
        store.write_file("k", tmp_path / "file")
    monkeypatch.undo()
    assert store.objects() == []


def test_other_content_than_was_written_is_an_error(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    chunks = store.chunks

    def changed(key: str) -> Iterator[bytes]:
        return (chunk[:-1] + b"?" for chunk in chunks(key))

    monkeypatch.setattr(store, "chunks", changed)
    for write in (lambda: store.write("k", CONTENT), lambda: store.write_file("k", path)):
        with pytest.raises(ObjectStoreError, match="k: the store returned other content than was uploaded"):
            write()


def test_a_download_streams(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write("n1/notes.txt", CONTENT)
    # A part that has grown since the next one was written.
    file = "n1/20261118T110640.jsonl.zst"
    store.write(f"{file}/000000000000-1795000000000.zst", CONTENT)
    store.write(f"{file}/000000002300-1795000300000.zst", CONTENT[2300:])
    monkeypatch.setattr("collector.recording.recording_download.last_footer", lambda _: True)
    download_recordings(store, store.objects(), tmp_path / "copy")
    assert (tmp_path / "copy/n1/notes.txt").read_bytes() == CONTENT
    assert (tmp_path / "copy" / file).read_bytes() == CONTENT
