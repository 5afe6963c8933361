"""Points: encoded data points of OpenTelemetry metrics.

The head of a point contains the metric's kind, and the encoded resource, metric and attributes, each with its length.
The content is a data point without its attributes.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from prometheus_client.metrics_core import Metric as PrometheusMetric
from prometheus_client.samples import Sample as PrometheusSample

from collector.model.histogram import LayoutError
from collector.model.metric import Kind, Metric, Series
from exporters.metrics_page.metric_family import (
    INFO_HELP,
    CurrentValues,
    Group,
    SeriesCache,
    UpperBounds,
    encodable,
    histogram_sum,
    numbers,
    text_labels,
)
from exporters.sinks.parts.otlp_names import OtlpName, otlp_name
from exporters.sinks.parts.page_series import Samples, SeriesPoint
from exporters.sinks.parts.protobuf_fields import FIXED64, bytes_field, read_varint, varint, varint_field

NS_PER_MS = 1_000_000
# The size of a field with a time: its key and eight bytes.
FIXED_BYTES = 9
# The kinds of metrics. The values of CASSANDRA kinds began to count when Cassandra's JVM started.
GAUGE, SUM, CASSANDRA_SUM, HISTOGRAM, CASSANDRA_HISTOGRAM = range(5)
WITH_START = frozenset({CASSANDRA_SUM, CASSANDRA_HISTOGRAM})
HISTOGRAMS = frozenset({HISTOGRAM, CASSANDRA_HISTOGRAM})
# The numbers of fields in NumberDataPoint and HistogramDataPoint.
START, TIME = 2, 3
VALUE, NUMBER_ATTRIBUTES, NUMBER_FLAGS = 4, 7, 8
COUNT, TOTAL, COUNTS, BOUNDS, ATTRIBUTES, FLAGS = 4, 5, 6, 7, 9, 10
NO_RECORDED_VALUE = 1
# The numbers of fields in Metric, KeyValue and AnyValue.
NAME, HELP, UNIT = 1, 2, 3
KEY, ANY, STRING = 1, 2, 1


class Head(NamedTuple):
    """The parts of a head: the resource, the metric without data points, and the attributes of the data point."""

    kind: int
    resource: bytes
    metric: bytes
    attributes: bytes


def encoded_attributes(number: int, attributes: Iterable[tuple[str, str]]) -> bytes:
    """Encode attributes as fields with this number; those without a value are left out."""
    return b"".join(
        bytes_field(number, _text(KEY, key) + bytes_field(ANY, _text(STRING, value)))
        for key, value in sorted(dict(attributes).items())
        if value
    )


def head_of(kind: int, resource: bytes, metric: bytes, attributes: Iterable[tuple[str, str]]) -> bytes:
    """Return the head of a series."""
    encoded = encoded_attributes(ATTRIBUTES if kind in HISTOGRAMS else NUMBER_ATTRIBUTES, attributes)
    return bytes([kind]) + b"".join(varint(len(part)) + part for part in (resource, metric, encoded))


def encoded_metric(name: str, unit: str, help_text: str) -> bytes:
    """Encode a metric without data points."""
    return _text(NAME, name) + _text(HELP, help_text) + _text(UNIT, unit)


@lru_cache(maxsize=1 << 14)
def decoded_head(head: bytes) -> Head:
    """Return the parts of a head."""
    parts, position = [], 1
    for _ in range(3):
        length, begin = read_varint(head, position)
        position = begin + length
        parts.append(head[begin:position])
    return Head(head[0], *parts)


def time_ms_of(content: bytes) -> int:
    """Return the time of a point in milliseconds."""
    begin = 1 if content[0] == TIME << 3 | FIXED64 else FIXED_BYTES + 1
    (time_ns,) = struct.unpack_from("<Q", content, begin)
    return int(time_ns) // NS_PER_MS


def number_points(
    heads: Sequence[bytes], values: Sequence[float], time_ms: int, start_ms: int | None
) -> list[SeriesPoint]:
    """Return points with numbers."""
    packed, times = struct.pack(f"<{len(values)}d", *values), _times(time_ms, start_ms)
    key = varint(VALUE << 3 | FIXED64)
    starts = range(0, len(packed), 8)
    return [
        (head, times[head[0] in WITH_START] + key + packed[start : start + 8])
        for head, start in zip(heads, starts, strict=True)
    ]


def histogram_message(bounds: Sequence[float], counts: Sequence[int], total: float | None) -> bytes:
    """Return a histogram's data point without its times; `counts` has one more item than `bounds`."""
    encoded = _fixed(COUNT, struct.pack("<Q", sum(counts)))
    encoded += b"" if total is None else _fixed(TOTAL, struct.pack("<d", total))
    encoded += bytes_field(COUNTS, struct.pack(f"<{len(counts)}Q", *counts))
    return encoded + bytes_field(BOUNDS, struct.pack(f"<{len(bounds)}d", *bounds))


