"""Reduces a node's recording to the intervals of grids, one block at a time.

Requires numpy and orjson (casstat[analysis]). Sampling processes never load this module.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, TypeVar, cast

import numpy as np

from collector.merge.aggregation import shared_name
from collector.merge.clock_correction import ClockCorrection, with_reference_time
from collector.merge.columnar.decode import Block
from collector.merge.columnar.session_rates import BlockRates, SessionRates
from collector.merge.coverage import NodeTick, has_failed, unknown_times
from collector.merge.grid import Grid
from collector.merge.merge_job import Job
from collector.merge.node_columns import Array, Bools, Floats, IntervalSums, Ints, NodeColumns, Totals, as_slice
from collector.merge.recordings import Recording
from collector.model.metric import Kind, Metric, Series
from collector.model.rates import restart_event, tick_events
from collector.model.snapshot import Event, Tick
from collector.node.metrics.requests import CONDITIONAL_WRITE, ERRORS, REQUESTS
from collector.node.metrics.separate_writes import NEEDS, READ, SEPARATE_WRITES, VARIANT, WRITES
from collector.recording.header import Header, SeriesLimit
from collector.recording.reader import Integrity

Item = TypeVar("Item")


def reduced(recording: Recording, jobs: Sequence[Job[Any]]) -> Iterator[NodeColumns]:
    """Yield a node's recording as intervals of each job's grid; the jobs have the same clock and the same `max_series`.

    The sums contain all series of the wanted metrics, and of the counters that belong to their histograms.

    Metrics whose kind or unit differs between the node's recordings are left out. Raises OSError and
    TooManySeriesError.
    """
    reductions = [_Reduction(job.grid, job.wanted) for job in jobs]
    limit = SeriesLimit(jobs[0].max_series, recording.node)
    reader = _NodeReader(jobs[0].clock_of(recording), reductions)
    for session in recording.sessions:
        reader.add(SessionRates(session, limit, reader.names))
    reductions.reverse()
    for job in jobs:
        # The sums of the blocks of each job are discarded as soon as its columns have been made.
        yield reductions.pop().columns(reader, recording.node, recording.sessions[-1].head, job.observed)


@dataclass
class _BlockSums:
    """The sums over one block; each array has one row per interval in `indices`."""

    indices: Ints
    counters: tuple[list[Series], Floats, Floats]
    gauges: tuple[list[Series], Ints, Floats, Floats, Floats]
    histograms: list[tuple[Series, int, Ints, Ints]]
    elapsed: dict[str, Floats]


class _NodeReader:
    """Reads a node's sessions, and passes the rates of each block to the reductions.

    names        the metrics that the reductions need; None for all.
    metrics      the first definition of each metric.
    conflicting  the metrics whose kind or unit differs between blocks.
    all_ticks    all ticks so far.
    integrity    the defects in the files.
    """

    def __init__(self, clock: ClockCorrection, reductions: list["_Reduction"]) -> None:
        self.metrics: dict[str, Metric] = {}
        self.conflicting: set[str] = set()
        self.all_ticks: list[NodeTick] = []
        self.integrity = Integrity()
        self._clock = clock
        # Not a copy, because the caller removes those that it no longer needs.
        self._reductions = reductions
        names = [reduction.names for reduction in reductions]
        self.names = None if None in names else {name for of_reduction in names for name in of_reduction or ()}

    def add(self, session: SessionRates) -> None:
        """Add a session; its first tick has no previous reading. Raises OSError and TooManySeriesError."""
        begins = True
        for block, rates in session.blocks():
            for name, metric in block.head.catalogue.items():
                known = self.metrics.setdefault(name, metric)
                if known is not metric and (known.kind, known.unit) != (metric.kind, metric.unit):
                    self.conflicting.add(name)
            ticks = self._node_ticks(block, rates)
            self.all_ticks += ticks
            events = {line: self._events_of(line, block, rates) for line in _eventful_lines(block, rates)}
            with np.errstate(over="ignore"):
                matrices = _BlockMatrices(block, rates, _with_counters(block.head.catalogue, self.names))
                for reduction in self._reductions:
                    reduction.add(block, rates, matrices, ticks, events, begins=begins)
            begins = False
        self.integrity += session.integrity

    def _node_ticks(self, block: Block, rates: BlockRates) -> list[NodeTick]:
        sources = block.head.sources
        zeros = np.zeros(len(block.ticks))
        covers_s = np.max([zeros, *(rates.covered.get(source, zeros) for source in sources)], axis=0).tolist()
        return [
            NodeTick(
                block.clock_at(line, self._clock).reference_s(tick.time_s),
                block.head.interval_s,
                covered_s,
                bool(block.events[line]) and has_failed(block.head, block.events[line]),
                line in rates.restarted and not set(sources).isdisjoint(rates.restarted[line]),
            )
            for line, (tick, covered_s) in enumerate(zip(block.ticks, covers_s, strict=True))
        ]

    def _events_of(self, line: int, block: Block, rates: BlockRates) -> list[Event]:
        events = tick_events(block.ticks[line])
        events += [with_reference_time(event, block.clock_at(line, self._clock)) for event in block.events[line]]
        events += [Event("disagreement", text) for at, text in rates.histograms.disagreements if at == line]
        if line in rates.restarted:
            events.append(restart_event(rates.restarted[line]))
        return events


class _Reduction:
    """The sums for one grid.

    names  the metrics that it needs; None for all.
    """

    def __init__(self, grid: Grid, wanted: Collection[str | Series] | None) -> None:
        self.names = None if wanted is None else {name if isinstance(name, str) else name[0] for name in wanted}
        self._needs_separate_writes = self.names is None or REQUESTS in self.names
        if self.names is not None and self._needs_separate_writes:
            self.names |= NEEDS
        self._grid = grid
        self._parts: list[_BlockSums] = []
        self._texts: dict[int, dict[Series, str]] = {}
        self._outside: dict[Series, str] = {}
        self._events: dict[int, list[Event]] = {}
        self._ticks: dict[int, list[Tick]] = {}

    def add(
        self,
        block: Block,
        rates: BlockRates,
        matrices: "_BlockMatrices",
        ticks: Sequence[NodeTick],
        events: Mapping[int, Sequence[Event]],
        *,
        begins: bool,
    ) -> None:
        """Add a block, with its events by line; `begins` states whether its first line is the first of a session."""
        covers_s = np.max([np.zeros(len(block.ticks)), *rates.covered.values()], axis=0).tolist()
        indices = [
            self._grid.index_of(tick.time_s, block.head.interval_s, covered_s)
            for tick, covered_s in zip(ticks, covers_s, strict=True)
        ]
        if begins:
            indices[0] = None
        lines = [line for line, index in enumerate(indices) if index is not None]
        self._add_outside(block, rates, indices, 0 if self._ticks else lines[0] if lines else len(indices))
        if not lines:
            return
        for line in lines:
            self._ticks.setdefault(indices[line] or 0, []).append(block.ticks[line])
        for line, of_line in events.items():
            index = indices[line]
            if index is not None:
                self._events.setdefault(index, []).extend(of_line)
        order = sorted(lines, key=lambda line: indices[line] or 0)
        interval_indices = np.asarray([indices[line] for line in order], np.int64)
        starts = np.nonzero(np.diff(interval_indices, prepend=interval_indices[0] - 1))[0]
        self._add_texts(block, rates, np.asarray(order), interval_indices[starts], starts)
        # Usually, the lines are in order, and selecting them with a slice costs nothing.
        rows = as_slice(np.asarray(order)) if order == lines else np.asarray(order)
        metrics = _with_counters(block.head.catalogue, self.names)
        self._parts.append(_block_sums(matrices, metrics, rates, rows, interval_indices[starts], starts))
        if self._needs_separate_writes and (separate := _separate_writes(rates)) is not None:
            names, increase, elapsed = self._parts[-1].counters
            more, more_elapsed = (np.add.reduceat(lines[order], starts)[:, None] for lines in separate)
            counters = [*names, SEPARATE_WRITES], np.hstack([increase, more]), np.hstack([elapsed, more_elapsed])
            self._parts[-1] = replace(self._parts[-1], counters=counters)

    def _add_texts(self, block: Block, rates: BlockRates, order: Ints, indices: Ints, starts: Ints) -> None:
        """Add the last text of each interval; the arguments are as in `_block_sums`."""
        for column_index, changes in rates.texts.items():
            name = shared_name(block.head, rates.keys[column_index][1])
            last_lines = np.maximum.reduceat(np.where(rates.present[order, column_index], order, -1), starts)
            lines = [line for line, _ in changes]
            for index, line in zip(indices.tolist(), last_lines.tolist(), strict=True):
                if line >= 0:
                    self._texts.setdefault(index, {})[name] = changes[bisect_right(lines, line) - 1][1]

    def _add_outside(self, block: Block, rates: BlockRates, indices: Sequence[int | None], begin: int) -> None:
        """Add the texts on lines that belong to no interval; the first interval begins at the line `begin`."""
        others = np.asarray([line for line, index in enumerate(indices) if index is None], np.int64)
        if not len(others):
            return
        for column_index, changes in rates.texts.items():
            name = shared_name(block.head, rates.keys[column_index][1])
            known = others[rates.present[others, column_index]]
            before = known[known < begin]
            if len(before) or (len(known) and name not in self._outside):
                line = int(before[-1] if len(before) else known[0])
                self._outside[name] = changes[bisect_right(changes, line, key=itemgetter(0)) - 1][1]

    def columns(self, reader: _NodeReader, node: str, head: Header, observed: tuple[float, float]) -> NodeColumns:
        """Return the node's columns once `reader` has read all files; `observed` is as in `Job`."""
        indices = sorted(self._ticks)
        row = {index: number for number, index in enumerate(indices)}
        height, histograms = len(indices), dict[Series, dict[int, tuple[Ints, Ints]]]()
        counters, gauges = Totals(np.add, np.add), Totals(np.add, np.add, np.minimum, np.maximum)
        elapsed = Totals(np.add)
        for part in self._parts:
            rows = as_slice(np.asarray([row[index] for index in part.indices.tolist()], np.int64))
            for totals, (names, *matrices) in ((counters, part.counters), (gauges, part.gauges)):
                for column_index, series in enumerate(names):
                    totals.add(series, height, rows, *(matrix[:, column_index] for matrix in matrices))
            for series, length, lines_known, counts in part.histograms:
                layouts = histograms.setdefault(series, {})
                if length not in layouts:
                    layouts[length] = np.zeros(height, np.int64), np.zeros((height, length), np.int64)
                layouts[length][0][rows] += lines_known
                layouts[length][1][rows] += counts
            for source, times_s in part.elapsed.items():
                elapsed.add(source, height, rows, times_s)

        def clear(items: Mapping[Series, Item]) -> dict[Series, Item]:
            return {series: item for series, item in items.items() if series[0] not in reader.conflicting}

        return NodeColumns(
            node,
            head,
            self._grid,
            indices,
            IntervalSums(clear(counters.arrays), clear(gauges.arrays), clear(histograms)),
            {name: metric.unit for name, metric in reader.metrics.items()},
            {source: total_s for source, (total_s,) in elapsed.arrays.items()},
            [clear(self._texts.get(index, {})) for index in indices],
            [self._events.get(index, []) for index in indices],
            [max(tick.late_s for tick in self._ticks[index]) for index in indices],
            [sum(tick.missed for tick in self._ticks[index]) for index in indices],
            [len(self._ticks[index]) for index in indices],
            reader.integrity,
            clear(self._outside),
            reader.all_ticks,
            unknown_times(reader.all_ticks, self._grid, indices, observed, paced=head.paced),
        )


