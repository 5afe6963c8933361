"""Uploads recordings and runs to object storage, each object verified."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cli.errors import CasstatError, echo, note
from cli.recordings.object_urls import open_store
from cli.run_folder import is_being_recorded
from collector.agents.run_records import FILE as RUNS_FILE
from collector.printable import count_text, one_line
from collector.recording.journal_upload import JournalUpload
from collector.recording.object_store import ObjectStore, ObjectStoreError
from collector.recording.writer import files_of, folder_name
from collector.runs.run_file import FILE, is_run
from exporters.sinks.shipping.checkpoint import file_name, upload_checkpoint


@dataclass(frozen=True)
class UploadSettings:
    """The options of `casstat upload`; see `casstat upload --help`."""

    path: Path
    url: str
    node: str = ""
    state: Path | None = None


@dataclass
class _Total:
    objects: int = 0
    size_bytes: int = 0

    def add(self, size_bytes: int) -> None:
        self.objects += 1
        self.size_bytes += size_bytes


def upload(settings: UploadSettings) -> None:
    """Upload everything that the store does not have yet, and print how much that was. Raises CasstatError."""
    store, path, total = open_store(settings.url), settings.path, _Total()
    try:
        if is_run(path):
            if is_being_recorded(path):
                raise CasstatError(f"{path}: the run is being recorded (hint: try again when it has ended)")
            _upload_run(path, store, total)
        else:
            _upload_journals(settings, store, total)
    except ObjectStoreError as error:
        raise CasstatError(str(error)) from None
    except OSError as error:
        raise CasstatError(f"{error.filename or path}: {error.strerror}") from None
    finally:
        echo(f"{store.name}: uploaded {count_text(total.objects, 'object')}, {count_text(total.size_bytes, 'byte')}")


def _upload_run(folder: Path, store: ObjectStore, total: _Total) -> None:
    """Upload the files of a run that differ from those in the store; the run's own file comes last.

    So a run that is listed is complete. Raises ObjectStoreError and OSError.
    """
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    for path in sorted(paths, key=lambda path: path.name == FILE):
        _upload_changed(path, store, f"{folder.name}/{path.relative_to(folder).as_posix()}", total)


def _upload_changed(path: Path, store: ObjectStore, key: str, total: _Total) -> None:
    """Upload a file unless the store has the same content. Raises ObjectStoreError and OSError."""
    if not store.contains(key, path):
        total.add(store.write_file(key, path))


def _upload_journals(settings: UploadSettings, store: ObjectStore, total: _Total) -> None:
    """Upload the journals of one node or several. Raises CasstatError, ObjectStoreError and OSError."""
    folders = _journals(settings)
    with _exclusive(settings.state, store.name):
        for folder, node in folders.items():
            checkpoint = settings.state and upload_checkpoint(settings.state, store.name, node)
            journal = JournalUpload(folder, store, node, checkpoint, note)
            while size_bytes := journal.upload_next():
                total.add(size_bytes)
            if (runs := folder / RUNS_FILE).exists():
                _upload_changed(runs, store, f"{node}/{RUNS_FILE}", total)


def _journals(settings: UploadSettings) -> dict[Path, str]:
    """Return the directories of the journals at a path, each with the name of its directory in the store."""
    path = settings.path
    if files_of(path):
        return {path: folder_name(settings.node or _recorded_node(path))}
    folders = {folder: folder.name for folder in sorted(path.iterdir()) if folder.is_dir() and files_of(folder)}
    if not folders:
        raise CasstatError(f"{path}: no recordings found")
    if settings.node:
        raise CasstatError(f"{path}: contains several journals (hint: omit --node, or choose one of its directories)")
    return folders


def _recorded_node(folder: Path) -> str:
    """Return the name of the node in a journal. Raises CasstatError and OSError."""
    from collector.merge.recordings import sessions

    recorded, _ = sessions([folder])
    if not recorded:
        raise CasstatError(f"{folder}: no recordings found")
    return max(recorded, key=lambda session: session.end_s).node


@contextmanager
def _exclusive(state: Path | None, store: str) -> Iterator[None]:
    """Allow only one upload with the same state to the same store at a time. Raises CasstatError and OSError."""
    if state is None:
        yield
        return
    state.mkdir(parents=True, exist_ok=True)
    lock = os.open(state / f"{file_name(store)}.upload.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise CasstatError(f"{one_line(store)}: another upload is in progress") from None
    finally:
        os.close(lock)
