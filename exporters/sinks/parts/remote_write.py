"""Prometheus remote write: the series of /metrics as points, and the requests 1.0 and 2.0 that carry them.

A point is an encoded TimeSeries message of 1.0 with one sample, which has a fixed length.
head: field 1 of WriteRequest, length, labels, field 2 of TimeSeries, 16, field 1 of Sample
content: 8-byte value, field 2 of Sample, 6-byte time

Only 2.0 can carry native histograms, which have custom buckets. The head of such a point consists of a zero byte and
the labels, and its content is a Histogram message. Every timer gets the bounds of Cassandra 4.1, whatever the node's
version: the counts of an older layout go to the nearest of these bounds, as on /metrics, so histograms of different
versions can be added. Cassandra has no sum for some histograms. Their sum is estimated, with each value in the middle
of its bucket: without a sum (NaN), Prometheus 3.8 computes wrong quantiles, and 0 would be a wrong mean.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple

from collector.model.histogram import upper_bounds_of
from collector.model.metric import Metric, Series
from exporters.metrics_page.metric_family import (
    LABELLED_LENGTH,
    Family,
    Labels,
    UpperBounds,
    encodable,
    families_of,
    labels_text,
    named,
)
from exporters.sinks.parts.protobuf_fields import FIXED64, bytes_field, fields, read_varint, varint, varint_field
from exporters.sinks.parts.tick_encoder import PageRenderer, Samples, SeriesPoint, between_bounds

NAME = "__name__"
# Samples of 16 bytes: the key and the 8 bytes of the value, the key and the 6 bytes of the time.
SAMPLE_BYTES = 16
SAMPLE_START = b"\x12\x10"
VALUE_KEY, _TIME_KEY = b"\x09", b"\x10"
STALE = struct.pack("<Q", 0x7FF0000000000002)
"""The value that marks the end of a series: the NaN that Prometheus uses."""
MARK = 0
"""The first byte of the head of a native histogram; that of other heads is never zero."""
# If more series than this are cached for 2.0, the cache and the symbols are discarded.
MAX_SERIES = 50_000
# The numbers of Metadata.MetricType in io.prometheus.write.v2; 0 is "unspecified".
TYPES = {"counter": 1, "gauge": 2, "histogram": 3, "summary": 5, "info": 6}
HISTOGRAM_SUFFIXES = ("_bucket", "_count", "_sum")
# The numbers of fields in the messages of 2.0.
SYMBOLS, TIME_SERIES = 4, 5
LABEL_REFS, HISTOGRAMS, METADATA = 1, 3, 5
TYPE, HELP_REF = 1, 3
CUSTOM_BUCKETS = -53
# The numbers of fields in Histogram.
COUNT, SUM, SCHEMA, SPANS, DELTAS, TIME, BOUNDS = 1, 3, 4, 11, 12, 15, 16
OFFSET, LENGTH = 1, 2


class SeriesMetadata(NamedTuple):
    """The type of a series' metric family, and its help text, for 2.0."""

    kind: int = 0
    help: str = ""


class _HistogramHeads(NamedTuple):
    """The heads of a histogram.

    series        the heads of its buckets, its count and its sum.
    native        the head of the native histogram.
    last_buckets  for each bucket, the index of the last of Cassandra's buckets included in its count.
    """

    series: list[bytes]
    native: bytes
    last_buckets: tuple[int, ...]


class SeriesSamples(PageRenderer[_HistogramHeads]):
    def __init__(
        self,
        catalogue: Mapping[str, Metric],
        upper_bounds: UpperBounds,
        common: Mapping[str, str],
        metadata: dict[str, SeriesMetadata],
        *,
        is_native: bool = False,
    ) -> None:
        """Give all series the labels in `common`; with `is_native`, add native histograms.

        The metadata of the series that are rendered is added to `metadata`.
        """
        super().__init__(catalogue, upper_bounds, common)
        self._metadata = metadata
        self._is_native = is_native

    def head(self, family: Family, unit: str, labels: Labels) -> bytes:
        if family.name not in self._metadata:
            self._metadata[family.name] = _metadata_of(family)
        return head_of(self._labels(family.name, labels))

    def histogram_heads(self, metric: Metric, series: Series, length: int) -> _HistogramHeads:
        bounds = self._upper_bounds.bounds(metric.unit, length)
        labels = tuple(zip(metric.labels, series[1:], strict=True))
        ends = [*(bound.le for bound in bounds), "+Inf"]
        names = [(f"{metric.name}_bucket", (*labels, ("le", end))) for end in ends]
        names += [(f"{metric.name}_count", labels), (f"{metric.name}_sum", labels)]
        native = bytes([MARK]) + encoded_labels(self._labels(metric.name, labels))
        heads = [head_of(self._labels(name, of_name)) for name, of_name in names]
        return _HistogramHeads(heads, native, tuple(bound.bucket for bound in bounds))

    def histogram(
        self, metric: Metric, heads: _HistogramHeads, counts: Sequence[int], sum_value: float | None
    ) -> Samples:
        cumulative = list(accumulate(counts))
        values: list[float] = [cumulative[bucket] for bucket in heads.last_buckets]
        values += [cumulative[-1], cumulative[-1]]
        messages = {heads.native: native_histogram(metric.unit, counts, sum_value)} if self._is_native else {}
        if sum_value is None:
            return Samples(heads.series[:-1], values, messages)
        return Samples(heads.series, [*values, sum_value], messages)

    def _labels(self, name: str, labels: Labels) -> list[tuple[str, str]]:
        all_labels = [*self._common.items(), (NAME, name), *labels]
        return [(label, encodable(value)) for label, value in all_labels]


