"""Many nodes' intervals as one: the same for nodes that are just read and for their recordings.

How the values of several nodes become the cluster's is said by each metric's row (`Metric.aggregation`), and so is what
nodes on one machine share (`Metric.owner`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Aggregation, Metric, Owner, Series
from collector.model.sample import Derived, Rate, Sample
from collector.model.snapshot import Tick

NAME = "cluster"
WATCHED = "watched"
"""Device label of a node's watched disk and interface, which have another name on each machine."""


@dataclass(frozen=True)
class Placement:
    """Where a node runs. Nodes on one machine report the same series of it.

    machine    its boot id; "" where it is not known, and nothing is shared.
    network    the network namespace on that machine.
    disk       the disk that the node's samples call WATCHED, and `interface` the network interface.
    """

    machine: str = ""
    network: str = ""
    disk: str = ""
    interface: str = ""

    def shared(self, metric: Metric | None, series: Series) -> Series:
        """Return what identifies a series among all nodes that report it; () for a series of the node alone."""
        if not self.machine or metric is None or metric.owner is Owner.NODE:
            return ()
        is_network = metric.owner is Owner.NETWORK
        if series[1:] == (WATCHED,):
            series = (series[0], self.interface if is_network else self.disk)
        return (self.machine, self.network if is_network else "", *series)


def counted_once(catalogue: Mapping[str, Metric], nodes: Iterable[tuple[Placement, Sample]]) -> list[Sample]:
    """Return the nodes' samples, each without the series of a machine or network that a node before it reports too."""
    seen: set[Series] = set()
    samples = []
    for placement, sample in nodes:
        shared = {series: placement.shared(catalogue.get(series[0]), series) for series in sample.values}
        again = {series for series, key in shared.items() if key in seen}
        seen.update(key for key in shared.values() if key)
        kept = {series: value for series, value in sample.values.items() if series not in again}
        samples.append(replace(sample, values=kept) if again else sample)
    return samples


def merged(
    catalogue: Mapping[str, Metric], samples: Sequence[Sample], tick: Tick, lacking: Collection[Series] = ()
) -> Sample:
    """Return what the nodes did together in one interval, of which each of them has one sample.

    Increases and buckets add up: percentiles come from the buckets of all, and are absent where a node that counted
    something has none, as they would be those of the others. Rates and gauges are aggregated as their metrics say; a
    gauge has the lowest and the highest value of any node beside it. Elapsed times are the longest of any node.

    lacking  series that some node did not report in this interval: a sum without that node would look like a drop.
    """
    parts: dict[Series, list[tuple[Sample, Derived]]] = {}
    elapsed: dict[str, float] = {}
    for sample in samples:
        for series, value in sample.values.items():
            parts.setdefault(series, []).append((sample, value))
        for source, elapsed_s in sample.elapsed_s.items():
            elapsed[source] = max(elapsed_s, elapsed.get(source, 0.0))
    nodes = Counter(name for sample in samples for name in {series[0] for series in sample.values})
    values: dict[Series, Derived] = {}
    spread: dict[Series, tuple[float, float]] = {}
    for series, known in parts.items():
        metric = catalogue.get(series[0])
        whole = _aggregated(metric, [value for _, value in known], nodes[series[0]])
        if whole is None or (isinstance(whole, Buckets) and not _complete(metric, series, samples)):
            continue
        if isinstance(whole, float):
            if is_own_sum(metric) and series in lacking:
                continue
            ranges = [sample.spread.get(series, (value, value)) for sample, value in known if isinstance(value, float)]
            spread[series] = min(least for least, _ in ranges), max(most for _, most in ranges)
        values[series] = whole
    return Sample(NAME, tick, values, elapsed, spread=spread)


def is_own_sum(metric: Metric | None) -> bool:
    """Return whether the cluster's value is the sum of values that every node has for itself."""
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
    """Return the cluster's value of a series; its metric is known on that many nodes."""
    rates = [value for value in values if isinstance(value, Rate)]
    if rates:
        return _rate(metric, rates, nodes)
    buckets = [value for value in values if isinstance(value, Buckets)]
    if buckets:
        return histogram.merge(buckets)
    gauges = [value for value in values if isinstance(value, float)]
    if gauges:
        return _GAUGES[metric.aggregation if metric else Aggregation.MEAN](gauges)
    return values[0] if len(set(values)) == 1 else None


def _rate(metric: Metric | None, rates: Sequence[Rate], nodes: int) -> Rate:
    if nodes == 1:
        return rates[0]
    # A node that has the metric, but not with these labels, counted nothing there.
    divisor = nodes if metric and metric.aggregation is Aggregation.MEAN else 1
    per_s = sum(rate.per_s for rate in rates) / divisor
    return Rate(sum(rate.increase for rate in rates), max(rate.elapsed_s for rate in rates), per_s)


def _complete(metric: Metric | None, series: Series, samples: Sequence[Sample]) -> bool:
    """Return whether every node that counted something has it in buckets too."""
    counter = (metric.count, *series[1:]) if metric else series
    for sample in samples:
        counted = sample.values.get(counter)
        if isinstance(counted, Rate) and counted.increase and series not in sample.values:
            return False
    return True
