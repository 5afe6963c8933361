"""Aggregation across nodes for all intervals at once; equivalent to `collector.merge.aggregation`.

The rate of a counter that covers less than its node's interval is its increase divided by the whole interval, because
rates over different times must not be added up. A node that was down served nothing in that time, and the operations of
one that was not sampled are unknown, so that the sum is at least their number divided by the time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from collector.merge import aggregation
from collector.merge.aggregation import placement_of
from collector.merge.grid import ClusterSample, Grid
from collector.merge.node_columns import Array, Bools, Floats, Ints, NodeColumns, as_slice
from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Aggregation, Metric, Series
from collector.model.sample import Derived, Rate, Sample
from collector.model.snapshot import Tick
from collector.recording.header import Header

Sum = TypeVar("Sum")
# For each aggregation, the function that combines two nodes' values, and its neutral element. Means are kept as sums;
# `ClusterSums.cluster_samples` divides them.
_GAUGES: Mapping[Aggregation, tuple[np.ufunc, float]] = {
    Aggregation.SUM: (np.add, 0.0),
    Aggregation.MEAN: (np.add, 0.0),
    Aggregation.MAX: (np.maximum, -np.inf),
    Aggregation.MIN: (np.minimum, np.inf),
}


def _between_known(known: Bools) -> Bools:
    """Return a mask of the rows from the first known row to the last."""
    inside: Bools = np.logical_or.accumulate(known) & np.logical_or.accumulate(known[::-1])[::-1]
    return inside


@dataclass
class ClusterSums:
    """Sums over nodes; each array has one row per interval in `indices`, which are in ascending order.

    metrics     the metrics of the series.
    counters    total increase, total rate, longest elapsed time, number of nodes, number of nodes with an increase.
    averaged    number of nodes by metric, for counters whose rates are averaged.
    gauges      number of nodes, aggregate of their means, lowest value, highest value.
    lacking     whether a responding node lacks the summed gauge in the interval but reports it before and after.
    histograms  counts, by number of buckets.
    histogram_nodes       number of nodes with the histogram.
    busy_histogram_nodes  number of those nodes on which the histogram's counter increased.
    texts       the text value that all nodes report, or None if they disagree.
    """

    indices: Ints
    metrics: Mapping[str, Metric]
    counters: dict[Series, tuple[Floats, Floats, Floats, Ints, Ints]] = field(default_factory=dict)
    averaged: dict[str, Ints] = field(default_factory=dict)
    gauges: dict[Series, tuple[Ints, Floats, Floats, Floats]] = field(default_factory=dict)
    lacking: dict[Series, Bools] = field(default_factory=dict)
    histograms: dict[Series, dict[int, Ints]] = field(default_factory=dict)
    histogram_nodes: dict[Series, Ints] = field(default_factory=dict)
    busy_histogram_nodes: dict[Series, Ints] = field(default_factory=dict)
    elapsed: dict[str, Floats] = field(default_factory=dict)
    texts: dict[int, dict[Series, str | None]] = field(default_factory=dict)
    answered: Ints = field(init=False)
    down: Ints = field(init=False)
    down_s: Floats = field(init=False)
    nodes: Ints = field(init=False)
    shared: dict[Series, Bools] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.answered, self.nodes = self._ints(), self._ints()
        self.down, self.down_s = self._ints(), self._floats()

    def _ints(self) -> Ints:
        return np.zeros(len(self.indices), np.int64)

    def _floats(self, value: float = 0.0) -> Floats:
        return np.full(len(self.indices), value)

    def add(self, node: NodeColumns) -> None:
        """Add a node, except for machine series that another node on the same machine has already reported."""
        indices = np.asarray(node.indices, np.int64)
        self._extend(indices)
        rows = np.searchsorted(self.indices, indices)
        node_placement = placement_of(node.head)
        self.nodes[rows] += 1
        zeros = np.zeros(len(rows))
        known_s = np.max([zeros, *(node.elapsed.get(source, zeros) for source in node.head.sources)], axis=0)
        answered: Bools = np.asarray(known_s > 0)
        self.answered[rows] += answered
        unknown_s = np.asarray([node.unknown_s.get(index, 0.0) for index in node.indices], np.float64)
        down = ~answered & (unknown_s > 0)
        self.down[rows] += down
        self.down_s[rows] = np.maximum(self.down_s[rows], np.where(down, unknown_s, 0.0))
        averaged: dict[str, Bools] = {}
        for series, (increase, elapsed) in self._with_one_meaning(node.sums.counters):
            metric = self.metrics[series[0]]
            known = self._first_of_machine(node_placement.shared(metric, series), rows, elapsed > 0)
            times_s = _rate_times_s(metric, node.head, elapsed, known_s, unknown_s)
            self._count(series, as_slice(rows[known]), increase[known], elapsed[known], times_s[known])
            if metric.aggregation is Aggregation.MEAN:
                averaged[series[0]] = averaged.get(series[0], False) | known
        for name, known in averaged.items():
            self.averaged.setdefault(name, self._ints())[rows] += known
        for series, gauge in self._with_one_meaning(node.sums.gauges):
            known = self._first_of_machine(node_placement.shared(self.metrics[series[0]], series), rows, gauge[0] > 0)
            self._gauge(
                series, as_slice(rows[known]), gauge[1][known] / gauge[0][known], gauge[2][known], gauge[3][known]
            )
            if (
                aggregation.is_summed_over_nodes(self.metrics[series[0]])
                and (gaps := answered & _between_known(known) & ~known).any()
            ):
                self.lacking.setdefault(series, np.zeros(len(self.indices), bool))[rows[gaps]] = True
        for series, layouts in self._with_one_meaning(node.sums.histograms):
            counter = node.sums.counters.get((self.metrics[series[0]].count, *series[1:]))
            self._histogram(series, rows, layouts, None if counter is None else counter[0] > 0)
        for source, covers in node.elapsed.items():
            longest = self.elapsed.setdefault(source, self._floats())
            spans = np.where(covers > 0, covers + unknown_s * (source in node.head.sources), 0.0)
            longest[rows] = np.maximum(longest[rows], spans)
        for index, texts in zip(node.indices, node.texts, strict=True):
            for series, text in self._with_one_meaning(texts):
                self._set_text(index, series, text)

    def _extend(self, indices: Ints) -> None:
        """Add rows for more intervals."""
        reached = np.union1d(self.indices, indices)
        if len(reached) == len(self.indices):
            return
        new_rows = np.searchsorted(reached, self.indices)

        def wider(array: Array, empty: float = 0) -> Array:
            extended = np.full((len(reached), *array.shape[1:]), empty, array.dtype)
            extended[new_rows] = array
            return extended

        self.indices = reached
        self.answered, self.nodes = wider(self.answered), wider(self.nodes)
        self.down, self.down_s = wider(self.down), wider(self.down_s)
        for series, (increase_sum, rate_sum, longest, nodes, busy) in self.counters.items():
            self.counters[series] = wider(increase_sum), wider(rate_sum), wider(longest), wider(nodes), wider(busy)
        for series, (nodes, total, lowest, highest) in self.gauges.items():
            _, empty = _GAUGES[self.metrics[series[0]].aggregation]
            self.gauges[series] = wider(nodes), wider(total, empty), wider(lowest, np.inf), wider(highest, -np.inf)
        self.averaged = {name: wider(nodes) for name, nodes in self.averaged.items()}
        self.lacking = {series: wider(gaps) for series, gaps in self.lacking.items()}
        for layouts in self.histograms.values():
            layouts.update({length: wider(counts) for length, counts in layouts.items()})
        for ints in (self.histogram_nodes, self.busy_histogram_nodes):
            ints.update({series: wider(nodes) for series, nodes in ints.items()})
        self.elapsed = {source: wider(elapsed) for source, elapsed in self.elapsed.items()}
        self.shared = {key: wider(reported) for key, reported in self.shared.items()}

    def _with_one_meaning(self, sums: Mapping[Series, Sum]) -> Iterator[tuple[Series, Sum]]:
        """Yield the series whose metric has the same meaning in all recordings."""
        return ((series, series_sum) for series, series_sum in sums.items() if series[0] in self.metrics)

    def _first_of_machine(self, key: Series, rows: Ints, known: Bools) -> Bools:
        """Return a mask of the known rows in which no earlier node has reported the shared series `key`.

        Also records the series as reported in the known rows. Returns `known` if `key` is ().
        """
        if not key:
            return known
        reported = self.shared.setdefault(key, np.zeros(len(self.indices), bool))
        first: Bools = known & ~reported[rows]
        reported[rows] |= known
        return first

    def _count(self, series: Series, rows: slice | Ints, increase: Floats, elapsed: Floats, times_s: Floats) -> None:
        """Add a node's counter, whose rates are those over `times_s`."""
        if series not in self.counters:
            self.counters[series] = self._floats(), self._floats(), self._floats(), self._ints(), self._ints()
        increase_sum, rate_sum, longest, nodes, busy = self.counters[series]
        increase_sum[rows] += increase
        rate_sum[rows] += increase / times_s
        longest[rows] = np.maximum(longest[rows], elapsed)
        nodes[rows] += 1
        busy[rows] += increase > 0

    def _gauge(
        self, series: Series, rows: slice | Ints, mean: Floats, node_lowest: Floats, node_highest: Floats
    ) -> None:
        join, empty = _GAUGES[self.metrics[series[0]].aggregation]
        if series not in self.gauges:
            self.gauges[series] = self._ints(), self._floats(empty), self._floats(np.inf), self._floats(-np.inf)
        nodes, total, lowest, highest = self.gauges[series]
        nodes[rows] += 1
        total[rows] = join(total[rows], mean)
        lowest[rows] = np.minimum(lowest[rows], node_lowest)
        highest[rows] = np.maximum(highest[rows], node_highest)

    def _histogram(
        self, series: Series, rows: Ints, layouts: Mapping[int, tuple[Ints, Ints]], busy: Bools | None
    ) -> None:
        known = np.zeros(len(rows), bool)
        total = self.histograms.setdefault(series, {})
        for length, (number, counts) in layouts.items():
            if not number.any():
                # Skip a layout without known counts, because its upper bounds may be unknown.
                continue
            if length not in total:
                total[length] = np.zeros((len(self.indices), length), np.int64)
            total[length][as_slice(rows)] += counts
            known |= number > 0
        self.histogram_nodes.setdefault(series, self._ints())[rows] += known
        busy_nodes = self.busy_histogram_nodes.setdefault(series, self._ints())
        if busy is not None:
            busy_nodes[rows] += known & busy

    def join(self, other: "ClusterSums") -> None:
        """Add the sums of other nodes, which must run on other machines."""
        self._extend(other.indices)
        other._extend(self.indices)
        self.nodes += other.nodes
        self.answered += other.answered
        self.down += other.down
        self.down_s = np.maximum(self.down_s, other.down_s)
        for series, counter in other.counters.items():
            _join_series(self.counters, series, counter, (np.add, np.add, np.maximum, np.add, np.add))
        for series, gauge in other.gauges.items():
            join, _ = _GAUGES[self.metrics[series[0]].aggregation]
            _join_series(self.gauges, series, gauge, (np.add, join, np.minimum, np.maximum))
        _join_arrays(self.averaged, other.averaged, np.add)
        _join_arrays(self.lacking, other.lacking, np.logical_or)
        for series, layouts in other.histograms.items():
            for length, counts in layouts.items():
                total = self.histograms.setdefault(series, {})
                total[length] = total[length] + counts if length in total else counts
        _join_arrays(self.histogram_nodes, other.histogram_nodes, np.add)
        _join_arrays(self.busy_histogram_nodes, other.busy_histogram_nodes, np.add)
        _join_arrays(self.elapsed, other.elapsed, np.maximum)
        for index, texts in other.texts.items():
            for series, text in texts.items():
                self._set_text(index, series, text)

    def _set_text(self, index: int, series: Series, text: str | None) -> None:
        interval_texts = self.texts.setdefault(index, {})
        interval_texts[series] = text if interval_texts.get(series, text) == text else None

    def cluster_samples(self, grid: Grid) -> dict[int, ClusterSample]:
        """Return the cluster's sample for each interval with at least one node."""
        rows = np.nonzero(self.nodes)[0].tolist()
        values: dict[int, dict[Series, Derived]] = {row: {} for row in rows}
        spread: dict[int, dict[Series, tuple[float, float]]] = {row: {} for row in rows}
        for series, (increase_sum, rate_sum, longest, nodes, _) in self.counters.items():
            if series[0] in self.averaged:
                rate_sum = rate_sum / np.maximum(self.averaged[series[0]], 1)
            for row in np.nonzero(nodes)[0].tolist():
                values[row][series] = Rate(float(increase_sum[row]), float(longest[row]), float(rate_sum[row]))
        for series, (nodes, total, lowest, highest) in self.gauges.items():
            if self.metrics[series[0]].aggregation is Aggregation.MEAN:
                total = total / np.maximum(nodes, 1)
            known = (nodes > 0) & ~self.lacking.get(series, np.zeros(len(nodes), bool))
            for row in np.nonzero(known)[0].tolist():
                values[row][series] = float(total[row])
                spread[row][series] = float(lowest[row]), float(highest[row])
        for series, layouts in self.histograms.items():
            self._buckets(series, layouts, values)
        for index, texts in self.texts.items():
            row = int(np.searchsorted(self.indices, index))
            values[row].update({series: text for series, text in texts.items() if text is not None})
        samples = {}
        for row in rows:
            covered = {source: float(longest_s[row]) for source, longest_s in self.elapsed.items() if longest_s[row]}
            index = int(self.indices[row])
            tick = Tick(grid.end_of(index))
            sample = Sample(aggregation.NAME, tick, values[row], covered, spread=spread[row])
            samples[index] = ClusterSample(
                sample, int(self.answered[row]), int(self.down[row]), float(self.down_s[row])
            )
        return samples

    def _buckets(self, series: Series, layouts: Mapping[int, Ints], values: dict[int, dict[Series, Derived]]) -> None:
        """Add a histogram to each interval, unless a node on which its counter increased lacks its buckets."""
        metric = self.metrics[series[0]]
        counter = self.counters.get((metric.count, *series[1:]))
        total: Bools = np.asarray(self.histogram_nodes[series] > 0)
        if counter is not None:
            total = total & (counter[4] == self.busy_histogram_nodes[series])
        known = {length: np.asarray(counts.any(axis=1)) for length, counts in layouts.items()}
        upper_bounds = {length: histogram.upper_bounds_of(metric.unit, length) for length in layouts}
        for row in np.nonzero(total)[0].tolist():
            lengths = [length for length in layouts if known[length][row]] or list(layouts)[:1]
            buckets = [Buckets(upper_bounds[length], tuple(layouts[length][row].tolist())) for length in lengths]
            values[row][series] = histogram.merge(buckets)


