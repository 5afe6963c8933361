"""Many nodes' intervals as one: the same for nodes that are just read and for their recordings."""

from collections.abc import Mapping, Sequence

from collector import histogram
from collector.histogram import Buckets
from collector.model import Derived, Metric, Rate, Sample, Series, Tick

NAME = "cluster"


def merged(catalogue: Mapping[str, Metric], samples: Sequence[Sample], tick: Tick) -> Sample:
    """Return what the nodes did together in one interval, of which each of them has one sample.

    Gains, rates and buckets are sums: percentiles come from the buckets of all, and are absent where a node that
    counted something has none, as they would be those of the others. Gauges are the mean over the nodes, with the
    least and the greatest; a text is there when all say the same. Elapsed times are the longest of any node.
    """
    found: dict[Series, list[tuple[Sample, Derived]]] = {}
    elapsed: dict[str, float] = {}
    for sample in samples:
        for series, value in sample.values.items():
            found.setdefault(series, []).append((sample, value))
        for source, elapsed_s in sample.elapsed_s.items():
            elapsed[source] = max(elapsed_s, elapsed.get(source, 0.0))
    values: dict[Series, Derived] = {}
    spread: dict[Series, tuple[float, float]] = {}
    for series, parts in found.items():
        joined = _joined([value for _, value in parts])
        if isinstance(joined, Buckets) and not _complete(catalogue, series, samples):
            continue
        if joined is not None:
            values[series] = joined
        if isinstance(joined, float):
            ranges = [sample.spread.get(series, (value, value)) for sample, value in parts if isinstance(value, float)]
            spread[series] = min(least for least, _ in ranges), max(most for _, most in ranges)
    return Sample(NAME, tick, values, elapsed, spread=spread)


def _joined(values: Sequence[Derived]) -> Derived | None:
    rates = [value for value in values if isinstance(value, Rate)]
    if rates:
        return together(rates)
    buckets = [value for value in values if isinstance(value, Buckets)]
    if buckets:
        return histogram.merge(buckets)
    gauges = [value for value in values if isinstance(value, float)]
    if gauges:
        return sum(gauges) / len(gauges)
    return values[0] if len(set(values)) == 1 else None


def together(rates: Sequence[Rate]) -> Rate:
    """Return what several counters gained together."""
    if len(rates) == 1:
        return rates[0]
    return Rate(
        sum(rate.gained for rate in rates), max(rate.elapsed_s for rate in rates), sum(rate.per_s for rate in rates)
    )


def _complete(catalogue: Mapping[str, Metric], series: Series, samples: Sequence[Sample]) -> bool:
    """Return whether every node that counted something has it in buckets too."""
    metric = catalogue.get(series[0])
    counter = (metric.count, *series[1:]) if metric else series
    for sample in samples:
        counted = sample.values.get(counter)
        if isinstance(counted, Rate) and counted.gained and series not in sample.values:
            return False
    return True
