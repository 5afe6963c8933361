"""Cluster intervals: the samples they contain, each node's state, and late, wrong or hostile input."""

from dataclasses import replace
from math import ceil

import pytest

from collector.live.cluster_interval import NodeInfo, State
from collector.model.histogram import Buckets
from collector.model.metric import Series
from collector.model.snapshot import Derived, Event, Placement, Rate, Tick
from exporters.live.live_columns import cells_of, value
from exporters.rows.operation_columns import TOTAL_RATE
from tests.collector.live.node_samples import INDEX, assembler_of, reads_per_s, sample_of, silent_sample
from tests.every import every
from tests.exporters.samples import TIME_S, durations

BUSY_READS_PER_S = 4321.5


@pytest.mark.parametrize("machine", ["", "machine"])
def test_a_machine_with_two_nodes_is_counted_once(machine: str) -> None:
    assembler = assembler_of("a", "b")
    for node in "ab":
        assembler.set_info(node, NodeInfo(placement=Placement(machine, "net:[1]" if machine else "")))
        assembler.add_sample(node, sample_of(node), TIME_S + 0.1)
    interval = assembler.close(INDEX, TIME_S + 0.5)
    disk_reads = ("node_disk_reads_completed_total", "watched")
    node_sample = interval.nodes[0].sample
    assert node_sample is not None
    node_rate, cluster_rate = node_sample.values[disk_reads], interval.cluster.values[disk_reads]
    assert isinstance(node_rate, Rate)
    assert isinstance(cluster_rate, Rate)
    assert cluster_rate.increase == pytest.approx(node_rate.increase if machine else 2 * node_rate.increase)
    assert reads_per_s(interval.cluster) == pytest.approx(2 * BUSY_READS_PER_S)


def test_a_gone_node_has_an_age_and_no_sample_until_it_returns() -> None:
    assembler = assembler_of("a", "b")
    for node in "ab":
        assembler.add_sample(node, sample_of(node), TIME_S + 0.1)
    assembler.close(INDEX, TIME_S + 0.5)
    assembler.add_failure("b", "Connection\x1b[2J refused")
    for later in range(1, 4):
        assembler.add_sample("a", sample_of("a", TIME_S + later), TIME_S + later + 0.1)
        interval = assembler.close(INDEX + later, TIME_S + later + 0.5)
        gone = interval.nodes[1]
        assert (gone.state, gone.reason, gone.sample) == (State.GONE, "Connection?[2J refused", None)
        assert gone.age_s == pytest.approx(later + 0.4)
        assert interval.counted == 1
        assert reads_per_s(interval.cluster) == pytest.approx(BUSY_READS_PER_S)
    assembler.add_sample("b", sample_of("b", TIME_S + 4), TIME_S + 4.1)
    interval = assembler.close(INDEX + 4, TIME_S + 4.5)
    assert (interval.nodes[1].state, interval.nodes[1].age_s) == (State.UP, None)
    assert [(event.node, event.kind) for event in interval.events] == [("b", "up")]


def test_a_late_node_is_neither_counted_nor_gone() -> None:
    assembler = assembler_of("a", "b")
    for node in "ab":
        assembler.add_sample(node, sample_of(node), TIME_S + 0.1)
    assembler.close(INDEX, TIME_S + 0.5)
    assembler.add_sample("a", sample_of("a", TIME_S + 1), TIME_S + 1.1)
    interval = assembler.close(INDEX + 1, TIME_S + 1.5)
    assert (interval.nodes[1].state, interval.nodes[1].sample) == (State.UP, None)
    assert interval.counted == 1
    # The sample that arrives after its interval has closed is discarded; the next one is used.
    assembler.add_sample("b", sample_of("b", TIME_S + 1), TIME_S + 1.6)
    assembler.add_sample("b", sample_of("b", TIME_S + 2), TIME_S + 2.1)
    interval = assembler.close(INDEX + 2, TIME_S + 2.5)
    assert reads_per_s(interval.cluster) == pytest.approx(BUSY_READS_PER_S)
    assert reads_per_s(interval.nodes[1].sample) == pytest.approx(BUSY_READS_PER_S)