def _eventful_lines(block: Block, rates: BlockRates) -> list[int]:
    """Return the lines with events, in ascending order."""
    lines = {line for line, tick in enumerate(block.ticks) if tick.missed or tick.suspended_s}
    lines |= {line for line, events in enumerate(block.events) if events}
    return sorted(lines | {line for line, _ in rates.histograms.disagreements} | rates.restarted.keys())


def _with_counters(catalogue: Mapping[str, Metric], names: Collection[str] | None) -> Set[str]:
    """Return the names of metrics, and of the counters of those that are histograms; None stands for all names."""
    if names is None:
        return catalogue.keys()
    metrics = [catalogue[name] for name in names if name in catalogue]
    needed = {name for metric in metrics for name in (metric.name, metric.count, metric.total)}
    return needed & catalogue.keys()


class _BlockMatrices:
    """The numbers of a block from which the sums of all jobs are made, with a row for each line.

    names, kinds      the shared name and the kind of each column of the block's rates.
    counters, gauges  the numbers of the columns with counters and with gauges, which are the columns of the matrices.
    """

    def __init__(self, block: Block, rates: BlockRates, metrics: Collection[str]) -> None:
        catalogue = block.head.catalogue
        self.kinds = kinds = [catalogue[series[0]].kind if series[0] in metrics else None for _, series in rates.keys]
        self.names = [shared_name(block.head, series) for _, series in rates.keys]
        self.counters, self.gauges = (
            np.asarray([column_index for column_index, other in enumerate(kinds) if other is kind], np.int64)
            for kind in (Kind.COUNTER, Kind.GAUGE)
        )
        scale = np.asarray([catalogue[s[0]].scale if s[0] in metrics else 1.0 for _, s in rates.keys], np.float64)
        self.scale = scale[self.counters]
        valid = rates.valid.take(self.counters, axis=1)
        self.increase: Floats = np.where(valid, rates.increase.take(self.counters, axis=1), 0.0)
        self.elapsed: Floats = np.where(valid, rates.elapsed.take(self.counters, axis=1), 0.0)
        known = rates.known.take(self.gauges, axis=1)
        values: Floats = rates.values.take(self.gauges, axis=1) * scale[self.gauges]
        self.known: Ints = known.astype(np.int64)
        self.values: Floats = np.where(known, values, 0.0)
        self.lowest: Floats = np.where(known, values, np.inf)
        self.highest: Floats = np.where(known, values, -np.inf)


