"""Many nodes as one: sums are sums, percentiles are those of all, and what is not known of all is not told."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.cluster.aggregation import WATCHED, Placement, counted_once, merged
from collector.model.histogram import Buckets, quantile, upper_bounds_of
from collector.model.metric import Aggregation, Kind, Metric, Owner, Series
from collector.model.sample import Derived, Rate, Sample
from collector.model.snapshot import Tick

COUNTER = Metric("requests_total", Kind.COUNTER, "1", "")
TIMER = Metric("duration_seconds", Kind.HISTOGRAM, "seconds", "", count="requests_total")
METRICS = {metric.name: metric for metric in (COUNTER, TIMER)}
TICK = Tick(100.0)
EDGES = upper_bounds_of("seconds", 165)
COUNTS = st.lists(st.integers(0, 9), min_size=165, max_size=165).map(tuple)
RATES = st.builds(Rate, st.integers(0, 1000).map(float), st.floats(0.5, 7), st.none())


def sample(values: dict[Series, Derived], elapsed_s: float = 5.0) -> Sample:
    return Sample("n", TICK, values, {"cassandra": elapsed_s})


@given(st.lists(RATES, min_size=1, max_size=5))
def test_gains_and_rates_are_sums_whatever_time_each_covers(rates: list[Rate]) -> None:
    whole = merged(METRICS, [sample({("requests_total",): rate}, rate.elapsed_s) for rate in rates], TICK)
    found = whole.values["requests_total",]
    assert isinstance(found, Rate)
    assert found.increase == sum(rate.increase for rate in rates)
    assert found.per_s == pytest.approx(sum(rate.increase / rate.elapsed_s for rate in rates))
    assert whole.elapsed_s == {"cassandra": max(rate.elapsed_s for rate in rates)}


@given(st.lists(COUNTS, min_size=1, max_size=4), st.floats(0, 1))
def test_percentiles_are_those_of_all_values(counts: list[tuple[int, ...]], q: float) -> None:
    whole = merged(METRICS, [sample({("duration_seconds",): Buckets(EDGES, each)}) for each in counts], TICK)
    found = whole.values["duration_seconds",]
    assert isinstance(found, Buckets)
    cluster_reads = Buckets(EDGES, tuple(sum(each) for each in zip(*counts, strict=True)))
    assert quantile(found, q) == quantile(cluster_reads, q)


def test_without_the_buckets_of_a_node_that_did_something_there_is_no_percentile() -> None:
    buckets = Buckets(EDGES, (1,) * 165)
    has = sample({("requests_total",): Rate(165.0, 5.0), ("duration_seconds",): buckets})
    busy, idle = (sample({("requests_total",): Rate(increase, 5.0)}) for increase in (1.0, 0.0))
    assert ("duration_seconds",) not in merged(METRICS, [has, busy], TICK).values
    assert ("duration_seconds",) in merged(METRICS, [has, idle], TICK).values


def gauge(aggregation: Aggregation) -> dict[str, Metric]:
    return {"g": Metric("g", Kind.GAUGE, "1", "", across=aggregation)}


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5))
def test_gauges_are_aggregated_as_their_metric_says_with_the_ends_beside_them(values: list[float]) -> None:
    expected = {
        Aggregation.SUM: sum(values),
        Aggregation.MEAN: sum(values) / len(values),
        Aggregation.MAX: max(values),
        Aggregation.MIN: min(values),
    }
    for aggregation, number in expected.items():
        whole = merged(gauge(aggregation), [sample({("g",): value}) for value in values], TICK)
        assert whole.values["g",] == pytest.approx(number)
        assert whole.spread["g",] == (min(values), max(values))


def test_the_mean_of_rates_is_over_all_nodes_that_have_the_metric_and_increases_add_up() -> None:
    share = Metric("gc_seconds_total", Kind.COUNTER, "seconds", "", ("collector",), across=Aggregation.MEAN)
    one, two = (sample({(share.name, collector): Rate(1.0, 5.0)}) for collector in ("ParNew", "ZGC"))
    whole = merged({share.name: share}, [one, two, sample({})], TICK)
    assert whole.values[share.name, "ParNew"] == Rate(1.0, 5.0, 0.1)
    assert whole.values[share.name, "ZGC"] == Rate(1.0, 5.0, 0.1)


def test_a_sum_is_absent_where_a_node_has_no_news_of_its_part() -> None:
    samples = [sample({("g",): 3.0}), sample({})]
    assert ("g",) not in merged(gauge(Aggregation.SUM), samples, TICK, {("g",)}).values
    assert merged(gauge(Aggregation.MEAN), samples, TICK, {("g",)}).values["g",] == 3.0


def test_nodes_on_one_machine_report_its_series_once() -> None:
    disk = Metric("disk_total", Kind.COUNTER, "1", "", ("device",), owner=Owner.MACHINE)
    net = Metric("net_total", Kind.COUNTER, "1", "", ("device",), owner=Owner.NETWORK)
    catalogue = {metric.name: metric for metric in (disk, net, COUNTER)}
    values: dict[Series, Derived] = {
        ("disk_total", WATCHED): Rate(10.0, 1.0),
        ("net_total", WATCHED): Rate(3.0, 1.0),
        ("requests_total",): Rate(1.0, 1.0),
    }

    def rates(*placements: Placement) -> list[float]:
        once = counted_once(catalogue, [(placement, sample(values)) for placement in placements])
        found = [merged(catalogue, once, TICK).values[series] for series in values]
        return [rate.increase for rate in found if isinstance(rate, Rate)]

    here = Placement("m", "net1", "sda", "eth0")
    assert rates(here, here) == [10, 3, 2]
    assert rates(here, replace(here, network="net2")) == [10, 6, 2]
    assert rates(here, replace(here, disk="sdb")) == [20, 3, 2]
    assert rates(here, replace(here, machine="n")) == [20, 6, 2]
    assert rates(Placement(), Placement()) == [20, 6, 2]


def test_what_the_first_node_on_a_machine_does_not_report_is_taken_from_the_second() -> None:
    disk = Metric("disk_total", Kind.COUNTER, "1", "", ("device",), owner=Owner.MACHINE)
    catalogue, here = {disk.name: disk}, Placement("m")
    once = counted_once(catalogue, [(here, sample({})), (here, sample({("disk_total", "sda"): Rate(1.0, 1.0)}))])
    assert merged(catalogue, once, TICK).values == {("disk_total", "sda"): Rate(1.0, 1.0)}


def test_a_text_is_there_when_all_say_the_same() -> None:
    same, other = sample({("version",): "5.0", ("name",): "a"}), sample({("version",): "5.0", ("name",): "b"})
    assert merged(METRICS, [same, other], TICK).values == {("version",): "5.0"}
