"""The reference merge: puts recordings onto one grid, one tick at a time, with the rates of the live line.

It defines the result of the columnar merge.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from collector.merge import aggregation
from collector.merge.aggregation import allowed_lag_s, placement_of, shared_name
from collector.merge.clock_correction import ClockCorrection, with_reference_time
from collector.merge.coverage import NodeTick, has_failed, unknown_times
from collector.merge.grid import ANY_TIME, ClusterSample, Grid, NodeInterval
from collector.merge.merge import merge_all
from collector.merge.merge_job import Job, Merged, NodeRun, Product, catalogue_of
from collector.merge.recordings import Recording
from collector.model.metric import Kind, Metric, Series
from collector.model.rates import Readings, Summary, rates, update_readings
from collector.model.snapshot import Derived, Event, Placement, Rate, Sample, Tick
from collector.node.metrics.separate_writes import with_separate_writes
from collector.recording.frames import Damage
from collector.recording.header import MAX_SERIES, Header, SeriesLimit
from collector.recording.reader import Entry, Integrity, TickOrder
from tests.collector.merge.interval_columns import columns_of, run_of

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
    folders = {recording.node: recording.folders for recording in recordings}
    return Merged(job.grid, tuple(results), cluster, indices, folders)


def merge(recordings: Sequence[Recording], job: Job[Product]) -> Merged[Product]:
    """Merge recordings with the columnar merge, as `reference_merge` does."""
    (merged,) = merge_all(recordings, [job])
    return merged


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
    definitions: dict[str, set[tuple[Kind, str]]] = {}
    head: Header | None = None

    def entries() -> Iterator[Entry]:
        nonlocal integrity, head
        for session in recording.sessions:
            order, damaged = TickOrder(), 0
            for record in order.filtered(session.read(limit)):
                if isinstance(record, Entry):
                    if record.head is not head:
                        head = record.head
                        for name, metric in head.catalogue.items():
                            definitions.setdefault(name, set()).add((metric.kind, metric.unit))
                    yield record
                else:
                    damaged += isinstance(record, Damage)
            integrity += order.integrity(damaged)

    intervals, outside, ticks = node_intervals(entries(), grid, clock, observed)
    # A metric whose kind or unit changes is left out.
    clear = {name for name, different in definitions.items() if len(different) == 1}
    intervals = {
        index: replace(interval, sample=_restricted(interval.sample, clear)) for index, interval in intervals.items()
    }
    outside = {series: text for series, text in outside.items() if series[0] in clear}
    last_head = recording.sessions[-1].head
    columns = columns_of(recording.node, last_head, grid, intervals)
    return run_of(replace(columns, integrity=integrity, outside=outside, all_ticks=ticks), intervals)


def node_intervals(
    entries: Iterable[Entry], grid: Grid, clock: ClockCorrection, observed: tuple[float, float] = ANY_TIME
) -> tuple[dict[int, NodeInterval], dict[Series, str], list[NodeTick]]:
    """Return a node's intervals by index, its texts outside them (`NodeColumns.outside`), and all of its ticks.

    `clock` corrects its times, and `observed` is the time range in which it should have been sampled.
    An increase that spans missed ticks counts towards the interval of the tick that ends it.
    """
    readings: Readings = {}
    builders: dict[int, _Builder] = {}
    outside: dict[Series, str] = {}
    ticks: list[NodeTick] = []
    session, paced = None, False
    for entry in entries:
        # The first tick of a session has no previous reading.
        is_first = entry.head.session != session
        if is_first:
            readings, session, paced = {}, entry.head.session, entry.head.paced
        sample = rates(entry.head.catalogue, readings, entry.snapshot)
        update_readings(readings, entry.snapshot)
        tick = entry.snapshot.tick
        covered_s = max(sample.elapsed_s.values(), default=0.0)
        tick_clock = clock.of_tick(entry.head.session, entry.number) if clock.segments else clock
        ticks.append(_node_tick(entry.head, tick_clock.reference_s(tick.time_s), sample))
        index = grid.index_of(ticks[-1].time_s, entry.head.interval_s, covered_s)
        if index is not None and not is_first:
            builders.setdefault(index, _Builder()).add(_shared(entry.head, tick_clock, with_separate_writes(sample)))
            continue
        texts = {series: value for series, value in sample.values.items() if isinstance(value, str)}
        outside = {**texts, **outside} if builders else {**outside, **texts}
    unknown_s = unknown_times(ticks, grid, sorted(builders), observed, paced=paced)
    intervals = {
        index: builder.build(grid.end_of(index), unknown_s.get(index, 0.0))
        for index, builder in sorted(builders.items())
    }
    return intervals, outside, ticks


class _Builder:
    def __init__(self) -> None:
        self._summary = Summary()
        self._events: list[Event] = []
        self._late_s = 0.0
        self._missed = 0
        self._ticks = 0

    def add(self, sample: Sample) -> None:
        self._summary.add(sample)
        self._events += sample.events
        self._late_s = max(self._late_s, sample.tick.late_s)
        self._missed += sample.tick.missed
        self._ticks += 1

    def build(self, end_s: float, unknown_s: float) -> NodeInterval:
        sample = self._summary.sample() or Sample("", Tick(end_s), {}, {})
        tick = Tick(end_s, self._late_s, self._missed)
        return NodeInterval(replace(sample, tick=tick, events=tuple(self._events)), self._ticks, unknown_s)


def _node_tick(head: Header, time_s: float, sample: Sample) -> NodeTick:
    covered_s = max((sample.elapsed_s.get(source, 0.0) for source in head.sources), default=0.0)
    restarted = any(
        event.kind == "restart" and source in event.text for event in sample.events for source in head.sources
    )
    return NodeTick(time_s, head.interval_s, covered_s, has_failed(head, sample.events), restarted)


def _shared(head: Header, clock: ClockCorrection, sample: Sample) -> Sample:
    """Return the sample with names shared by all nodes, and event times on the reference clock."""
    values: dict[Series, Derived] = {shared_name(head, series): value for series, value in sample.values.items()}
    events = tuple(with_reference_time(event, clock) for event in sample.events)
    return replace(sample, values=values, events=events)


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
    samples: list[tuple[Placement, Sample]] = []
    lacking: set[Series] = set()
    answered, down_s = 0, list[float]()
    for node, node_spans in zip(nodes, spans, strict=True):
        if (interval := node.intervals.get(index)) is not None:
            sample = _restricted(interval.sample, metrics)
            samples.append((placement_of(node.head), over_interval(metrics, sample, interval, node.head)))
            if node.answered(interval.sample):
                answered += 1
                inside = {series for series, (first, last) in node_spans.items() if first < index < last}
                lacking |= inside - interval.sample.values.keys()
            elif interval.unknown_s:
                down_s.append(interval.unknown_s)
    once = aggregation.counted_once(metrics, samples)
    sample = aggregation.merged(metrics, once, Tick(grid.end_of(index)), lacking)
    return ClusterSample(sample, answered, len(down_s), max(down_s, default=0.0))


def over_interval(catalogue: Mapping[str, Metric], sample: Sample, interval: NodeInterval, head: Header) -> Sample:
    """Return a node's sample for the cluster's row: its summed rates, and the time of its counters, cover the interval.

    Rates over different times must not be added up. A node that was down served nothing in that time, and the
    operations of one that was not sampled are unknown, so that the sum is at least their number divided by the time.
    """
    known_s = max((sample.elapsed_s.get(source, 0.0) for source in head.sources), default=0.0)
    unknown_s = interval.unknown_s
    values: dict[Series, Derived] = {}
    for series, value in sample.values.items():
        if isinstance(value, Rate):
            lag_s = allowed_lag_s(catalogue.get(series[0]), head, is_complete=not unknown_s)
            if known_s + unknown_s - value.elapsed_s > lag_s:
                values[series] = Rate(value.increase, value.elapsed_s, value.increase / (known_s + unknown_s))
    if not values and not unknown_s:
        return sample
    elapsed_s = {
        source: elapsed_s + unknown_s * (source in head.sources) for source, elapsed_s in sample.elapsed_s.items()
    }
    return replace(sample, values={**sample.values, **values}, elapsed_s=elapsed_s)


def _restricted(sample: Sample, metrics: Collection[str]) -> Sample:
    values = {series: value for series, value in sample.values.items() if series[0] in metrics}
    spread = {series: ends for series, ends in sample.spread.items() if series[0] in metrics}
    return replace(sample, values=values, spread=spread)