@every("ahead_s", [-86400.0, -3.4, -1.0, -0.7, -0.3, 0.0, 0.3, 2.6, 3600.5, 10**8])
def test_a_node_with_a_wrong_clock_is_counted(ahead_s: float) -> None:
    assembler = assembler_of("a", "b")
    counted = []
    for tick in range(8):
        time_s = TIME_S + tick
        # The node ticks on the whole seconds of its own clock; each sample arrives 0.1 s after its tick.
        node_time_s = ceil(time_s - 0.3 + ahead_s)
        arrival_s = node_time_s - ahead_s + 0.1
        if arrival_s > time_s + 0.7:
            node_time_s, arrival_s = node_time_s - 1, arrival_s - 1
        assembler.add_sample("a", sample_of("a", time_s), time_s + 0.1)
        assembler.add_sample("b", sample_of("b", float(node_time_s)), arrival_s)
        counted.append(assembler.close(INDEX + tick, time_s + 0.7).counted)
    assert counted[-5:] == [2] * 5


def test_samples_repeated_after_an_agent_restart_are_discarded() -> None:
    assembler = assembler_of("a")
    assembler.add_sample("a", sample_of("a"), TIME_S + 0.1)
    assembler.close(INDEX, TIME_S + 0.5)
    assembler.add_failure("a", "it closed the connection")
    for tick in (0, 1, 2):
        assembler.add_sample("a", sample_of("a", TIME_S + tick), TIME_S + 2.1)
    interval = assembler.close(INDEX + 2, TIME_S + 2.5)
    assert reads_per_s(interval.cluster) == pytest.approx(BUSY_READS_PER_S)
    assert interval.counted == 1


def test_several_samples_in_an_interval_are_summarised() -> None:
    assembler = assembler_of("a")
    assembler.set_info("a", NodeInfo(interval_s=0.1))
    for tenth in range(1, 11):
        time_s = TIME_S - 1 + tenth / 10
        assembler.add_sample("a", sample_of("a", time_s, reads=tenth, bucket=40), time_s + 0.01)
    interval = assembler.close(INDEX, TIME_S + 0.5)
    assert reads_per_s(interval.nodes[0].sample) == pytest.approx(5.5)


def test_a_late_first_sample_counts_in_the_next_interval() -> None:
    assembler = assembler_of("a")
    # The silent sample stands in for the node's first sample: neither contains Cassandra rates.
    assembler.add_sample("a", silent_sample("a"), TIME_S + 0.3)
    assembler.close(INDEX, TIME_S + 0.5)
    assembler.close(INDEX + 1, TIME_S + 1.7)
    assembler.add_sample("a", sample_of("a", TIME_S + 1, reads=1000), TIME_S + 1.75)
    interval = assembler.close(INDEX + 2, TIME_S + 2.7)
    assert reads_per_s(interval.nodes[0].sample) == pytest.approx(1000)
    assert interval.counted == 1


def test_a_silent_cassandra_is_distinguished_from_a_gone_machine() -> None:
    assembler = assembler_of("a")
    assembler.add_sample("a", sample_of("a"), TIME_S + 0.1)
    assembler.close(INDEX, TIME_S + 0.5)
    assembler.add_sample("a", silent_sample("a", TIME_S + 1), TIME_S + 1.1)
    interval = assembler.close(INDEX + 1, TIME_S + 1.5)
    (node,) = interval.nodes
    assert node.state is State.SILENT
    assert node.age_s == pytest.approx(1.0)
    assert "Connection refused" in node.reason
    assert node.sample is not None
    assert ("casstat_cpu_seconds_total", "user") in node.sample.values
    assert interval.counted == 0


def test_a_node_with_two_addresses_is_counted_once() -> None:
    assembler = assembler_of("http://10.0.0.1", "http://node1")
    for key in ("http://10.0.0.1", "http://node1"):
        assembler.add_sample(key, sample_of("10.0.0.1"), TIME_S + 0.1)
    interval = assembler.close(INDEX, TIME_S + 0.5)
    assert interval.counted == 1
    assert interval.nodes[1].reason == "duplicate of http://10.0.0.1, counted once"


