"""Frames: what is in them, what is not, and that the cluster's row is the merge of the nodes in it."""

from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Series
from collector.model.sample import Derived, Rate
from collector.model.sample_json import decoded, encoded
from collector.model.snapshot import Event, Tick
from exporters.live.frame import ALL, State
from exporters.live.frame_assembler import NodeInfo
from exporters.live.live_columns import PLACES, value
from tests.exporters.live.generated_frames import PLACE, buckets, gathered, of, silent
from tests.exporters.samples import TIME_S, durations


@given(
    st.lists(
        st.dictionaries(st.integers(1, 126), st.integers(1, 10**6), min_size=1, max_size=6), min_size=1, max_size=8
    )
)
def test_the_clusters_percentiles_are_those_of_all_nodes_buckets(filled: list[dict[int, int]]) -> None:
    gathering = gathered(*map(str, range(len(filled))))
    parts = [durations(each) for each in filled]
    for node, part in enumerate(parts):
        sample = of(str(node))
        counted: dict[Series, Derived] = {
            ("cassandra_client_request_duration_seconds", "Read"): part,
            ("cassandra_client_requests_total", "Read"): Rate(part.total, 1.0),
        }
        gathering.heard(str(node), replace(sample, values={**sample.values, **counted}), TIME_S + 0.1)
    frame = gathering.close(PLACE, TIME_S + 0.5)
    whole = histogram.merge(parts)
    for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        expected = histogram.quantile(whole, share)
        assert expected is not None
        assert value(frame.cluster, f"read_{name}_ms") == pytest.approx(1000 * expected)
    assert value(frame.cluster, "reads_per_s") == pytest.approx(whole.total)
    assert frame.counted == len(parts)


def test_the_row_of_300_nodes_is_the_merge_of_their_buckets() -> None:
    names = [f"10.0.{number // 250}.{number % 250}" for number in range(300)]
    gathering = gathered(*names)
    samples = [of(name, reads=100 + 7 * number, bucket=20 + number % 40) for number, name in enumerate(names)]
    for name, sample in zip(names, samples, strict=True):
        # As it comes: through JSON and back.
        gathering.heard(name, decoded(encoded(sample)), TIME_S + 0.3)
    frame = gathering.close(PLACE, TIME_S + 0.5)
    expected = histogram.quantile(histogram.merge([buckets(sample) for sample in samples]), 0.99)
    assert expected is not None
    assert value(frame.cluster, "read_p99_ms") == pytest.approx(1000 * expected)
    assert value(frame.cluster, "reads_per_s") == sum(100 + 7 * number for number in range(300))
    assert frame.counted == len(frame.nodes) == 300


def test_the_cluster_has_the_sum_of_amounts_and_the_share_of_all_of_them() -> None:
    gathering = gathered("a", "b")
    for node, heap in (("a", 2.0**30), ("b", 3 * 2.0**30)):
        sample = of(node)
        values = {**sample.values, ("cassandra_jvm_heap_used_bytes",): heap, ("cassandra_jvm_heap_max_bytes",): 2.0**32}
        gathering.heard(node, replace(sample, values=values), TIME_S + 0.1)
    cluster = gathering.close(PLACE, TIME_S + 0.5).cluster
    assert value(cluster, "heap_used_mb") == 4096
    assert value(cluster, "heap_pct") == 50


@pytest.mark.parametrize("shared", ["", "machine"])
def test_a_machine_with_two_nodes_counts_once(shared: str) -> None:
    gathering = gathered("a", "b")
    for node in "ab":
        gathering.know(node, NodeInfo(machine=shared, network="net:[1]" if shared else ""))
        gathering.heard(node, of(node), TIME_S + 0.1)
    frame = gathering.close(PLACE, TIME_S + 0.5)
    one = value(frame.nodes[0].cells, "disk_reads_per_s")
    assert one is not None
    assert value(frame.cluster, "disk_reads_per_s") == pytest.approx(one if shared else 2 * one)
    assert value(frame.cluster, "reads_per_s") == pytest.approx(2 * 4321.5)


def test_a_node_that_is_gone_has_an_age_and_no_numbers_and_comes_back() -> None:
    gathering = gathered("a", "b")
    for node in "ab":
        gathering.heard(node, of(node), TIME_S + 0.1)
    gathering.close(PLACE, TIME_S + 0.5)
    gathering.failed("b", "Connection\x1b[2J refused", TIME_S + 0.6)
    for later in range(1, 4):
        gathering.heard("a", of("a", TIME_S + later), TIME_S + later + 0.1)
        frame = gathering.close(PLACE + later, TIME_S + later + 0.5)
        gone = frame.nodes[1]
        assert (gone.state, gone.why) == (State.GONE, "Connection?[2J refused")
        assert gone.age_s == pytest.approx(later + 0.4)
        assert all(cell != cell for cell in gone.cells)
        assert frame.counted == 1
        assert value(frame.cluster, "reads_per_s") == pytest.approx(4321.5)
    gathering.heard("b", of("b", TIME_S + 4), TIME_S + 4.1)
    frame = gathering.close(PLACE + 4, TIME_S + 4.5)
    assert (frame.nodes[1].state, frame.nodes[1].age_s) == (State.UP, None)
    assert [(told.node, told.kind) for told in frame.events] == [("b", "up")]


