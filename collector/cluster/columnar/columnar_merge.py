"""The columnar merge: puts recordings onto one grid, using numpy and several processes."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import groupby

from collector.cluster.columnar.cluster_sums import ClusterSums
from collector.cluster.columnar.worker import interval_span, merge_nodes
from collector.cluster.merge_job import Job, Merged, NodeResult, Product, catalogue_of
from collector.cluster.recordings import Recording
from collector.garbage_collection import gc_paused

# The maximum number of recordings in a task that combines small groups. Starting a process for only a few recordings
# costs more than it saves.
NODES_PER_TASK = 8


def columnar_merge(
    recordings: Sequence[Recording], job: Job[Product], processes: int, done: Callable[[int], None]
) -> Merged[Product]:
    """Merge recordings onto one grid; call `done` with the number of newly merged nodes.

    Raises OSError, UnsupportedError and TooManySeriesError.
    """
    metrics = catalogue_of(recordings)
    span = interval_span(recordings, job)
    total = ClusterSums(span, metrics)
    results: dict[str, NodeResult[Product]] = {}
    tasks = _tasks(recordings)

    def add(nodes: Sequence[NodeResult[Product]], sums: ClusterSums) -> None:
        total.join(sums)
        results.update({node.node: node for node in nodes})
        done(len(nodes))

    if processes < 2 or len(tasks) < 2:
        for task in tasks:
            add(*merge_nodes(task, job, metrics, span))
    else:
        with ProcessPoolExecutor(processes) as pool:
            for future in as_completed([pool.submit(merge_nodes, task, job, metrics, span) for task in tasks]):
                add(*future.result())
    with gc_paused():
        cluster = total.cluster_samples(job.grid)
    indices = range(min(cluster), max(cluster) + 1) if cluster else range(0)
    return Merged(job.grid, tuple(results[recording.node] for recording in recordings), cluster, indices)


def _tasks(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """Return the recordings in groups; nodes on the same machine are in the same group."""
    by_machine = sorted(recordings, key=_machine)
    tasks: list[list[Recording]] = []
    for boot, group in groupby(by_machine, key=_machine):
        machine = sorted(group, key=lambda recording: recording.node)
        for unit in [machine] if boot else [[recording] for recording in machine]:
            if tasks and len(tasks[-1]) + len(unit) <= NODES_PER_TASK:
                tasks[-1] += unit
            else:
                tasks.append(unit)
    return tasks


def _machine(recording: Recording) -> str:
    """Return the boot id of the node's machine; "" if it is unknown."""
    return recording.sessions[-1].head.boot
