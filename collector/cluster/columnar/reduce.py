"""A node's recording on a grid of times, a block of lines at once: what `grid.intervals` returns, a great deal faster.

It needs numpy and orjson, which come with casstat[analysis] and are never loaded while sampling.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from collector.cluster.columnar.arrays import Bools, Floats, Ints
from collector.cluster.columnar.decode import Block, UnsupportedError, blocks
from collector.cluster.columnar.last_readings import LastReadings
from collector.cluster.columnar.node_columns import IntervalSums, NodeColumns
from collector.cluster.columnar.series_rates import Rates, rates_of
from collector.cluster.grid import Grid
from collector.cluster.node_intervals import shared_name
from collector.cluster.recordings import Recording
from collector.journal.footer import Footer
from collector.journal.frames import Damage
from collector.journal.header import Header
from collector.journal.read_limits import MAX_SERIES, SeriesLimit
from collector.journal.reader import lines_of
from collector.journal.tick_order import Integrity, TickOrder
from collector.journal.validation import MALFORMED
from collector.model.metric import Kind, Series
from collector.model.rates import restart_event, tick_events
from collector.model.snapshot import Event, Tick


def reduced(recording: Recording, grid: Grid, offset_s: float, max_series: int = MAX_SERIES) -> NodeColumns:
    """Return a node on the grid; its clock is ahead by `offset_s`.

    Raises OSError, UnsupportedError, TooManySeriesError.
    """
    building = _Building(grid, offset_s, SeriesLimit(max_series, recording.node))
    for session in recording.sessions:
        building.begin()
        for path in session.files:
            building.read(path, session.head.session)
    return building.column(recording.node, recording.sessions[-1].head)


@dataclass
class _Part:
    """What one block adds: to which intervals, of which series."""

    places: Ints
    counters: tuple[list[Series], Floats, Floats]
    gauges: tuple[list[Series], Ints, Floats, Floats, Floats]
    histograms: list[tuple[Series, int, Ints, Ints]]
    elapsed: dict[str, Floats]


class _Building:
    def __init__(self, grid: Grid, offset_s: float, limit: SeriesLimit) -> None:
        self._grid = grid
        self._limit = limit
        self._offset_s = offset_s
        self._parts: list[_Part] = []
        self._texts: dict[int, dict[Series, str]] = {}
        self._events: dict[int, list[Event]] = {}
        self._ticks: dict[int, list[Tick]] = {}
        self._units: dict[str, str] = {}
        self._meanings: dict[str, object] = {}
        self._carry: LastReadings = {}
        self._begins = True
        self._sequence = TickOrder()
        self._integrity = Integrity()

    def begin(self) -> None:
        """Begin with a session: its first tick tells of nothing before it."""
        self._end()
        self._carry, self._begins = {}, True

    def _end(self) -> None:
        """End a session."""
        self._integrity += self._sequence.integrity()
        self._sequence = TickOrder()

    def read(self, path: Path, session: str) -> None:
        """Take what a file has of a session. Raises OSError."""
        for each in blocks(lines_of(path), self._limit):
            if isinstance(each, Damage):
                self._integrity += Integrity(damaged=1)
            elif isinstance(each, Footer):
                if each.session == session:
                    self._sequence.end(each)
            elif each.head.session == session and not is_repeated(each, self._sequence):
                try:
                    with np.errstate(over="ignore"):
                        self._take(each)
                except MALFORMED as error:
                    raise UnsupportedError(str(error)) from None

    def _take(self, block: Block) -> None:
        head = block.head
        found = rates_of(block, self._carry, head.catalogue)
        for name, metric in head.catalogue.items():
            self._units[name] = metric.unit
            if self._meanings.setdefault(name, metric.meaning) != metric.meaning:
                raise UnsupportedError(f"{name} means two things")
        places = [self._grid.index_of(tick.time_s - self._offset_s, head.interval_s) for tick in block.ticks]
        if self._begins:
            places[0], self._begins = None, False
        lines = [line for line, place in enumerate(places) if place is not None]
        if not lines:
            return
        for line in lines:
            self._note(line, places[line] or 0, block, found)
        order = sorted(lines, key=lambda line: places[line] or 0)
        where = np.asarray([places[line] for line in order], np.int64)
        starts = np.nonzero(np.diff(where, prepend=where[0] - 1))[0]
        self._parts.append(_part(block, found, np.asarray(order), where[starts], starts))

    def _note(self, line: int, place: int, block: Block, found: Rates) -> None:
        """Take up what is no number."""
        tick = block.ticks[line]
        self._ticks.setdefault(place, []).append(tick)
        events = self._events.setdefault(place, [])
        events += tick_events(tick)
        events += block.events[line]
        events += [Event("disagreement", text) for at, text in found.wrong if at == line]
        if line in found.anew:
            events.append(restart_event(found.anew[line]))
        texts = self._texts.setdefault(place, {})
        for column, text in found.texts.get(line, ()):
            texts[shared_name(block.head, found.keys[column][1])] = text

    def column(self, node: str, head: Header) -> NodeColumns:
        """Return what was taken."""
        self._end()
        places = sorted(self._ticks)
        row = {place: number for number, place in enumerate(places)}
        sums, elapsed = IntervalSums(), dict[str, Floats]()
        for part in self._parts:
            rows = np.asarray([row[place] for place in part.places.tolist()], np.int64)
            _add(sums, elapsed, part, rows, len(places))
        return NodeColumns(
            node,
            head,
            places,
            sums,
            self._units,
            elapsed,
            [self._texts.get(place, {}) for place in places],
            [self._events.get(place, []) for place in places],
            [max(tick.late_s for tick in self._ticks[place]) for place in places],
            [sum(tick.missed for tick in self._ticks[place]) for place in places],
            [len(self._ticks[place]) for place in places],
            self._integrity,
        )


def is_repeated(block: Block, sequence: TickOrder) -> bool:
    """Return whether the lines of a block are repeats. Raises UnsupportedError where only some of them are."""
    count = len(block.ticks)
    repeated = sequence.take(block.head.session, block.start, block.first, count)
    if 0 < repeated < count:
        raise UnsupportedError("a part of a frame is repeated")
    return repeated > 0


def _part(block: Block, found: Rates, order: Ints, places: Ints, starts: Ints) -> _Part:
    """Add up a block's lines, given in the `order` of their intervals, each of which begins at one of `starts`."""
    metrics = block.head.catalogue
    kinds = [metrics[series[0]].kind if series[0] in metrics else None for _, series in found.keys]
    scale = np.asarray([metrics[s[0]].scale if s[0] in metrics else 1.0 for _, s in found.keys], np.float64)
    names = [shared_name(block.head, series) for _, series in found.keys]

    def of(kind: Kind) -> Ints:
        return np.asarray([place for place, each in enumerate(kinds) if each is kind], np.int64)

    def summed(matrix: Floats, where: Bools) -> Floats:
        return np.add.reduceat(np.where(where, matrix, 0.0), starts, axis=0)

    cells = np.ix_(order, of(Kind.COUNTER))
    valid = found.valid[cells]
    counters = [names[place] for place in of(Kind.COUNTER)]
    increase = summed(found.increase[cells], valid) * scale[of(Kind.COUNTER)]
    elapsed = summed(found.elapsed[cells], valid)
    times = np.where(valid, found.elapsed[cells], np.inf)
    sources = [found.keys[place][0] for place in of(Kind.COUNTER)]
    covered = {}
    for source in dict.fromkeys(sources):
        least = times[:, [place for place, each in enumerate(sources) if each == source]].min(axis=1)
        covered[source] = np.add.reduceat(np.where(np.isinf(least), 0.0, least), starts)
    cells = np.ix_(order, of(Kind.GAUGE))
    known, values = found.known[cells], found.values[cells] * scale[of(Kind.GAUGE)]
    gauges = (
        [names[place] for place in of(Kind.GAUGE)],
        np.add.reduceat(known.astype(np.int64), starts, axis=0),
        summed(values, known),
        np.minimum.reduceat(np.where(known, values, np.inf), starts, axis=0),
        np.maximum.reduceat(np.where(known, values, -np.inf), starts, axis=0),
    )
    bucketed = [place for place in found.lengths if kinds[place] is Kind.HISTOGRAM]
    histograms = _histograms(found, bucketed, names, order, starts)
    return _Part(places, (counters, increase, elapsed), gauges, histograms, covered)