def test_a_node_that_only_is_late_is_not_in_the_row_and_not_gone() -> None:
    gathering = gathered("a", "b")
    for node in "ab":
        gathering.heard(node, of(node), TIME_S + 0.1)
    gathering.close(PLACE, TIME_S + 0.5)
    gathering.heard("a", of("a", TIME_S + 1), TIME_S + 1.1)
    frame = gathering.close(PLACE + 1, TIME_S + 1.5)
    assert frame.nodes[1].state is State.UP
    assert value(frame.nodes[1].cells, "reads_per_s") is None
    assert frame.counted == 1
    # What it told of that interval came too late; what it tells of the next one counts.
    gathering.heard("b", of("b", TIME_S + 1), TIME_S + 1.6)
    gathering.heard("b", of("b", TIME_S + 2), TIME_S + 2.1)
    frame = gathering.close(PLACE + 2, TIME_S + 2.5)
    assert value(frame.cluster, "reads_per_s") == pytest.approx(4321.5)
    assert value(frame.nodes[1].cells, "reads_per_s") == pytest.approx(4321.5)


@pytest.mark.parametrize("ahead_s", [-86400.0, -3.4, -1.0, -0.7, -0.3, 0.0, 0.3, 2.6, 3600.5, 10**8])
def test_a_clock_that_is_off_keeps_no_node_out_of_the_row(ahead_s: float) -> None:
    gathering = gathered("a", "b")
    counted = []
    for tick in range(8):
        time_s = TIME_S + tick
        # Its ticks are on whole seconds of its own clock: when do they come, by the one here?
        own_s = ceil(time_s - 0.3 + ahead_s)
        comes_s = own_s - ahead_s + 0.1
        if comes_s > time_s + 0.7:
            own_s, comes_s = own_s - 1, comes_s - 1
        gathering.heard("a", of("a", time_s), time_s + 0.1)
        gathering.heard("b", of("b", float(own_s)), comes_s)
        counted.append(gathering.close(PLACE + tick, time_s + 0.7).counted)
    assert counted[-5:] == [2] * 5


def test_a_restart_of_an_agent_falsifies_nothing() -> None:
    gathering = gathered("a")
    gathering.heard("a", of("a"), TIME_S + 0.1)
    gathering.close(PLACE, TIME_S + 0.5)
    gathering.failed("a", "it closed the connection", TIME_S + 0.6)
    # What it had told before is told again.
    for tick in (0, 1, 2):
        gathering.heard("a", of("a", TIME_S + tick), TIME_S + 2.1)
    frame = gathering.close(PLACE + 2, TIME_S + 2.5)
    assert value(frame.cluster, "reads_per_s") == pytest.approx(4321.5)
    assert frame.counted == 1


def test_several_ticks_of_an_interval_are_one() -> None:
    gathering = gathered("a")
    gathering.know("a", NodeInfo(interval_s=0.1))
    for tenth in range(1, 11):
        sample = of("a", TIME_S - 1 + tenth / 10, reads=tenth, bucket=40)
        gathering.heard("a", sample, TIME_S - 1 + tenth / 10 + 0.01)
    frame = gathering.close(PLACE, TIME_S + 0.5)
    assert value(frame.nodes[0].cells, "reads_per_s") == pytest.approx(5.5)


def test_a_first_answer_that_is_late_counts_in_the_next_frame() -> None:
    gathering = gathered("a")
    # The first interval has no rates yet.
    gathering.heard("a", silent("a"), TIME_S + 0.3)
    gathering.close(PLACE, TIME_S + 0.5)
    gathering.close(PLACE + 1, TIME_S + 1.7)
    gathering.heard("a", of("a", TIME_S + 1, reads=1000), TIME_S + 1.75)
    frame = gathering.close(PLACE + 2, TIME_S + 2.7)
    assert value(frame.nodes[0].cells, "reads_per_s") == pytest.approx(1000)
    assert frame.counted == 1


def test_a_silent_cassandra_is_told_from_a_machine_that_is_gone() -> None:
    gathering = gathered("a")
    gathering.heard("a", of("a"), TIME_S + 0.1)
    gathering.close(PLACE, TIME_S + 0.5)
    gathering.heard("a", silent("a", TIME_S + 1), TIME_S + 1.1)
    frame = gathering.close(PLACE + 1, TIME_S + 1.5)
    (node,) = frame.nodes
    assert node.state is State.SILENT
    assert node.age_s == pytest.approx(1.0)
    assert "Connection refused" in node.why
    assert value(node.cells, "cpu_user_pct") is not None
    assert value(node.cells, "reads_per_s") is None
    assert frame.counted == 0