def test_implausible_values_are_removed() -> None:
    assembler = assembler_of("a", "b")
    implausible: dict[Series, Derived] = {
        ("cassandra_client_requests_total", "Read"): Rate(1e300, 1.0),
        ("cassandra_client_requests_total", "Write"): Rate(1.0, 1.0, 1e300),
        ("cassandra_client_request_duration_seconds", "Read"): Buckets(tuple(map(float, range(1, 2000))), (1,) * 1999),
        ("cassandra_client_request_duration_seconds", "Write"): durations({3: 10**60}),
        ("cassandra_jvm_heap_used_bytes",): 1e308,
        ("unknown_metric",): 1.0,
    }
    sample = sample_of("a")
    assembler.add_sample("a", replace(sample, values={**sample.values, **implausible}), TIME_S + 0.1)
    assembler.add_sample("b", sample_of("b"), TIME_S + 0.1)
    interval = assembler.close(INDEX, TIME_S + 0.5)
    received = interval.nodes[0].sample
    assert received is not None
    assert not implausible.keys() & received.values.keys()
    assert reads_per_s(interval.cluster) == pytest.approx(BUSY_READS_PER_S)


@pytest.mark.parametrize("time_s", [-1.0, 1e12, 1e308])
def test_an_implausible_time_is_a_failure(time_s: float) -> None:
    assembler = assembler_of("a")
    assembler.add_sample("a", sample_of("a", time_s), TIME_S)
    (node,) = assembler.close(INDEX, TIME_S + 0.5).nodes
    assert (node.state, node.reason) == (State.GONE, "its clock shows an implausible time")


def test_events_are_single_lines_bounded_and_sorted() -> None:
    assembler = assembler_of("a", "b")
    many = [Event("gc", f"\x1b[31m{number}\n" * 200, TIME_S - number / 100) for number in range(100)]
    assembler.add_sample("a", sample_of("a", TIME_S, *many), TIME_S + 0.1)
    assembler.add_sample("b", sample_of("b", TIME_S, Event("restart", "later", 1e300)), TIME_S + 0.1)
    events = assembler.close(INDEX, TIME_S + 0.5).events
    assert 2 < len(events) <= 40
    assert all(event.text.isprintable() and len(event.text) <= 200 for event in events)
    assert [event.time_s for event in events] == sorted(event.time_s for event in events)


def test_a_node_with_a_longer_interval_keeps_its_sample_but_is_counted_once() -> None:
    assembler = assembler_of("a")
    assembler.set_info("a", NodeInfo(interval_s=10.0))
    assembler.add_sample("a", replace(sample_of("a"), tick=Tick(TIME_S)), TIME_S + 0.1)
    first = assembler.close(INDEX, TIME_S + 0.5)
    second = assembler.close(INDEX + 1, TIME_S + 1.5)
    assert (first.counted, second.counted) == (1, 0)
    assert (first.nodes[0].is_current, second.nodes[0].is_current) == (True, False)
    assert reads_per_s(second.nodes[0].sample) == pytest.approx(BUSY_READS_PER_S)
    assert assembler.close(INDEX + 60, TIME_S + 60).nodes[0].state is State.GONE


def test_when_the_clock_is_set_back_assembly_continues_with_an_earlier_interval() -> None:
    assembler = assembler_of("a")
    assembler.add_sample("a", sample_of("a"), TIME_S + 0.1)
    assembler.close(INDEX, TIME_S + 0.5)
    assembler.rewind(INDEX - 100)
    assembler.add_sample("a", sample_of("a", TIME_S - 100), TIME_S - 99.9)
    assert assembler.close(INDEX - 100, TIME_S - 99.5).counted == 1


def test_the_paxos_variant_is_that_of_a_node_and_a_tick() -> None:
    # Node a has 10 conditional writes with Paxos v1, which are 10 reads, then 10 with v2; node b has 20 with v2.
    assembler = assembler_of("a", "b")
    for tick, (reads, variant) in enumerate([(10.0, 0.0), (0.0, 1.0)]):
        for node, node_variant in (("a", variant), ("b", 1.0)):
            values: dict[Series, Derived] = {
                ("cassandra_client_requests_total", "Read"): Rate(reads if node == "a" else 0.0, 0.5),
                ("cassandra_client_requests_total", "CASWrite"): Rate(10.0, 0.5),
                ("cassandra_paxos_v2",): node_variant,
            }
            time_s = TIME_S - 0.5 + tick / 2
            assembler.add_sample(node, replace(sample_of(node, time_s), values=values), time_s + 0.1)
    interval = assembler.close(INDEX, TIME_S + 0.5)
    samples = [interval.cluster, *(node.sample for node in interval.nodes if node.sample)]
    assert [value(cells_of(sample), TOTAL_RATE) for sample in samples] == [40.0, 20.0, 20.0]
