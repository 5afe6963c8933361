"""Simulated nodes: counters, histograms, restarts, silence, and values that depend only on the seed and the time."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.model.metric import Kind, Series, Value
from collector.model.snapshot import JOLOKIA_SOURCE, Scrape, Snapshot, Tick
from collector.node.catalogue import CATALOGUE
from collector.node.node_sampler import SampleStream
from collector.simulation.simulated_cluster import CALM, Disturbances, SimulatedNode, simulated_cluster
from collector.simulation.value_rules import load_curve
from tests.examples import examples

# Restarts and silence occur within a few ticks.
RESTLESS = Disturbances(restart_every_s=40.0, restart_s=6.0, silent_every_s=17.0, silent_s=3.0)
BEGIN_S = 1_795_000_000.0
TIMES = st.floats(1.7e9, 2e9).map(lambda time_s: round(time_s, 1))
INTERVALS = st.sampled_from([0.1, 1.0, 5.0, 30.0])
SEEDS = st.integers(0, 100)


def node(seed: int = 1, tables: int = 2, disturbances: Disturbances = CALM) -> SimulatedNode:
    (only,) = simulated_cluster(1, tables, seed=seed, disturbances=disturbances)
    return only


def snapshots(simulated: SimulatedNode, begin_s: float, interval_s: float, count: int) -> list[Snapshot]:
    return [
        simulated.snapshot(Tick(round(begin_s + number * interval_s, 3)), interval_s, first=not number)
        for number in range(count)
    ]


def cassandra(snapshot: Snapshot) -> Scrape:
    return next(scrape for scrape in snapshot.scrapes if scrape.source == JOLOKIA_SOURCE)


def has_decreased(before: Value, now: Value) -> bool:
    if isinstance(before, tuple) and isinstance(now, tuple):
        return any(b > n for b, n in zip(before, now, strict=True))
    assert isinstance(before, int | float)
    assert isinstance(now, int | float)
    return now < before


@given(SEEDS, TIMES, INTERVALS)
@settings(max_examples=examples(25), deadline=None)
def test_counters_and_buckets_decrease_only_with_a_new_origin(seed: int, begin_s: float, interval_s: float) -> None:
    last: dict[tuple[str, Series], tuple[str, Value]] = {}
    for snapshot in snapshots(node(seed, disturbances=RESTLESS), begin_s, interval_s, 12):
        for scrape in snapshot.scrapes:
            for series, value in scrape.values.items():
                if CATALOGUE[series[0]].kind not in (Kind.COUNTER, Kind.HISTOGRAM):
                    continue
                origin, before = last.get((scrape.source, series), (scrape.origin, value))
                assert origin != scrape.origin or not has_decreased(before, value), series
                last[scrape.source, series] = scrape.origin, value


@given(SEEDS, TIMES)
@settings(max_examples=examples(25), deadline=None)
def test_a_histogram_contains_as_many_values_as_its_counter(seed: int, time_s: float) -> None:
    scrape = cassandra(node(seed).snapshot(Tick(time_s), 1.0, first=True))
    compared = 0
    for series, value in scrape.values.items():
        metric = CATALOGUE[series[0]]
        if isinstance(value, tuple) and metric.count:
            counter = (metric.count, *series[1:])
            assert sum(value) == scrape.values[counter]
            compared += 1
    assert compared


def test_values_depend_only_on_the_seed_the_node_and_the_time() -> None:
    first, second = node(7), node(7)
    tick = Tick(BEGIN_S + 5)
    list(map(repr, snapshots(second, BEGIN_S, 1.0, 5)))
    assert repr(first.snapshot(tick, 1.0)) == repr(second.snapshot(tick, 1.0))
    assert repr(first.snapshot(tick, 1.0)) != repr(node(8).snapshot(tick, 1.0))
    one, other = simulated_cluster(2, 1)
    assert cassandra(one.snapshot(tick, 1.0)).values != cassandra(other.snapshot(tick, 1.0)).values


def test_nodes_have_distinct_names_and_machines() -> None:
    count = examples(1000)
    nodes, others = simulated_cluster(count, 1), simulated_cluster(count, 1, cluster="other")
    assert len({simulated.identity for simulated in nodes + others}) == 2 * count
    assert len({simulated.placement for simulated in nodes + others}) == 2 * count
    assert len({simulated.node for simulated in nodes}) == count


def test_samples_have_no_contradictions() -> None:
    stream = SampleStream(CATALOGUE, (JOLOKIA_SOURCE,), paced=False, met=True)
    samples = list(stream.samples(snapshots(node(tables=12), BEGIN_S, 1.0, 70)))
    assert [event for sample in samples for event in sample.events] == []
    reads = [sample.values["cassandra_client_requests_total", "Read"] for sample in samples]
    assert len(set(reads)) == len(reads)


def test_a_restart_begins_with_silence_and_resets_the_counters() -> None:
    restarting = Disturbances(restart_every_s=40.0, restart_s=6.0, silent_s=0.0)
    scrapes = list(map(cassandra, snapshots(node(disturbances=restarting), BEGIN_S, 1.0, 120)))
    silent = [number for number, scrape in enumerate(scrapes) if scrape.problem]
    assert len(silent) == 18
    assert all(not scrapes[number].values for number in silent)
    begun = [number for number, (before, now) in enumerate(pairwise(scrapes), 1) if before.problem and not now.problem]
    for number in begun:
        values = scrapes[number].values
        assert values["cassandra_cluster_name",] == "simulated"
        assert 0 <= values["cassandra_client_requests_total", "Read"] < 20_000  # type: ignore[operator]
        assert scrapes[number].origin == str(values["cassandra_jvm_start_time_seconds",])


def test_a_node_that_hangs_keeps_its_counters() -> None:
    hanging = Disturbances(restart_every_s=1e7, restart_s=0.0, silent_every_s=20.0, silent_s=3.0)
    scrapes = list(map(cassandra, snapshots(node(disturbances=hanging), BEGIN_S, 1.0, 60)))
    # Answers take up to 30 ms, so the silence covers two to four ticks of each period.
    assert 6 <= sum(bool(scrape.problem) for scrape in scrapes) <= 12
    assert len({scrape.origin for scrape in scrapes if scrape.values}) == 1


@pytest.mark.parametrize("interval_s", [1.0, 10.0, 60.0, 300.0])
def test_slow_metrics_are_read_once_a_minute(interval_s: float) -> None:
    length_s = max(180.0, 2 * interval_s)
    taken = snapshots(node(), BEGIN_S, interval_s, 1 + int(length_s // interval_s))[1:]
    loads = [snapshot for snapshot in taken if ("cassandra_load_bytes",) in cassandra(snapshot).values]
    assert len(loads) == length_s // max(interval_s, 60)


@given(st.randoms(use_true_random=False), TIMES, st.floats(0.1, 86400))
def test_the_amount_of_load_is_the_integral_of_its_level(generator: object, begin_s: float, length_s: float) -> None:
    curve = load_curve(generator)  # type: ignore[arg-type]
    steps = 2000
    step_s = length_s / steps
    levels = [curve.level(begin_s + (index + 0.5) * step_s) for index in range(steps)]
    assert min(levels) > 0
    if step_s < 0.5:
        assert curve.amount(begin_s, begin_s + length_s) == pytest.approx(sum(levels) * step_s, rel=1e-2)
