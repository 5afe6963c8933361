"""Samples as points for time series stores: each series with its fields.

A counter has the field `per_s`; a gauge has `value`; a histogram has `count` and, unless it is empty, `p50` to `p999`,
`max`, and the `mean` computed from the counters that belong to it. Text values do not become points, but the
node's identity becomes the points' tags, or part of a dotted name in stores without labels.
"""

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isfinite

from collector.model.histogram import Buckets, highest, quantiles
from collector.model.metric import Metric, Owner, Series
from collector.model.snapshot import Identity, Placement, Rate, Sample
from exporters.bounded_labels import BoundedLabels
from exporters.rows.columns import ratio
from exporters.sinks.sink import NodeTick, Sink

PER_S, VALUE = "per_s", "value"
MACHINE, NETWORK = "machine", "network"
QUANTILES, SHARES = ("p50", "p95", "p99", "p999"), (0.5, 0.95, 0.99, 0.999)
MS = 1000
EVENTS, NO_ANSWER = "casstat_events", "no_answer"
# Separators become underscores, so that addresses and paths stay readable; other special characters are encoded.
SEPARATORS = re.compile(r"[.:/ ]")
OTHERS = re.compile(r"[^A-Za-z0-9_-]")
NOTHING = "_"

Fields = dict[str, float]


class SampleSink(Sink[bytes]):
    """A sink that encodes samples without unbounded labels; the first tick of a session has no sample."""

    _recorded: Mapping[str, Metric] = {}
    _bounded = BoundedLabels({})

    @property
    def catalogue(self) -> Mapping[str, Metric]:
        """The metrics of the last tick's recording, without unbounded labels."""
        return self._bounded.catalogue

    @abstractmethod
    def encode_sample(self, tick: NodeTick, sample: Sample) -> list[bytes]:
        """Return the points of a tick's sample, here without unbounded labels, in the store's format."""

    def encode(self, tick: NodeTick) -> list[bytes]:
        if tick.sample is None:
            return []
        if tick.header.catalogue is not self._recorded:
            self._recorded = tick.header.catalogue
            self._bounded = BoundedLabels(self._recorded)
        return self.encode_sample(tick, replace(tick.sample, values=self._bounded.values(tick.sample.values)))

    def size_bytes(self, point: bytes) -> int:
        return len(point)

    def text(self, point: bytes) -> bytes:
        return point


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


def part(text: str) -> str:
    """Return `text` as one part of a name, with only characters that every store accepts."""
    plain = SEPARATORS.sub("_", text)
    return (
        OTHERS.sub(lambda match: "".join(f"_{byte:02x}" for byte in match[0].encode(errors="replace")), plain)
        or NOTHING
    )


class PathCache:
    """Caches the dotted name of each series: PREFIX.cluster.dc.rack.node.metric.labels.

    All names of a metric have the same number of parts.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = [prefix] if prefix else []
        self._identity = Identity()
        self._paths: dict[Series, str] = {}

    def of(self, identity: Identity, series: Series) -> str:
        if identity != self._identity:
            self._identity, self._paths = identity, {}
        if series not in self._paths:
            words = identity.cluster, identity.dc, identity.rack, identity.node, *series
            self._paths[series] = ".".join([*self._prefix, *map(part, words)])
        return self._paths[series]
