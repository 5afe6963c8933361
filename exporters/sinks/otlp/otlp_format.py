"""The series of /metrics as points of OpenTelemetry, and the requests that carry them."""

from collections.abc import Mapping, Sequence

from collector.model.metric import Metric
from exporters.metrics_page.metric_family import UpperBounds
from exporters.sinks.otlp.otlp_points import (
    CASSANDRA_SUM,
    GAUGE,
    HISTOGRAMS,
    SUM,
    decoded_head,
    encoded_attributes,
    end_point,
    histogram_point,
    number_points,
)
from exporters.sinks.otlp.otlp_series import OtlpSeries
from exporters.sinks.parts.page_samples import Samples, SeriesPoint
from exporters.sinks.parts.protobuf_fields import bytes_field, varint_field

# Labels of a scrape that identify the service, and the attributes of a resource that become these labels in Prometheus.
RESOURCE = {"job": "service.name", "instance": "service.instance.id"}
SCOPE, DATABASE = "casstat", {"db.system.name": "cassandra"}
# The numbers of fields in ExportMetricsServiceRequest, ResourceMetrics, Resource, ScopeMetrics, InstrumentationScope.
RESOURCE_METRICS, OF_RESOURCE, SCOPE_METRICS, ATTRIBUTES, OF_SCOPE, METRICS, SCOPE_NAME = 1, 1, 2, 1, 1, 2, 1
# The numbers of fields in Metric for the data, and in Gauge, Sum and Histogram.
DATA = {GAUGE: 5, SUM: 7, CASSANDRA_SUM: 7}
HISTOGRAM_DATA, DATA_POINTS, TEMPORALITY, IS_MONOTONIC, CUMULATIVE = 9, 1, 2, 3, 2


class OtlpFormat:
    """Implements `exporters.sinks.parts.page_samples.SeriesFormat`."""

    def renderer(
        self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, common: Mapping[str, str]
    ) -> OtlpSeries:
        """Return a renderer for the series of a node; the job and instance in `common` identify the resource."""
        identity = {RESOURCE[label]: value for label, value in common.items() if label in RESOURCE}
        resource = encoded_attributes(ATTRIBUTES, {**identity, **DATABASE}.items())
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
