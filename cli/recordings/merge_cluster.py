"""Merges on a Dask cluster: its workers read the recordings from a shared directory or from object storage."""

import logging
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import click

from cli.errors import ANALYSIS, CasstatError, require_packages
from cli.parameters.parameter_types import bounds
from cli.parameters.recording_options import ObjectUrl
from cli.recordings.object_storage import last_name, open_store, store_errors
from cli.recordings.recording_arguments import MergeSettings
from collector.printable import count_text, one_line
from collector.recording.object_store import parts_of
from collector.recording.recording_download import download_recordings, recorded_times

if TYPE_CHECKING:
    from collector.merge.clock_correction import ClockCorrection
    from collector.merge.merge import StoredRecordings
    from collector.merge.merge_job import Job, Merged
    from collector.merge.recordings import Recording, Session

CONNECT_S = 10
# How often the workers are counted, and for how long there may be none before a merge fails: another may join.
WATCH_S, WITHOUT_WORKERS_S = 1.0, 30.0
ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?[^/\s]+:\d+")
# How often a task is run again after its worker was lost.
RETRIES = 3
# The maximum number of results that wait on this machine.
AHEAD = 64
Result = TypeVar("Result")


@dataclass(frozen=True)
class StoredSource:
    """Recordings in object storage.

    recordings  what the workers download.
    folders     the directories that contain journals, relative to the URL.
    root        the local directory with the objects that belong to no journal, such as those of a run.
    """

    recordings: "StoredRecordings"
    folders: Sequence[str]
    root: Path


@dataclass(frozen=True)
class MergeCluster:
    """A cluster that finds sessions and merges recordings.

    stored  where the recordings are; None if the workers can read the same paths as this machine.
    """

    executor: Executor
    stored: StoredSource | None = None

    def sessions(self, folders: Sequence[Path]) -> "tuple[list[Session], list[str]]":
        """Return the sessions in directories, and notes, like `collector.merge.recordings.sessions`.

        Raises OSError and ObjectStoreError.
        """
        from collector.merge.merge import stored_sessions
        from collector.merge.recordings import sessions

        stored = self.stored
        if stored is None:
            return sessions(folders)
        names = stored.folders
        if list(folders) != [stored.root]:
            names = [folder.relative_to(stored.root).as_posix() for folder in folders]
        recorded: list[Session] = []
        notes: list[str] = []
        for of_folder, of_notes in self.executor.map(partial(stored_sessions, stored.recordings), names):
            recorded += [
                replace(session, files=tuple(stored.root / file for file in session.files)) for session in of_folder
            ]
            notes += of_notes
        return recorded, notes

    def merge(
        self, recordings: "Sequence[Recording]", jobs: "Sequence[Job[Any]]", done: Callable[[int], None]
    ) -> "list[Merged[Any]]":
        """Merge recordings, like `collector.merge.merge.merge_all`.

        Raises OSError, ObjectStoreError and TooManySeriesError.
        """
        from collector.merge.merge import merge_all, merge_stored

        stored = self.stored
        if stored is None:
            return merge_all(recordings, jobs, 1, done, self.executor)
        relative = [_relative(recording, stored.root) for recording in recordings]
        merge_task = partial(merge_stored, stored.recordings)
        return merge_all(relative, jobs, 1, done, self.executor, merge_task)

    def results(
        self,
        task: "Callable[[Recording, ClockCorrection], Result]",
        recordings: "Sequence[Recording]",
        clocks: "Mapping[str, ClockCorrection]",
    ) -> "Iterator[Future[Result]]":
        """Yield the future result of `task` for each recording, in order, at most AHEAD of them in advance."""
        from collector.merge.merge import with_copy

        stored = self.stored
        futures: deque[Future[Result]] = deque()
        for recording in recordings:
            clock = clocks[recording.node]
            if stored is None:
                futures.append(self.executor.submit(task, recording, clock))
            else:
                relative = _relative(recording, stored.root)
                futures.append(self.executor.submit(with_copy, stored.recordings, task, relative, clock))
            if len(futures) > AHEAD:
                yield futures.popleft()
        yield from futures


def _relative(recording: "Recording", root: Path) -> "Recording":
    """Return a recording with paths relative to the URL."""
    return replace(
        recording,
        sessions=tuple(
            replace(session, files=tuple(file.relative_to(root) for file in session.files))
            for session in recording.sessions
        ),
    )


@contextmanager
def on_cluster(settings: MergeSettings, scheduler: str) -> Iterator[tuple[MergeSettings, MergeCluster]]:
    """Yield the cluster of a Dask scheduler, and the settings for a merge on it.

    Raises CasstatError and click.UsageError.
    """
    given: Sequence[Path | ObjectUrl] = settings.paths
    urls = [path for path in given if isinstance(path, ObjectUrl)]
    if urls and len(settings.paths) > 1:
        raise click.UsageError(f"{one_line(urls[0])}: cannot be combined with other paths")
    if urls and settings.keyspace:
        raise click.UsageError("--keyspace cannot be combined with --scheduler and a URL")
    with _connected(scheduler) as client, store_errors(), TemporaryDirectory(prefix="casstat-") as parent:
        executor = client.get_executor(pure=False, retries=RETRIES)
        if not urls:
            _require_same_files(client, settings.paths)
            paths = tuple(path.resolve() for path in settings.paths)
            yield replace(settings, paths=paths), MergeCluster(executor)
            return
        stored = _stored(urls[0], settings, Path(parent))
        try:
            yield replace(settings, paths=(stored.root,)), MergeCluster(executor, stored)
        finally:
            with suppress(Exception):
                # The copies are temporary files, and the cluster may be gone.
                client.run(stored.recordings.remove_copies)