def histogram_point(head: bytes, message: bytes, time_ms: int, start_ms: int | None) -> SeriesPoint:
    """Return a point with a histogram."""
    return head, _times(time_ms, start_ms)[head[0] in WITH_START] + message


def end_point(head: bytes, time_ms: int) -> SeriesPoint:
    """Return a point that states that a series has no value any more."""
    flags = FLAGS if head[0] in HISTOGRAMS else NUMBER_FLAGS
    return head, _times(time_ms, None)[False] + varint_field(flags, NO_RECORDED_VALUE)


def _times(time_ms: int, start_ms: int | None) -> dict[bool, bytes]:
    """Return the times of a data point that counts from the JVM's start (True), and of any other."""
    time = _fixed(TIME, struct.pack("<Q", time_ms * NS_PER_MS))
    start = b"" if start_ms is None else _fixed(START, struct.pack("<Q", start_ms * NS_PER_MS))
    return {True: start + time, False: time}


def _fixed(number: int, content: bytes) -> bytes:
    return varint(number << 3 | FIXED64) + content


def _text(number: int, text: str) -> bytes:
    return bytes_field(number, text.encode())


# Unused heads are deleted when the number of cached series exceeds twice the current number by more than SPARE.
SPARE = 1000
CASSANDRA = "cassandra_"
INFINITE = "+Inf"

Labels = Sequence[tuple[str, str]]


