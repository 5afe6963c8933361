"""If the responses about some MBeans are malformed, those MBeans' cells are empty, and all others are correct."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from collector.model.mbean import properties
from collector.node.jolokia.client import Jolokia
from collector.node.jolokia.mbean_source import read_facts
from collector.printable import count_text
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.fake_node import Json, Override, error, is_about
from tests.faults.program import (
    Load,
    Program,
    Row,
    event_kinds,
    event_texts,
    has_reads,
    increase,
    is_one_line,
    lacks_reads,
    run,
    within,
)
from tests.faults.simulated import Simulation

COUNT = "type=ClientRequest,scope=Read,name=Latency"
TOTAL = "type=ClientRequest,scope=Read,name=TotalLatency"
PERCENTILES = ("read_p50_ms", "read_p95_ms", "read_p99_ms", "read_max_ms")
# A latency of 500 µs falls into the bucket from 446 to 535 µs.
LOW_MS, HIGH_MS = 0.446, 0.536

NOT_A_NUMBER: dict[str, Any] = {
    "NaN": float("nan"),
    "infinity": float("-inf"),
    "the string NaN": "NaN",
    "null": None,
    "an error message": "ERROR: java.lang.IllegalStateException : not now",
    "a list": [1],
    "an object": {"Count": 1},
    "true": True,
    "an integer of 400 digits": 10**400,
    "a huge float as a string": "1e400",
}
FAILED: dict[str, Json] = {
    "gone": error(404, "javax.management.InstanceNotFoundException", "ClientRequest"),
    "failed": error(500, "java.lang.NullPointerException", "null"),
    "refused by policy": error(403, "java.lang.SecurityException", "No access from client 127.0.0.1 allowed"),
    "without a status": {"value": 5},
    "with a status that is a string": {"status": "200", "value": 5},
    "without a value": {"status": 200},
    "empty": {},
}


def replaced(kind: str, names: str, value: Any) -> Override:
    """Return an override that sets the value in responses to `kind` requests for MBeans with the properties `names`."""
    return changed(kind, names, lambda _: value)


def changed(kind: str, names: str, change: Callable[[Any], Any]) -> Override:
    def override(request: Json, answer: Json) -> Json:
        return {**answer, "value": change(answer["value"])} if is_about(request, kind, names) else answer

    return override


def instead(kind: str, names: str, other: Json) -> Override:
    return lambda request, answer: other if is_about(request, kind, names) else answer


@pytest.fixture
def line(fake: FakeJolokia) -> Iterator[Simulation]:
    """Yield a simulation in which the node has served reads."""
    with Simulation(fake) as line:
        assert with_percentiles(line.next(2000))
        yield line


def with_percentiles(row: Row) -> bool:
    return all(row[name] is not None for name in PERCENTILES)


def without_percentiles(row: Row) -> bool:
    return all(row[name] is None for name in PERCENTILES)


def assert_correct(line: Simulation) -> None:
    """Assert that all rates, means and percentiles are absent or correct."""
    assert all(0 <= number <= line.reads_done for number in increase(line.rows))
    assert {row["reads_per_s"] for row in line.rows} <= {None, 0, 2000}
    assert {row["read_mean_ms"] for row in line.rows} <= {None, 0.5}
    assert all(row[name] is None or LOW_MS <= row[name] <= HIGH_MS for row in line.rows for name in PERCENTILES)


@pytest.mark.parametrize("ticks", [1, 3, 20])
@pytest.mark.parametrize("name", [*NOT_A_NUMBER, *FAILED])
def test_a_malformed_count_is_absent_and_recovers(name: str, ticks: int, line: Simulation) -> None:
    if name in NOT_A_NUMBER:
        line.fake.node.override = replaced("read", COUNT, NOT_A_NUMBER[name])
    else:
        line.fake.node.override = instead("read", COUNT, FAILED[name])
    rows = [line.next(2000) for _ in range(ticks)]
    line.fake.node.override = None
    line.until(has_reads, 2000)
    line.until(with_percentiles, 2000, within=5)
    assert all(lacks_reads(row) and row["read_mean_ms"] is None and row["writes_per_s"] == 0 for row in rows)
    assert_correct(line)


@pytest.mark.parametrize("name", NOT_A_NUMBER)
def test_a_malformed_total_latency_leaves_the_mean_empty(name: str, line: Simulation) -> None:
    line.fake.node.override = replaced("read", TOTAL, NOT_A_NUMBER[name])
    rows = [line.next(2000) for _ in range(3)]
    line.fake.node.override = None
    line.until(lambda row: row["read_mean_ms"] is not None, 2000)
    assert all(row["read_mean_ms"] is None and row["reads_per_s"] == 2000 for row in rows)
    assert_correct(line)


@pytest.mark.parametrize("name", [*FAILED, "a null", "floats", "texts", "not a list", "huge", "negative"])
def test_malformed_buckets_leave_percentiles_empty(name: str, line: Simulation) -> None:
    changes: dict[str, Callable[[Any], Any]] = {
        "a null": lambda buckets: [None, *buckets[1:]],
        "floats": lambda buckets: [float(count) for count in buckets],
        "texts": lambda buckets: [str(count) for count in buckets],
        "not a list": lambda buckets: {"values": buckets},
        "huge": lambda buckets: [10**400 + count for count in buckets],
        "negative": lambda buckets: [-1 - count for count in buckets],
    }
    if name in changes:
        line.fake.node.override = changed("exec", COUNT, changes[name])
    else:
        line.fake.node.override = instead("exec", COUNT, FAILED[name])
    rows = [line.next(2000) for _ in range(3)]
    line.fake.node.override = None
    line.until(with_percentiles, 2000)
    assert all(without_percentiles(row) and row["reads_per_s"] == 2000 for row in rows)
    assert_correct(line)
    assert sum(increase(line.rows)) == pytest.approx(line.reads_done)


@pytest.mark.parametrize("length", [1, 2, 127, 129, 150, 164, 166, 1000])
def test_buckets_of_an_unknown_length_are_reported_and_ignored(length: int, fake: FakeJolokia) -> None:
    fake.node.override = changed("exec", COUNT, lambda buckets: (buckets + length * [0])[:length])
    with Simulation(fake) as line:
        rows = [line.next(2000) for _ in range(3)]
        fake.node.override = None
        line.until(with_percentiles, 2000)
    assert all(without_percentiles(row) and row["reads_per_s"] == 2000 for row in rows)
    assert all(
        event_kinds(row) == {"disagreement"} and count_text(length, "bucket") in event_texts(row) for row in rows
    )
    assert all(is_one_line(event_texts(row)) for row in rows)
    assert_correct(line)


def test_buckets_are_not_compared_across_a_change_of_length(line: Simulation) -> None:
    line.fake.node.override = changed("exec", COUNT, lambda buckets: [*buckets, *(37 * [0])])
    assert without_percentiles(line.next(2000))
    line.fake.node.override = None
    assert without_percentiles(line.next(2000))
    assert with_percentiles(line.next(2000))
    assert_correct(line)


def test_buckets_in_another_unit_are_reported_and_ignored(fake: FakeJolokia) -> None:
    # The node counts 500 µs in the bucket for 500,000 µs, as if the layout were in nanoseconds.
    fake.node.reset()
    fake.node.do_reads(5000, 500_000)
    fake.node.override = changed("read", TOTAL, lambda total: total // 1000)
    with Simulation(fake) as line:
        rows = [line.next(2000, 500_000) for _ in range(3)]
    assert all(without_percentiles(row) for row in rows)
    assert all(event_kinds(row) == {"disagreement"} and "is the unit wrong?" in event_texts(row) for row in rows)
    assert all((row["reads_per_s"], row["read_mean_ms"]) == (2000, 0.5) for row in rows)


def test_buckets_that_disagree_with_the_count_are_reported_and_ignored(line: Simulation) -> None:
    counts = iter(range(10_000, 100_000_000, 10_000))
    line.fake.node.override = changed("exec", COUNT, lambda buckets: [next(counts), *buckets[1:]])
    rows = [line.next(2000) for _ in range(3)]
    assert all(without_percentiles(row) for row in rows)
    message = r"the buckets contain \d+ values, but the counter increased by 2000"
    assert all(re.search(message, event_texts(row)) for row in rows)
    assert_correct(line)


def test_a_counter_reset_leaves_one_row_without_values(line: Simulation) -> None:
    line.fake.node.reset()
    row = line.next(500)
    assert lacks_reads(row)
    assert row["read_mean_ms"] is None
    assert without_percentiles(row)
    assert line.next(2000)["reads_per_s"] == 2000
    assert_correct(line)


@pytest.mark.parametrize("name", FAILED)
def test_a_node_that_returns_only_errors_has_rows_without_values(name: str, line: Simulation) -> None:
    line.fake.node.override = lambda _request, _answer: FAILED[name]
    rows = [line.next(2000) for _ in range(3)]
    line.fake.node.override = None
    line.until(with_percentiles, 2000)
    assert all(lacks_reads(row) and row["writes_per_s"] is None for row in rows)
    assert event_kinds(rows[0]) == {"no_answer"}
    assert "not a Cassandra node or is still starting" in event_texts(rows[0])
    assert_correct(line)


@pytest.mark.parametrize("name", ["failed", "refused by policy"])
def test_a_failed_response_leaves_an_empty_cell_in_the_real_program(name: str, fake: FakeJolokia) -> None:
    with Program("0.1", "--format", "json", "--jolokia", fake.url) as program:
        load = Load(program, fake.node)
        load.until(has_reads)
        fake.node.override = instead("exec", COUNT, FAILED[name])
        row = load.until(without_percentiles)
        load.settle()
        code, errors = program.end()
    assert row["read_mean_ms"] in (0.5, None)
    load.check()
    assert (code, errors.count("\n")) == (0, 1)


@pytest.mark.parametrize("value", [10**400, "12", None, True, [], {"a": 1}, float("nan"), 10**18], ids=range(8))
def test_a_malformed_start_time_does_not_end_the_program(value: Any, fake: FakeJolokia) -> None:
    fake.node.override = changed(
        "read", "type=Runtime", lambda correct: {**correct, "StartTime": value} if isinstance(correct, dict) else value
    )
    result = run("0.1", "3", "--format", "csv", "--jolokia", fake.url)
    assert result.returncode == 0
    assert "Traceback" not in result.stderr
    assert len(result.stdout.splitlines()) == 4


@pytest.mark.parametrize("value", [None, True, "x", [], 10**400], ids=range(5))
def test_a_temporarily_malformed_start_time_is_not_a_restart(value: Any, line: Simulation) -> None:
    line.fake.node.override = changed(
        "read", "type=Runtime", lambda correct: correct if isinstance(correct, dict) else value
    )
    rows = [line.next(2000) for _ in range(3)]
    line.fake.node.override = None
    rows += [line.next(2000) for _ in range(3)]
    assert all(row["reads_per_s"] == 2000 and row["events"] == [] for row in rows)


@pytest.mark.parametrize(
    "value",
    ["x", 5, None, [], {}, {"a": [1]}, {"": ""}, {"//": "0f0f"}, [None, 5], "ERROR: no", 10**400],
    ids=range(11),
)
@pytest.mark.parametrize("attribute", ["EndpointToHostId", "AllDataFileLocations", "LocalHostId"])
def test_malformed_facts_are_absent(attribute: str, value: Any, fake: FakeJolokia) -> None:
    fake.node.override = changed("read", "type=StorageService", lambda correct: {**correct, attribute: value})
    with closing(Jolokia(fake.url)) as jolokia:
        facts = read_facts(jolokia, 5.0)
    assert facts.jvm == "4242@another-host"
    assert all(directory.is_absolute() for directory in facts.directories) or attribute == "AllDataFileLocations"


@pytest.mark.parametrize(
    "names", [["x"], [""], ["a:b"], ["a:b=c"], [5, None], "x", None, {}, ["a:b"] * 10_000], ids=range(9)
)
def test_malformed_names_are_ignored(names: Any, fake: FakeJolokia) -> None:
    fake.node.create_table("ks", "t")
    fake.node.override = lambda request, answer: {**answer, "value": names} if request["type"] == "search" else answer
    with Simulation(fake, keyspace="ks", table="t") as line:
        assert lacks_reads(line.next(2000))


def test_a_very_long_name_is_parsed_quickly() -> None:
    with within(1.0):
        assert properties("a:" + 30_000 * "x") == {}
