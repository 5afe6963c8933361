"""The values of a run: from the intervals of client results, or from the servers' columns and buckets."""

import json
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation
from collector.model.histogram import Buckets
from collector.node.metrics.requests import COUNTED
from exporters.results.sweep.sweep_rows import (
    CLIENT,
    SERVER,
    RunValues,
    client_run_values,
    content_of_values,
    server_run_values,
    values_of_content,
)
from tests.every import every

NUMBERS = st.none() | st.floats(0, 1e9)
VALUES = st.builds(
    RunValues,
    st.sampled_from([CLIENT, SERVER]),
    NUMBERS,
    NUMBERS,
    st.floats(0, 1e9),
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.sampled_from(["response", "service", "server", ""]),
    st.none()
    | st.builds(
        Latency,
        st.dictionaries(st.integers(0, 10**12), st.integers(1, 10**9), max_size=3),
        st.dictionaries(st.floats(0, 100), st.floats(0, 10), max_size=2),
    ),
    st.none()
    | st.lists(st.floats(0, 1e6), min_size=3, max_size=3).map(
        lambda counts: Buckets((0.001, 0.002, inf), tuple(counts), 0.0)
    ),
)
COLUMNS = {
    "operations_per_s": 150,
    "operations": 1500,
    "reads_per_s": 100,
    "writes_per_s": 50,
    "reads": 1000,
    "writes": 500,
    "read_mean_ms": 1.0,
    "write_mean_ms": 4.0,
    **{f"{word}_{name}": 1 for word in ("read", "write") for name in ("timeouts", "unavailables", "failures")},
}
READS, WRITES = Buckets((0.001, inf), (1000.0, 0.0)), Buckets((0.001, inf), (0.0, 500.0))
# There are no other operations.
BUCKETS = (READS, WRITES, *[None] * (len(COUNTED) - 2))


@given(VALUES)
def test_values_survive_json(values: RunValues) -> None:
    assert values_of_content(json.loads(json.dumps(content_of_values(values), allow_nan=False))) == values


@every("change", [{"version": 0}, {"source": "x"}, {"ops_per_s": "x"}, {"buckets": {}}, {"latency": 1}])
def test_malformed_values_are_refused(change: dict[str, object]) -> None:
    content = content_of_values(RunValues(CLIENT, 1.0))
    with pytest.raises(ValueError):  # noqa: PT011 - the caller reads the values again, whatever the message
        values_of_content({**content, **change})
    with pytest.raises(ValueError, match="malformed"):
        values_of_content({})


def result(*intervals: ClientInterval) -> list[ClientResult]:
    return [ClientResult("f", "t", "s", (Operation("read", intervals),))]


def interval(begin_s: float, completed: int, failed: int = 0) -> ClientInterval:
    latency = Latency({1_000_000: completed})
    return ClientInterval(begin_s, begin_s + 10, completed, {"": failed} if failed else {}, None, latency)


def test_clients_are_measured_in_the_measured_phases_and_in_the_whole_run() -> None:
    results = result(interval(0, 100), interval(10, 200, 2), interval(20, 300))
    values = client_run_values(results, (10.0, 30.0), (0.0, 30.0))
    assert (values.ops_per_s, values.whole_ops_per_s) == (25.0, 20.0)
    assert (values.operations, values.attempts, values.errors) == (500, 502, 2)
    assert (values.mean_ms, values.latency_kind) == (1.0, "service")
    assert client_run_values(results, (10.0, 30.0), None).whole_ops_per_s is None


def test_a_client_without_an_interval_in_the_measured_phases_has_no_values() -> None:
    values = client_run_values(result(interval(0, 100)), (5.0, 30.0), (0.0, 30.0))
    assert (values.ops_per_s, values.errors, values.attempts, values.latency) == (None, None, None, None)
    assert values.whole_ops_per_s == 10.0


def test_servers_are_measured_by_all_their_operations() -> None:
    warm_up = {"operations_per_s": 75, "reads_per_s": 50, "writes_per_s": 25}
    values = server_run_values(COLUMNS, BUCKETS, (warm_up, 10.0, 20.0))
    assert values.ops_per_s == 150
    assert values.whole_ops_per_s == pytest.approx(125)
    assert (values.operations, values.attempts, values.errors, values.mean_ms) == (1500, 1500, 6, 2.0)
    assert values.buckets == Buckets((0.001, inf), (1000.0, 500.0))
    assert server_run_values(COLUMNS, BUCKETS, None).whole_ops_per_s is None


def test_conditional_writes_and_range_reads_count() -> None:
    columns = {**COLUMNS, "range_reads": 250, "range_read_mean_ms": 2.0, "cas_writes": 250, "cas_write_mean_ms": 10.0}
    columns |= {f"{word}_{name}": 2 for word in ("range_read", "cas_write", "cas_read") for name in ("timeouts",)}
    ranges, conditional = Buckets((0.001, inf), (200.0, 50.0)), Buckets((0.001, inf), (0.0, 250.0))
    values = server_run_values({**columns, "operations": 1750}, (READS, WRITES, ranges, conditional, None, None), None)
    # The errors of serial reads are also those of reads.
    assert (values.attempts, values.errors, values.mean_ms) == (1750, 10, 3.0)
    assert values.buckets == Buckets((0.001, inf), (1200.0, 800.0))
    assert server_run_values(columns, BUCKETS, None).buckets is None


@pytest.mark.parametrize("name", ["writes_per_s", "reads", "read_timeouts", "write_mean_ms"])
def test_a_sum_with_an_unknown_part_is_unknown(name: str) -> None:
    values = server_run_values({**COLUMNS, name: None}, BUCKETS, None)
    unknown = {"writes_per_s": "ops_per_s", "reads": "attempts", "read_timeouts": "errors"}
    assert getattr(values, unknown.get(name, "mean_ms")) is None
    assert server_run_values(COLUMNS, (READS, *BUCKETS[2:], None), None).buckets is None
