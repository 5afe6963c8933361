"""The resource that is saturated first is named, unless the values do not determine it."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.report.verdict import saturation_text
from exporters.results.saturation.saturation import (
    CPU,
    DISK,
    GC,
    GENERATOR,
    NETWORK,
    RESOURCES,
    UNAVAILABLE,
    WINDOW,
    HotTable,
    Interval,
    Loads,
    Operations,
    Saturation,
    saturation,
)

IDLE: Loads = {
    "unanswered": 0.0,
    "generator_cpu": 0.1,
    "generator_thread": 0.4,
    "network_used": 0.1,
    "gc_share": 0.01,
    "disk_util": 0.1,
    "disk_await_ms": 1.0,
    "io_waiting": 0.01,
    "cpu_ratio": 1.0,
    "cpu_busy": 0.3,
    "cpu_waiting": 0.1,
    "compactions_pending": 0.0,
    "queued": 0.0,
}
BUSY_CPU = {"cpu_busy": 0.97, "cpu_waiting": 0.6}
BUSY_DISK = {"disk_util": 1.0, "disk_await_ms": 30.0, "io_waiting": 0.5}


def phase(length: int, loads: Callable[[int], Loads]) -> list[Interval]:
    """Return the intervals of a phase of `length` seconds; `loads` returns the measures that differ from IDLE."""
    return [Interval(1000.0 + second, {**IDLE, **loads(second)}) for second in range(length)]


def idle(length: int = 60) -> list[Interval]:
    return phase(length, lambda _: {})


def judged(phases: list[dict[str, list[Interval]]]) -> Saturation:
    """Return the result for phases with nodes and with a client host named "c"."""
    return saturation([{"c": idle(), **phase} for phase in phases], {"c"})


def test_nothing_is_saturated_if_all_resources_are_measured_and_idle() -> None:
    result = judged([{"n1": idle(), "n2": idle()}])
    assert result.first is None
    assert not result.is_undetermined
    assert [finding.resource for finding in result.findings] == list(RESOURCES)


def test_the_beginning_is_that_of_the_first_saturated_interval() -> None:
    result = judged([{"n1": idle(), "n2": phase(60, lambda second: BUSY_CPU if second >= 23 else {})}])
    assert result.first is not None
    assert (result.first.resource, result.first.host, result.first.begin_s) == (CPU, "n2", 1022.0)
    assert result.first.text == "97% of its processors busy, tasks waiting 60% of the time"


@given(st.sets(st.integers(0, 59), max_size=WINDOW // 2))
def test_short_bursts_are_no_saturation(bursts: set[int]) -> None:
    result = judged([{"n1": phase(60, lambda second: BUSY_CPU if second in bursts else {})}])
    assert result.first is None


def test_a_resource_that_recovers_is_not_saturated() -> None:
    result = judged([{"n1": phase(100, lambda second: BUSY_CPU if second < 20 else {})}])
    assert result.first is None


@pytest.mark.parametrize("disk_s", [0, 15, 30, 70])
def test_the_earlier_resource_is_named_unless_its_cause_follows_soon(disk_s: int) -> None:
    def loads(second: int) -> Loads:
        return {**(BUSY_CPU if second >= 20 else {}), **(BUSY_DISK if second >= disk_s else {})}

    result = judged([{"n1": phase(100, loads)}])
    assert result.first is not None
    assert result.first.resource == (CPU if disk_s == 70 else DISK)


def test_garbage_collection_is_named_instead_of_the_cpu_that_it_uses() -> None:
    result = judged([{"n1": phase(60, lambda _: {**BUSY_CPU, "gc_share": 0.4})}])
    assert result.first is not None
    assert result.first.resource == GC


def test_a_busy_disk_with_fast_responses_is_not_saturated() -> None:
    result = judged([{"n1": phase(60, lambda _: {**BUSY_DISK, "disk_await_ms": 0.5})}])
    assert result.first is None


def test_a_node_that_stops_answering_is_named() -> None:
    silent = [Interval(interval.end_s, {"unanswered": 1.0}) for interval in idle()]
    result = judged([{"n1": phase(60, lambda _: BUSY_CPU), "n2": silent}])
    assert result.first is not None
    assert (result.first.resource, result.first.host) == (UNAVAILABLE, "n2")


def test_the_share_of_intervals_without_an_answer_is_stated() -> None:
    result = judged([{"n1": phase(60, lambda second: {"unanswered": float(second < 6)})}])
    (finding,) = [finding for finding in result.findings if finding.resource == UNAVAILABLE]
    assert finding.text == "no answer in 10% of the intervals"


def test_a_node_that_does_not_answer_because_of_its_collections_is_limited_by_them() -> None:
    intervals = [
        Interval(1000.0 + second, {"unanswered": 1.0} if second % 3 else {**IDLE, "gc_share": 0.6})
        for second in range(60)
    ]
    result = judged([{"n1": intervals}])
    assert result.first is not None
    assert result.first.resource == GC


def test_a_stopped_process_is_unavailable() -> None:
    stopped = [Interval(interval.end_s, {"unanswered": 1.0, "process_idle": 1.0}) for interval in idle()]
    result = judged([{"n1": phase(60, lambda _: BUSY_CPU), "n2": stopped}])
    assert result.first is not None
    assert (result.first.resource, result.first.host) == (UNAVAILABLE, "n2")
    assert result.first.text == "no answer in 100% of the intervals, its process idle in 100%"


def test_no_other_resource_is_named_while_a_busy_node_does_not_answer() -> None:
    busy = phase(60, lambda _: BUSY_CPU)
    silent = [Interval(interval.end_s, {"cpu_busy": 1.0, "unanswered": 1.0, "process_idle": 0.0}) for interval in busy]
    result = judged([{"n1": busy, "n2": silent}])
    assert result.first is None
    assert result.is_undetermined
    assert "n2 was busy but did not answer" in saturation_text(result, 0)


def test_a_node_that_rarely_fails_to_answer_does_not_prevent_a_result() -> None:
    result = judged(
        [{"n1": phase(60, lambda second: {**BUSY_CPU, "unanswered": float(second % 3 == 0), "process_idle": 0.0})}]
    )
    assert result.first is not None
    assert (result.first.resource, result.unresponsive) == (CPU, "")


def test_a_resource_is_not_named_if_it_is_saturated_in_less_than_half_of_the_intervals() -> None:
    result = judged([{"n1": phase(40, lambda second: BUSY_CPU if second < 6 or 20 <= second < 26 else {})}])
    assert result.first is None


@pytest.mark.parametrize("measure", ["generator_cpu", "generator_thread"])
def test_a_load_generator_is_saturated_if_either_measure_is(measure: str) -> None:
    result = judged([{"n1": idle(), "c": phase(60, lambda _: {measure: 0.97})}])
    assert result.first is not None
    assert (result.first.resource, result.first.host) == (GENERATOR, "c")


@pytest.mark.parametrize(("share", "expected"), [(0.95, True), (0.5, None)])
def test_a_thread_that_is_not_busy_does_not_replace_an_unknown_measure(share: float, expected: bool | None) -> None:
    assert GENERATOR.is_saturated({"generator_thread": share}) is expected


def test_an_unknown_thread_leaves_the_state_to_the_other_measure() -> None:
    loads = {measure: value for measure, value in IDLE.items() if measure != "generator_thread"}
    result = judged([{"n1": idle(), "c": [Interval(1000.0 + second, loads) for second in range(60)]}])
    assert result.first is None
    assert not result.is_undetermined


@pytest.mark.parametrize("host", ["n1", "c"])
def test_the_network_of_nodes_and_client_hosts_is_named_before_the_processors(host: str) -> None:
    loads = {**BUSY_CPU, "generator_cpu": 1.0, "network_used": 0.95}
    result = judged([{"n1": idle(), host: phase(60, lambda _: loads)}])
    assert result.first is not None
    assert (result.first.resource, result.first.host) == (NETWORK, host)
    assert result.first.text == "95% of the interface's capacity used"


@pytest.mark.parametrize("hosts", [("n1",), ("n1", "c")])
def test_an_unknown_capacity_of_the_network_does_not_leave_the_result_undetermined(hosts: tuple[str, ...]) -> None:
    loads = {measure: value for measure, value in IDLE.items() if measure != "network_used"}
    unknown = [Interval(1000.0 + second, loads) for second in range(60)]
    result = judged([{"n1": idle(), "c": idle(), **dict.fromkeys(hosts, unknown)}])
    assert result.first is None
    assert not result.is_undetermined
    assert list(result.unmeasured) == [NETWORK]
    assert [finding.host for finding in result.findings if finding.resource == NETWORK] == ["c"] * (len(hosts) == 1)


@pytest.mark.parametrize(
    ("loads", "table"),
    [(BUSY_CPU, HotTable("ks", "users", 0.9)), (BUSY_DISK, HotTable("ks", "users", 0.9)), ({"gc_share": 0.5}, None)],
)
def test_the_table_with_most_operations_on_the_node_since_the_beginning_is_a_detail(
    loads: Loads, table: HotTable | None
) -> None:
    def operations(second: int) -> Operations:
        return {("ks", "users"): 90.0, ("ks", "events"): 10.0 if second >= 20 else 1000.0}

    node = [
        replace(interval, operations=operations(second))
        for second, interval in enumerate(phase(60, lambda second: loads if second >= 20 else {}))
    ]
    other = [replace(interval, operations={("ks", "others"): 1e6, ("ks", "users"): 1.0}) for interval in idle()]
    earlier = [replace(interval, end_s=interval.end_s - 60) for interval in other]
    result = judged([{"n1": earlier, "n2": earlier}, {"n1": other, "n2": node}])
    assert result.first is not None
    assert result.first.host == "n2"
    assert result.first.hot_table == table
    assert [finding.hot_table for finding in result.findings if finding.begin_s is not None] == [table]


def test_an_unmeasured_resource_leaves_the_result_undetermined() -> None:
    loads = {measure: value for measure, value in IDLE.items() if measure != "generator_cpu"}
    intervals = [Interval(1000.0 + second, loads) for second in range(60)]
    result = judged([{"n1": idle(), "c": intervals}])
    assert result.first is None
    assert result.is_undetermined
    assert list(result.unmeasured) == [GENERATOR]


def test_a_resource_that_is_unmeasured_on_one_node_leaves_the_result_undetermined() -> None:
    loads = {measure: value for measure, value in IDLE.items() if measure != "cpu_busy"}
    result = judged([{"n1": idle(), "n2": [Interval(1000.0 + second, loads) for second in range(60)]}])
    assert result.first is None
    assert result.is_undetermined
    assert CPU in result.unmeasured


def test_waiting_requests_without_a_saturated_resource_leave_the_result_undetermined() -> None:
    assert judged([{"n1": phase(60, lambda _: {"queued": 40.0})}]).is_undetermined


def test_a_phase_that_is_too_short_determines_nothing() -> None:
    result = judged([{"n1": phase(3, lambda _: BUSY_CPU)}])
    assert result.first is None
    assert result.is_undetermined


def test_the_first_phase_in_which_a_resource_is_saturated_counts() -> None:
    levels = [idle(), phase(60, lambda _: {"generator_cpu": 1.0})]
    later = [Interval(interval.end_s + 60, interval.loads) for interval in levels[1]]
    result = judged([{"c": levels[0]}, {"c": later}])
    assert result.first is not None
    assert (result.first.resource, result.first.begin_s) == (GENERATOR, 1060.0)
