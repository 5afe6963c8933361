"""Points with native histograms with custom buckets, which only remote write 2.0 can carry.

Every timer gets the bounds of Cassandra 4.1, whatever the node's version: the counts of an older layout go to the
nearest of these bounds, as on /metrics, so histograms of different versions can be added. The head of a point consists
of a zero byte and the labels, and its content is a Histogram message.

Cassandra has no sum for some histograms. Their sum is estimated, with each value in the middle of its bucket: without a
sum (NaN), Prometheus 3.8 computes wrong quantiles, and 0 would be a wrong mean.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple

from prometheus_client.metrics_core import Metric as PrometheusMetric

from collector.model.histogram import LayoutError, upper_bounds_of
from collector.model.metric import Kind, Metric, Series
from exporters.metrics_page.metric_family import (
    LABELLED_LENGTH,
    CurrentValues,
    Family,
    Group,
    SeriesCache,
    UpperBounds,
    encodable,
    families_of,
    histogram_sum,
    labels_text,
    named,
    numbers,
    text_labels,
)
from exporters.sinks.parts.page_series import Samples, SeriesPoint
from exporters.sinks.parts.protobuf_fields import FIXED64, bytes_field, fields, read_varint, varint, varint_field

MARK = 0
"""The first byte of these heads; that of other heads is never zero."""
CUSTOM_BUCKETS = -53
# The numbers of fields in Histogram.
COUNT, SUM, SCHEMA, SPANS, DELTAS, TIME, BOUNDS = 1, 3, 4, 11, 12, 15, 16
OFFSET, LENGTH = 1, 2


def native_head_of(labels: bytes) -> bytes:
    """Return the head of a series with these encoded labels."""
    return bytes([MARK]) + labels


def native_labels(head: bytes) -> bytes:
    """Return the encoded labels of a head."""
    return head[1:]


def native_histogram(unit: str, counts: Sequence[int], sum_value: float | None) -> bytes:
    """Return a Histogram message without its time, from cumulative counters. Raises LayoutError."""
    bounds, last_buckets, middles = _layout(unit, len(counts))
    cumulative = list(accumulate(counts))
    at_bounds = [*(cumulative[bucket] for bucket in last_buckets), cumulative[-1]]
    buckets = [count - before for count, before in zip(at_bounds, [0, *at_bounds], strict=False)]
    if sum_value is None:
        sum_value = sum(map(mul, buckets, middles))
    return _message(cumulative[-1], sum_value, buckets, bounds)


def stale_histogram(stale: bytes) -> bytes:
    """Return a Histogram message without its time that ends a series; `stale` is the value that marks the end."""
    return varint_field(COUNT, 0) + _double_key(SUM) + stale + varint_field(SCHEMA, _zigzag(CUSTOM_BUCKETS))


def with_time(message: bytes, time_ms: int) -> bytes:
    """Return a Histogram message with its time."""
    return message + varint_field(TIME, time_ms)


def native_time_ms_of(message: bytes) -> int:
    """Return the time of a Histogram message, its last field."""
    begin = len(message) - 1
    while message[begin - 1] & 0x80:
        begin -= 1
    return read_varint(message, begin)[0]


def _message(count: int, sum_value: float, buckets: Sequence[int], bounds: bytes) -> bytes:
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
    return varint_field(COUNT, count) + total + schema + encoded_spans + bytes_field(DELTAS, deltas) + bounds


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


# The numbers of Metadata.MetricType in io.prometheus.write.v2; 0 is "unspecified".
TYPES = {"counter": 1, "gauge": 2, "histogram": 3, "summary": 5, "info": 6}
HISTOGRAM_SUFFIXES = ("_bucket", "_count", "_sum")


class SeriesMetadata(NamedTuple):
    """The type of a series' metric family, and its help text."""

    kind: int = 0
    help: str = ""


def family_metadata(families: Iterable[Family]) -> Iterator[tuple[str, SeriesMetadata]]:
    """Yield the names of the families' series with their metadata."""
    for family in families:
        metadata = SeriesMetadata(TYPES.get(family.kind, 0), family.help)
        for suffix in ("", *HISTOGRAM_SUFFIXES) if family.kind == "histogram" else ("",):
            yield f"{family.name}{suffix}", metadata


