"""The OpenTelemetry protocol: the series of /metrics as data points, and the requests that carry them.

The head of a point contains the metric's kind, and the encoded resource, metric and attributes, each with its length.
The content is a data point without its attributes.

Host metrics have the names of the semantic conventions for systems (version 1.29) where there are any. All other names
are those of Prometheus with a dot after the first word, without the suffixes that a translation to Prometheus adds
again: the unit and `_total`. Prometheus and the OpenTelemetry Collector therefore restore the names of /metrics. There
are no conventions for the metrics of a database server, so Cassandra's metrics keep their own names.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from prometheus_client.metrics_core import Metric as PrometheusMetric
from prometheus_client.samples import Sample as PrometheusSample

from collector.model.metric import Metric, Series
from exporters.metrics_page.metric_family import Family, Labels, UpperBounds, encodable
from exporters.sinks.parts.protobuf_fields import FIXED64, bytes_field, read_varint, varint, varint_field
from exporters.sinks.parts.tick_encoder import PageRenderer, Samples, SeriesPoint, between_bounds, differences

# The unit in UCUM, and the suffix that a translation to Prometheus adds (`_ratio` to gauges with the unit 1).
UNITS = {"seconds": ("s", "_seconds"), "bytes": ("By", "_bytes"), "ratio": ("1", "_ratio"), "1": ("", "")}
_COUNTER_SUFFIX = "_total"


@dataclass(frozen=True)
class OtlpName:
    """The identity of a metric in OpenTelemetry.

    renamed  new names of the metric's labels.
    fixed    attributes that distinguish metrics that become one.
    """

    name: str
    unit: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)


_DEVICE, _INTERFACE = {"device": "system.device"}, {"device": "network.interface.name"}
_MOUNTPOINT = {"mountpoint": "system.filesystem.mountpoint"}
_READ, _WRITE = {"disk.io.direction": "read"}, {"disk.io.direction": "write"}
_RECEIVE, _TRANSMIT = {"network.io.direction": "receive"}, {"network.io.direction": "transmit"}
_STATE = "system.memory.state"
CONVENTIONS = {
    "node_cpu_seconds_total": OtlpName("system.cpu.time", "s", {"cpu": "cpu.logical_number", "mode": "cpu.mode"}),
    "node_disk_read_bytes_total": OtlpName("system.disk.io", "By", _DEVICE, _READ),
    "node_disk_written_bytes_total": OtlpName("system.disk.io", "By", _DEVICE, _WRITE),
    "node_disk_reads_completed_total": OtlpName("system.disk.operations", "{operation}", _DEVICE, _READ),
    "node_disk_writes_completed_total": OtlpName("system.disk.operations", "{operation}", _DEVICE, _WRITE),
    "node_disk_reads_merged_total": OtlpName("system.disk.merged", "{operation}", _DEVICE, _READ),
    "node_disk_writes_merged_total": OtlpName("system.disk.merged", "{operation}", _DEVICE, _WRITE),
    "node_disk_read_time_seconds_total": OtlpName("system.disk.operation_time", "s", _DEVICE, _READ),
    "node_disk_write_time_seconds_total": OtlpName("system.disk.operation_time", "s", _DEVICE, _WRITE),
    "node_disk_io_time_seconds_total": OtlpName("system.disk.io_time", "s", _DEVICE),
    "node_filesystem_size_bytes": OtlpName("system.filesystem.limit", "By", _MOUNTPOINT),
    "node_filesystem_free_bytes": OtlpName(
        "system.filesystem.usage", "By", _MOUNTPOINT, {"system.filesystem.state": "free"}
    ),
    "node_memory_MemTotal_bytes": OtlpName("system.memory.limit", "By"),
    "node_memory_MemAvailable_bytes": OtlpName("system.linux.memory.available", "By"),
    "node_memory_MemFree_bytes": OtlpName("system.memory.usage", "By", fixed={_STATE: "free"}),
    "node_memory_Buffers_bytes": OtlpName("system.memory.usage", "By", fixed={_STATE: "buffers"}),
    "node_memory_Cached_bytes": OtlpName("system.memory.usage", "By", fixed={_STATE: "cached"}),
    "node_network_receive_bytes_total": OtlpName("system.network.io", "By", _INTERFACE, _RECEIVE),
    "node_network_transmit_bytes_total": OtlpName("system.network.io", "By", _INTERFACE, _TRANSMIT),
    "node_network_receive_packets_total": OtlpName("system.network.packets", "{packet}", _INTERFACE, _RECEIVE),
    "node_network_transmit_packets_total": OtlpName("system.network.packets", "{packet}", _INTERFACE, _TRANSMIT),
    "node_network_receive_errs_total": OtlpName("system.network.errors", "{error}", _INTERFACE, _RECEIVE),
    "node_network_transmit_errs_total": OtlpName("system.network.errors", "{error}", _INTERFACE, _TRANSMIT),
    "node_network_receive_drop_total": OtlpName("system.network.dropped", "{packet}", _INTERFACE, _RECEIVE),
    "node_network_transmit_drop_total": OtlpName("system.network.dropped", "{packet}", _INTERFACE, _TRANSMIT),
}


# These metrics would have the names of others. A translation to Prometheus does not repeat a suffix.
_AMBIGUOUS = {
    "cassandra_jvm_gc_seconds_total": OtlpName("cassandra.jvm_gc_seconds", "s"),
    "cassandra_pool_blocked_total": OtlpName("cassandra.pool_blocked_total", ""),
}


@lru_cache(maxsize=4096)
def otlp_name(name: str, unit: str) -> OtlpName:
    """Return the identity of a metric, given its name in Prometheus and its unit."""
    if known := CONVENTIONS.get(name) or _AMBIGUOUS.get(name):
        return known
    ucum, suffix = UNITS.get(unit, ("", ""))
    stem = name.removesuffix(_COUNTER_SUFFIX).removesuffix(suffix)
    first, _, rest = stem.partition("_")
    return OtlpName(f"{first}.{rest}" if rest else first, ucum)


CASSANDRA = "cassandra_"
INFINITE = "+Inf"
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
# Labels of a scrape that identify the service, and the attributes of a resource that become these labels in Prometheus.
RESOURCE = {"job": "service.name", "instance": "service.instance.id"}
SCOPE, DATABASE = "casstat", {"db.system.name": "cassandra"}
# The numbers of fields in ExportMetricsServiceRequest, ResourceMetrics, Resource, ScopeMetrics, InstrumentationScope.
RESOURCE_METRICS, OF_RESOURCE, SCOPE_METRICS, RESOURCE_ATTRIBUTES, OF_SCOPE, METRICS, SCOPE_NAME = 1, 1, 2, 1, 1, 2, 1
# The numbers of fields in Metric for the data, and in Gauge, Sum and Histogram.
DATA = {GAUGE: 5, SUM: 7, CASSANDRA_SUM: 7}
HISTOGRAM_DATA, DATA_POINTS, TEMPORALITY, IS_MONOTONIC, CUMULATIVE = 9, 1, 2, 3, 2


class OtlpSeries(PageRenderer[bytes]):
    def __init__(
        self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, common: Mapping[str, str], resource: bytes
    ) -> None:
        """Give all series an encoded resource and the attributes in `common`."""
        super().__init__(catalogue, upper_bounds, common)
        self._resource = resource

    def head(self, family: Family, unit: str, labels: Labels) -> bytes:
        kinds = {"counter": (SUM, CASSANDRA_SUM), "histogram": (HISTOGRAM, CASSANDRA_HISTOGRAM)}
        kind = kinds.get(family.kind, (GAUGE, GAUGE))[family.name.startswith(CASSANDRA)]
        name = otlp_name(family.name, unit)
        renamed = ((name.renamed.get(label, label), value) for label, value in labels)
        attributes = (*self._common.items(), *renamed, *name.fixed.items())
        encoded = ((key, encodable(value)) for key, value in attributes)
        metric = _text(NAME, name.name) + _text(HELP, family.help) + _text(UNIT, name.unit)
        return head_of(kind, self._resource, metric, encoded)

    def histogram_heads(self, metric: Metric, series: Series, length: int) -> bytes:
        return self.metric_head(metric, series)

    def histogram(self, metric: Metric, heads: bytes, counts: Sequence[int], sum_value: float | None) -> Samples:
        bounds = self._upper_bounds.bounds(metric.unit, len(counts))
        at_bounds = between_bounds(counts, (bound.bucket for bound in bounds))
        return Samples((), (), {heads: histogram_message([float(bound.le) for bound in bounds], at_bounds, sum_value)})

    def families(self, families: Iterable[PrometheusMetric]) -> Samples:
        messages, others = dict[bytes, bytes](), list[PrometheusMetric]()
        for family in families:
            if family.type == "histogram":
                messages.update(self._family_histograms(family))
            else:
                others.append(family)
        return super().families(others)._replace(messages=messages)

    def _family_histograms(self, family: PrometheusMetric) -> Iterator[tuple[bytes, bytes]]:
        """Yield the head and message of each histogram of a family."""
        by_labels: dict[Labels, list[PrometheusSample]] = {}
        for sample in family.samples:
            labels = tuple((name, value) for name, value in sample.labels.items() if name != "le")
            by_labels.setdefault(labels, []).append(sample)
        for labels, samples in by_labels.items():
            buckets = [sample for sample in samples if "le" in sample.labels]
            bounds = [float(sample.labels["le"]) for sample in buckets if sample.labels["le"] != INFINITE]
            counts = differences([int(sample.value) for sample in buckets])
            total = next((sample.value for sample in samples if sample.name.endswith("_sum")), None)
            head = self.text_head(family.name, labels, "histogram", family.documentation)
            yield head, histogram_message(bounds, counts, total)


class OtlpFormat:
    """Implements `exporters.sinks.parts.tick_encoder.SeriesFormat`."""

    def renderer(
        self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, common: Mapping[str, str]
    ) -> OtlpSeries:
        """Return a renderer; the job and instance in `common` identify the resource."""
        identity = {RESOURCE[label]: value for label, value in common.items() if label in RESOURCE}
        resource = encoded_attributes(RESOURCE_ATTRIBUTES, {**identity, **DATABASE}.items())
        rest = {label: value for label, value in common.items() if label not in RESOURCE}
        return OtlpSeries(catalogue, upper_bounds, rest, resource)

    def points(self, samples: Samples, time_ms: int, start_ms: int | None) -> list[SeriesPoint]:
        packed, times = struct.pack(f"<{len(samples.values)}d", *samples.values), _times(time_ms, start_ms)
        key, starts = varint(VALUE << 3 | FIXED64), range(0, len(packed), 8)
        numbers = [
            (head, times[head[0] in WITH_START] + key + packed[start : start + 8])
            for head, start in zip(samples.heads, starts, strict=True)
        ]
        return numbers + [(head, times[head[0] in WITH_START] + message) for head, message in samples.messages.items()]

    def ends(self, heads: Sequence[bytes], time_ms: int) -> list[SeriesPoint]:
        time = _times(time_ms, None)[False]
        return [
            (head, time + varint_field(FLAGS if head[0] in HISTOGRAMS else NUMBER_FLAGS, NO_RECORDED_VALUE))
            for head in heads
        ]


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
    encoded = encoded_attributes(ATTRIBUTES if kind in HISTOGRAMS else NUMBER_ATTRIBUTES, attributes)
    return bytes([kind]) + b"".join(varint(len(part)) + part for part in (resource, metric, encoded))


@lru_cache(maxsize=1 << 14)
def decoded_head(head: bytes) -> Head:
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


def histogram_message(bounds: Sequence[float], counts: Sequence[int], total: float | None) -> bytes:
    """Return a histogram's data point without its times; `counts` has one more item than `bounds`."""
    encoded = _fixed(COUNT, struct.pack("<Q", sum(counts)))
    encoded += b"" if total is None else _fixed(TOTAL, struct.pack("<d", total))
    encoded += bytes_field(COUNTS, struct.pack(f"<{len(counts)}Q", *counts))
    return encoded + bytes_field(BOUNDS, struct.pack(f"<{len(bounds)}d", *bounds))


def _times(time_ms: int, start_ms: int | None) -> dict[bool, bytes]:
    """Return the times of a data point that counts from the JVM's start (True), and of any other."""
    time = _fixed(TIME, struct.pack("<Q", time_ms * NS_PER_MS))
    start = b"" if start_ms is None else _fixed(START, struct.pack("<Q", start_ms * NS_PER_MS))
    return {True: start + time, False: time}


def _fixed(number: int, content: bytes) -> bytes:
    return varint(number << 3 | FIXED64) + content


def _text(number: int, text: str) -> bytes:
    return bytes_field(number, text.encode())
