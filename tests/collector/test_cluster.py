"""Many nodes as one: sums are sums, percentiles are those of all, and what is not known of all is not told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.cluster import merged
from collector.histogram import Buckets, edges_of, quantile
from collector.model import Derived, Kind, Metric, Rate, Sample, Series, Tick

COUNTER = Metric("requests_total", Kind.COUNTER, "1", "")
TIMER = Metric("duration_seconds", Kind.HISTOGRAM, "seconds", "", count="requests_total")
METRICS = {metric.name: metric for metric in (COUNTER, TIMER)}
TICK = Tick(100.0)
EDGES = edges_of("seconds", 165)
COUNTS = st.lists(st.integers(0, 9), min_size=165, max_size=165).map(tuple)
RATES = st.builds(Rate, st.integers(0, 1000).map(float), st.floats(0.5, 7), st.none())


def sample(values: dict[Series, Derived], elapsed_s: float = 5.0) -> Sample:
    return Sample("n", TICK, values, {"cassandra": elapsed_s})


@given(st.lists(RATES, min_size=1, max_size=5))
def test_gains_and_rates_are_sums_whatever_time_each_covers(rates: list[Rate]) -> None:
    whole = merged(METRICS, [sample({("requests_total",): rate}, rate.elapsed_s) for rate in rates], TICK)
    found = whole.values["requests_total",]
    assert isinstance(found, Rate)
    assert found.gained == sum(rate.gained for rate in rates)
    assert found.per_s == pytest.approx(sum(rate.gained / rate.elapsed_s for rate in rates))
    assert whole.elapsed_s == {"cassandra": max(rate.elapsed_s for rate in rates)}


@given(st.lists(COUNTS, min_size=1, max_size=4), st.floats(0, 1))
def test_percentiles_are_those_of_all_values(counts: list[tuple[int, ...]], q: float) -> None:
    whole = merged(METRICS, [sample({("duration_seconds",): Buckets(EDGES, each)}) for each in counts], TICK)
    found = whole.values["duration_seconds",]
    assert isinstance(found, Buckets)
    together = Buckets(EDGES, tuple(sum(each) for each in zip(*counts, strict=True)))
    assert quantile(found, q) == quantile(together, q)


def test_without_the_buckets_of_a_node_that_did_something_there_is_no_percentile() -> None:
    buckets = Buckets(EDGES, (1,) * 165)
    has = sample({("requests_total",): Rate(165.0, 5.0), ("duration_seconds",): buckets})
    busy, idle = (sample({("requests_total",): Rate(gained, 5.0)}) for gained in (1.0, 0.0))
    assert ("duration_seconds",) not in merged(METRICS, [has, busy], TICK).values
    assert ("duration_seconds",) in merged(METRICS, [has, idle], TICK).values


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5))
def test_gauges_are_means_with_their_ends(values: list[float]) -> None:
    whole = merged(METRICS, [sample({("heap",): value}) for value in values], TICK)
    assert whole.values["heap",] == pytest.approx(sum(values) / len(values))
    assert whole.spread["heap",] == (min(values), max(values))


def test_a_text_is_there_when_all_say_the_same() -> None:
    same, other = sample({("version",): "5.0", ("name",): "a"}), sample({("version",): "5.0", ("name",): "b"})
    assert merged(METRICS, [same, other], TICK).values == {("version",): "5.0"}
