"""The merge: puts recordings onto one grid, using numpy and several processes.

Requires numpy and orjson (casstat[analysis]). Sampling processes never load this module. The workers of a cluster
download recordings in object storage, whose paths are relative to the URL on every machine.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import groupby
from math import inf
from pathlib import Path, PurePosixPath
from shutil import rmtree
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, TypeVar

import numpy as np

from collector.garbage_collection import gc_paused
from collector.merge.clock_correction import ClockCorrection
from collector.merge.columnar.cluster_sums import ClusterSums
from collector.merge.columnar.reduce import reduced
from collector.merge.merge_job import Job, Merged, NodeResult, NodeRun, Product, catalogue_of
from collector.merge.node_columns import Ints
from collector.merge.recordings import Recording, Session, sessions
from collector.model.metric import Metric
from collector.recording.object_store import ObjectStore, StoredObject, parts_of
from collector.recording.recording_download import download_recordings
from collector.recording.writer import SUFFIX

Part = tuple[list[NodeResult[Any]], ClusterSums]
"""What a job has for some of the recordings: the result for each of them, and the sums over all of them."""
MergeTask = Callable[[Sequence[Recording], Sequence[Job[Any]], Mapping[str, Metric], Sequence[Ints]], list[Part]]
"""`merge_nodes`, or a function that first copies the recordings to the machine on which it runs."""
# Up to this number of recordings, there is only one task, because starting processes costs more than it saves.
SINGLE_TASK_NODES = 8
# The maximum number of recordings in a task that combines small groups, and its maximum share of the remaining ones.
# The last tasks are small, so that all processes finish at about the same time.
NODES_PER_TASK, SHARE_PER_TASK = 16, 1 / 6


@gc_paused()
def merge_nodes(
    recordings: Sequence[Recording], jobs: Sequence[Job[Any]], metrics: Mapping[str, Metric], spans: Sequence[Ints]
) -> list[Part]:
    """Return each job's part, given the `interval_span` of each job; each recording is read once for all jobs.

    Raises OSError and TooManySeriesError.
    """
    parts: list[Part] = [
        ([], ClusterSums(span, metrics if job.has_cluster else {})) for job, span in zip(jobs, spans, strict=True)
    ]
    for recording in recordings:
        for job, (results, sums), node in zip(jobs, parts, reduced(recording, jobs), strict=True):
            sums.add(node)
            results.append(job.result(NodeRun(node, job.wanted)))
    return parts


def merge_all(
    recordings: Sequence[Recording],
    jobs: Sequence[Job[Any]],
    processes: int = 1,
    done: Callable[[int], None] = lambda _: None,
    executor: Executor | None = None,
    merge_task: MergeTask = merge_nodes,
) -> list[Merged[Any]]:
    """Return the result of each job, reading the recordings once; call `done` with the number of newly merged nodes.

    The jobs must have the same clocks and the same `max_series`.

    The tasks run in `executor`, such as a cluster, or else in local processes. `merge_task` replaces `merge_nodes` if
    the recordings are not where the tasks run. Raises OSError and TooManySeriesError.
    """
    jobs = [job.observing(recordings) for job in jobs]
    metrics = catalogue_of(recordings)
    spans = [interval_span(recordings, job) for job in jobs]
    totals = merge_nodes([], jobs, metrics, spans)
    tasks = _tasks(recordings)

    def add(parts: Sequence[Part]) -> None:
        for (results, total), (more, sums) in zip(totals, parts, strict=True):
            total.join(sums)
            results += more
        done(len(parts[0][0]))

    if executor is None and (processes < 2 or len(tasks) < 2):
        for task in tasks:
            add(merge_task(task, jobs, metrics, spans))
    else:
        with ProcessPoolExecutor(processes) if executor is None else nullcontext(executor) as pool:
            futures = deque(pool.submit(merge_task, task, jobs, metrics, spans) for task in tasks)
            # The order of the sums depends only on the recordings, so the result does too, to the last bit.
            while futures:
                add(futures.popleft().result())
    return [_merged(recordings, job, part) for job, part in zip(jobs, totals, strict=True)]


def _merged(recordings: Sequence[Recording], job: Job[Product], part: Part) -> Merged[Product]:
    results, total = part
    with gc_paused():
        cluster = total.cluster_samples(job.grid)
    indices = range(min(cluster), max(cluster) + 1) if cluster else range(0)
    by_name = {node.node: node for node in results}
    nodes = tuple(by_name[recording.node] for recording in recordings)
    return Merged(job.grid, nodes, cluster, indices, {recording.node: recording.folders for recording in recordings})


def _tasks(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """Return the recordings in groups; nodes on the same machine are in the same group."""
    by_machine = sorted(recordings, key=_machine)
    tasks: list[list[Recording]] = []
    remaining, limit = len(recordings), SINGLE_TASK_NODES
    for boot, group in groupby(by_machine, key=_machine):
        machine = sorted(group, key=lambda recording: recording.node)
        for unit in [machine] if boot else [[recording] for recording in machine]:
            if tasks and len(tasks[-1]) + len(unit) <= limit:
                tasks[-1] += unit
            else:
                tasks.append(unit)
                if len(recordings) > SINGLE_TASK_NODES:
                    limit = min(NODES_PER_TASK, int(remaining * SHARE_PER_TASK))
            remaining -= len(unit)
    return tasks


def _machine(recording: Recording) -> str:
    """Return the boot id of the node's machine; "" if it is unknown."""
    return recording.sessions[-1].head.boot


def interval_span(recordings: Sequence[Recording], job: Job[Product]) -> Ints:
    """Return the interval indices that the sessions span; ticks around a clock step may lie outside."""
    grid = job.grid
    ranges: list[tuple[int, int]] = []
    for recording in recordings:
        clock = job.clock_of(recording)
        for session in recording.sessions:
            begin_s, end_s = clock.reference_s(session.begin_s), clock.reference_s(session.end_s)
            if clock.segments:
                # The clock was set, so the first and the last tick do not limit the others.
                begin_s, end_s = grid.begin_s, grid.end_s
            indices = grid.indices_between(begin_s, end_s)
            # If a session spans more intervals than its files have bytes, the clock must have been stepped by years.
            # Most of the intervals would be empty, so omit the span.
            if indices and len(indices) <= session.size_bytes:
                ranges.append((indices.start, indices.stop))
    spans = [np.zeros(0, np.int64)]
    reached = 0
    for first, end in sorted(ranges):
        spans.append(np.arange(max(first, reached), end))
        reached = max(end, reached)
    return np.concatenate(spans)


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
