"""What stores of time series are told of a sample: numbers per second and of the interval, each series with its fields.

Counters are `per_s`, gauges `value`; histograms `count` and, when something happened, `p50` to `p999`, `max` and the
`mean` of the counters beside them. Texts are no points: who the node is becomes the points' tags.
"""

from collections.abc import Iterator, Mapping
from math import isfinite

from collector.model.histogram import Buckets, highest, quantiles
from collector.model.metric import Metric, Series
from collector.model.sample import Rate, Sample
from exporters.line.columns import ratio

PER_S, VALUE = "per_s", "value"
QUANTILES, SHARES = ("p50", "p95", "p99", "p999"), (0.5, 0.95, 0.99, 0.999)
MS = 1000
EVENTS, NO_NEWS = "casstat_events", "no_answer"

Fields = dict[str, float]


def rows(catalogue: Mapping[str, Metric], sample: Sample) -> Iterator[tuple[Series, Fields]]:
    """Yield each series with its fields; what `catalogue` does not have, and what is no finite number, is left out."""
    for series, value in sample.values.items():
        metric = catalogue.get(series[0])
        if metric is None or isinstance(value, str) or len(series) != len(metric.labels) + 1:
            continue
        if isinstance(value, Buckets):
            yield series, interval(metric, series, value, sample)
        else:
            number = value.per_s if isinstance(value, Rate) else value
            if isfinite(number):
                yield series, {PER_S if isinstance(value, Rate) else VALUE: number}


def interval(metric: Metric, series: Series, buckets: Buckets, sample: Sample) -> Fields:
    """Return what a histogram says of the interval."""
    found = {"count": float(buckets.total)}
    mean = ratio(sample, (metric.total, *series[1:]), (metric.count, *series[1:]))
    if mean is not None and isfinite(mean):
        found["mean"] = mean
    if buckets.total:
        found.update(zip(QUANTILES, quantiles(buckets, SHARES), strict=True))
        found["max"] = highest(buckets) or 0.0
    return found


def events(sample: Sample) -> dict[str, list[str]]:
    """Return what is told of each kind of event; that a node still does not answer is no news in every tick."""
    found: dict[str, list[str]] = {}
    for event in sample.events:
        if event.kind != NO_NEWS:
            found.setdefault(event.kind, []).append(event.text)
    return found


def time_ms(sample: Sample) -> int:
    """Return the time of all points of a sample: its tick's, in milliseconds since the epoch."""
    return round(sample.tick.time_s * MS)


def tags(metric: Metric, series: Series) -> list[tuple[str, str]]:
    """Return a series' own labels with their values, those that are empty left out."""
    return [(name, value) for name, value in zip(metric.labels, series[1:], strict=True) if value]
