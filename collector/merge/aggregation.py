"""Aggregation across nodes, for both live clusters and merged recordings.

Each metric defines how the values of several nodes are aggregated (`Metric.aggregation`), and whether nodes on the same
machine share the values (`Metric.owner`).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf
from operator import itemgetter, truediv
from typing import TypeVar, cast

from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Aggregation, Metric, Owner, Series
from collector.model.snapshot import WATCHED, Derived, Placement, Rate, Sample, Tick
from collector.node.catalogue import CATALOGUE
from collector.recording.header import Header

NAME = "cluster"
# How many of its intervals a counter may lack, because its last reading is late, and how many if others are missing,
# too. Both are between the differences that usually occur, which are multiples of half an interval.
_LATE, _EQUAL = 1.6, 0.4
Kind = TypeVar("Kind", float, Rate, Buckets)


def placement_of(head: Header) -> Placement:
    """Return a node's placement, as recorded in a header."""
    return Placement(head.boot, head.network, head.disk, head.interface)


def shared_name(head: Header, series: Series) -> Series:
    """Return the series; if it belongs to the watched disk or interface, its label is replaced with WATCHED."""
    metric = CATALOGUE.get(series[0])
    if metric is not None and metric.labels == ("device",) and series[1:] in ((head.disk,), (head.interface,)):
        return series[0], WATCHED
    return series


def counted_once(catalogue: Mapping[str, Metric], nodes: Iterable[tuple[Placement, Sample]]) -> list[Sample]:
    """Return the samples without duplicates: a shared series stays only in the first sample that contains it."""
    nodes = list(nodes)
    node_counts = Counter(placement.machine for placement, _ in nodes)
    seen: set[Series] = set()
    samples = []
    for placement, sample in nodes:
        if not placement.machine or node_counts[placement.machine] == 1:
            # Only nodes on the same machine share series.
            samples.append(sample)
            continue
        shared = {series: placement.shared(catalogue.get(series[0]), series) for series in sample.values}
        reported = {series for series, key in shared.items() if key in seen}
        seen.update(key for key in shared.values() if key)
        unique_values = {series: value for series, value in sample.values.items() if series not in reported}
        samples.append(replace(sample, values=unique_values) if reported else sample)
    return samples


def allowed_lag_s(metric: Metric | None, head: Header, *, is_complete: bool) -> float:
    """Return how much less time than its node's interval a counter may cover and still have its own rate.

    is_complete  whether the node's counters are known in the whole interval. Then only a counter that appears or
                 disappears in it covers less, unless it is read less often, or in turn with those of other tables.
    """
    if metric is None or metric.aggregation is not Aggregation.SUM:
        return inf
    read_s = _LATE * metric.scrape_interval.value
    if not is_complete:
        return max(_EQUAL * head.interval_s, read_s)
    if head.paced or metric.owner is not Owner.NODE or "table" in metric.labels:
        return inf
    return max(_LATE * head.interval_s, read_s)


@dataclass(frozen=True)
class PartialAggregate:
    """The values of some nodes, in a form that can be combined with those of other nodes.

    values       as in the cluster's sample, except that means are still sums.
    nodes        the number of nodes by metric.
    gauge_nodes  the number of nodes by gauge.
    spread       each gauge's lowest and highest value.
    unknown      series without a common value: texts that differ, and histograms whose buckets are missing on a node
                 that served operations.
    """

    values: Mapping[Series, Derived]
    elapsed_s: Mapping[str, float]
    nodes: Mapping[str, int]
    gauge_nodes: Mapping[Series, int]
    spread: Mapping[Series, tuple[float, float]]
    unknown: Collection[Series]

    def sample(self, catalogue: Mapping[str, Metric], tick: Tick, incomplete: Collection[Series] = ()) -> Sample:
        """Return the sample of the nodes; see `merged`."""
        values: dict[Series, Derived] = {}
        for series, value in self.values.items():
            metric = catalogue.get(series[0])
            if isinstance(value, float):
                if is_summed_over_nodes(metric) and series in incomplete:
                    continue
                is_mean = metric is None or metric.aggregation is Aggregation.MEAN
                values[series] = value / self.gauge_nodes[series] if is_mean else value
            else:
                values[series] = _divided(metric, value, self.nodes[series[0]]) if isinstance(value, Rate) else value
        spread = {series: bounds for series, bounds in self.spread.items() if isinstance(values.get(series), float)}
        return Sample(NAME, tick, values, self.elapsed_s, spread=spread)


def merged(
    catalogue: Mapping[str, Metric], samples: Sequence[Sample], tick: Tick, incomplete: Collection[Series] = ()
) -> Sample:
    """Return the cluster's sample for one interval, given one sample per node.

    Increases and buckets are added. A histogram is omitted if a node that served operations lacks its buckets, because
    its percentiles would not cover that node. Rates and gauges are aggregated as defined by their metrics, and `spread`
    contains each gauge's lowest and highest value. Each elapsed time is the maximum over all nodes.

    incomplete  gauges that at least one node did not report in this interval; their sums are omitted, because they
                would appear to have dropped.
    """
    return aggregated(catalogue, samples).sample(catalogue, tick, incomplete)


def aggregated(catalogue: Mapping[str, Metric], samples: Sequence[Sample]) -> PartialAggregate:
    """Return the aggregate of some nodes, given one sample per node."""
    have_spread = any(sample.spread for sample in samples)

    def spread_of(series: Series, values: Sequence[Derived]) -> tuple[float, float]:
        gauges = _of_type(float, values)
        return _spread(series, samples) if have_spread else (min(gauges), max(gauges))

    values, unknown = _totals(catalogue, samples)
    totals = {series: total for series, (total, _) in values.items()}
    gauges = {series: reported for series, (total, reported) in values.items() if isinstance(total, float)}
    return PartialAggregate(
        totals,
        _longest(sample.elapsed_s for sample in samples),
        Counter(chain.from_iterable(set(map(itemgetter(0), sample.values)) for sample in samples)),
        {series: len(_of_type(float, reported)) for series, reported in gauges.items()},
        {series: spread_of(series, reported) for series, reported in gauges.items()},
        unknown,
    )


