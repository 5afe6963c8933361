"""Points: encoded TimeSeries messages of remote write 1.0, each with one sample, which has a fixed length.

head: field 1 of WriteRequest, length, labels, field 2 of TimeSeries, 16, field 1 of Sample
content: 8-byte value, field 2 of Sample, 6-byte time
"""

import struct
from collections.abc import Iterable, Sequence

from exporters.metrics_page.metric_family import labels_text, named
from exporters.sinks.parts.page_samples import SeriesPoint
from exporters.sinks.parts.protobuf_fields import bytes_field, fields, varint
from exporters.sinks.remote_write.native_histograms import (
    MARK,
    native_labels,
    native_time_ms_of,
    stale_histogram,
    with_time,
)

NAME = "__name__"
# Samples of 16 bytes: the key and the 8 bytes of the value, the key and the 6 bytes of the time.
SAMPLE_BYTES = 16
SAMPLE_START = b"\x12\x10"
VALUE_KEY, _TIME_KEY = b"\x09", b"\x10"
STALE = struct.pack("<Q", 0x7FF0000000000002)
"""The value that marks the end of a series: the NaN that Prometheus uses."""

Labels = tuple[tuple[str, str], ...]


def encoded_labels(labels: Iterable[tuple[str, str]]) -> bytes:
    """Encode labels in ascending order, without empty ones, as a scrape stores them."""
    return b"".join(
        bytes_field(1, bytes_field(1, name.encode()) + bytes_field(2, value.encode()))
        for name, value in sorted(dict(labels).items())
        if value
    )


def head_of(labels: Iterable[tuple[str, str]]) -> bytes:
    """Return the head of a series."""
    content = encoded_labels(labels)
    length = len(content) + len(SAMPLE_START) + SAMPLE_BYTES
    return b"\x0a" + varint(length) + content + SAMPLE_START + VALUE_KEY


def points_of(heads: Sequence[bytes], values: Sequence[float], time_ms: int) -> list[SeriesPoint]:
    """Return the points of series at a time in milliseconds, which must fit into 6 bytes."""
    packed, tail = struct.pack(f"<{len(values)}d", *values), _tail(time_ms)
    return list(zip(heads, [packed[index : index + 8] + tail for index in range(0, len(packed), 8)], strict=True))


def stale_points(heads: Iterable[bytes], time_ms: int) -> list[SeriesPoint]:
    """Return points that mark the end of series, with or without native histograms."""
    end, histogram = STALE + _tail(time_ms), with_time(stale_histogram(STALE), time_ms)
    return [(head, histogram if head[0] == MARK else end) for head in heads]


def labels_of(head: bytes) -> Labels:
    """Return the labels of a head."""
    (_, series), *_ = fields(head + bytes(SAMPLE_BYTES - 1))
    return decoded_labels(series)


def decoded_labels(encoded: bytes) -> Labels:
    """Return encoded labels; other fields are ignored."""
    return tuple(_label(content) for number, content in fields(encoded) if number == 1)


def sample_of(content: bytes) -> tuple[float, int]:
    """Return the value and the time in milliseconds of a point without a native histogram."""
    (value,) = struct.unpack_from("<d", content)
    return value, sum((byte & 0x7F) << 7 * index for index, byte in enumerate(content[-6:]))


def time_ms_of(point: SeriesPoint) -> int:
    """Return the time of a point, with or without a native histogram, in milliseconds."""
    head, content = point
    return native_time_ms_of(content) if head[0] == MARK else sample_of(content)[1]


def _label(content: bytes) -> tuple[str, str]:
    (_, name), (_, value) = fields(content)
    return name.decode(), value.decode()


def _tail(time_ms: int) -> bytes:
    """Return the time with its key; a shorter number is padded, because all samples have the same length."""
    padded = bytes(time_ms >> 7 * index & 0x7F | 0x80 for index in range(5))
    return _TIME_KEY + padded + bytes([time_ms >> 35 & 0x7F])


def text_of(point: SeriesPoint) -> str:
    """Return a point as a line of the text format, with its time in milliseconds."""
    head, content = point
    if head[0] == MARK:
        native = dict(decoded_labels(native_labels(head)))
        return f"{named(native.pop(NAME, ''), labels_text(native.items()))}(native histogram)"
    labels = dict(labels_of(head))
    value, time_ms = sample_of(content)
    name = labels.pop(NAME, "")
    return f"{named(name, labels_text(labels.items()))}{value!r} {time_ms}"
