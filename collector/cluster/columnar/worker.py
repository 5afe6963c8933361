"""What a process does of a merge: some recordings, each as columns, and what they add up to."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import floor
from typing import TypeVar

import numpy as np

from collector.cluster.columnar.cluster_sums import ClusterSums
from collector.cluster.columnar.decode import Ints
from collector.cluster.columnar.reduce import column_of
from collector.cluster.grid import Grid
from collector.cluster.merge import Job, NodeResult, NodeRun
from collector.cluster.recordings import Recording
from collector.model.metric import Metric

Product = TypeVar("Product")


def span(recordings: Sequence[Recording], grid: Grid, offsets: Mapping[str, float]) -> Ints:
    """Return the intervals from the first tick of each session to its last; a clock that is set may lead to others."""
    found: list[tuple[int, int]] = []
    for recording in recordings:
        offset_s = offsets.get(recording.node, 0.0)
        for session in recording.sessions:
            begin_s = max(session.begin_s - offset_s, grid.begin_s)
            end_s = min(session.end_s - offset_s, grid.end_s)
            first, last = (floor(time_s / grid.interval_s) for time_s in (begin_s, end_s))
            # More intervals than bytes: a clock was set by years, and nothing is known of most of them.
            if 0 <= last - first <= sum(path.stat().st_size for path in session.files):
                found.append((first - 1, last))
    spans = [np.zeros(0, np.int64)]
    reached = -1
    for first, last in sorted(found):
        spans.append(np.arange(max(first, reached + 1), last + 1))
        reached = max(last, reached)
    return np.concatenate(spans)


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep Python from looking for garbage in circles: a merge makes none, and a third of its time went into that."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@uncollected()
def work(
    recordings: Sequence[Recording], job: Job[Product], metrics: Mapping[str, Metric], places: Ints
) -> tuple[list[NodeResult[Product]], ClusterSums]:
    """Return what is kept of each recording, and what they add up to.

    Raises OSError, StrangeError, TooManySeriesError.
    """
    sums = ClusterSums(places, metrics)
    results = []
    for recording in recordings:
        column = column_of(recording, job.grid, job.offsets.get(recording.node, 0.0), job.max_series)
        sums.add(column)
        run = NodeRun(column.node, column.head, column.bins(job.grid, job.wanted), column.integrity)
        results.append(job.result(run))
    return results, sums
