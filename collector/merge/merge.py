"""The merge: puts recordings onto one grid, using numpy and several processes.

Requires numpy and orjson (casstat[analysis]). Sampling processes never load this module.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext
from itertools import groupby
from typing import Any

import numpy as np

from collector.garbage_collection import gc_paused
from collector.merge.columnar.cluster_sums import ClusterSums
from collector.merge.columnar.reduce import reduced
from collector.merge.merge_job import Job, Merged, NodeResult, NodeRun, Product, catalogue_of
from collector.merge.node_columns import Ints
from collector.merge.recordings import Recording
from collector.model.metric import Metric

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


def merge(
    recordings: Sequence[Recording], job: Job[Product], processes: int = 1, done: Callable[[int], None] = lambda _: None
) -> Merged[Product]:
    """Merge recordings onto one grid; see `merge_all`."""
    return merge_all(recordings, [job], processes, done)[0]


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
