"""Samples as points for time series stores: each series with its fields.

A counter has the field `per_s`; a gauge has `value`; a histogram has `count` and, unless it is empty, `p50` to `p999`,
`max`, and the `mean` computed from the counters that belong to it. Text values do not become points, but the
node's identity becomes the points' tags.
"""

from collections.abc import Iterator, Mapping
from math import isfinite

from collector.merge.aggregation import Placement
from collector.model.histogram import Buckets, highest, quantiles
from collector.model.metric import Metric, Owner, Series
from collector.model.sample import Rate, Sample
from exporters.rows.formulas import ratio

PER_S, VALUE = "per_s", "value"
MACHINE, NETWORK = "machine", "network"
QUANTILES, SHARES = ("p50", "p95", "p99", "p999"), (0.5, 0.95, 0.99, 0.999)
MS = 1000
EVENTS, NO_ANSWER = "casstat_events", "no_answer"

Fields = dict[str, float]


def rows(catalogue: Mapping[str, Metric], sample: Sample) -> Iterator[tuple[Series, Fields]]:
    """Yield each series that the catalogue defines, with its fields; omit text values and non-finite numbers."""
    for series, value in sample.values.items():
        metric = catalogue.get(series[0])
        if metric is None or isinstance(value, str) or len(series) != len(metric.labels) + 1:
            continue
        if isinstance(value, Buckets):
            yield series, histogram_fields(metric, series, value, sample)
        else:
            number = value.per_s if isinstance(value, Rate) else value
            if isfinite(number):
                yield series, {PER_S if isinstance(value, Rate) else VALUE: number}


def histogram_fields(metric: Metric, series: Series, buckets: Buckets, sample: Sample) -> Fields:
    """Return a histogram's fields for the interval."""
    fields = {"count": float(buckets.total)}
    mean = ratio(sample, (metric.total, *series[1:]), (metric.count, *series[1:]))
    if mean is not None and isfinite(mean):
        fields["mean"] = mean
    if buckets.total:
        fields.update(zip(QUANTILES, quantiles(buckets, SHARES), strict=True))
        fields["max"] = highest(buckets) or 0.0
    return fields


def events(sample: Sample) -> dict[str, list[str]]:
    """Return the event texts, keyed by kind, without the kind `no_answer`, which occurs on every tick of an outage."""
    fields: dict[str, list[str]] = {}
    for event in sample.events:
        if event.kind != NO_ANSWER:
            fields.setdefault(event.kind, []).append(event.text)
    return fields


def time_ms(sample: Sample) -> int:
    """Return the time of a sample's points, which is that of its tick, in milliseconds since the epoch."""
    return round(sample.tick.time_s * MS)


def tags(metric: Metric, series: Series) -> list[tuple[str, str]]:
    """Return the labels of a series with their values, omitting those without a value."""
    return [(name, value) for name, value in zip(metric.labels, series[1:], strict=True) if value]


def owner_tags(metric: Metric, placement: Placement) -> list[tuple[str, str]]:
    """Return the tags that identify the machine or network that a series describes.

    There are none for a node's own series or an unknown machine. The machine's tag changes at every reboot.
    """
    if metric.owner is Owner.NODE or not placement.machine:
        return []
    network = [(NETWORK, placement.network)] if metric.owner is Owner.NETWORK and placement.network else []
    return [(MACHINE, placement.machine), *network]