def sample_metadata(family: PrometheusMetric) -> SeriesMetadata:
    """Return the metadata of a family of prometheus_client."""
    return SeriesMetadata(TYPES.get(family.type, 0), family.documentation)


# Unused heads are deleted when the number of cached series exceeds twice the current number by more than SPARE.
SPARE = 1000


class _Histogram(NamedTuple):
    """The heads of a histogram's buckets and count, and the head of its sum.

    native_head   the head of the native histogram.
    last_buckets  for each bucket, the index of the last of Cassandra's buckets included in its count.
    """

    heads: list[bytes]
    sum_head: bytes
    native_head: bytes
    last_buckets: tuple[int, ...]


class _Counts(NamedTuple):
    """Bucket counts and their sum, the values of the series that they give, and the native histogram."""

    counts: tuple[int, ...]
    sum_value: float | None
    values: list[float]
    native: bytes


class SeriesSamples:
    """Renders the series of one node; implements `exporters.sinks.parts.page_series.PageRenderer`."""

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

        The metadata of the families that are rendered is added to `metadata`.
        """
        self._metadata = metadata
        self._is_native = is_native
        self._catalogue = catalogue
        self._upper_bounds = upper_bounds
        self._common = common
        self._heads = SeriesCache(self._number_head)
        self._text_heads: dict[tuple[str, tuple[tuple[str, str], ...]], bytes] = {}
        self._histograms: dict[tuple[Series, int], _Histogram | None] = {}
        self._counts: dict[Series, _Counts] = {}

    def body(self, metric: Metric, group: Group, current: CurrentValues) -> Samples:
        """Return the series of a metric; `current` contains the counters that hold the histogram sums."""
        if metric.kind is Kind.HISTOGRAM:
            return self._histogram_samples(metric, group, current)
        if metric.kind is Kind.TEXT:
            texts = (text_labels(metric, series, value) for series, value in group.items())
            heads = [self._text_head(metric.name, labels) for labels in texts]
            return Samples(heads, [1.0] * len(heads))
        all_series, values = numbers(metric, group)
        return Samples(self._heads.of(metric, all_series), values)

    def info(self, name: str, texts: Iterable[tuple[str, str]]) -> Samples:
        """Return one series with these names and values as labels; its own value is always 1."""
        return Samples([self._text_head(name, texts)], [1.0])

    def families(self, families: Iterable[PrometheusMetric]) -> Samples:
        """Return the series of families of prometheus_client."""
        heads, values = list[bytes](), list[float]()
        for family in families:
            for sample in family.samples:
                heads.append(self._text_head(sample.name, sample.labels.items()))
                values.append(sample.value)
                if sample.name not in self._metadata:
                    self._metadata[sample.name] = sample_metadata(family)
        return Samples(heads, values)

    def _text_head(self, name: str, labels: Iterable[tuple[str, str]]) -> bytes:
        """Return the head of a series that is identified by its name and labels."""
        key = name, tuple(labels)
        if key not in self._text_heads:
            self._text_heads[key] = self._head(name, key[1])
        return self._text_heads[key]

    def keep(self, current: CurrentValues) -> None:
        """Delete the cached heads of series that are not in `current`, if there are many."""
        limit = 2 * len(current) + SPARE
        if len(self._histograms) > limit:
            self._histograms = {key: cached for key, cached in self._histograms.items() if key[0] in current}
            self._counts = {series: counts for series, counts in self._counts.items() if series in current}
        if len(self._text_heads) > limit:
            self._text_heads = {}

    def _number_head(self, metric: Metric, series: Series) -> bytes:
        return self._head(metric.name, zip(metric.labels, series[1:], strict=True))

    def _histogram_samples(self, metric: Metric, group: Group, current: CurrentValues) -> Samples:
        total = self._catalogue.get(metric.total)
        heads, values, messages = list[bytes](), list[float](), dict[bytes, bytes]()
        for series, counts in group.items():
            if not isinstance(counts, tuple):
                continue
            key = series, len(counts)
            if key not in self._histograms:
                self._histograms[key] = self._histogram(metric, series, len(counts))
            histogram = self._histograms[key]
            if histogram is None or min(counts) < 0:
                continue
            sum_value = histogram_sum(total, series, current)
            rendered = self._rendered(metric, series, counts, sum_value, histogram.last_buckets)
            heads += histogram.heads
            values += rendered.values
            if self._is_native:
                messages[histogram.native_head] = rendered.native
            if sum_value is not None:
                heads.append(histogram.sum_head)
                values.append(sum_value)
        return Samples(heads, values, messages)

    def _rendered(
        self,
        metric: Metric,
        series: Series,
        counts: tuple[int, ...],
        sum_value: float | None,
        last_buckets: Sequence[int],
    ) -> _Counts:
        """Return the values of the buckets and the count; most histograms do not change within a second."""
        known = self._counts.get(series)
        if known is None or known.counts != counts or known.sum_value != sum_value:
            cumulative = list(accumulate(counts))
            values: list[float] = [cumulative[bucket] for bucket in last_buckets]
            values += [cumulative[-1], cumulative[-1]]
            native = native_histogram(metric.unit, counts, sum_value) if self._is_native else b""
            known = self._counts[series] = _Counts(counts, sum_value, values, native)
        return known

    def _histogram(self, metric: Metric, series: Series, length: int) -> _Histogram | None:
        """Return the heads of a histogram, or None for an unknown bucket layout."""
        try:
            bounds = self._upper_bounds.bounds(metric.unit, length)
        except LayoutError:
            return None
        labels = list(zip(metric.labels, series[1:], strict=True))
        ends = [*(bound.le for bound in bounds), "+Inf"]
        buckets = [self._head(f"{metric.name}_bucket", [*labels, ("le", end)]) for end in ends]
        count, total = (self._head(f"{metric.name}_{suffix}", labels) for suffix in ("count", "sum"))
        native = native_head_of(encoded_labels(self._labels(metric.name, labels)))
        return _Histogram([*buckets, count], total, native, tuple(bound.bucket for bound in bounds))

    def _head(self, name: str, labels: Iterable[tuple[str, str]]) -> bytes:
        return head_of(self._labels(name, labels))

    def _labels(self, name: str, labels: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        all_labels = [*self._common.items(), (NAME, name), *labels]
        return [(label, encodable(value)) for label, value in all_labels]


class RemoteWriteFormat:
    """Implements `exporters.sinks.parts.page_series.SeriesFormat`; with `is_native`, adds native histograms."""

    def __init__(self, *, is_native: bool = False) -> None:
        self._is_native = is_native
        self.metadata: dict[str, SeriesMetadata] = {}
        """The metadata of the series so far, by name."""

    def renderer(
        self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, common: Mapping[str, str]
    ) -> SeriesSamples:
        """Return a renderer for the series of a node; all of them get the labels in `common`."""
        self.metadata.update(family_metadata(families_of(catalogue).values()))
        return SeriesSamples(catalogue, upper_bounds, common, self.metadata, is_native=self._is_native)

    def points(self, samples: Samples, time_ms: int, _: int | None) -> list[SeriesPoint]:
        """Return the points of a tick."""
        native = [(head, with_time(message, time_ms)) for head, message in samples.messages.items()]
        return points_of(samples.heads, samples.values, time_ms) + native

    def ends(self, heads: Sequence[bytes], time_ms: int) -> list[SeriesPoint]:
        """Return points that mark the end of series."""
        return stale_points(heads, time_ms)


# If more series than this are cached, the cache and the symbols are discarded.
MAX_SERIES = 50_000
# The numbers of fields in the messages of 2.0.
SYMBOLS, TIME_SERIES = 4, 5
LABEL_REFS, HISTOGRAMS, METADATA = 1, 3, 5
TYPE, HELP_REF = 1, 3


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
            self._heads[head] = self._description(decoded_labels(native_labels(head)))
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