class RemoteWriteFormat:
    """Implements `exporters.sinks.parts.tick_encoder.SeriesFormat`; with `is_native`, adds native histograms."""

    def __init__(self, *, is_native: bool = False) -> None:
        self._is_native = is_native
        self.metadata: dict[str, SeriesMetadata] = {}
        """The metadata of the series so far, by name."""

    def renderer(
        self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, common: Mapping[str, str]
    ) -> SeriesSamples:
        for family in families_of(catalogue).values():
            for suffix in ("", *HISTOGRAM_SUFFIXES) if family.kind == "histogram" else ("",):
                self.metadata[f"{family.name}{suffix}"] = _metadata_of(family)
        return SeriesSamples(catalogue, upper_bounds, common, self.metadata, is_native=self._is_native)

    def points(self, samples: Samples, time_ms: int, _: int | None) -> list[SeriesPoint]:
        packed, tail = struct.pack(f"<{len(samples.values)}d", *samples.values), _tail(time_ms)
        contents = [packed[index : index + 8] + tail for index in range(0, len(packed), 8)]
        native = [(head, with_time(message, time_ms)) for head, message in samples.messages.items()]
        return [*zip(samples.heads, contents, strict=True), *native]

    def ends(self, heads: Sequence[bytes], time_ms: int) -> list[SeriesPoint]:
        histogram = varint_field(COUNT, 0) + _double_key(SUM) + STALE + varint_field(SCHEMA, _zigzag(CUSTOM_BUCKETS))
        end, native_end = STALE + _tail(time_ms), with_time(histogram, time_ms)
        return [(head, native_end if head[0] == MARK else end) for head in heads]


def _metadata_of(family: Family) -> SeriesMetadata:
    return SeriesMetadata(TYPES.get(family.kind, 0), family.help)


def request_v1(points: Sequence[SeriesPoint]) -> bytes:
    """Return a WriteRequest: points are encoded as its fields. It cannot contain native histograms."""
    return b"".join(part for point in points if point[0][0] != MARK for part in point)


class RequestsV2:
    """Converts points to requests of 2.0, in which the texts of all series are in one table.

    Every request contains the texts of all series so far, so that the encoded references can be cached.
    """

    def __init__(self, metadata: Mapping[str, SeriesMetadata]) -> None:
        """`metadata` contains the metadata of each name; it may grow."""
        self._metadata = metadata
        self._clear()

    def request(self, points: Sequence[SeriesPoint]) -> bytes:
        if len(self._heads) > MAX_SERIES:
            self._clear()
        known = self._heads
        series = [
            (known.get(head) or self._head(head)) + content if head[0] != MARK else self._native_series(head, content)
            for head, content in points
        ]
        return b"".join((*self._symbol_fields, *series))

    def _clear(self) -> None:
        self._heads: dict[bytes, bytes] = {}
        self._symbols: dict[str, int] = {}
        self._symbol_fields: list[bytes] = []
        # The first symbol must be empty.
        self._symbol("")

    def _symbol(self, text: str) -> int:
        if text not in self._symbols:
            self._symbols[text] = len(self._symbols)
            self._symbol_fields.append(bytes_field(SYMBOLS, text.encode()))
        return self._symbols[text]

    def _native_series(self, head: bytes, histogram: bytes) -> bytes:
        if head not in self._heads:
            self._heads[head] = self._description(labels_of(head))
        return bytes_field(TIME_SERIES, self._heads[head] + bytes_field(HISTOGRAMS, histogram))

    def _head(self, head_v1: bytes) -> bytes:
        """Return the series up to its sample, and remember it."""
        content = self._description(labels_of(head_v1))
        size_bytes = len(content) + len(SAMPLE_START) + SAMPLE_BYTES
        key = varint(TIME_SERIES << 3 | 2)
        head = self._heads[head_v1] = key + varint(size_bytes) + content + SAMPLE_START + VALUE_KEY
        return head

    def _description(self, labels: Labels) -> bytes:
        """Return the labels and metadata of a series."""
        references = b"".join(varint(self._symbol(text)) for label in labels for text in label)
        metadata = self._metadata.get(dict(labels).get(NAME, ""), SeriesMetadata())
        encoded = varint_field(TYPE, metadata.kind) + varint_field(HELP_REF, self._symbol(metadata.help))
        return bytes_field(LABEL_REFS, references) + bytes_field(METADATA, encoded)


