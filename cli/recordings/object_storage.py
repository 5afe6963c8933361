"""Object storage as the input and output of commands: local copies of what they need, and uploads."""

import fcntl
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from cli.errors import CasstatError, echo, errors_as, note, require_packages
from cli.parameters.parameter_types import TimeOfDay, bounds
from cli.parameters.recording_options import ObjectUrl
from cli.recordings.recording_arguments import MergeSettings
from cli.run_folder import is_being_recorded
from collector.agents.run_records import FILE as RUNS_FILE
from collector.file_access import file_errors
from collector.printable import count_text, one_line
from collector.recording.journal_upload import JournalUpload
from collector.recording.object_store import ObjectStore, ObjectStoreError, object_store_name, package_for, parts_of
from collector.recording.recording_download import download_recordings, recorded_times
from collector.recording.writer import files_of, folder_name
from collector.runs.run_file import FILE, is_run
from exporters.sinks.shipping.tick_queue import file_name, upload_checkpoint

UNNAMED = "recordings"


def store_errors() -> AbstractContextManager[None]:
    return errors_as(CasstatError, ObjectStoreError)


def open_store(url: str) -> ObjectStore:
    """Return the object storage at a URL. Raises CasstatError."""
    with store_errors():
        require_packages(f"{object_store_name(url)}:", package_for(url))
        return ObjectStore(url)


@contextmanager
def local_copies(
    paths: Sequence[Path | ObjectUrl], begin: float | TimeOfDay | None = None, end: float | TimeOfDay | None = None
) -> Iterator[tuple[Path, ...]]:
    """Yield the paths, with a temporary copy of the time range's recordings in place of each URL.

    Raises CasstatError.
    """
    if not any(isinstance(path, ObjectUrl) for path in paths):
        yield tuple(Path(path) for path in paths)
        return
    with TemporaryDirectory(prefix="casstat-") as parent:
        yield tuple(
            _copy(path, Path(parent) / str(number), begin, end) if isinstance(path, ObjectUrl) else path
            for number, path in enumerate(paths)
        )


def _copy(url: ObjectUrl, parent: Path, begin: float | TimeOfDay | None, end: float | TimeOfDay | None) -> Path:
    """Download the recordings at a URL to a directory of the same name. Raises CasstatError."""
    store = open_store(url)
    folder = parent / last_name(store)
    with store_errors(), file_errors(folder, CasstatError):
        folder.mkdir(parents=True)
        objects = store.objects()
        if not objects:
            raise CasstatError(f"{store.name}: no recordings found")
        runs = [item.key for item in objects if PurePosixPath(item.key).name == FILE and "/" in item.key]
        if runs:
            hint = f"use one of them, such as {store.name}/{one_line(runs[0].rpartition('/')[0])}"
            raise CasstatError(f"{store.name}: contains runs (hint: {hint})")
        range_s = bounds(begin, end, *recorded_times(parts_of(objects)))
        download_recordings(store, objects, folder, *range_s)
    return folder


def last_name(store: ObjectStore) -> str:
    """Return the last component of a store's URL as a file name."""
    return folder_name(store.name.rpartition("/")[2] or UNNAMED)


@contextmanager
def metadata_copies(url: str, names: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Yield a temporary directory with copies of the objects of these file names, and the name of the store.

    Raises CasstatError.
    """
    store = open_store(url)
    with TemporaryDirectory(prefix="casstat-") as folder:
        with store_errors():
            objects = [item for item in store.objects() if PurePosixPath(item.key).name in names]
            download_recordings(store, objects, Path(folder))
        yield Path(folder), store.name


@contextmanager
def local_settings(settings: MergeSettings) -> Iterator[MergeSettings]:
    """Yield the settings with local paths. Raises CasstatError."""
    with local_copies(settings.paths, settings.begin, settings.end) as paths:
        yield replace(settings, paths=paths)


@dataclass(frozen=True)
class Output:
    """The local directory to write to, and the URL to which its files are uploaded, if any."""

    folder: Path
    url: str = ""

    def name(self, path: Path) -> Path | str:
        """Return the final path or URL of a file in the directory."""
        return f"{self.url}/{path.relative_to(self.folder).as_posix()}" if self.url else path


@contextmanager
def local_output(folder: Path | ObjectUrl) -> Iterator[Output]:
    """Yield the output; the files of a temporary directory are uploaded after the block. Raises CasstatError."""
    if not isinstance(folder, ObjectUrl):
        yield Output(folder)
        return
    store = open_store(folder)
    with TemporaryDirectory(prefix="casstat-") as name:
        output = Output(Path(name) / last_name(store), store.name)
        yield output
        with store_errors():
            for path in sorted(output.folder.rglob("*")):
                if path.is_file():
                    store.write_file(path.relative_to(output.folder).as_posix(), path)


@dataclass
class _Total:
    objects: int = 0
    size_bytes: int = 0

    def add(self, size_bytes: int) -> None:
        self.objects += 1
        self.size_bytes += size_bytes


def upload(path: Path, url: str, node: str, state: Path | None) -> None:
    """Upload everything that the store does not have yet, and print how much that was. Raises CasstatError.

    `node` is the name of the node's directory in the store, and `state` the directory for a checkpoint; see
    `casstat upload --help`.
    """
    store, total = open_store(url), _Total()
    try:
        with store_errors(), file_errors(path, CasstatError):
            if is_run(path):
                if is_being_recorded(path):
                    raise CasstatError(f"{path}: the run is being recorded (hint: try again when it has ended)")
                _upload_run(path, store, total)
            else:
                _upload_journals(_journals(path, node), store, state, total)
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


def _upload_journals(folders: Mapping[Path, str], store: ObjectStore, state: Path | None, total: _Total) -> None:
    """Upload journals, each to the directory of its node. Raises CasstatError, ObjectStoreError and OSError."""
    with _exclusive(state, store.name):
        for folder, node in folders.items():
            checkpoint = state and upload_checkpoint(state, store.name, node)
            journal = JournalUpload(folder, store, node, checkpoint, note)
            while size_bytes := journal.upload_next():
                total.add(size_bytes)
            if (runs := folder / RUNS_FILE).exists():
                _upload_changed(runs, store, f"{node}/{RUNS_FILE}", total)


def _journals(path: Path, node: str) -> dict[Path, str]:
    """Return the directories of the journals at a path, each with the name of its directory in the store."""
    if files_of(path):
        return {path: folder_name(node or _recorded_node(path))}
    folders = {folder: folder.name for folder in sorted(path.iterdir()) if folder.is_dir() and files_of(folder)}
    if not folders:
        raise CasstatError(f"{path}: no recordings found")
    if node:
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
