"""Decodes OTLP requests with the messages of opentelemetry-proto."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

Attributes = frozenset[tuple[str, str]]
NO_RECORDED_VALUE = 1


class DataPoint(NamedTuple):
    """A data point; `value` is None if it ends the series, and (bounds, counts, sum) for a histogram."""

    name: str
    kind: str
    unit: str
    resource: Attributes
    attributes: Attributes
    time_ms: int
    start_ms: int
    value: Any


def decode(body: bytes) -> list[DataPoint]:
    """Decode an uncompressed ExportMetricsServiceRequest."""
    message = ExportMetricsServiceRequest.FromString(body)
    points = []
    for resource in message.resource_metrics:
        identity = _attributes(resource.resource.attributes)
        for scope in resource.scope_metrics:
            assert scope.scope.name == "casstat"
            names = [(metric.name, str(metric.WhichOneof("data"))) for metric in scope.metrics]
            for metric, (name, kind) in zip(scope.metrics, names, strict=True):
                data = getattr(metric, kind)
                if kind != "gauge":
                    assert data.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
                if kind == "sum":
                    assert data.is_monotonic
                for point in data.data_points:
                    times = point.time_unix_nano // 10**6, point.start_time_unix_nano // 10**6
                    attributes = _attributes(point.attributes)
                    points.append(DataPoint(name, kind, metric.unit, identity, attributes, *times, _value(kind, point)))
    return points


def _value(kind: str, point: Any) -> Any:
    if point.flags & NO_RECORDED_VALUE:
        return None
    if kind != "histogram":
        return point.as_double
    counts = tuple(point.bucket_counts)
    assert point.count == sum(counts)
    assert len(counts) == len(point.explicit_bounds) + 1
    return tuple(point.explicit_bounds), counts, point.sum if point.HasField("sum") else None


def _attributes(attributes: Iterable[Any]) -> Attributes:
    keys = [attribute.key for attribute in attributes]
    assert len(set(keys)) == len(keys)
    return frozenset((attribute.key, attribute.value.string_value) for attribute in attributes)
