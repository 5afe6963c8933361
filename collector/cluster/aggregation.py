"""Aggregation across nodes, for both live clusters and merged recordings.

Each metric defines how the values of several nodes are aggregated (`Metric.aggregation`), and whether nodes on the same
machine share the values (`Metric.owner`).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter, truediv
from typing import TypeVar, cast

from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Aggregation, Metric, Owner, Series
from collector.model.sample import Derived, Rate, Sample
from collector.model.snapshot import Tick

NAME = "cluster"
WATCHED = "watched"
"""The label that replaces the names of a node's watched disk and interface, which differ between machines."""
Kind = TypeVar("Kind", float, Rate, Buckets)


@dataclass(frozen=True)
class Placement:
    """Where a node runs. Nodes on the same machine all report that machine's series.

    machine    the machine's boot id; "" if unknown, in which case nothing is shared.
    network    the network namespace on that machine.
    disk       the disk labelled WATCHED in the node's samples; `interface` is the network interface with that label.
    """

    machine: str = ""
    network: str = ""
    disk: str = ""
    interface: str = ""

    def shared(self, metric: Metric | None, series: Series) -> Series:
        """Return a key that is equal for all nodes that share the series; () for a series that is not shared."""
        if not self.machine or metric is None or metric.owner is Owner.NODE:
            return ()
        is_network = metric.owner is Owner.NETWORK
        if series[1:] == (WATCHED,):
            series = (series[0], self.interface if is_network else self.disk)
        return (self.machine, self.network if is_network else "", *series)


NOWHERE = Placement()


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
    by_series: defaultdict[Series, list[Derived]] = defaultdict(list)
    elapsed: dict[str, float] = {}
    for sample in samples:
        for series, value in sample.values.items():
            by_series[series].append(value)
        for source, elapsed_s in sample.elapsed_s.items():
            elapsed[source] = max(elapsed_s, elapsed.get(source, 0.0))
    nodes = Counter(chain.from_iterable(set(map(itemgetter(0), sample.values)) for sample in samples))
    have_spread = any(sample.spread for sample in samples)
    values: dict[Series, Derived] = {}
    spread: dict[Series, tuple[float, float]] = {}
    for series, reported in by_series.items():
        metric = catalogue.get(series[0])
        aggregate = _aggregated(metric, reported, nodes[series[0]])
        if aggregate is None or (isinstance(aggregate, Buckets) and not _complete(metric, series, samples)):
            continue
        if isinstance(aggregate, float):
            if is_summed_over_nodes(metric) and series in incomplete:
                continue
            spread[series] = _spread(series, samples) if have_spread else _range(_of_type(float, reported))
        values[series] = aggregate
    return Sample(NAME, tick, values, elapsed, spread=spread)


def _spread(series: Series, samples: Sequence[Sample]) -> tuple[float, float]:
    """Return the lowest and highest value of a gauge; a sample may already be the aggregate of several nodes."""
    ranges = [
        sample.spread.get(series, (gauge, gauge))
        for sample in samples
        if isinstance(gauge := sample.values.get(series), float)
    ]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _range(gauges: Sequence[float]) -> tuple[float, float]:
    return min(gauges), max(gauges)


def is_summed_over_nodes(metric: Metric | None) -> bool:
    """Return whether the metric belongs to the node rather than its machine, and is summed across nodes."""
    return metric is not None and metric.aggregation is Aggregation.SUM and metric.owner is Owner.NODE


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


_GAUGES: Mapping[Aggregation, Callable[[Sequence[float]], float]] = {
    Aggregation.SUM: sum,
    Aggregation.MEAN: _mean,
    Aggregation.MAX: max,
    Aggregation.MIN: min,
}


def _aggregated(metric: Metric | None, values: Sequence[Derived], nodes: int) -> Derived | None:
    """Return the cluster's value for a series; None if its texts differ. `nodes` counts the nodes with its metric."""
    if rates := _of_type(Rate, values):
        return _rate(metric, rates, nodes)
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


def _rate(metric: Metric | None, rates: Sequence[Rate], nodes: int) -> Rate:
    if nodes == 1:
        return rates[0]
    # In a mean, a node that has the metric but not this series counts as a rate of 0.
    divisor = nodes if metric and metric.aggregation is Aggregation.MEAN else 1
    increases, elapsed, aggregated = zip(*rates, strict=True)
    # Usually, each rate is that of one node, and the rates need not be computed one by one.
    are_single = not any(per_s is not None for per_s in aggregated)
    total_per_s = sum(map(truediv, increases, elapsed)) if are_single else sum(rate.per_s for rate in rates)
    return Rate(sum(increases), max(elapsed), total_per_s / divisor)


def _complete(metric: Metric | None, series: Series, samples: Sequence[Sample]) -> bool:
    """Return whether every node on which the histogram's counter increased also has its buckets."""
    counter = (metric.count, *series[1:]) if metric else series
    for sample in samples:
        counted = sample.values.get(counter)
        if isinstance(counted, Rate) and counted.increase and series not in sample.values:
            return False
    return True