def _rate_times_s(metric: Metric, head: Header, elapsed: Floats, known_s: Floats, unknown_s: Floats) -> Floats:
    """Return the times over which a node's increases are rates."""
    lag_s, lag_if_complete_s = (aggregation.allowed_lag_s(metric, head, is_complete=known) for known in (False, True))
    if lag_s == np.inf:
        return elapsed
    lengths_s = known_s + unknown_s
    short: Bools = lengths_s - elapsed > np.where(unknown_s > 0, lag_s, lag_if_complete_s)
    return np.where(short, lengths_s, elapsed) if short.any() else elapsed


Key = TypeVar("Key", Series, str)


def _join_arrays(target: dict[Key, Array], addends: Mapping[Key, Array], combine: np.ufunc) -> None:
    """Combine each array in `addends`, element by element, with the one in `target` that has the same key."""
    for key, array in addends.items():
        target[key] = combine(target[key], array) if key in target else array


Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def _join_series(target: dict[Series, Arrays], series: Series, addends: Arrays, functions: Sequence[np.ufunc]) -> None:
    """Combine a series' arrays with those in `target`, using one of `functions` for each pair."""
    if series not in target:
        target[series] = addends
        return
    for total, addend, combine in zip(target[series], addends, functions, strict=True):
        combine(total, addend, out=total)
