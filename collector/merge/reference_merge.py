"""The reference merge: puts recordings onto one grid, one tick at a time. The columnar merge has the same result."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from collector.merge import aggregation
from collector.merge.aggregation import placement_of
from collector.merge.clock_correction import ClockCorrection
from collector.merge.grid import ANY_TIME, ClusterSample, Grid
from collector.merge.merge_job import Job, Merged, NodeRun, Product, catalogue_of, folders_of
from collector.merge.node_intervals import node_intervals
from collector.merge.recordings import Recording
from collector.model.metric import Metric, Series
from collector.model.sample import Sample
from collector.model.snapshot import Tick
from collector.recording.frames import Damage
from collector.recording.header import MAX_SERIES, SeriesLimit
from collector.recording.reader import Entry, Integrity, TickOrder

Spans = Mapping[Series, tuple[int, int]]
"""For each of a node's series, the indices of the first and last interval that contain it."""


def reference_merge(
    recordings: Sequence[Recording], job: Job[Product], done: Callable[[int], None] = lambda _: None
) -> Merged[Product]:
    """Merge recordings onto one grid; call `done(1)` after each node. Raises OSError and TooManySeriesError."""
    job = job.observing(recordings)
    runs, results = [], []
    for recording in recordings:
        run = node_run(recording, job.grid, job.clock_of(recording), job.max_series, job.observed)
        runs.append(run)
        results.append(job.result(run))
        done(1)
    known_indices = sorted({index for run in runs for index in run.intervals})
    indices = range(known_indices[0], known_indices[-1] + 1) if known_indices else range(0)
    metrics = catalogue_of(recordings)
    spans = [summed_spans(metrics, run) for run in runs]
    cluster = {index: cluster_sample(metrics, runs, spans, job.grid, index) for index in known_indices}
    return Merged(job.grid, tuple(results), cluster, indices, folders_of(recordings))


def node_run(
    recording: Recording,
    grid: Grid,
    clock: ClockCorrection,
    max_series: int = MAX_SERIES,
    observed: tuple[float, float] = ANY_TIME,
) -> NodeRun:
    """Return a node's run on the grid; the arguments are as in `Job`. Raises OSError and TooManySeriesError."""
    limit = SeriesLimit(max_series, recording.node)
    integrity = Integrity()

    def entries() -> Iterator[Entry]:
        nonlocal integrity
        for session in recording.sessions:
            order, damaged = TickOrder(), 0
            for record in order.filtered(session.read(limit)):
                if isinstance(record, Entry):
                    yield record
                else:
                    damaged += isinstance(record, Damage)
            integrity += order.integrity(damaged)

    intervals, outside, ticks = node_intervals(entries(), grid, clock, observed)
    head = recording.sessions[-1].head
    return NodeRun(recording.node, head, lambda: intervals, integrity, outside=outside, ticks=ticks)


def summed_spans(metrics: Mapping[str, Metric], node: NodeRun) -> Spans:
    """Return a node's spans for the gauges that are summed across nodes."""
    spans: dict[Series, tuple[int, int]] = {}
    for index, interval in node.intervals.items():
        for series, value in interval.sample.values.items():
            if isinstance(value, float) and aggregation.is_summed_over_nodes(metrics.get(series[0])):
                spans[series] = spans.get(series, (index, index))[0], index
    return spans


def cluster_sample(
    metrics: Mapping[str, Metric], nodes: Sequence[NodeRun], spans: Sequence[Spans], grid: Grid, index: int
) -> ClusterSample:
    """Return the cluster's sample for an interval; `spans` contains the `summed_spans` of each node."""
    samples: list[tuple[aggregation.Placement, Sample]] = []
    lacking: set[Series] = set()
    answered, down_s = 0, list[float]()
    for node, node_spans in zip(nodes, spans, strict=True):
        if (interval := node.intervals.get(index)) is not None:
            sample = _restricted(interval.sample, metrics)
            samples.append((placement_of(node.head), aggregation.over_interval(metrics, sample, interval, node.head)))
            if node.answered(interval.sample):
                answered += 1
                inside = {series for series, (first, last) in node_spans.items() if first < index < last}
                lacking |= inside - interval.sample.values.keys()
            elif interval.unknown_s:
                down_s.append(interval.unknown_s)
    once = aggregation.counted_once(metrics, samples)
    sample = aggregation.merged(metrics, once, Tick(grid.end_of(index)), lacking)
    return ClusterSample(sample, answered, len(down_s), max(down_s, default=0.0))


def _restricted(sample: Sample, metrics: Collection[str]) -> Sample:
    return replace(sample, values={series: value for series, value in sample.values.items() if series[0] in metrics})