def encoded_labels(labels: Iterable[tuple[str, str]]) -> bytes:
    """Encode labels in ascending order, without empty ones, as a scrape stores them."""
    return b"".join(
        bytes_field(1, bytes_field(1, name.encode()) + bytes_field(2, value.encode()))
        for name, value in sorted(dict(labels).items())
        if value
    )


def head_of(labels: Iterable[tuple[str, str]]) -> bytes:
    content = encoded_labels(labels)
    length = len(content) + len(SAMPLE_START) + SAMPLE_BYTES
    return b"\x0a" + varint(length) + content + SAMPLE_START + VALUE_KEY


def labels_of(head: bytes) -> Labels:
    """Return the labels of a head, with or without a native histogram."""
    encoded = head[1:] if head[0] == MARK else next(fields(head + bytes(SAMPLE_BYTES - 1)))[1]
    return tuple(_label(content) for number, content in fields(encoded) if number == 1)


def sample_of(content: bytes) -> tuple[float, int]:
    """Return the value and the time in milliseconds of a point without a native histogram."""
    (value,) = struct.unpack_from("<d", content)
    return value, sum((byte & 0x7F) << 7 * index for index, byte in enumerate(content[-6:]))


def time_ms_of(point: SeriesPoint) -> int:
    """Return the time of a point, with or without a native histogram, in milliseconds."""
    head, content = point
    return native_time_ms_of(content) if head[0] == MARK else sample_of(content)[1]


def text_of(point: SeriesPoint) -> str:
    """Return a point as a line of the text format, with its time in milliseconds."""
    head, content = point
    labels = dict(labels_of(head))
    name = named(labels.pop(NAME, ""), labels_text(labels.items()))
    if head[0] == MARK:
        return f"{name}(native histogram)"
    value, time_ms = sample_of(content)
    return f"{name}{value!r} {time_ms}"


def _label(content: bytes) -> tuple[str, str]:
    (_, name), (_, value) = fields(content)
    return name.decode(), value.decode()


def _tail(time_ms: int) -> bytes:
    """Return the time with its key: 6 bytes, padded for a shorter number, because all samples have the same length."""
    padded = bytes(time_ms >> 7 * index & 0x7F | 0x80 for index in range(5))
    return _TIME_KEY + padded + bytes([time_ms >> 35 & 0x7F])


def native_histogram(unit: str, counts: Sequence[int], sum_value: float | None) -> bytes:
    """Return a Histogram message without its time, from cumulative counters. Raises LayoutError."""
    bounds, last_buckets, middles = _layout(unit, len(counts))
    buckets = between_bounds(counts, last_buckets)
    if sum_value is None:
        sum_value = sum(map(mul, buckets, middles))
    spans, filled, end = list[list[int]](), list[int](), 0
    for index, bucket in enumerate(buckets):
        if not bucket:
            continue
        if spans and index == end:
            spans[-1][1] += 1
        else:
            spans.append([index - end, 1])
        filled.append(bucket)
        end = index + 1
    deltas = b"".join(varint(_zigzag(value - before)) for value, before in zip(filled, [0, *filled], strict=False))
    encoded_spans = b"".join(
        bytes_field(SPANS, varint_field(OFFSET, _zigzag(offset)) + varint_field(LENGTH, length))
        for offset, length in spans
    )
    total = _double_key(SUM) + struct.pack("<d", sum_value)
    schema = varint_field(SCHEMA, _zigzag(CUSTOM_BUCKETS))
    return varint_field(COUNT, sum(buckets)) + total + schema + encoded_spans + bytes_field(DELTAS, deltas) + bounds


def with_time(message: bytes, time_ms: int) -> bytes:
    return message + varint_field(TIME, time_ms)


def native_time_ms_of(message: bytes) -> int:
    """Return the time of a Histogram message, its last field."""
    begin = len(message) - 1
    while message[begin - 1] & 0x80:
        begin -= 1
    return read_varint(message, begin)[0]


@lru_cache(maxsize=32)
def _layout(unit: str, length: int) -> tuple[bytes, tuple[int, ...], tuple[float, ...]]:
    """Return the encoded nominal bounds, for each the index of the last bucket counted under it, and the middles.

    The middle of the last bucket, which has no upper bound, is its lower bound.
    """
    if unit == "seconds":
        nominal = upper_bounds_of(unit, LABELLED_LENGTH)[:-1]
        last_buckets = tuple(bound.bucket for bound in UpperBounds(nominal).bounds(unit, length))
    else:
        nominal = upper_bounds_of(unit, length)[:-1]
        last_buckets = tuple(range(len(nominal)))
    middles = (*((low + high) / 2 for low, high in pairwise((0.0, *nominal))), nominal[-1])
    return bytes_field(BOUNDS, struct.pack(f"<{len(nominal)}d", *nominal)), last_buckets, middles


def _double_key(number: int) -> bytes:
    return varint(number << 3 | FIXED64)


def _zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1
