"""The client's columns of a phase: counts are added, and percentiles come from merged counts, never from averages."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation
from exporters.results.summary.client_values import client_values, column_name, total_within

MS_NS = 1_000_000


def interval(second: int, counts: Mapping[int, int], errors: int = 0) -> ClientInterval:
    """Return a second with these numbers of operations by latency in milliseconds."""
    latency = Latency({value * MS_NS: count for value, count in counts.items()}) if counts else None
    failed = {"timeout": errors} if errors else {}
    return ClientInterval(float(second), second + 1.0, sum(counts.values()), failed, service=latency)


def result(*operations: Operation) -> ClientResult:
    return ClientResult("test", "test", "file", operations)


def stated(second: int, **percentiles_ms: float) -> ClientInterval:
    latency = Latency(stated_s={float(name[1:]): value_ms / 1000 for name, value_ms in percentiles_ms.items()})
    return ClientInterval(float(second), second + 1.0, 10, response=latency)


COUNTS = st.dictionaries(st.integers(1, 1000), st.integers(1, 50), max_size=5)


@given(st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=5))
def test_results_of_several_client_hosts_are_those_of_one(seconds: Sequence[tuple[dict[int, int], ...]]) -> None:
    first, second = zip(*seconds, strict=True)
    hosts = [
        result(Operation("", tuple(interval(number, counts) for number, counts in enumerate(host))))
        for host in (first, second)
    ]
    values = client_values(hosts, 0.0, 100.0)
    length_s = len(first)
    latencies_ms = sorted(ms for counts in (*first, *second) for ms, count in counts.items() for _ in range(count))
    assert values["client_ops_per_s"] == pytest.approx(len(latencies_ms) / length_s, abs=0.001)
    if latencies_ms:
        assert values["client_p50_ms"] == latencies_ms[(len(latencies_ms) + 1) // 2 - 1]
        assert values["client_mean_ms"] == pytest.approx(sum(latencies_ms) / len(latencies_ms), abs=0.001)
    else:
        assert "client_p50_ms" not in values


def test_only_intervals_completely_inside_the_phase_count() -> None:
    of_all = result(Operation("", tuple(interval(second, {second + 1: 10}) for second in range(10))))
    values = client_values([of_all], 2.5, 5.0)
    assert (values["client_ops_per_s"], values["client_p999_ms"]) == (10, 5)
    assert client_values([of_all], 2.5, 3.4) == {}
    assert client_values([], 0.0, 10.0) == {}


def test_a_second_without_completed_operations_counts_as_time() -> None:
    stalled = result(Operation("", (interval(0, {1: 10}), interval(1, {}, errors=5), interval(2, {1: 10}))))
    values = client_values([stalled], 0.0, 3.0)
    assert values["client_ops_per_s"] == pytest.approx(20 / 3, abs=0.001)
    assert values["client_errors_per_s"] == pytest.approx(5 / 3, abs=0.001)
    assert values["client_error_share"] == 0.2
    only_errors = client_values([stalled], 1.0, 2.0)
    assert (only_errors["client_ops_per_s"], only_errors["client_error_share"]) == (0, 1.0)
    assert "client_p99_ms" not in only_errors


def test_operations_have_columns_of_their_own() -> None:
    both = result(
        Operation("Read", (interval(0, {1: 30}),)), Operation("GET /a b", (interval(0, {9: 10}),)), Operation("")
    )
    values = client_values([both], 0.0, 1.0)
    prefixes = ("client", "client_read", "client_get_a_b")
    assert [values[f"{prefix}_ops_per_s"] for prefix in prefixes] == [40, 30, 10]
    assert [values[f"{prefix}_p99_ms"] for prefix in prefixes] == [9, 1, 9]
    assert column_name("🦊") == ""


def test_stated_percentiles_are_those_of_one_interval_or_of_the_stated_total() -> None:
    intervals = stated(0, p50=1.0, p99=4.0), stated(1, p50=2.0, p99=8.0)
    total = ClientInterval(0.0, 2.0, 20, response=Latency(stated_s={99.0: 0.007}))
    known = [result(Operation("", intervals, total))]
    assert client_values(known, 0.0, 1.0)["client_p99_ms"] == 4
    assert client_values(known, 0.0, 2.0)["client_p99_ms"] == 7
    assert client_values(known, 0.0, 2.0)["client_latency"] == "response"
    unknown = [result(Operation("", intervals))]
    assert client_values(unknown, 0.0, 2.0) == {
        "client_ops_per_s": 10,
        "client_errors_per_s": 0,
        "client_error_share": 0.0,
    }
    # Percentiles of two hosts cannot be combined.
    assert "client_p99_ms" not in client_values(known * 2, 0.0, 2.0)


def test_a_total_without_intervals_counts_only_if_it_lies_inside_the_phase() -> None:
    total = ClientInterval(1.0, 9.0, 80, service=Latency(stated_s={99.0: 0.007}))
    operation = Operation("", total=total)
    assert total_within(operation, 0.0, 10.0) == total
    assert total_within(operation, 2.0, 10.0) is None
    assert client_values([result(operation)], 0.0, 10.0)["client_ops_per_s"] == 10


def test_response_times_are_used_only_if_all_operations_have_them() -> None:
    response = ClientInterval(0.0, 1.0, 1, response=Latency({5 * MS_NS: 1}), service=Latency({2 * MS_NS: 1}))
    service = interval(0, {3: 1})
    alone = client_values([result(Operation("", (response,)))], 0.0, 1.0)
    assert (alone["client_latency"], alone["client_p99_ms"]) == ("response", 5)
    mixed = client_values([result(Operation("", (response,))), result(Operation("", (service,)))], 0.0, 1.0)
    assert (mixed["client_latency"], mixed["client_p99_ms"]) == ("service", 3)
