"""Client results over time: no operation is lost or counted twice, and means and percentiles are never averaged."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation
from exporters.results.summary.client_values import (
    LATENCY_KINDS,
    ClientPoint,
    client_points,
    phase_operations,
    with_breaks,
    without_rests,
)

MS_NS = 1_000_000
CLIENTS = st.lists(
    st.tuples(st.integers(0, 100), st.sampled_from([1.0, 2.5, 10.0]), st.lists(st.integers(0, 20), max_size=12)),
    max_size=4,
)


def result(begin_s: float, length_s: float, completed: Sequence[int], *, kind: str = "service") -> ClientResult:
    """Return a result with consecutive intervals, whose operations take 1 ms, 2 ms, ….

    Without latencies if `kind` is not one of LATENCY_KINDS.
    """
    intervals = []
    for index, count in enumerate(completed):
        latency = Latency({(1 + number) * MS_NS: 1 for number in range(count)}) if count else None
        begins_s = begin_s + index * length_s
        response, service = (latency if kind == of_kind else None for of_kind in LATENCY_KINDS)
        intervals.append(ClientInterval(begins_s, begins_s + length_s, count, {}, response, service))
    return ClientResult("csv", "tool", "file", (Operation("get", tuple(intervals)),))


def stated(begin_s: float, number: int, length_s: float = 1.0) -> ClientResult:
    """Return a result with a p99 of 5 ms in each interval."""
    latency = Latency(stated_s={99.0: 0.005})
    begins_s = [begin_s + index * length_s for index in range(number)]
    intervals = tuple(ClientInterval(begin, begin + length_s, 10, response=latency) for begin in begins_s)
    return ClientResult("csv", "tool", "file", (Operation("get", intervals),))


def total_ms(interval: ClientInterval) -> float:
    """Return the sum of the service times of an interval."""
    return sum(value * count for value, count in interval.service.counts.items()) / MS_NS if interval.service else 0.0


def rates(points: Sequence[ClientPoint]) -> list[float | None]:
    return [point.ops_per_s for point in points]


@given(CLIENTS, st.sampled_from([0.5, 1.0, 4.0, 30.0]))
def test_points_do_not_overlap_and_contain_no_operation_twice(
    clients: list[tuple[int, float, list[int]]], step_s: float
) -> None:
    results = [result(begin / 10, length_s, completed) for begin, length_s, completed in clients]
    points = client_points(results, 0, 1000, step_s)
    assert all(before.end_s <= after.begin_s for before, after in pairwise(points))
    drawn = sum((point.ops_per_s or 0.0) * (point.end_s - point.begin_s) for point in points)
    assert drawn <= sum(sum(completed) for *_, completed in clients) + 1e-6


@given(CLIENTS, st.sampled_from([0.5, 1.0, 4.0, 30.0]))
def test_every_interval_belongs_to_one_point(clients: list[tuple[int, float, list[int]]], step_s: float) -> None:
    results = [result(begin / 10, length_s, completed) for begin, length_s, completed in clients]
    points = client_points(results, 0, 1000, step_s)
    for part in results:
        for interval in part.operations[0].intervals:
            middle_s = (interval.begin_s + interval.end_s) / 2
            assert sum(point.begin_s < middle_s <= point.end_s for point in points) == 1


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30), st.sampled_from([0.5, 1.0, 4.0, 30.0]))
def test_one_client_is_drawn_completely(completed: list[int], step_s: float) -> None:
    points = client_points([result(100.3, 1.0, completed)], 0, 1000, step_s)
    drawn = sum((point.ops_per_s or 0.0) * (point.end_s - point.begin_s) for point in points)
    assert drawn == pytest.approx(sum(completed))


def test_an_interval_without_operations_is_zero_and_has_no_latency() -> None:
    points = client_points([result(100.3, 1.0, [10, 0, 10])], 0, 1000, 1.0)
    assert rates(points) == pytest.approx([10.0, 0.0, 10.0])
    assert [point.p99_ms.get("service") for point in points] == [10.0, None, 10.0]
    assert [point.mean_ms.get("service") for point in points] == [5.5, None, 5.5]


def test_a_time_without_intervals_is_not_zero() -> None:
    results = [result(100.0, 1.0, [10]), result(105.0, 1.0, [10])]
    assert rates(with_breaks(client_points(results, 0, 1000, 1.0))) == [10.0, None, 10.0]


def test_a_line_has_no_point_for_a_short_rest() -> None:
    intervals = (
        *result(100.0, 1.0, [10, 10]).operations[0].intervals,
        *result(102.0, 0.25, [1]).operations[0].intervals,
    )
    points = client_points([ClientResult("csv", "tool", "file", (Operation("get", intervals),))], 0, 1000, 1.0)
    assert [point.end_s for point in points] == [101.0, 102.0, 102.25]
    assert without_rests(points, 1.0) == points[:2]


def test_intervals_must_lie_in_the_time_range() -> None:
    points = client_points([result(99.5, 1.0, [10, 20, 30])], 100.0, 102.0, 1.0)
    assert [(point.begin_s, point.end_s) for point in points] == [(100.5, 101.5)]
    assert client_points([], 0, 1000, 1.0) == []


def test_a_point_is_unknown_while_a_client_has_an_interval_that_crosses_the_end() -> None:
    hosts = [result(100.0, 2.0, [20] * 3), result(101.0, 2.0, [10] * 3)]
    # The last interval of the second host ends at 107.
    points = client_points(hosts, 100.0, 106.0, 1.0)
    assert [(point.begin_s, point.end_s) for point in points] == [(100.0, 102.0), (102.0, 104.0)]
    assert rates(points) == pytest.approx([12.5, 15.0])
    # Only the intervals beside the crossing one are left out, however long a point is.
    assert [(point.begin_s, point.end_s) for point in client_points(hosts, 100.0, 106.0, 60.0)] == [(100.0, 104.0)]


def test_there_is_no_point_while_a_client_has_only_a_total() -> None:
    total = ClientInterval(102.0, 104.0, 1000)
    results = [result(100.0, 1.0, [10] * 6), ClientResult("wrk", "wrk", "file", (Operation("", (), total),))]
    assert [point.end_s for point in client_points(results, 0, 1000, 1.0)] == [101.0, 102.0, 105.0, 106.0]


def test_consecutive_results_in_one_point_do_not_add_up() -> None:
    (point,) = client_points([result(100.0, 1.0, [10] * 3), result(103.0, 1.0, [5] * 2)], 0, 1000, 5.0)
    assert point.ops_per_s == pytest.approx(8.0)


@pytest.mark.parametrize(("time_s", "index"), [(101.0, 0), (103.0, 2), (104.0, 3)])
def test_the_operations_and_latencies_of_an_interval_without_length_are_in_the_same_point(
    time_s: float, index: int
) -> None:
    (operation,) = result(100.0, 1.0, [10] * 4).operations
    burst = ClientInterval(time_s, time_s, 60, service=Latency({100 * MS_NS: 60}))
    intervals = tuple(sorted((*operation.intervals, burst), key=lambda interval: (interval.end_s, interval.begin_s)))
    load = ClientResult("csv", "tool", "file", (Operation("get", intervals),))
    points = client_points([load], 0, 1000, 1.0)
    assert rates(points) == pytest.approx([70.0 if number == index else 10.0 for number in range(4)])
    assert [point.p99_ms["service"] for point in points] == [100.0 if number == index else 10.0 for number in range(4)]


def test_an_interval_without_length_belongs_to_the_phase_that_ends_with_it() -> None:
    (operation,) = result(100.0, 1.0, [10] * 4).operations
    burst = ClientInterval(102.0, 102.0, 60, service=Latency({100 * MS_NS: 60}))
    operation = replace(operation, intervals=(*operation.intervals[:2], burst, *operation.intervals[2:]))
    load = ClientResult("csv", "tool", "file", (operation,))
    for begin_s, end_s, count in ((100.0, 102.0, 80), (102.0, 104.0, 20)):
        (part,) = phase_operations([load], begin_s, end_s)
        assert part.total is not None
        assert part.completed == part.total.completed == count


def test_a_client_with_longer_intervals_contributes_to_every_point() -> None:
    hosts = [result(100.0, 1.0, [10] * 20), result(100.0, 10.0, [50] * 2)]
    points = client_points(hosts, 0, 1000, 1.0)
    assert rates(points) == pytest.approx([15.0, 15.0])
    # The 149th of 150 operations; the longest two take 49 ms and 50 ms.
    assert [point.p99_ms["service"] for point in points] == [49.0, 49.0]


def test_buckets_of_several_hosts_are_merged() -> None:
    # 99 operations of one host take 1 ms, and 101 of the other 3 ms: the mean of both percentiles would be 2 ms.
    hosts = [
        ClientResult("", "", "", (Operation("", (ClientInterval(100.0, 101.0, count, response=latency),)),))
        for count, latency in ((99, Latency({MS_NS: 99})), (101, Latency({3 * MS_NS: 101})))
    ]
    (point,) = client_points(hosts, 0, 1000, 1.0)
    assert point.p99_ms == {"response": 3.0}
    # 402 ms in 200 operations: the mean of both means would be 2 ms.
    assert point.mean_ms == {"response": pytest.approx(2.01)}


def test_stated_percentiles_are_shown_but_never_combined() -> None:
    assert [point.p99_ms for point in client_points([stated(100.0, 2)], 0, 1000, 1.0)] == [{"response": 5.0}] * 2
    assert [point.p99_ms for point in client_points([stated(100.0, 2)], 0, 1000, 2.0)] == [{}]
    assert [point.p99_ms for point in client_points([stated(100.0, 1), stated(100.0, 1)], 0, 1000, 1.0)] == [{}]


@given(CLIENTS, st.sampled_from([0.5, 1.0, 4.0, 30.0]))
def test_the_mean_is_the_total_of_the_latencies_divided_by_the_operations(
    clients: list[tuple[int, float, list[int]]], step_s: float
) -> None:
    results = [result(begin / 10, length_s, completed) for begin, length_s, completed in clients]
    intervals = [interval for part in results for interval in part.operations[0].intervals]
    drawn_ms = 0.0
    for point in client_points(results, 0, 1000, step_s):
        inside = [part for part in intervals if point.begin_s < (part.begin_s + part.end_s) / 2 <= point.end_s]
        completed = sum(interval.completed for interval in inside)
        mean_ms = point.mean_ms.get("service")
        assert (mean_ms is None) == (completed == 0)
        if mean_ms is not None:
            assert mean_ms == pytest.approx(sum(map(total_ms, inside)) / completed)
            drawn_ms += mean_ms * completed
    # Together, the points contain every latency once.
    assert drawn_ms == pytest.approx(sum(map(total_ms, intervals)))


@given(st.lists(st.integers(1, 20), min_size=1, max_size=4), st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_operations_and_client_hosts_have_the_mean_of_all_operations(first: list[int], second: list[int]) -> None:
    hosts = [result(100.0, 1.0, completed) for completed in (first, second)]
    operations = tuple(replace(host.operations[0], name=name) for name, host in zip(("get", "put"), hosts, strict=True))
    one_host = replace(hosts[0], operations=operations)
    latencies_ms = [1 + number for count in (*first, *second) for number in range(count)]
    for results in (hosts, [one_host]):
        (point,) = client_points(results, 0, 1000, 60.0)
        assert point.mean_ms["service"] == pytest.approx(sum(latencies_ms) / len(latencies_ms))


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6), st.sampled_from([1.0, 2.0, 30.0]))
def test_the_mean_is_unknown_if_a_client_has_no_counts(completed: list[int], step_s: float) -> None:
    counts, percentiles = result(100.0, 1.0, completed, kind="response"), stated(100.0, len(completed))
    without = result(100.0, 1.0, [5] * len(completed), kind="none")
    for results in ([percentiles], [without], [counts, percentiles], [counts, without]):
        assert all(point.mean_ms == {} for point in client_points(results, 0, 1000, step_s))


def test_intervals_that_are_slightly_shorter_than_a_point_are_not_combined() -> None:
    points = client_points([stated(100.0, 3, 0.99)], 0, 1000, 1.0)
    assert [point.p99_ms for point in points] == [{"response": 5.0}] * 3


def test_response_and_service_times_are_kept_apart() -> None:
    results = [result(100.0, 1.0, [10], kind="response"), result(101.0, 1.0, [10])]
    assert [point.mean_ms for point in client_points(results, 0, 1000, 1.0)] == [{"response": 5.5}, {"service": 5.5}]
    assert [point.mean_ms for point in client_points(results, 0, 1000, 2.0)] == [{}]
    assert [point.p99_ms for point in client_points(results, 0, 1000, 1.0)] == [{"response": 10.0}, {"service": 10.0}]
    assert [point.p99_ms for point in client_points(results, 0, 1000, 2.0)] == [{}]
