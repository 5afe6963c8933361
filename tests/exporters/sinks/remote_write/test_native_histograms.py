"""Native histograms have the same bounds for all versions of Cassandra, and counts that are off by at most a bucket."""

from bisect import bisect_left
from itertools import accumulate
from math import nan
from operator import mul

from hypothesis import given

from collector.model.histogram import upper_bounds_of
from collector.model.metric import Series, Value
from exporters.metrics_page.metric_family import LABELLED_LENGTH
from exporters.metrics_page.rendering import Options
from exporters.sinks.parts.remote_write import RemoteWriteFormat, RequestsV2, request_v1
from exporters.sinks.parts.tick_encoder import TickEncoder
from tests.exporters.metrics_page.parsed import counts
from tests.exporters.sinks.page_ticks import node_tick
from tests.exporters.sinks.remote_write.messages import (
    DecodedHistogram,
    compressed,
    decode_v1,
    decode_v2,
    histograms_of,
)

LATENCY: Series = ("cassandra_client_request_duration_seconds", "Read")
SECONDS: Series = ("cassandra_client_request_seconds_total", "Read")
NOMINAL = upper_bounds_of("seconds", LABELLED_LENGTH)[:-1]


def encoded(values: dict[Series, Value]) -> bytes:
    series_format = RemoteWriteFormat(is_native=True)
    encoder = TickEncoder(series_format, Options(), {})
    points = encoder.encode(node_tick(0, values))
    return compressed(RequestsV2(series_format.metadata).request(points))


def histogram_of(bucket_counts: tuple[int, ...]) -> DecodedHistogram:
    (histogram,) = histograms_of(encoded({LATENCY: bucket_counts}))
    return histogram


@given(counts("seconds"))
def test_the_counts_are_those_of_the_nodes_own_buckets(bucket_counts: tuple[int, ...]) -> None:
    histogram = histogram_of(bucket_counts)
    assert histogram.bounds == NOMINAL
    assert histogram.total == sum(histogram.counts) == sum(bucket_counts)
    own = upper_bounds_of("seconds", len(bucket_counts))
    for bound, below in zip(NOMINAL, accumulate(histogram.counts), strict=False):
        # The node's bounds around the nominal one: up to one of them, the count is exact.
        index = min(bisect_left(own, bound), len(own) - 2)
        assert below in (sum(bucket_counts[: index + 1]), sum(bucket_counts[:index]))
    if len(bucket_counts) == LABELLED_LENGTH:
        assert histogram.counts == bucket_counts


@given(counts("seconds"))
def test_a_sum_that_cassandra_does_not_have_is_estimated_from_the_buckets(bucket_counts: tuple[int, ...]) -> None:
    histogram = histogram_of(bucket_counts)
    lows, highs = (0.0, *NOMINAL), (*NOMINAL, NOMINAL[-1])
    lowest, highest = (sum(map(mul, histogram.counts, bounds)) for bounds in (lows, highs))
    assert histogram.sum is not None
    # Prometheus takes a sum that is not a number for that of values that are not numbers.
    assert lowest * (1 - 1e-12) <= histogram.sum <= highest * (1 + 1e-12)


def test_1_0_leaves_native_histograms_out() -> None:
    series_format = RemoteWriteFormat(is_native=True)
    encoder = TickEncoder(series_format, Options(), {})
    points = encoder.encode(node_tick(0, {LATENCY: (1,) * 128}))
    classic = TickEncoder(RemoteWriteFormat(), Options(), {}).encode(node_tick(0, {LATENCY: (1,) * 128}))
    by_name = [
        {
            sample.labels: sample.value
            for sample in decode_v1(compressed(request_v1(of)))
            if sample.name != "casstat_series"
        }
        for of in (points, classic)
    ]
    assert by_name[0] == by_name[1]
    assert len(decode_v2(compressed(RequestsV2(series_format.metadata).request(points)))) == len(classic)


def test_a_native_histogram_that_disappears_is_marked() -> None:
    series_format = RemoteWriteFormat(is_native=True)
    encoder = TickEncoder(series_format, Options(), {})
    encoder.encode(node_tick(0, {LATENCY: (1,) * 128}))
    points = encoder.encode(node_tick(1, {}, "two"))
    (histogram,) = histograms_of(compressed(RequestsV2(series_format.metadata).request(points)))
    assert (histogram.sum, histogram.total) == (None, 0)


def test_the_sum_is_that_of_the_classic_histogram() -> None:
    body = encoded({LATENCY: (1,) * 128, SECONDS: 5_000_000})
    (histogram,) = histograms_of(body)
    (classic,) = [sample.value for sample in decode_v2(body) if sample.name == f"{LATENCY[0]}_sum"]
    assert histogram.sum == classic != nan
