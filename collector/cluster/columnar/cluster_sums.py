"""The sums of all nodes from their columns: `collector.cluster.aggregation` for all intervals at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from collector.cluster import aggregation
from collector.cluster.cluster_sample import ClusterSample
from collector.cluster.columnar.arrays import Bools, Floats, Ints
from collector.cluster.columnar.node_columns import NodeColumns
from collector.cluster.grid import Grid
from collector.cluster.node_intervals import placement
from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Aggregation, Metric, Series
from collector.model.sample import Derived, Rate, Sample
from collector.model.snapshot import Tick

Array = TypeVar("Array", Ints, Floats, Bools)
Sum = TypeVar("Sum")
# How the values of two nodes become one, and what adds nothing; a mean is a sum until it is divided.
_GAUGES: Mapping[Aggregation, tuple[np.ufunc, float]] = {
    Aggregation.SUM: (np.add, 0.0),
    Aggregation.MEAN: (np.add, 0.0),
    Aggregation.MAX: (np.maximum, -np.inf),
    Aggregation.MIN: (np.minimum, np.inf),
}


def _inside(known: Bools) -> Bools:
    """Return the rows between the first and the last that is known."""
    inside: Bools = np.logical_or.accumulate(known) & np.logical_or.accumulate(known[::-1])[::-1]
    return inside


@dataclass
class ClusterSums:
    """Sums over nodes; every array has a row for each of the intervals `indices`, which ascend.

    metrics     of the series that are added.
    counters    gain, rate, longest time, nodes that know of it, nodes that gained anything.
    averaged    nodes that have a counter whose rates are averaged, by metric.
    gauges      nodes that know of it, the aggregate of their means, the least and the greatest.
    lacking     where a node has no news of a gauge that adds up.
    histograms  by number of buckets the counts; `told` and `told_of` count the nodes that know of it, and those of
                them that gained anything.
    texts       what all say; None where they do not say the same.
    """

    indices: Ints
    metrics: Mapping[str, Metric]
    counters: dict[Series, tuple[Floats, Floats, Floats, Ints, Ints]] = field(default_factory=dict)
    averaged: dict[str, Ints] = field(default_factory=dict)
    gauges: dict[Series, tuple[Ints, Floats, Floats, Floats]] = field(default_factory=dict)
    lacking: dict[Series, Bools] = field(default_factory=dict)
    histograms: dict[Series, dict[int, Ints]] = field(default_factory=dict)
    told: dict[Series, Ints] = field(default_factory=dict)
    told_of: dict[Series, Ints] = field(default_factory=dict)
    elapsed: dict[str, Floats] = field(default_factory=dict)
    texts: dict[int, dict[Series, str | None]] = field(default_factory=dict)
    answered: Ints = field(init=False)
    nodes: Ints = field(init=False)
    shared: dict[Series, Bools] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.answered, self.nodes = self._ints(), self._ints()

    def _ints(self) -> Ints:
        return np.zeros(len(self.indices), np.int64)

    def _floats(self, value: float = 0.0) -> Floats:
        return np.full(len(self.indices), value)

    def add(self, column: NodeColumns) -> None:
        """Add a node. What its machine did is left out where another node on the same one has told of it."""
        indices = np.asarray(column.indices, np.int64)
        self._reach(indices)
        rows = np.searchsorted(self.indices, indices)
        where = placement(column.head)
        self.nodes[rows] += 1
        covered = [column.elapsed[source] > 0 for source in column.head.sources if source in column.elapsed]
        answered: Bools = np.any(covered, axis=0) if covered else np.zeros(len(rows), bool)
        self.answered[rows] += answered
        averaged: dict[str, Bools] = {}
        for series, (increase, elapsed) in self._meant(column.sums.counters):
            metric = self.metrics[series[0]]
            known = self._once(where.shared(metric, series), rows, elapsed > 0)
            self._count(series, rows[known], increase[known], elapsed[known])
            if metric.aggregation is Aggregation.MEAN:
                averaged[series[0]] = averaged.get(series[0], False) | known
        for name, known in averaged.items():
            self.averaged.setdefault(name, self._ints())[rows] += known
        for series, gauge in self._meant(column.sums.gauges):
            known = self._once(where.shared(self.metrics[series[0]], series), rows, gauge[0] > 0)
            self._gauge(series, rows[known], gauge[1][known] / gauge[0][known], gauge[2][known], gauge[3][known])
            if aggregation.is_own_sum(self.metrics[series[0]]) and (holes := answered & _inside(known) & ~known).any():
                self.lacking.setdefault(series, np.zeros(len(self.indices), bool))[rows[holes]] = True
        for series, layouts in self._meant(column.sums.histograms):
            counter = column.sums.counters.get((self.metrics[series[0]].count, *series[1:]))
            self._histogram(series, rows, layouts, None if counter is None else counter[0] > 0)
        for source, covers in column.elapsed.items():
            of = self.elapsed.setdefault(source, self._floats())
            of[rows] = np.maximum(of[rows], covers)
        for place, texts in zip(column.indices, column.texts, strict=True):
            for series, text in self._meant(texts):
                self._say(place, series, text)

    def _reach(self, indices: Ints) -> None:
        """Make room for more intervals."""
        reached = np.union1d(self.indices, indices)
        if len(reached) == len(self.indices):
            return
        at = np.searchsorted(reached, self.indices)

        def wider(array: Array, empty: float = 0) -> Array:
            found = np.full((len(reached), *array.shape[1:]), empty, array.dtype)
            found[at] = array
            return found

        self.indices = reached
        self.answered, self.nodes = wider(self.answered), wider(self.nodes)
        for series, (gain, rate, longest, nodes, busy) in self.counters.items():
            self.counters[series] = wider(gain), wider(rate), wider(longest), wider(nodes), wider(busy)
        for series, (nodes, whole, low, high) in self.gauges.items():
            _, empty = _GAUGES[self.metrics[series[0]].aggregation]
            self.gauges[series] = wider(nodes), wider(whole, empty), wider(low, np.inf), wider(high, -np.inf)
        self.averaged = {name: wider(nodes) for name, nodes in self.averaged.items()}
        self.lacking = {series: wider(holes) for series, holes in self.lacking.items()}
        for layouts in self.histograms.values():
            layouts.update({length: wider(counts) for length, counts in layouts.items()})
        for ints in (self.told, self.told_of):
            ints.update({series: wider(nodes) for series, nodes in ints.items()})
        self.elapsed = {source: wider(elapsed) for source, elapsed in self.elapsed.items()}
        self.shared = {key: wider(taken) for key, taken in self.shared.items()}

    def _meant(self, found: Mapping[Series, Sum]) -> Iterator[tuple[Series, Sum]]:
        """Yield the series of metrics that mean the same everywhere."""
        return ((series, each) for series, each in found.items() if series[0] in self.metrics)

    def _once(self, key: Series, rows: Ints, known: Bools) -> Bools:
        """Return where a series is known of this node first, among those that share what `key` names."""
        if not key:
            return known
        taken = self.shared.setdefault(key, np.zeros(len(self.indices), bool))
        first: Bools = known & ~taken[rows]
        taken[rows] |= known
        return first

    def _count(self, series: Series, rows: Ints, increase: Floats, elapsed: Floats) -> None:
        if series not in self.counters:
            self.counters[series] = self._floats(), self._floats(), self._floats(), self._ints(), self._ints()
        gain, rate, longest, nodes, busy = self.counters[series]
        gain[rows] += increase
        rate[rows] += increase / elapsed
        longest[rows] = np.maximum(longest[rows], elapsed)
        nodes[rows] += 1
        busy[rows] += increase > 0

    def _gauge(self, series: Series, rows: Ints, mean: Floats, least: Floats, most: Floats) -> None:
        join, empty = _GAUGES[self.metrics[series[0]].aggregation]
        if series not in self.gauges:
            self.gauges[series] = self._ints(), self._floats(empty), self._floats(np.inf), self._floats(-np.inf)
        nodes, whole, low, high = self.gauges[series]
        nodes[rows] += 1
        whole[rows] = join(whole[rows], mean)
        low[rows] = np.minimum(low[rows], least)
        high[rows] = np.maximum(high[rows], most)

    def _histogram(
        self, series: Series, rows: Ints, layouts: Mapping[int, tuple[Ints, Ints]], busy: Bools | None
    ) -> None:
        known = np.zeros(len(rows), bool)
        whole = self.histograms.setdefault(series, {})
        for length, (number, counts) in layouts.items():
            if not number.any():
                # What its buckets mean need not be known.
                continue
            if length not in whole:
                whole[length] = np.zeros((len(self.indices), length), np.int64)
            whole[length][rows] += counts
            known |= number > 0
        self.told.setdefault(series, self._ints())[rows] += known
        of = self.told_of.setdefault(series, self._ints())
        if busy is not None:
            of[rows] += known & busy

    def join(self, other: "ClusterSums") -> None:
        """Add what other nodes, on other machines, add up to."""
        self._reach(other.indices)
        other._reach(self.indices)
        self.nodes += other.nodes
        self.answered += other.answered
        for series, counter in other.counters.items():
            _join(self.counters, series, counter, (np.add, np.add, np.maximum, np.add, np.add))
        for series, gauge in other.gauges.items():
            join, _ = _GAUGES[self.metrics[series[0]].aggregation]
            _join(self.gauges, series, gauge, (np.add, join, np.minimum, np.maximum))
        _combine(self.averaged, other.averaged, np.add)
        _combine(self.lacking, other.lacking, np.logical_or)
        for series, layouts in other.histograms.items():
            for length, counts in layouts.items():
                whole = self.histograms.setdefault(series, {})
                whole[length] = whole[length] + counts if length in whole else counts
        _combine(self.told, other.told, np.add)
        _combine(self.told_of, other.told_of, np.add)
        _combine(self.elapsed, other.elapsed, np.maximum)
        for place, texts in other.texts.items():
            for series, text in texts.items():
                self._say(place, series, text)

    def _say(self, place: int, series: Series, text: str | None) -> None:
        said = self.texts.setdefault(place, {})
        said[series] = text if said.get(series, text) == text else None

    def cluster_samples(self, grid: Grid) -> dict[int, ClusterSample]:
        """Return what the nodes did together in each interval of which anything is known."""
        rows = np.nonzero(self.nodes)[0].tolist()
        values: dict[int, dict[Series, Derived]] = {row: {} for row in rows}
        spread: dict[int, dict[Series, tuple[float, float]]] = {row: {} for row in rows}
        for series, (gain, rate, longest, nodes, _) in self.counters.items():
            if series[0] in self.averaged:
                rate = rate / np.maximum(self.averaged[series[0]], 1)
            for row in np.nonzero(nodes)[0].tolist():
                values[row][series] = Rate(float(gain[row]), float(longest[row]), float(rate[row]))
        for series, (nodes, whole, low, high) in self.gauges.items():
            if self.metrics[series[0]].aggregation is Aggregation.MEAN:
                whole = whole / np.maximum(nodes, 1)
            known = (nodes > 0) & ~self.lacking.get(series, np.zeros(len(nodes), bool))
            for row in np.nonzero(known)[0].tolist():
                values[row][series] = float(whole[row])
                spread[row][series] = float(low[row]), float(high[row])
        for series, layouts in self.histograms.items():
            self._buckets(series, layouts, values)
        for place, texts in self.texts.items():
            row = int(np.searchsorted(self.indices, place))
            values[row].update({series: text for series, text in texts.items() if text is not None})
        found = {}
        for row in rows:
            covered = {source: float(of[row]) for source, of in self.elapsed.items() if of[row]}
            place = int(self.indices[row])
            tick = Tick(grid.end_of(place))
            sample = Sample(aggregation.NAME, tick, values[row], covered, spread=spread[row])
            found[place] = ClusterSample(sample, int(self.answered[row]))
        return found

    def _buckets(
        self,
        series: Series,
        layouts: Mapping[int, Ints],
        values: dict[int, dict[Series, Derived]],
    ) -> None:
        """Add a histogram where every node that counted something has it in buckets too."""
        metric = self.metrics[series[0]]
        counter = self.counters.get((metric.count, *series[1:]))
        whole: Bools = np.asarray(self.told[series] > 0)
        if counter is not None:
            whole = whole & (counter[4] == self.told_of[series])
        known = {length: np.asarray(counts.any(axis=1)) for length, counts in layouts.items()}
        upper_bounds = {length: histogram.upper_bounds_of(metric.unit, length) for length in layouts}
        for row in np.nonzero(whole)[0].tolist():
            parts = [length for length in layouts if known[length][row]] or list(layouts)[:1]
            buckets = [Buckets(upper_bounds[length], tuple(layouts[length][row].tolist())) for length in parts]
            values[row][series] = histogram.merge(buckets)


Key = TypeVar("Key", Series, str)


def _combine(mine: dict[Key, Array], others: Mapping[Key, Array], how: np.ufunc) -> None:
    """Join the arrays of others into one's own."""
    for key, array in others.items():
        mine[key] = how(mine[key], array) if key in mine else array


Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def _join(mine: dict[Series, Arrays], series: Series, other: Arrays, how: Sequence[np.ufunc]) -> None:
    """Add another's arrays to those of a series, each in its own way."""
    if series not in mine:
        mine[series] = other
        return
    for whole, part, add in zip(mine[series], other, how, strict=True):
        add(whole, part, out=whole)
