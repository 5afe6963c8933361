"""Aggregation across nodes for all intervals at once; equivalent to `collector.merge.aggregation`.

The rate of a counter that covers less than its node's interval is its increase divided by the whole interval, because
rates over different times must not be added up. A node that was down served nothing in that time, and the operations of
one that was not sampled are unknown, so that the sum is at least their number divided by the time.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TypeVar

import numpy as np

from collector.merge import aggregation
from collector.merge.aggregation import placement_of
from collector.merge.grid import ClusterSample, Grid
from collector.merge.node_columns import Bools, Floats, Ints, NodeColumns, Totals, as_slice, wider
from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Aggregation, Metric, Series
from collector.model.snapshot import Derived, Rate, Sample, Tick
from collector.recording.header import Header

Sum = TypeVar("Sum")
# For each aggregation, the function that combines two nodes' values. Means are kept as sums;
# `ClusterSums.cluster_samples` divides them.
_GAUGES: Mapping[Aggregation, np.ufunc] = {
    Aggregation.SUM: np.add,
    Aggregation.MEAN: np.add,
    Aggregation.MAX: np.maximum,
    Aggregation.MIN: np.minimum,
}


def _between_known(known: Bools) -> Bools:
    """Return a mask of the rows from the first known row to the last."""
    inside: Bools = np.logical_or.accumulate(known) & np.logical_or.accumulate(known[::-1])[::-1]
    return inside


class ClusterSums:
    """Sums over nodes; each array has one row per interval in `indices`, which are in ascending order.

    metrics     the metrics of the series.
    nodes       number of nodes, and of those that answered and that were down; longest time for which one was down.
    counters    total increase, total rate, longest elapsed time, number of nodes, number of nodes with an increase.
    averaged    number of nodes by metric, for counters whose rates are averaged.
    gauges      number of nodes, aggregate of their means, lowest value, highest value; by function of the aggregate.
    lacking     number of responding nodes that lack the summed gauge in the interval but report it before and after.
    histograms  counts, by series and number of buckets.
    histogram_nodes  number of nodes with the histogram, and of those on which the histogram's counter increased.
    elapsed     the longest time that the rates of a source cover.
    texts       the text value that all nodes report, or None if they disagree.
    shared      whether a node has reported a series that belongs to its machine.
    """

    def __init__(self, indices: Ints, metrics: Mapping[str, Metric]) -> None:
        self.indices, self.metrics = indices, metrics
        self.nodes = Totals(np.add, np.add, np.add, np.maximum)
        self.counters = Totals(np.add, np.add, np.maximum, np.add, np.add)
        self.averaged = Totals(np.add)
        self.gauges: dict[np.ufunc, Totals] = {
            function: Totals(np.add, function, np.minimum, np.maximum) for function in (np.add, np.maximum, np.minimum)
        }
        self.lacking = Totals(np.add)
        self.histograms = Totals(np.add)
        self.histogram_nodes = Totals(np.add, np.add)
        self.elapsed = Totals(np.maximum)
        self.texts: dict[int, dict[Series, str | None]] = {}
        self.shared: dict[Series, Bools] = {}

    def _totals(self) -> list[Totals]:
        counts = self.averaged, self.lacking, self.histograms, self.histogram_nodes
        return [self.nodes, self.counters, *self.gauges.values(), *counts, self.elapsed]

    def add(self, node: NodeColumns) -> None:
        """Add a node, except for machine series that another node on the same machine has already reported."""
        indices = np.asarray(node.indices, np.int64)
        self._extend(indices)
        height, rows = len(self.indices), np.searchsorted(self.indices, indices)
        node_placement = placement_of(node.head)
        zeros = np.zeros(len(rows))
        known_s = np.max([zeros, *(node.elapsed.get(source, zeros) for source in node.head.sources)], axis=0)
        answered: Bools = np.asarray(known_s > 0)
        unknown_s = np.asarray([node.unknown_s.get(index, 0.0) for index in node.indices], np.float64)
        down = ~answered & (unknown_s > 0)
        self.nodes.add("", height, rows, 1, answered, down, np.where(down, unknown_s, 0.0))
        averaged: dict[str, Bools] = {}
        for series, (increase, elapsed) in self._with_one_meaning(node.sums.counters):
            metric = self.metrics[series[0]]
            known = self._first_of_machine(node_placement.shared(metric, series), rows, elapsed > 0)
            times_s = _rate_times_s(metric, node.head, elapsed, known_s, unknown_s)[known]
            gain = increase[known]
            self.counters.add(series, height, as_slice(rows[known]), gain, gain / times_s, elapsed[known], 1, gain > 0)
            if metric.aggregation is Aggregation.MEAN:
                averaged[series[0]] = averaged.get(series[0], False) | known
        for name, known in averaged.items():
            self.averaged.add(name, height, rows, known)
        for series, (number, total, lowest, highest) in self._with_one_meaning(node.sums.gauges):
            metric = self.metrics[series[0]]
            known = self._first_of_machine(node_placement.shared(metric, series), rows, number > 0)
            means = total[known] / number[known]
            self.gauges[_GAUGES[metric.aggregation]].add(
                series, height, as_slice(rows[known]), 1, means, lowest[known], highest[known]
            )
            if aggregation.is_summed_over_nodes(metric) and (gaps := answered & _between_known(known) & ~known).any():
                self.lacking.add(series, height, rows, gaps)
        for series, layouts in self._with_one_meaning(node.sums.histograms):
            counter = node.sums.counters.get((self.metrics[series[0]].count, *series[1:]))
            self._add_histogram(series, rows, layouts, None if counter is None else counter[0] > 0)
        for source, covers in node.elapsed.items():
            spans = np.where(covers > 0, covers + unknown_s * (source in node.head.sources), 0.0)
            self.elapsed.add(source, height, rows, spans)
        for index, texts in zip(node.indices, node.texts, strict=True):
            for series, text in self._with_one_meaning(texts):
                self._set_text(index, series, text)

    def _extend(self, indices: Ints) -> None:
        """Add rows for more intervals."""
        reached = np.union1d(self.indices, indices)
        height = len(reached)
        if height == len(self.indices):
            return
        new_rows = np.searchsorted(reached, self.indices)
        self.indices = reached
        for totals in self._totals():
            totals.extend(height, new_rows)
        self.shared = {key: wider(reported, height, new_rows, 0.0) for key, reported in self.shared.items()}

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

    def _add_histogram(
        self, series: Series, rows: Ints, layouts: Mapping[int, tuple[Ints, Ints]], busy: Bools | None
    ) -> None:
        height, known = len(self.indices), np.zeros(len(rows), bool)
        for length, (number, counts) in layouts.items():
            if not number.any():
                # Skip a layout without known counts, because its upper bounds may be unknown.
                continue
            self.histograms.arrays.setdefault((series, length), (np.zeros((height, length), np.int64),))
            self.histograms.add((series, length), height, as_slice(rows), counts)
            known |= number > 0
        self.histogram_nodes.add(series, height, rows, known, known & busy if busy is not None else 0)

    def join(self, other: "ClusterSums") -> None:
        """Add the sums of other nodes, which must run on other machines."""
        self._extend(other.indices)
        other._extend(self.indices)
        for totals, of_others in zip(self._totals(), other._totals(), strict=True):
            totals.join(of_others)
        for index, texts in other.texts.items():
            for series, text in texts.items():
                self._set_text(index, series, text)

    def _set_text(self, index: int, series: Series, text: str | None) -> None:
        interval_texts = self.texts.setdefault(index, {})
        interval_texts[series] = text if interval_texts.get(series, text) == text else None

    def cluster_samples(self, grid: Grid) -> dict[int, ClusterSample]:
        """Return the cluster's sample for each interval with at least one node."""
        of_intervals = self.nodes.arrays.get("", (np.zeros(0),) * 4)
        rows = np.nonzero(of_intervals[0])[0].tolist()
        values: dict[int, dict[Series, Derived]] = {row: {} for row in rows}
        spread: dict[int, dict[Series, tuple[float, float]]] = {row: {} for row in rows}
        for series, (increase_sum, rate_sum, longest, nodes, _) in self.counters.arrays.items():
            if series[0] in self.averaged.arrays:
                rate_sum = rate_sum / np.maximum(self.averaged.arrays[series[0]][0], 1)
            for row in np.nonzero(nodes)[0].tolist():
                values[row][series] = Rate(float(increase_sum[row]), float(longest[row]), float(rate_sum[row]))
        for series, (nodes, total, lowest, highest) in chain.from_iterable(
            totals.arrays.items() for totals in self.gauges.values()
        ):
            if self.metrics[series[0]].aggregation is Aggregation.MEAN:
                total = total / np.maximum(nodes, 1)
            (lacking,) = self.lacking.arrays.get(series, (np.zeros(len(nodes)),))
            for row in np.nonzero((nodes > 0) & (lacking == 0))[0].tolist():
                values[row][series] = float(total[row])
                spread[row][series] = float(lowest[row]), float(highest[row])
        self._add_buckets(values)
        for index, texts in self.texts.items():
            row = int(np.searchsorted(self.indices, index))
            values[row].update({series: text for series, text in texts.items() if text is not None})
        samples = {}
        for row in rows:
            longest_s = {source: float(longest[row]) for source, (longest,) in self.elapsed.arrays.items()}
            covered = {source: covered_s for source, covered_s in longest_s.items() if covered_s > 0}
            index = int(self.indices[row])
            sample = Sample(aggregation.NAME, Tick(grid.end_of(index)), values[row], covered, spread=spread[row])
            _, answered, down, down_s = (float(array[row]) for array in of_intervals)
            samples[index] = ClusterSample(sample, int(answered), int(down), down_s)
        return samples

    def _add_buckets(self, values: Mapping[int, dict[Series, Derived]]) -> None:
        """Add each histogram to the intervals, unless a node on which its counter increased lacks its buckets."""
        layouts: dict[Series, dict[int, Ints]] = {}
        for (series, length), (counts,) in self.histograms.arrays.items():
            layouts.setdefault(series, {})[length] = counts
        for series, by_length in layouts.items():
            metric = self.metrics[series[0]]
            counter = self.counters.arrays.get((metric.count, *series[1:]))
            nodes, busy = self.histogram_nodes.arrays[series]
            is_known = (nodes > 0) & (True if counter is None else counter[4] == busy)
            known = {length: np.asarray(counts.any(axis=1)) for length, counts in by_length.items()}
            upper_bounds = {length: histogram.upper_bounds_of(metric.unit, length) for length in by_length}
            for row in np.nonzero(is_known)[0].tolist():
                lengths = [length for length in by_length if known[length][row]] or list(by_length)[:1]
                buckets = [Buckets(upper_bounds[length], tuple(by_length[length][row].tolist())) for length in lengths]
                values[row][series] = histogram.merge(buckets)


def _rate_times_s(metric: Metric, head: Header, elapsed: Floats, known_s: Floats, unknown_s: Floats) -> Floats:
    """Return the times over which a node's increases are rates."""
    lag_s, lag_if_complete_s = (aggregation.allowed_lag_s(metric, head, is_complete=known) for known in (False, True))
    if lag_s == np.inf:
        return elapsed
    lengths_s = known_s + unknown_s
    short: Bools = lengths_s - elapsed > np.where(unknown_s > 0, lag_s, lag_if_complete_s)
    return np.where(short, lengths_s, elapsed) if short.any() else elapsed