class OtlpSeries:
    """Renders the series of one node; implements `exporters.sinks.parts.page_series.PageRenderer`."""

    def __init__(
        self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, resource: bytes, common: Mapping[str, str]
    ) -> None:
        """Give all series an encoded resource and the attributes in `common`."""
        self._catalogue = catalogue
        self._upper_bounds = upper_bounds
        self._resource = resource
        self._common = common
        self._heads = SeriesCache(self._metric_head)
        self._text_heads: dict[tuple[int, str, tuple[tuple[str, str], ...]], bytes] = {}
        self._messages: dict[Series, tuple[tuple[int, ...], float | None, bytes]] = {}

    def body(self, metric: Metric, group: Group, current: CurrentValues) -> Samples:
        """Return the series of a metric; `current` contains the counters that hold the histogram sums."""
        if metric.kind is Kind.HISTOGRAM:
            return self._histograms(metric, group, current)
        if metric.kind is Kind.TEXT:
            heads = [
                self._text_head(GAUGE, metric.name, "1", metric.help, text_labels(metric, series, value))
                for series, value in group.items()
            ]
            return Samples(heads, [1.0] * len(heads))
        all_series, values = numbers(metric, group)
        return Samples(self._heads.of(metric, all_series), values)

    def info(self, name: str, texts: Iterable[tuple[str, str]]) -> Samples:
        """Return one series with these names and values as labels; its own value is always 1."""
        return Samples([self._text_head(GAUGE, name, "1", INFO_HELP, texts)], [1.0])

    def families(self, families: Iterable[PrometheusMetric]) -> Samples:
        """Return the series of families of prometheus_client."""
        heads, values, messages = list[bytes](), list[float](), dict[bytes, bytes]()
        for family in families:
            if family.type == "histogram":
                messages.update(self._family_histograms(family))
                continue
            kind = SUM if family.type == "counter" else GAUGE
            for sample in family.samples:
                labels = sample.labels.items()
                heads.append(self._text_head(kind, sample.name, _unit(family.name), family.documentation, labels))
                values.append(sample.value)
        return Samples(heads, values, messages)

    def keep(self, current: CurrentValues) -> None:
        """Delete what is cached for series that are not in `current`, if there is much of it."""
        limit = 2 * len(current) + SPARE
        if len(self._messages) > limit:
            self._messages = {series: message for series, message in self._messages.items() if series in current}
        if len(self._text_heads) > limit:
            self._text_heads = {}

    def _histograms(self, metric: Metric, group: Group, current: CurrentValues) -> Samples:
        total, messages = self._catalogue.get(metric.total), dict[bytes, bytes]()
        heads = self._heads.of(metric, group.series)
        for head, (series, counts) in zip(heads, group.items(), strict=True):
            if not isinstance(counts, tuple) or min(counts) < 0:
                continue
            sum_value = histogram_sum(total, series, current)
            known = self._messages.get(series)
            if known is None or known[:2] != (counts, sum_value):
                try:
                    message = self._message(metric, counts, sum_value)
                except LayoutError:
                    continue
                known = self._messages[series] = (counts, sum_value, message)
            messages[head] = known[2]
        return Samples([], [], messages)

    def _message(self, metric: Metric, counts: Sequence[int], sum_value: float | None) -> bytes:
        """Return a histogram with the bounds and labels of /metrics. Raises LayoutError."""
        bounds = self._upper_bounds.bounds(metric.unit, len(counts))
        cumulative = list(accumulate(counts))
        at_bounds = [*(cumulative[bound.bucket] for bound in bounds), cumulative[-1]]
        return histogram_message([float(bound.le) for bound in bounds], _differences(at_bounds), sum_value)

    def _family_histograms(self, family: PrometheusMetric) -> Iterator[tuple[bytes, bytes]]:
        """Yield the head and message of each histogram of a family."""
        by_labels: dict[tuple[tuple[str, str], ...], list[PrometheusSample]] = {}
        for sample in family.samples:
            labels = tuple((name, value) for name, value in sample.labels.items() if name != "le")
            by_labels.setdefault(labels, []).append(sample)
        for labels, samples in by_labels.items():
            buckets = [sample for sample in samples if "le" in sample.labels]
            bounds = [float(sample.labels["le"]) for sample in buckets if sample.labels["le"] != INFINITE]
            counts = _differences([int(sample.value) for sample in buckets])
            total = next((sample.value for sample in samples if sample.name.endswith("_sum")), None)
            unit = _unit(family.name)
            head = self._text_head(HISTOGRAM, family.name, unit, family.documentation, labels)
            yield head, histogram_message(bounds, counts, total)

    def _metric_head(self, metric: Metric, series: Series) -> bytes:
        is_cassandra = metric.name.startswith(CASSANDRA)
        kind = {
            Kind.COUNTER: CASSANDRA_SUM if is_cassandra else SUM,
            Kind.HISTOGRAM: CASSANDRA_HISTOGRAM if is_cassandra else HISTOGRAM,
        }.get(metric.kind, GAUGE)
        name = otlp_name(metric.name, metric.unit)
        labels = list(zip(metric.labels, series[1:], strict=True))
        return self._head(kind, name, metric.help, labels)

    def _text_head(self, kind: int, name: str, unit: str, help_text: str, labels: Iterable[tuple[str, str]]) -> bytes:
        """Return the head of a series that is identified by its name and labels."""
        key = kind, name, tuple(labels)
        if key not in self._text_heads:
            self._text_heads[key] = self._head(kind, otlp_name(name, unit), help_text, key[2])
        return self._text_heads[key]

    def _head(self, kind: int, name: OtlpName, help_text: str, labels: Labels) -> bytes:
        renamed = [(name.renamed.get(label, label), value) for label, value in labels]
        attributes = [*self._common.items(), *renamed, *name.fixed.items()]
        encoded = ((key, encodable(value)) for key, value in attributes)
        return head_of(kind, self._resource, encoded_metric(name.name, name.unit, help_text), encoded)