def _stored(url: str, settings: MergeSettings, parent: Path) -> StoredSource:
    """Return the recordings at a URL, and download the other objects. Raises CasstatError and ObjectStoreError."""
    from collector.merge.merge import StoredRecordings, journal_folders

    store = open_store(url)
    objects, root = store.objects(), parent / last_name(store)
    folders = journal_folders(objects)
    if not folders:
        raise CasstatError(f"{store.name}: no recordings found")
    root.mkdir()
    prefixes = tuple(f"{folder}/" if folder else "" for folder in folders)
    download_recordings(store, [item for item in objects if not item.key.startswith(prefixes)], root)
    range_s = bounds(settings.begin, settings.end, *recorded_times(parts_of(objects)))
    return StoredSource(StoredRecordings(url, uuid4().hex, *range_s), folders, root)


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    """Connect to a scheduler, and check its workers. Raises CasstatError."""
    require_packages("--scheduler", "distributed")
    from distributed import Client, KilledWorker
    from distributed.comm.core import CommClosedError

    # The client logs errors that are reported here.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    name = one_line(scheduler)
    if not ADDRESS.fullmatch(scheduler):
        raise click.BadParameter(f"'{name}' is not an address (hint: use tcp://HOST:8786)", param_hint="--scheduler")
    try:
        client = Client(scheduler, timeout=CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        raise CasstatError(f"{name}: cannot connect to a scheduler: {one_line(error)}") from None
    watch = WorkerWatch(client)
    try:
        with client, watch:
            if problem := worker_problem(client):
                raise CasstatError(f"{name}: {problem}")
            yield client
    except ImportError as error:
        raise CasstatError(f"{name}: a worker lacks a package: {one_line(error)}") from None
    except (KilledWorker, CommClosedError, CancelledError, TimeoutError) as error:
        problem = watch.problem or f"the cluster failed: {one_line(error) or type(error).__name__}"
        raise CasstatError(f"{name}: {problem}") from None


def worker_problem(client: Any) -> str:
    """Return why the workers cannot merge: there are none, or they lack a package or this version of casstat; or ""."""
    versions = {name: client.run(version, name, on_error="return") for name in ("casstat", *ANALYSIS)}
    if not versions["casstat"]:
        return "the scheduler has no workers"
    for name, of_workers in versions.items():
        # Other errors are those of a worker that has just been lost.
        lacking = sorted(worker for worker, found in of_workers.items() if isinstance(found, PackageNotFoundError))
        if lacking:
            return f"{count_text(len(lacking), 'worker')} without the package {name}: {one_line(lacking[0])}"
    own = version("casstat")
    known = sorted((worker, other) for worker, other in versions["casstat"].items() if isinstance(other, str))
    others = [f"{worker} has {other}" for worker, other in known if other != own]
    if not others:
        return ""
    return f"{count_text(len(others), 'worker')} with another version of casstat than {own}: {one_line(others[0])}"


class WorkerWatch:
    """While it is entered: cancels the client's tasks once no worker can execute them, which Dask waits for.

    problem  why they were cancelled; "" if they were not.
    """

    def __init__(self, client: Any) -> None:
        self.problem = ""
        self._client = client
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _run(self) -> None:
        checked: set[str] = set()
        idle_s = 0.0
        while not self.problem and not self._over.wait(WATCH_S):
            try:
                workers = set(
                    self._client.sync(self._client.scheduler.identity, callback_timeout=WITHOUT_WORKERS_S)["workers"]
                )
                # A worker may join later, such as the replacement of one that was lost.
                self.problem = worker_problem(self._client) if workers - checked else ""
            except Exception as error:
                # The client library raises errors of many types if the scheduler is gone.
                self.problem = f"the scheduler does not answer: {one_line(error) or type(error).__name__}"
                break
            checked |= workers
            idle_s = 0.0 if workers else idle_s + WATCH_S
            if idle_s > WITHOUT_WORKERS_S:
                self.problem = f"the scheduler has had no workers for {WITHOUT_WORKERS_S:g} s"
        if self.problem and not self._over.is_set():
            self._client.loop.add_callback(self._cancel)

    def _cancel(self) -> None:
        for state in list(self._client.futures.values()):
            state.cancel()


def _require_same_files(client: Any, paths: Sequence[Path]) -> None:
    """Raise CasstatError unless the workers can read the paths."""
    absolute = [path.resolve() for path in paths]
    for worker, missing in sorted(client.run(_missing, absolute).items()):
        if missing:
            raise CasstatError(
                f"{missing[0]}: the worker {one_line(worker)} cannot read it (hint: use a shared directory or S3)"
            )


def _missing(paths: Sequence[Path]) -> list[str]:
    return [str(path) for path in paths if not path.exists()]
