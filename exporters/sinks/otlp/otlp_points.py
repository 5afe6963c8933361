"""Points: encoded data points of OpenTelemetry metrics.

The head of a point contains the metric's kind, and the encoded resource, metric and attributes, each with its length.
The content is a data point without its attributes.
"""

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from exporters.sinks.parts.page_samples import SeriesPoint
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
