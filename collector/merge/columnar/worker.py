"""One task of the columnar merge: reduces a group of recordings to columns and sums them."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from collector.garbage_collection import gc_paused
from collector.merge.columnar.cluster_sums import ClusterSums
from collector.merge.columnar.reduce import reduced
from collector.merge.columns import Ints
from collector.merge.merge_job import Job, NodeResult, NodeRun, Product
from collector.merge.recordings import Recording
from collector.model.metric import Metric


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


@gc_paused()
def merge_nodes(
    recordings: Sequence[Recording], job: Job[Product], metrics: Mapping[str, Metric], indices: Ints
) -> tuple[list[NodeResult[Product]], ClusterSums]:
    """Return the result for each recording, and the sums over all of them.

    Raises OSError, UnsupportedError and TooManySeriesError.
    """
    sums = ClusterSums(indices, metrics)
    results = []
    for recording in recordings:
        node = reduced(recording, job.grid, job.clock_of(recording), job.max_series, job.wanted, job.observed)
        sums.add(node)
        run = NodeRun(
            node.node,
            node.head,
            partial(node.intervals, job.wanted),
            node.integrity,
            node,
            outside=node.outside,
            ticks=node.all_ticks,
        )
        results.append(job.result(run))
    return results, sums