def _differences(cumulative: Sequence[int]) -> list[int]:
    return [count - before for count, before in zip(cumulative, [0, *cumulative], strict=False)]


def _unit(name: str) -> str:
    """Return the unit at the end of a name."""
    return next((unit for unit in ("seconds", "bytes") if name.endswith(f"_{unit}")), "1")


# Labels of a scrape that identify the service, and the attributes of a resource that become these labels in Prometheus.
RESOURCE = {"job": "service.name", "instance": "service.instance.id"}
SCOPE, DATABASE = "casstat", {"db.system.name": "cassandra"}
# The numbers of fields in ExportMetricsServiceRequest, ResourceMetrics, Resource, ScopeMetrics, InstrumentationScope.
RESOURCE_METRICS, OF_RESOURCE, SCOPE_METRICS, RESOURCE_ATTRIBUTES, OF_SCOPE, METRICS, SCOPE_NAME = 1, 1, 2, 1, 1, 2, 1
# The numbers of fields in Metric for the data, and in Gauge, Sum and Histogram.
DATA = {GAUGE: 5, SUM: 7, CASSANDRA_SUM: 7}
HISTOGRAM_DATA, DATA_POINTS, TEMPORALITY, IS_MONOTONIC, CUMULATIVE = 9, 1, 2, 3, 2


class OtlpFormat:
    """Implements `exporters.sinks.parts.page_series.SeriesFormat`."""

    def renderer(
        self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, common: Mapping[str, str]
    ) -> OtlpSeries:
        """Return a renderer for the series of a node; the job and instance in `common` identify the resource."""
        identity = {RESOURCE[label]: value for label, value in common.items() if label in RESOURCE}
        resource = encoded_attributes(RESOURCE_ATTRIBUTES, {**identity, **DATABASE}.items())
        rest = {label: value for label, value in common.items() if label not in RESOURCE}
        return OtlpSeries(catalogue, upper_bounds, resource, rest)

    def points(self, samples: Samples, time_ms: int, start_ms: int | None) -> list[SeriesPoint]:
        """Return the points of a tick."""
        histograms = [histogram_point(head, message, time_ms, start_ms) for head, message in samples.messages.items()]
        return number_points(samples.heads, samples.values, time_ms, start_ms) + histograms

    def ends(self, heads: Sequence[bytes], time_ms: int) -> list[SeriesPoint]:
        """Return points that mark the end of series."""
        return [end_point(head, time_ms) for head in heads]


def request(points: Sequence[SeriesPoint]) -> bytes:
    """Return an ExportMetricsServiceRequest with these points, grouped by resource and metric."""
    resources: dict[bytes, dict[tuple[int, bytes], list[bytes]]] = {}
    for encoded_head, data_point in points:
        head = decoded_head(encoded_head)
        metrics = resources.setdefault(head.resource, {})
        metrics.setdefault((head.kind, head.metric), []).append(bytes_field(DATA_POINTS, head.attributes + data_point))
    scope = bytes_field(OF_SCOPE, bytes_field(SCOPE_NAME, SCOPE.encode()))
    parts = []
    for resource, metrics in resources.items():
        encoded = b"".join(
            bytes_field(METRICS, _metric(kind, metric, data)) for (kind, metric), data in metrics.items()
        )
        content = bytes_field(OF_RESOURCE, resource) + bytes_field(SCOPE_METRICS, scope + encoded)
        parts.append(bytes_field(RESOURCE_METRICS, content))
    return b"".join(parts)


def _metric(kind: int, metric: bytes, data_points: Sequence[bytes]) -> bytes:
    data = b"".join(data_points)
    if kind in HISTOGRAMS:
        return metric + bytes_field(HISTOGRAM_DATA, data + varint_field(TEMPORALITY, CUMULATIVE))
    if kind != GAUGE:
        data += varint_field(TEMPORALITY, CUMULATIVE) + varint_field(IS_MONOTONIC, 1)
    return metric + bytes_field(DATA[kind], data)