def _histograms(
    found: Rates, bucketed: list[int], names: list[Series], order: Ints, starts: Ints
) -> list[tuple[Series, int, Ints, Ints]]:
    line, column, bucket, gain = found.buckets
    interval = np.full(len(found.there), -1, np.int64)
    interval[order] = np.searchsorted(starts, np.arange(len(order)), side="right") - 1
    parts = []
    for place in bucketed:
        length = found.lengths[place]
        mine = (column == place) & (interval[line] >= 0)
        cell = interval[line[mine]] * length + bucket[mine]
        counts = np.bincount(cell, gain[mine], len(starts) * length).astype(np.int64).reshape(len(starts), length)
        number = np.add.reduceat(found.counted[order, place].astype(np.int64), starts)
        parts.append((names[place], length, number, counts))
    return parts


def _add(sums: IntervalSums, elapsed: dict[str, Floats], part: _Part, rows: Ints, height: int) -> None:
    """Add what a block says; no interval is twice in one."""
    for place, series in enumerate(part.counters[0]):
        if series not in sums.counters:
            sums.counters[series] = np.zeros(height), np.zeros(height)
        for whole, each in zip(sums.counters[series], part.counters[1:], strict=True):
            whole[rows] += each[:, place]
    names, number, total, least, most = part.gauges
    for place, series in enumerate(names):
        if series not in sums.gauges:
            empty = np.full(height, np.inf)
            sums.gauges[series] = np.zeros(height, np.int64), np.zeros(height), empty, -empty
        of = sums.gauges[series]
        of[0][rows] += number[:, place]
        of[1][rows] += total[:, place]
        of[2][rows] = np.minimum(of[2][rows], least[:, place])
        of[3][rows] = np.maximum(of[3][rows], most[:, place])
    for series, length, told, counts in part.histograms:
        layouts = sums.histograms.setdefault(series, {})
        if length not in layouts:
            layouts[length] = np.zeros(height, np.int64), np.zeros((height, length), np.int64)
        layouts[length][0][rows] += told
        layouts[length][1][rows] += counts
    for source, covered in part.elapsed.items():
        elapsed.setdefault(source, np.zeros(height))[rows] += covered
