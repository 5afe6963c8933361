"""Recordings in object storage as inputs and outputs of commands: local copies of what a command needs."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from cli.errors import CasstatError
from cli.install_hint import require_packages
from cli.parameters.parameter_types import TimeOfDay, bounds
from cli.parameters.recording_options import ObjectUrl
from cli.recordings.merge_options import MergeSettings
from collector.printable import one_line
from collector.recording.object_store import ObjectStore, ObjectStoreError, object_store_name, package_for, parts_of
from collector.recording.recording_download import download_recordings, recorded_times
from collector.recording.writer import folder_name
from collector.runs.run_file import FILE

UNNAMED = "recordings"


@contextmanager
def store_errors() -> Iterator[None]:
    """Convert ObjectStoreError to CasstatError."""
    try:
        yield
    except ObjectStoreError as error:
        raise CasstatError(str(error)) from None


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
    try:
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
    except ObjectStoreError as error:
        raise CasstatError(str(error)) from None
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: {one_line(error.strerror or error)}") from None
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
        try:
            objects = [item for item in store.objects() if PurePosixPath(item.key).name in names]
            download_recordings(store, objects, Path(folder))
        except ObjectStoreError as error:
            raise CasstatError(str(error)) from None
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
        try:
            for path in sorted(output.folder.rglob("*")):
                if path.is_file():
                    store.write_file(path.relative_to(output.folder).as_posix(), path)
        except ObjectStoreError as error:
            raise CasstatError(str(error)) from None