def test_a_node_that_is_given_twice_counts_once() -> None:
    gathering = gathered("http://10.0.0.1", "http://node1")
    for key in ("http://10.0.0.1", "http://node1"):
        gathering.heard(key, of("10.0.0.1"), TIME_S + 0.1)
    frame = gathering.close(PLACE, TIME_S + 0.5)
    assert frame.counted == 1
    assert frame.nodes[1].why == "is the node at http://10.0.0.1, and counts once"


def test_what_no_node_can_have_measured_is_left_out() -> None:
    gathering = gathered("a", "b")
    odd: dict[Series, Derived] = {
        ("cassandra_client_requests_total", "Read"): Rate(1e300, 1.0),
        ("cassandra_client_request_duration_seconds", "Read"): Buckets(tuple(map(float, range(1, 2000))), (1,) * 1999),
        ("cassandra_client_request_duration_seconds", "Write"): durations({3: 10**60}),
        ("cassandra_jvm_heap_used_bytes",): 1e308,
        ("unheard_of",): 1.0,
    }
    gathering.heard("a", replace(of("a"), values={**of("a").values, **odd}), TIME_S + 0.1)
    gathering.heard("b", of("b"), TIME_S + 0.1)
    cluster = gathering.close(PLACE, TIME_S + 0.5).cluster
    assert value(cluster, "reads_per_s") == pytest.approx(4321.5)
    assert all(abs(cell) < 1e20 for cell in cluster if cell == cell)


@pytest.mark.parametrize("time_s", [-1.0, 1e12, 1e308])
def test_a_time_that_cannot_be_is_refused(time_s: float) -> None:
    gathering = gathered("a")
    gathering.heard("a", of("a", time_s), TIME_S)
    (node,) = gathering.close(PLACE, TIME_S + 0.5).nodes
    assert (node.state, node.why) == (State.GONE, "its clock tells a time that cannot be")


def test_events_are_one_line_each_bounded_and_in_their_order() -> None:
    gathering = gathered("a", "b")
    many = [Event("gc", f"\x1b[31m{number}\n" * 200, TIME_S - number / 100) for number in range(100)]
    gathering.heard("a", of("a", TIME_S, *many), TIME_S + 0.1)
    gathering.heard("b", of("b", TIME_S, Event("restart", "later", 1e300)), TIME_S + 0.1)
    events = gathering.close(PLACE, TIME_S + 0.5).events
    assert 2 < len(events) <= 40
    assert all(told.text.isprintable() and len(told.text) <= 200 for told in events)
    assert [told.time_s for told in events] == sorted(told.time_s for told in events)


def test_tables_of_all_nodes_are_the_merge_of_theirs() -> None:
    gathering = gathered("a", "b")
    gathering.want(frozenset({"reads_per_s"}), ALL)
    name = "cassandra_table_operation"
    for node, bucket in (("a", 30), ("b", 60)):
        values: dict[Series, Derived] = {
            (f"{name}s_total", "ks", "t", "Read"): Rate(100.0, 1.0),
            (f"{name}_seconds_total", "ks", "t", "Read"): Rate(0.1, 1.0),
            (f"{name}_duration_seconds", "ks", "t", "Read"): durations({bucket: 100}),
        }
        sample = of(node)
        gathering.heard(
            node, replace(sample, values={**sample.values, **values}, elapsed_s={"cassandra": 1.0}), TIME_S + 0.1
        )
    frame = gathering.close(PLACE, TIME_S + 0.5)
    (row,) = frame.tables[ALL]
    expected = histogram.quantile(durations({30: 100, 60: 100}), 0.99)
    assert expected is not None
    assert (row["reads_per_s"], row["read_mean_ms"]) == (200.0, 1.0)
    assert row["read_p99_ms"] == pytest.approx(1000 * expected, abs=1e-3)
    # What is not wanted is not worked out.
    assert value(frame.cluster, "reads_per_s") == pytest.approx(2 * 4321.5)
    assert value(frame.cluster, "writes_per_s") is None


def test_longer_intervals_than_the_screens_are_shown_until_the_next_and_counted_once() -> None:
    gathering = gathered("a")
    gathering.know("a", NodeInfo(interval_s=10.0))
    gathering.heard("a", replace(of("a"), tick=Tick(TIME_S)), TIME_S + 0.1)
    first = gathering.close(PLACE, TIME_S + 0.5)
    second = gathering.close(PLACE + 1, TIME_S + 1.5)
    assert (first.counted, second.counted) == (1, 0)
    assert second.nodes[0].cells[PLACES["reads_per_s"]] == pytest.approx(4321.5)
    late = gathering.close(PLACE + 60, TIME_S + 60)
    assert late.nodes[0].state is State.GONE
