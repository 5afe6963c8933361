"""Aggregation across nodes: sums, percentiles of all values, and absent results where nodes lack a value."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.merge.aggregation import aggregated, combined, counted_once, merged
from collector.model.histogram import Buckets, quantile, upper_bounds_of
from collector.model.metric import Aggregation, Kind, Metric, Owner, Series
from collector.model.snapshot import WATCHED, Derived, Placement, Rate, Sample, Tick

COUNTER = Metric("requests_total", Kind.COUNTER, "1", "")
TIMER = Metric("duration_seconds", Kind.HISTOGRAM, "seconds", "", count="requests_total")
METRICS = {metric.name: metric for metric in (COUNTER, TIMER)}
TICK = Tick(100.0)
UPPER_BOUNDS = upper_bounds_of("seconds", 165)
COUNTS = st.lists(st.integers(0, 9), min_size=165, max_size=165).map(tuple)
RATES = st.builds(Rate, st.integers(0, 1000).map(float), st.floats(0.5, 7), st.none())


def sample(values: dict[Series, Derived], elapsed_s: float = 5.0) -> Sample:
    return Sample("n", TICK, values, {"cassandra": elapsed_s})


SHARE = Metric("gc_seconds_total", Kind.COUNTER, "seconds", "", ("collector",), across=Aggregation.MEAN)
VERSION = Metric("version", Kind.TEXT, "", "")
GAUGES = [Metric(f"g_{across.name}", Kind.GAUGE, "1", "", across=across) for across in Aggregation]
VALUES: dict[Series, st.SearchStrategy[Derived]] = {
    ("requests_total",): RATES,
    ("duration_seconds",): st.sampled_from([Buckets(UPPER_BOUNDS, (number,) * 165) for number in (0, 1, 7)]),
    ("gc_seconds_total", "ParNew"): RATES,
    ("gc_seconds_total", "ZGC"): RATES,
    ("version",): st.sampled_from(["5.0", "5.1"]),
    **{(metric.name,): st.floats(0, 1e9) for metric in GAUGES},
}
NODES = st.lists(st.fixed_dictionaries({}, optional=VALUES), min_size=1, max_size=6)


@given(NODES, st.lists(st.integers(0, 2), min_size=6, max_size=6), st.sets(st.sampled_from(list(VALUES))))
def test_the_aggregates_of_groups_combine_to_that_of_all_nodes(
    nodes: list[dict[Series, Derived]], groups: list[int], incomplete: set[Series]
) -> None:
    catalogue = {metric.name: metric for metric in (COUNTER, TIMER, SHARE, VERSION, *GAUGES)}
    samples = [sample(values, 1.0 + number) for number, values in enumerate(nodes)]
    members = [[node for node, group in zip(samples, groups, strict=False) if group == number] for number in range(3)]
    parts = [aggregated(catalogue, group) for group in members if group]
    cluster, expected = (
        combined(catalogue, parts).sample(catalogue, TICK, incomplete),
        merged(catalogue, samples, TICK, incomplete),
    )
    assert cluster.values.keys() == expected.values.keys()
    for series, value in expected.values.items():
        other = cluster.values[series]
        if isinstance(value, Rate):
            assert isinstance(other, Rate)
            assert (other.increase, other.elapsed_s, other.per_s) == pytest.approx(
                (value.increase, value.elapsed_s, value.per_s)
            )
        else:
            assert other == (pytest.approx(value) if isinstance(value, float) else value)
    assert (cluster.spread, cluster.elapsed_s) == (expected.spread, expected.elapsed_s)


@given(st.lists(RATES, min_size=1, max_size=5))
def test_increases_and_rates_are_summed_even_if_they_cover_different_times(rates: list[Rate]) -> None:
    cluster = merged(METRICS, [sample({("requests_total",): rate}, rate.elapsed_s) for rate in rates], TICK)
    rate = cluster.values["requests_total",]
    assert isinstance(rate, Rate)
    assert rate.increase == sum(rate.increase for rate in rates)
    assert rate.per_s == pytest.approx(sum(rate.increase / rate.elapsed_s for rate in rates))
    assert cluster.elapsed_s == {"cassandra": max(rate.elapsed_s for rate in rates)}


@given(st.lists(COUNTS, min_size=1, max_size=4), st.floats(0, 1))
def test_cluster_percentiles_are_computed_from_the_values_of_all_nodes(counts: list[tuple[int, ...]], q: float) -> None:
    cluster = merged(
        METRICS, [sample({("duration_seconds",): Buckets(UPPER_BOUNDS, node_counts)}) for node_counts in counts], TICK
    )
    buckets = cluster.values["duration_seconds",]
    assert isinstance(buckets, Buckets)
    all_values = Buckets(UPPER_BOUNDS, tuple(map(sum, zip(*counts, strict=True))))
    assert quantile(buckets, q) == quantile(all_values, q)


def test_percentiles_are_absent_if_an_active_node_has_no_buckets() -> None:
    buckets = Buckets(UPPER_BOUNDS, (1,) * 165)
    with_buckets = sample({("requests_total",): Rate(165.0, 5.0), ("duration_seconds",): buckets})
    busy, idle = (sample({("requests_total",): Rate(increase, 5.0)}) for increase in (1.0, 0.0))
    assert ("duration_seconds",) not in merged(METRICS, [with_buckets, busy], TICK).values
    assert ("duration_seconds",) in merged(METRICS, [with_buckets, idle], TICK).values


def gauge(aggregation: Aggregation) -> dict[str, Metric]:
    return {"g": Metric("g", Kind.GAUGE, "1", "", across=aggregation)}


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5))
def test_gauges_are_aggregated_as_their_metric_defines_and_keep_the_extremes(values: list[float]) -> None:
    expected = {
        Aggregation.SUM: sum(values),
        Aggregation.MEAN: sum(values) / len(values),
        Aggregation.MAX: max(values),
        Aggregation.MIN: min(values),
    }
    for aggregation, number in expected.items():
        cluster = merged(gauge(aggregation), [sample({("g",): value}) for value in values], TICK)
        assert cluster.values["g",] == pytest.approx(number)
        assert cluster.spread["g",] == (min(values), max(values))


def test_a_mean_rate_is_over_the_nodes_with_the_metric_and_increases_add_up() -> None:
    first, second = (sample({(SHARE.name, collector): Rate(1.0, 5.0)}) for collector in ("ParNew", "ZGC"))
    cluster = merged({SHARE.name: SHARE}, [first, second, sample({})], TICK)
    assert cluster.values[SHARE.name, "ParNew"] == Rate(1.0, 5.0, 0.1)
    assert cluster.values[SHARE.name, "ZGC"] == Rate(1.0, 5.0, 0.1)


def test_a_sum_is_absent_if_a_node_has_no_value() -> None:
    samples = [sample({("g",): 3.0}), sample({})]
    assert ("g",) not in merged(gauge(Aggregation.SUM), samples, TICK, {("g",)}).values
    assert merged(gauge(Aggregation.MEAN), samples, TICK, {("g",)}).values["g",] == 3.0


def test_the_series_of_a_machine_with_several_nodes_are_counted_once() -> None:
    disk = Metric("disk_total", Kind.COUNTER, "1", "", ("device",), owner=Owner.MACHINE)
    net = Metric("net_total", Kind.COUNTER, "1", "", ("device",), owner=Owner.NETWORK)
    catalogue = {metric.name: metric for metric in (disk, net, COUNTER)}
    values: dict[Series, Derived] = {
        ("disk_total", WATCHED): Rate(10.0, 1.0),
        ("net_total", WATCHED): Rate(3.0, 1.0),
        ("requests_total",): Rate(1.0, 1.0),
    }

    def rates(*placements: Placement) -> list[float]:
        samples = counted_once(catalogue, [(placement, sample(values)) for placement in placements])
        cluster = merged(catalogue, samples, TICK).values
        return [rate.increase for series in values if isinstance(rate := cluster[series], Rate)]

    here = Placement("m", "net1", "sda", "eth0")
    assert rates(here, here) == [10, 3, 2]
    assert rates(here, replace(here, network="net2")) == [10, 6, 2]
    assert rates(here, replace(here, disk="sdb")) == [20, 3, 2]
    assert rates(here, replace(here, machine="n")) == [20, 6, 2]
    assert rates(Placement(), Placement()) == [20, 6, 2]


def test_a_machine_value_may_come_from_any_of_its_nodes() -> None:
    disk = Metric("disk_total", Kind.COUNTER, "1", "", ("device",), owner=Owner.MACHINE)
    catalogue, here = {disk.name: disk}, Placement("m")
    samples = counted_once(catalogue, [(here, sample({})), (here, sample({("disk_total", "sda"): Rate(1.0, 1.0)}))])
    assert merged(catalogue, samples, TICK).values == {("disk_total", "sda"): Rate(1.0, 1.0)}


def test_a_text_is_present_if_all_nodes_agree() -> None:
    samples = [sample({("version",): "5.0", ("name",): name}) for name in ("a", "b")]
    assert merged(METRICS, samples, TICK).values == {("version",): "5.0"}


@pytest.mark.parametrize("other", [5.0, "5.0.8"])
def test_a_number_in_place_of_a_text_is_absent_unless_all_nodes_have_it(other: Derived) -> None:
    catalogue = {"version": Metric("version", Kind.TEXT, "", "")}
    samples = [sample({("version",): version}) for version in (5.0, other)]
    expected = {("version",): 5.0} if other == 5.0 else {}
    assert merged(catalogue, samples, TICK).values == expected
