"""The reference merge for one node: puts its recorded ticks onto a grid, one tick at a time."""

from collections.abc import Iterable
from dataclasses import replace

from collector.merge.aggregation import shared_name
from collector.merge.clock_correction import ClockCorrection, with_reference_time
from collector.merge.coverage import NodeTick, has_failed, unknown_times
from collector.merge.grid import ANY_TIME, Grid, NodeInterval
from collector.model.metric import Series
from collector.model.rates import Readings, Summary, rates, update_readings
from collector.model.sample import Derived, Sample
from collector.model.snapshot import Event, Tick
from collector.node.metrics.separate_writes import with_separate_writes
from collector.recording.header import Header
from collector.recording.reader import Entry


def node_intervals(
    entries: Iterable[Entry], grid: Grid, clock: ClockCorrection, observed: tuple[float, float] = ANY_TIME
) -> tuple[dict[int, NodeInterval], dict[Series, str], list[NodeTick]]:
    """Return a node's intervals by index, its texts outside them (`NodeRun.outside`), and all of its ticks.

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
