"""Recordings in object storage that the workers of a cluster download and merge.

The paths of such recordings are relative to the URL, on every machine.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path, PurePosixPath
from shutil import rmtree
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, TypeVar

from collector.merge.clock_correction import ClockCorrection
from collector.merge.merge import Part, merge_nodes
from collector.merge.merge_job import Job
from collector.merge.node_columns import Ints
from collector.merge.recordings import Recording, Session, sessions
from collector.model.metric import Metric
from collector.recording.object_store import ObjectStore, StoredObject, parts_of
from collector.recording.recording_download import download_recordings
from collector.recording.writer import SUFFIX

Result = TypeVar("Result")


def journal_folders(objects: Sequence[StoredObject]) -> list[str]:
    """Return the directories, relative to the URL, that contain journals; "" for the URL itself."""
    folders = {node for node, _ in parts_of(objects)}
    folders |= {str(PurePosixPath(item.key).parent) for item in objects if item.key.endswith(SUFFIX)}
    return sorted("" if folder == "." else folder for folder in folders)


@dataclass(frozen=True)
class StoredRecordings:
    """A time range of the recordings at a URL; `job` is a name that no other merge uses."""

    url: str
    job: str
    from_s: float = -inf
    to_s: float = inf

    @property
    def copies(self) -> Path:
        """The directory for copies on this machine."""
        return Path(gettempdir()) / f"casstat-merge-{self.job}"

    def copy(self, folder: str) -> Path:
        """Return a local copy of a directory, and download it if there is none. Raises ObjectStoreError and OSError."""
        path = self.copies / folder
        if not path.is_dir():
            store = ObjectStore(self.url)
            path.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(prefix="casstat-") as new:
                copy = Path(new) / "copy"
                download_recordings(store, store.objects(folder), copy, self.from_s, self.to_s)
                # There may be no ticks in the time range, or another task may have been faster.
                with suppress(OSError):
                    (copy / folder).rename(path)
            path.mkdir(exist_ok=True)
        return path

    def remove_copies(self) -> None:
        rmtree(self.copies, ignore_errors=True)


def stored_sessions(stored: StoredRecordings, folder: str) -> tuple[list[Session], list[str]]:
    """Return the sessions in a directory with relative paths, and the notes of `sessions`.

    Raises ObjectStoreError and OSError.
    """
    recorded, notes = sessions([stored.copy(folder)])
    return [
        replace(session, files=tuple(file.relative_to(stored.copies) for file in session.files)) for session in recorded
    ], notes


def merge_stored(
    stored: StoredRecordings,
    recordings: Sequence[Recording],
    jobs: Sequence[Job[Any]],
    metrics: Mapping[str, Metric],
    spans: Sequence[Ints],
) -> list[Part]:
    """Copy recordings to this machine and call `merge_nodes`. Raises the same errors, and ObjectStoreError."""
    return merge_nodes([_copied(stored, recording) for recording in recordings], jobs, metrics, spans)


def with_copy(
    stored: StoredRecordings,
    task: Callable[[Recording, ClockCorrection], Result],
    recording: Recording,
    clock: ClockCorrection,
) -> Result:
    """Copy a recording to this machine and call `task`. Raises the same errors, ObjectStoreError and OSError."""
    return task(_copied(stored, recording), clock)


def _copied(stored: StoredRecordings, recording: Recording) -> Recording:
    """Copy a recording to this machine, and return it with the paths of the copy."""
    copied = []
    for session in recording.sessions:
        folder = "" if session.folder == Path() else str(session.folder)
        path = stored.copy(folder)
        copied.append(replace(session, files=tuple(path / file.name for file in session.files)))
    return replace(recording, sessions=tuple(copied))
