"""What all nodes did together, from their columns: what `collector.cluster` says, for all intervals at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from collector import cluster, histogram
from collector.histogram import Buckets
from collector.merging.bins import Grid, shared
from collector.merging.blocks import Ints
from collector.merging.columns import Flags, Floats
from collector.merging.node_columns import Column
from collector.merging.together import Together
from collector.model import Derived, Metric, Rate, Sample, Series, Tick

Array = TypeVar("Array", Ints, Floats, Flags)


@dataclass
class ClusterSums:
    """Sums over nodes; every array has a row for each of the intervals `places`, which ascend.

    counters    gain, rate, longest time, nodes that know of it, nodes that gained anything.
    gauges      nodes that know of it, the sum of their means, the least and the greatest.
    histograms  by number of buckets the counts; `told` and `told_of` count the nodes that know of it, and those of
                them that gained anything.
    texts       what all say; None where they do not say the same.
    """

    places: Ints
    counters: dict[Series, tuple[Floats, Floats, Floats, Ints, Ints]] = field(default_factory=dict)
    gauges: dict[Series, tuple[Ints, Floats, Floats, Floats]] = field(default_factory=dict)
    histograms: dict[Series, dict[int, Ints]] = field(default_factory=dict)
    told: dict[Series, Ints] = field(default_factory=dict)
    told_of: dict[Series, Ints] = field(default_factory=dict)
    elapsed: dict[str, Floats] = field(default_factory=dict)
    texts: dict[int, dict[Series, str | None]] = field(default_factory=dict)
    answered: Ints = field(init=False)
    nodes: Ints = field(init=False)
    machines: dict[str, Flags] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.answered, self.nodes = self._ints(), self._ints()

    def _ints(self) -> Ints:
        return np.zeros(len(self.places), np.int64)

    def _floats(self, value: float = 0.0) -> Floats:
        return np.full(len(self.places), value)

    def add(self, column: Column, metrics: Mapping[str, Metric]) -> None:
        """Add a node. What its machine did is left out where another node on the same one has told of it."""
        places = np.asarray(column.places, np.int64)
        self._reach(places)
        rows = np.searchsorted(self.places, places)
        own = {
            name: flags for what, names in shared(column.head) for flags in [self._own(what, rows)] for name in names
        }
        self.nodes[rows] += 1
        covered = [column.elapsed[source] > 0 for source in column.head.sources if source in column.elapsed]
        if covered:
            self.answered[rows] += np.any(covered, axis=0)
        for series, (gained, elapsed) in _meant(column.sums.counters, metrics):
            known = (elapsed > 0) & own.get(series[0], True)
            self._count(series, rows[known], gained[known], elapsed[known])
        for series, gauge in _meant(column.sums.gauges, metrics):
            known = (gauge[0] > 0) & own.get(series[0], True)
            self._gauge(series, rows[known], gauge[1][known] / gauge[0][known], gauge[2][known], gauge[3][known])
        for series, layouts in _meant(column.sums.histograms, metrics):
            counter = column.sums.counters.get((metrics[series[0]].count, *series[1:]))
            self._histogram(series, rows, layouts, None if counter is None else counter[0] > 0)
        for source, covers in column.elapsed.items():
            of = self.elapsed.setdefault(source, self._floats())
            of[rows] = np.maximum(of[rows], covers)
        for place, texts in zip(column.places, column.texts, strict=True):
            for series, text in _meant(texts, metrics):
                self._say(place, series, text)

    def _reach(self, places: Ints) -> None:
        """Make room for more intervals."""
        reached = np.union1d(self.places, places)
        if len(reached) == len(self.places):
            return
        at = np.searchsorted(reached, self.places)

        def wider(array: Array, empty: float = 0) -> Array:
            found = np.full((len(reached), *array.shape[1:]), empty, array.dtype)
            found[at] = array
            return found

        self.places = reached
        self.answered, self.nodes = wider(self.answered), wider(self.nodes)
        for series, (gain, rate, longest, nodes, busy) in self.counters.items():
            self.counters[series] = wider(gain), wider(rate), wider(longest), wider(nodes), wider(busy)
        for series, (nodes, total, low, high) in self.gauges.items():
            self.gauges[series] = wider(nodes), wider(total), wider(low, np.inf), wider(high, -np.inf)
        for layouts in self.histograms.values():
            layouts.update({length: wider(counts) for length, counts in layouts.items()})
        for ints in (self.told, self.told_of):
            ints.update({series: wider(nodes) for series, nodes in ints.items()})
        self.elapsed = {source: wider(elapsed) for source, elapsed in self.elapsed.items()}
        self.machines = {machine: wider(taken) for machine, taken in self.machines.items()}

    def _own(self, machine: str, rows: Ints) -> Flags:
        taken = self.machines.setdefault(machine, np.zeros(len(self.places), bool))
        own: Flags = ~taken[rows]
        taken[rows] = True
        return own

    def _count(self, series: Series, rows: Ints, gained: Floats, elapsed: Floats) -> None:
        if series not in self.counters:
            self.counters[series] = self._floats(), self._floats(), self._floats(), self._ints(), self._ints()
        gain, rate, longest, nodes, busy = self.counters[series]
        gain[rows] += gained
        rate[rows] += gained / elapsed
        longest[rows] = np.maximum(longest[rows], elapsed)
        nodes[rows] += 1
        busy[rows] += gained > 0

    def _gauge(self, series: Series, rows: Ints, mean: Floats, least: Floats, most: Floats) -> None:
        if series not in self.gauges:
            self.gauges[series] = self._ints(), self._floats(), self._floats(np.inf), self._floats(-np.inf)
        nodes, total, low, high = self.gauges[series]
        nodes[rows] += 1
        total[rows] += mean
        low[rows] = np.minimum(low[rows], least)
        high[rows] = np.maximum(high[rows], most)

    def _histogram(
        self, series: Series, rows: Ints, layouts: Mapping[int, tuple[Ints, Ints]], busy: Flags | None
    ) -> None:
        known = np.zeros(len(rows), bool)
        whole = self.histograms.setdefault(series, {})
        for length, (number, counts) in layouts.items():
            if not number.any():
                # What its buckets mean need not be known.
                continue
            if length not in whole:
                whole[length] = np.zeros((len(self.places), length), np.int64)
            whole[length][rows] += counts
            known |= number > 0
        self.told.setdefault(series, self._ints())[rows] += known
        of = self.told_of.setdefault(series, self._ints())
        if busy is not None:
            of[rows] += known & busy

    def join(self, other: "ClusterSums") -> None:
        """Add what other nodes, on other machines, add up to."""
        self._reach(other.places)
        other._reach(self.places)
        self.nodes += other.nodes
        self.answered += other.answered
        for series, counter in other.counters.items():
            _join(self.counters, series, counter, (np.add, np.add, np.maximum, np.add, np.add))
        for series, gauge in other.gauges.items():
            _join(self.gauges, series, gauge, (np.add, np.add, np.minimum, np.maximum))
        for series, layouts in other.histograms.items():
            for length, counts in layouts.items():
                whole = self.histograms.setdefault(series, {})
                whole[length] = whole[length] + counts if length in whole else counts
        for mine, others in ((self.told, other.told), (self.told_of, other.told_of)):
            for series, nodes in others.items():
                mine[series] = mine[series] + nodes if series in mine else nodes
        for source, elapsed in other.elapsed.items():
            self.elapsed[source] = np.maximum(self.elapsed.get(source, 0.0), elapsed)
        for place, texts in other.texts.items():
            for series, text in texts.items():
                self._say(place, series, text)

    def _say(self, place: int, series: Series, text: str | None) -> None:
        said = self.texts.setdefault(place, {})
        said[series] = text if said.get(series, text) == text else None

    def together(self, grid: Grid, metrics: Mapping[str, Metric]) -> dict[int, Together]:
        """Return what the nodes did together in each interval of which anything is known."""
        rows = np.nonzero(self.nodes)[0].tolist()
        values: dict[int, dict[Series, Derived]] = {row: {} for row in rows}
        spread: dict[int, dict[Series, tuple[float, float]]] = {row: {} for row in rows}
        for series, (gain, rate, longest, nodes, _) in self.counters.items():
            for row in np.nonzero(nodes)[0].tolist():
                values[row][series] = Rate(float(gain[row]), float(longest[row]), float(rate[row]))
        for series, (nodes, total, low, high) in self.gauges.items():
            for row in np.nonzero(nodes)[0].tolist():
                values[row][series] = float(total[row] / nodes[row])
                spread[row][series] = float(low[row]), float(high[row])
        for series, layouts in self.histograms.items():
            self._buckets(series, layouts, metrics, values)
        for place, texts in self.texts.items():
            row = int(np.searchsorted(self.places, place))
            values[row].update({series: text for series, text in texts.items() if text is not None})
        found = {}
        for row in rows:
            covered = {source: float(of[row]) for source, of in self.elapsed.items() if of[row]}
            place = int(self.places[row])
            tick = Tick(grid.end(place))
            sample = Sample(cluster.NAME, tick, values[row], covered, spread=spread[row])
            found[place] = Together(sample, int(self.answered[row]))
        return found

    def _buckets(
        self,
        series: Series,
        layouts: Mapping[int, Ints],
        metrics: Mapping[str, Metric],
        values: dict[int, dict[Series, Derived]],
    ) -> None:
        """Add a histogram where every node that counted something has it in buckets too."""
        metric = metrics[series[0]]
        counter = self.counters.get((metric.count, *series[1:]))
        whole: Flags = np.asarray(self.told[series] > 0)
        if counter is not None:
            whole = whole & (counter[4] == self.told_of[series])
        known = {length: np.asarray(counts.any(axis=1)) for length, counts in layouts.items()}
        edges = {length: histogram.edges_of(metric.unit, length) for length in layouts}
        for row in np.nonzero(whole)[0].tolist():
            parts = [length for length in layouts if known[length][row]] or list(layouts)[:1]
            buckets = [Buckets(edges[length], tuple(layouts[length][row].tolist())) for length in parts]
            values[row][series] = histogram.merge(buckets)


Sum = TypeVar("Sum")


def _meant(found: Mapping[Series, Sum], metrics: Mapping[str, Metric]) -> Iterator[tuple[Series, Sum]]:
    """Yield the series of metrics that mean the same everywhere."""
    return ((series, each) for series, each in found.items() if series[0] in metrics)


Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def _join(mine: dict[Series, Arrays], series: Series, other: Arrays, how: Sequence[np.ufunc]) -> None:
    """Add another's arrays to those of a series, each in its own way."""
    if series not in mine:
        mine[series] = other
        return
    for whole, part, add in zip(mine[series], other, how, strict=True):
        add(whole, part, out=whole)
