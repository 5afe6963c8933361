"""Points with native histograms with custom buckets, which only remote write 2.0 can carry.

Every timer gets the bounds of Cassandra 4.1, whatever the node's version: the counts of an older layout go to the
nearest of these bounds, as on /metrics, so histograms of different versions can be added. The head of a point consists
of a zero byte and the labels, and its content is a Histogram message.

Cassandra has no sum for some histograms. Their sum is estimated, with each value in the middle of its bucket: without a
sum (NaN), Prometheus 3.8 computes wrong quantiles, and 0 would be a wrong mean.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import mul

from collector.model.histogram import upper_bounds_of
from exporters.metrics_page.metric_family import LABELLED_LENGTH, UpperBounds
from exporters.sinks.parts.protobuf_fields import FIXED64, bytes_field, read_varint, varint, varint_field

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
