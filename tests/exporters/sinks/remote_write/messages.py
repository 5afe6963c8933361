"""Decodes requests of remote write with the protobuf library, from the published definitions of the messages."""

import math
import struct
from typing import Any, NamedTuple

import cramjam
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from exporters.sinks.parts.remote_write import STALE

Labels = frozenset[tuple[str, str]]
TYPES = {"string": 9, "double": 1, "int64": 3, "uint32": 13, "uint64": 4, "sint32": 17, "sint64": 18, "enum": 5}
# Message: (field, number, type, repeated).
MESSAGES = {
    "Label": [("name", 1, "string", False), ("value", 2, "string", False)],
    "Sample": [("value", 1, "double", False), ("timestamp", 2, "int64", False)],
    "TimeSeries": [("labels", 1, "Label", True), ("samples", 2, "Sample", True)],
    "WriteRequest": [("timeseries", 1, "TimeSeries", True)],
    "Metadata": [("type", 1, "enum", False), ("help_ref", 3, "uint32", False), ("unit_ref", 4, "uint32", False)],
    "BucketSpan": [("offset", 1, "sint32", False), ("length", 2, "uint32", False)],
    "Histogram": [
        ("count_int", 1, "uint64", False),
        ("sum", 3, "double", False),
        ("schema", 4, "sint32", False),
        ("positive_spans", 11, "BucketSpan", True),
        ("positive_deltas", 12, "sint64", True),
        ("timestamp", 15, "int64", False),
        ("custom_values", 16, "double", True),
    ],
    "TimeSeries2": [
        ("labels_refs", 1, "uint32", True),
        ("samples", 2, "Sample", True),
        ("histograms", 3, "Histogram", True),
        ("metadata", 5, "Metadata", False),
    ],
    "Request": [("symbols", 4, "string", True), ("timeseries", 5, "TimeSeries2", True)],
}


class Decoded(NamedTuple):
    """One sample. `value` is None for a mark that ends the series; type and help are those of 2.0."""

    labels: Labels
    time_ms: int
    value: float | None
    kind: int = 0
    help: str = ""

    @property
    def name(self) -> str:
        return dict(self.labels)["__name__"]


def decode_v1(body: bytes) -> list[Decoded]:
    """Decode the compressed body of a WriteRequest."""
    message = CLASSES["WriteRequest"].FromString(bytes(cramjam.snappy.decompress_raw(body)))
    return [
        Decoded(_labels([(label.name, label.value) for label in series.labels]), sample.timestamp, _value(sample.value))
        for series in message.timeseries
        for sample in series.samples
    ]


def decode_v2(body: bytes) -> list[Decoded]:
    """Decode the compressed body of an io.prometheus.write.v2.Request."""
    message = CLASSES["Request"].FromString(bytes(cramjam.snappy.decompress_raw(body)))
    symbols = list(message.symbols)
    assert symbols[0] == ""
    assert len(set(symbols)) == len(symbols)
    decoded = []
    for series in message.timeseries:
        texts = [symbols[reference] for reference in series.labels_refs]
        labels = _labels(list(zip(texts[::2], texts[1::2], strict=True)))
        help_text = symbols[series.metadata.help_ref]
        decoded += [
            Decoded(labels, sample.timestamp, _value(sample.value), series.metadata.type, help_text)
            for sample in series.samples
        ]
    return decoded


def _labels(labels: list[tuple[str, str]]) -> Labels:
    """Check the rules for labels: sorted, unique, not empty."""
    names = [name for name, _ in labels]
    assert names == sorted(set(names))
    assert all(value for _, value in labels)
    return frozenset(labels)


def _value(value: float) -> float | None:
    if math.isnan(value):
        assert struct.pack("<d", value) == STALE
        return None
    return value


def _classes() -> dict[str, Any]:
    file = FileDescriptorProto(name="remote_write.proto", package="p", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = DescriptorProto(name=name)
        for field, number, kind, is_repeated in fields:
            label = FieldDescriptorProto.LABEL_REPEATED if is_repeated else FieldDescriptorProto.LABEL_OPTIONAL
            described = message.field.add(name=field, number=number, label=label)
            if kind in TYPES:
                described.type = TYPES[kind]  # type: ignore[assignment]
            else:
                described.type, described.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".p.{kind}"
        file.message_type.append(message)
    pool = DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"p.{name}")) for name in MESSAGES}


CLASSES = _classes()


def compressed(body: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(body))


class DecodedHistogram(NamedTuple):
    """A native histogram: its bounds, the count of each bucket (the last one is above all bounds), and the totals."""

    labels: Labels
    time_ms: int
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: int
    sum: float | None


def histograms_of(body: bytes) -> list[DecodedHistogram]:
    """Decode the native histograms of a compressed request of 2.0."""
    message = CLASSES["Request"].FromString(bytes(cramjam.snappy.decompress_raw(body)))
    decoded = []
    for series in message.timeseries:
        texts = [message.symbols[reference] for reference in series.labels_refs]
        labels = _labels(list(zip(texts[::2], texts[1::2], strict=True)))
        assert not (series.samples and series.histograms)
        for histogram in series.histograms:
            assert histogram.schema == -53
            counts, index, value = [0] * (len(histogram.custom_values) + 1), 0, 0
            deltas = iter(histogram.positive_deltas)
            for span in histogram.positive_spans:
                index += span.offset
                for _ in range(span.length):
                    value += next(deltas)
                    counts[index] = value
                    index += 1
            is_stale = struct.pack("<d", histogram.sum) == STALE
            total = None if is_stale else histogram.sum
            bounds = tuple(histogram.custom_values)
            decoded.append(
                DecodedHistogram(labels, histogram.timestamp, bounds, tuple(counts), histogram.count_int, total)
            )
    return decoded