def _block_sums(
    matrices: _BlockMatrices,
    metrics: Collection[str],
    rates: BlockRates,
    order: slice | Ints,
    indices: Ints,
    starts: Ints,
) -> _BlockSums:
    """Return a block's sums for the series of `metrics`.

    `order` sorts the block's lines by interval; `starts` contains the index in `order` at which each interval begins.
    """

    def wanted(columns: Ints) -> Ints:
        of_metrics = [rates.keys[column_index][1][0] in metrics for column_index in columns.tolist()]
        return np.nonzero(np.asarray(of_metrics, bool))[0]

    def reduced_by(reduce: np.ufunc, matrix: Array, columns: Ints) -> Array:
        # Selecting columns takes time in proportion to the rows, which are fewer afterwards.
        if 2 * len(columns) < matrix.shape[1]:
            return cast(Array, reduce.reduceat(matrix[order].take(columns, axis=1), starts, axis=0))
        return cast(Array, reduce.reduceat(matrix[order], starts, axis=0).take(columns, axis=1))

    def names(columns: Ints) -> list[Series]:
        return [matrices.names[column_index] for column_index in columns.tolist()]

    columns = wanted(matrices.counters)
    counters = (
        names(matrices.counters[columns]),
        reduced_by(np.add, matrices.increase, columns) * matrices.scale[columns],
        reduced_by(np.add, matrices.elapsed, columns),
    )
    columns = wanted(matrices.gauges)
    gauges = (
        names(matrices.gauges[columns]),
        reduced_by(np.add, matrices.known, columns),
        reduced_by(np.add, matrices.values, columns),
        reduced_by(np.minimum, matrices.lowest, columns),
        reduced_by(np.maximum, matrices.highest, columns),
    )
    elapsed_sums = {source: np.add.reduceat(times[order], starts) for source, times in rates.covered.items()}
    bucketed = [
        column_index
        for column_index in rates.histograms.lengths
        if matrices.kinds[column_index] is Kind.HISTOGRAM and rates.keys[column_index][1][0] in metrics
    ]
    histograms = _histograms(rates, bucketed, matrices.names, order, starts) if bucketed else []
    return _BlockSums(indices, counters, gauges, histograms, elapsed_sums)