def combined(catalogue: Mapping[str, Metric], parts: Sequence[PartialAggregate]) -> PartialAggregate:
    """Return the aggregate of all nodes in `parts`, which must not have nodes in common."""
    values, unknown = _totals(catalogue, parts)
    unknown = {*unknown, *chain.from_iterable(part.unknown for part in parts)}
    gauge_nodes, nodes = Counter[Series](), Counter[str]()
    spread: dict[Series, tuple[float, float]] = {}
    for part in parts:
        nodes.update(part.nodes)
        gauge_nodes.update(part.gauge_nodes)
        for series, (low, high) in part.spread.items():
            lowest, highest = spread.get(series, (low, high))
            spread[series] = min(low, lowest), max(high, highest)
    return PartialAggregate(
        {series: total for series, (total, _) in values.items() if series not in unknown},
        _longest(part.elapsed_s for part in parts),
        nodes,
        gauge_nodes,
        spread,
        unknown,
    )


def _longest(elapsed_times_s: Iterable[Mapping[str, float]]) -> dict[str, float]:
    longest_s: dict[str, float] = {}
    for elapsed_by_source in elapsed_times_s:
        for source, elapsed_s in elapsed_by_source.items():
            longest_s[source] = max(elapsed_s, longest_s.get(source, 0.0))
    return longest_s


def _totals(
    catalogue: Mapping[str, Metric], parts: Sequence[Sample | PartialAggregate]
) -> tuple[dict[Series, tuple[Derived, Sequence[Derived]]], set[Series]]:
    """Return each series' total with the values in it, and the series without a common value."""
    by_series: defaultdict[Series, list[Derived]] = defaultdict(list)
    for part in parts:
        for series, value in part.values.items():
            by_series[series].append(value)
    totals: dict[Series, tuple[Derived, Sequence[Derived]]] = {}
    unknown: set[Series] = set()
    for series, values in by_series.items():
        metric = catalogue.get(series[0])
        total = _total(metric, values)
        if total is None or (isinstance(total, Buckets) and not _complete(metric, series, parts)):
            unknown.add(series)
        else:
            totals[series] = total, values
    return totals, unknown


def _spread(series: Series, samples: Sequence[Sample]) -> tuple[float, float]:
    """Return the lowest and highest value of a gauge; a sample may already be the aggregate of several nodes."""
    ranges = [
        sample.spread.get(series, (gauge, gauge))
        for sample in samples
        if isinstance(gauge := sample.values.get(series), float)
    ]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def is_summed_over_nodes(metric: Metric | None) -> bool:
    """Return whether the metric belongs to the node rather than its machine, and is summed across nodes."""
    return metric is not None and metric.aggregation is Aggregation.SUM and metric.owner is Owner.NODE


# Means are kept as sums; `PartialAggregate.sample` divides them.
_GAUGES: Mapping[Aggregation, Callable[[Sequence[float]], float]] = {
    Aggregation.SUM: sum,
    Aggregation.MEAN: sum,
    Aggregation.MAX: max,
    Aggregation.MIN: min,
}


def _total(metric: Metric | None, values: Sequence[Derived]) -> Derived | None:
    """Return the total of a series' values; None if its texts differ."""
    if rates := _of_type(Rate, values):
        return _rate(rates)
    if buckets := _of_type(Buckets, values):
        return histogram.merge(buckets)
    aggregation = metric.aggregation if metric else Aggregation.MEAN
    if aggregation in _GAUGES and (gauges := _of_type(float, values)):
        return _GAUGES[aggregation](gauges)
    return values[0] if len(set(values)) == 1 else None


def _of_type(kind: type[Kind], values: Sequence[Derived]) -> Sequence[Kind]:
    """Return the values of a type. Usually, all values are, or none is; both are found without a loop in Python."""
    types = set(map(type, values))
    if types == {kind}:
        return cast(Sequence[Kind], values)
    if not any(issubclass(value_type, kind) for value_type in types):
        return ()
    return [value for value in values if isinstance(value, kind)]


def _rate(rates: Sequence[Rate]) -> Rate:
    if len(rates) == 1:
        return rates[0]
    increases, elapsed, aggregated = zip(*rates, strict=True)
    # Usually, each rate is that of one node, and the rates need not be computed one by one.
    are_single = not any(per_s is not None for per_s in aggregated)
    total_per_s = sum(map(truediv, increases, elapsed)) if are_single else sum(rate.per_s for rate in rates)
    return Rate(sum(increases), max(elapsed), total_per_s)


def _divided(metric: Metric | None, total: Rate, nodes: int) -> Rate:
    """Return a counter's rate, given the total; `nodes` counts the nodes with its metric."""
    if nodes == 1:
        return total
    # In a mean, a node that has the metric but not this series counts as a rate of 0.
    divisor = nodes if metric and metric.aggregation is Aggregation.MEAN else 1
    return Rate(total.increase, total.elapsed_s, total.per_s / divisor)


def _complete(metric: Metric | None, series: Series, parts: Sequence[Sample | PartialAggregate]) -> bool:
    """Return whether every node or part in which the histogram's counter increased also has its buckets."""
    counter = (metric.count, *series[1:]) if metric else series
    for part in parts:
        counted = part.values.get(counter)
        if isinstance(counted, Rate) and counted.increase and series not in part.values:
            return False
    return True