def _separate_writes(rates: BlockRates) -> tuple[Floats, Floats] | None:
    """Return the increase of SEPARATE_WRITES and its elapsed time for each line, both 0 without a rate.

    Equivalent to `with_separate_writes`. Returns None if no line has a rate.
    """
    columns: defaultdict[Series, list[int]] = defaultdict(list)
    for column, (_, series) in enumerate(rates.keys):
        if series[0] in NEEDS:
            columns[series].append(column)

    def increase(metric: str, operation: str) -> Floats:
        """Return a counter's increase for each line; 0 if it is unknown."""
        selected = columns[metric, operation]
        counted: Floats = np.where(rates.valid[:, selected], rates.increase[:, selected], 0.0).sum(axis=1)
        return counted

    valid = rates.valid[:, columns[WRITES]]
    if not valid.any():
        return None
    writes = increase(REQUESTS, CONDITIONAL_WRITE)
    failed = sum(increase(metric, CONDITIONAL_WRITE) for metric in ERRORS.values())
    unavailable = increase(ERRORS["unavailables"], CONDITIONAL_WRITE) - increase(ERRORS["unavailables"], READ)
    before_reads = np.maximum(np.maximum(unavailable, writes - increase(REQUESTS, READ)), 0.0)
    is_v2: Bools = (rates.known[:, columns[VARIANT]] & (rates.values[:, columns[VARIANT]] == 1)).any(axis=1)
    separate = np.where(is_v2, writes, np.minimum(np.minimum(writes, failed), before_reads))
    return separate, np.where(valid, rates.elapsed[:, columns[WRITES]], 0.0).sum(axis=1)


def _histograms(
    rates: BlockRates, bucketed: list[int], names: list[Series], order: slice | Ints, starts: Ints
) -> list[tuple[Series, int, Ints, Ints]]:
    interval = np.full(len(rates.present), -1, np.int64)
    interval[order] = np.searchsorted(starts, np.arange(len(interval[order])), side="right") - 1
    buckets = rates.histograms.buckets
    increases = buckets.kept(interval[buckets.lines] >= 0)
    rows, ends = interval[increases.lines], np.append(0, np.cumsum(increases.sizes))
    parts = []
    for column_index in bucketed:
        length = rates.histograms.lengths[column_index]
        begin, end = np.searchsorted(increases.columns, (column_index, column_index + 1)).tolist()
        own = slice(ends[begin], ends[end])
        cells = np.repeat(rows[begin:end] * length, increases.sizes[begin:end]) + increases.buckets[own]
        counts = increases.added(own, cells, len(starts) * length).reshape(len(starts), length)
        number = np.add.reduceat(rates.histograms.counted[order, column_index].astype(np.int64), starts)
        parts.append((names[column_index], length, number, counts))
    return parts
