"""casstat's values match the client's counts and the node's buckets."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from cli.setup.demo.demo_node import Node
from tests.real.programs import (
    PATIENCE_S,
    Load,
    Row,
    ask,
    bucket_counts,
    casstat,
    increase,
    load,
    nodetool,
    prepare,
    session,
    text_of_casstat,
)
from tests.waiting import eventually

RATE = 400
SECONDS = 15
MS = 1000
# The ratio of a bucket's bounds.
BUCKET = 1.2
SLOW_READS, SLOW_S = 50, 0.5
READ_FROM_ALL, READ_FROM_ONE = (
    SimpleStatement("SELECT v FROM demo.t000 WHERE k = 1", consistency_level=level)
    for level in (ConsistencyLevel.ALL, ConsistencyLevel.ONE)
)


def reference_offsets(number: int) -> list[int]:
    """Return Cassandra's bucket offsets, computed independently of casstat."""
    offsets = [1]
    while len(offsets) < number:
        offsets.append(max(offsets[-1] + 1, int(offsets[-1] * 1.2 + 0.5)))
    return offsets


def reference_percentile_bucket(before: list[int], after: list[int], q: float) -> int:
    """Return the index of the bucket that contains the `q` quantile of the values counted between two readings."""
    counts = [b - a for a, b in zip(before, after, strict=True)]
    rank = q * sum(counts)
    return next(index for index, sum_so_far in enumerate(accumulate(counts)) if sum_so_far >= rank)


def average_row(lines: list[str]) -> dict[str, str]:
    header = lines[0].split()
    last = lines[-1].partition("#")[0].split()
    assert last[0] == "Average"
    return dict(zip(header, last, strict=True))


def assert_within_one_bucket(value_ms: float, index: int, length: int) -> None:
    per_ms = {128: 1e3, 165: 1e6}[length]
    offsets = reference_offsets(length - 1)
    low = offsets[index - 2] / per_ms if index >= 2 else 0.0
    high = offsets[min(index + 1, length - 2)] / per_ms
    # The terminal shows three decimals.
    assert low - 0.0005 <= value_ms <= high + 0.0005, f"{value_ms} is not in {low}..{high}"


def test_operations_and_percentiles_match_the_client_and_the_buckets(jolokia_node: Node) -> None:
    prepare(jolokia_node)
    url = jolokia_node.spec.jolokia_url
    with casstat("1", "--jolokia", url) as line, text_of_casstat("1", "-t", "--wide", "--jolokia", url) as text:
        line.wait_for_rows(1)
        before = {scope: bucket_counts(jolokia_node, scope) for scope in ("Read", "Write")}
        counted = Load(jolokia_node, RATE, SECONDS).wait()
        line.wait_for_rows(3)
        after = {scope: bucket_counts(jolokia_node, scope) for scope in ("Read", "Write")}
    assert counted["errors"] == 0
    # On a busy machine, the load may not reach its full rate.
    assert 0 < counted["reads"] + counted["writes"] <= RATE * SECONDS
    assert increase(line.rows, "reads_per_s") == pytest.approx(counted["reads"], rel=0.005)
    assert increase(line.rows, "writes_per_s") == pytest.approx(counted["writes"], rel=0.005)
    average = average_row(text)
    for scope, short in (("Read", "Rd"), ("Write", "Wrt")):
        for q in (50, 99):
            index = reference_percentile_bucket(before[scope], after[scope], q / 100)
            assert_within_one_bucket(float(average[f"{short}{q}th"]), index, len(before[scope]))


INSERT = "INSERT INTO counted.t (k, v) VALUES ({0}, 1)"
# Statements, how often each is executed, and the operations that one of them is.
STATEMENTS = (
    (INSERT, 40, {"write": 1}),
    ("SELECT v FROM counted.t WHERE k = {0}", 50, {"read": 1}),
    ("SELECT v FROM counted.t WHERE k IN (1, 2, 3)", 8, {"read": 3}),
    ("SELECT * FROM counted.t LIMIT 5", 30, {"range_read": 1}),
    ("UPDATE counted.c SET n = n + 1 WHERE k = {0}", 20, {"write": 1}),
    (f"BEGIN BATCH {INSERT.format(1)} {INSERT.format(2)} APPLY BATCH", 10, {"write": 1}),
    (f"{INSERT} IF NOT EXISTS", 25, {"cas_write": 1, "read": 1}),
    ("SELECT v FROM counted.t WHERE k = {0}", 15, {"read": 1, "cas_read": 1}),
)
# The driver and the node itself read system tables now and then.
FEW = 5


def execute_counted(node: Node) -> None:
    """Execute STATEMENTS; the last one is a serial read."""
    with session(node.spec.address) as driver:
        for number, (statement, count, operations) in enumerate(STATEMENTS):
            level = ConsistencyLevel.SERIAL if "cas_read" in operations else ConsistencyLevel.ONE
            for key in range(count):
                # Half of the conditional inserts find their key.
                text = statement.format(20 + key + number)
                driver.execute(SimpleStatement(text, consistency_level=level))


def create_counted(node: Node) -> None:
    with session(node.spec.address) as driver:
        replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        driver.execute(f"CREATE KEYSPACE counted WITH replication = {replication}")
        driver.execute("CREATE TABLE counted.t (k int PRIMARY KEY, v int)")
        driver.execute("CREATE TABLE counted.c (k int PRIMARY KEY, n counter)")


def test_every_operation_counts_once(jolokia_node: Node) -> None:
    create_counted(jolokia_node)
    expected = dict.fromkeys(("read", "write", "range_read", "cas_read", "cas_write", "view_write"), 0)
    for _, count, operations in STATEMENTS:
        for word, number in operations.items():
            expected[word] += count * number
    with casstat("1", "--jolokia", jolokia_node.spec.jolokia_url) as line:
        line.wait_for_rows(2)
        start = len(line.rows)
        execute_counted(jolokia_node)
        line.wait_for_rows(3)
    rows = line.rows[start - 1 :]
    for word, number in expected.items():
        assert (
            number
            <= increase(rows, f"{word}s_per_s") + 0.5
            < number + 1 + FEW * (word not in ("cas_read", "cas_write"))
        )
    # Serial reads are reads, too, and so are the reads of conditional writes (Paxos v1, the default).
    total = sum(expected[word] for word in ("read", "write", "range_read"))
    assert total <= increase(rows, "operations_per_s") + 0.5 < total + 1 + 3 * FEW
    for word in ("range_read", "cas_write"):
        busy = [row for row in rows if row[f"{word}s_per_s"]]
        assert any(row[f"{word}_p99_ms"] for row in busy)
        assert sum(row[f"{word}_errors_per_s"] for row in busy) == 0


def test_a_table_shows_its_own_operations(jolokia_node: Node) -> None:
    prepare(jolokia_node, "--tables", "3")
    keyspace = ("1", "-k", "demo", "--jolokia", jolokia_node.spec.jolokia_url)
    with casstat(*keyspace, "-c", "t001") as table, casstat(*keyspace) as keyspace_line:
        table.wait_for_rows(1)
        keyspace_line.wait_for_rows(1)
        before = table_reads(jolokia_node, "t001")
        counted = Load(jolokia_node, RATE, 8, "--tables", "3").wait()
        table.wait_for_rows(2)
        keyspace_line.wait_for_rows(2)
    assert increase(keyspace_line.rows, "reads_per_s") == pytest.approx(counted["reads"], rel=0.005)
    assert increase(keyspace_line.rows, "writes_per_s") == pytest.approx(counted["writes"], rel=0.005)
    reads = table_reads(jolokia_node, "t001") - before
    assert 0 < reads < counted["reads"]
    assert increase(table.rows, "reads_per_s") == pytest.approx(reads, abs=0.01)
    assert any(row["read_p99_ms"] for row in table.rows)


def table_reads(node: Node, table: str) -> int:
    name = f"org.apache.cassandra.metrics:type=Table,keyspace=demo,scope={table},name=ReadLatency"
    return int(ask(node, {"type": "read", "mbean": name, "attribute": "Count"}))


def test_percentiles_are_absent_once_the_load_has_stopped(node: Node) -> None:
    prepare(node)
    with casstat("1", "--jolokia", node.spec.jolokia_url) as line:
        with load(node, 200):
            line.wait_for(lambda rows: bool(rows) and (rows[-1]["reads_per_s"] or 0) > 0)
        ended_s = time.time()

        # Rows may be printed late, so compare the times of their readings with the end of the load.
        def later(rows: list[Row]) -> list[Row]:
            return [row for row in rows if row["interval_s"] and row["time"] - row["interval_s"] >= ended_s]

        line.wait_for(lambda rows: len(later(rows)) >= 3)
    for row in later(line.rows):
        assert row["reads_per_s"] == 0
        assert [row[f"read_{statistic}_ms"] for statistic in ("mean", "p50", "p95", "p99", "max")] == [None] * 5


def test_percentiles_of_a_row_are_those_of_its_reads_after_slow_reads(three_nodes: list[Node]) -> None:
    node, replica, _ = three_nodes
    with session(node.spec.address) as driver, casstat("1", "--jolokia", node.spec.jolokia_url) as line:
        line.wait_for_rows(1)
        with read_timeout(node):
            # A read from all replicas takes at least as long as one of them is suspended.
            replica.suspend()
            try:
                reads = [driver.execute_async(READ_FROM_ALL) for _ in range(SLOW_READS)]
                eventually(lambda: active_requests(node) >= SLOW_READS, PATIENCE_S)
                begun_s = time.monotonic()
                eventually(lambda: time.monotonic() - begun_s >= SLOW_S, PATIENCE_S)
            finally:
                replica.resume()
            for read in reads:
                read.result()
        line.wait_for(lambda rows: any((row["read_p50_ms"] or 0) >= MS * SLOW_S / BUCKET for row in rows))
        line.wait_for(lambda rows: rows[-1]["reads_per_s"] == 0)
        start, before = len(line.rows), bucket_counts(node, "Read")
        for _ in range(SLOW_READS):
            driver.execute(READ_FROM_ONE)
        line.wait_for_rows(2)
        after = bucket_counts(node, "Read")
    percentiles_ms = [row["read_p99_ms"] for row in line.rows[start:] if row["read_p99_ms"] is not None]
    assert percentiles_ms
    assert max(percentiles_ms) <= 1.001 * highest_bound_ms(before, after)


@contextmanager
def read_timeout(node: Node) -> Iterator[None]:
    """Within the block, the node's reads may take as long as the test."""
    before = nodetool(node, "gettimeout", "read").split()[-2]
    nodetool(node, "settimeout", "read", str(int(MS * PATIENCE_S)))
    try:
        yield
    finally:
        nodetool(node, "settimeout", "read", before)


def active_requests(node: Node) -> int:
    """Return how many requests of clients the node is executing."""
    name = "org.apache.cassandra.metrics:type=ThreadPools,path=transport,scope=Native-Transport-Requests"
    return int(ask(node, {"type": "read", "mbean": f"{name},name=ActiveTasks", "attribute": "Value"}))


def highest_bound_ms(before: list[int], after: list[int]) -> float:
    """Return the upper bound of the highest bucket in which a value was counted between two readings."""
    index = max(index for index, (a, b) in enumerate(zip(before, after, strict=True)) if b > a)
    per_ms = {128: 1e3, 165: 1e6}[len(before)]
    return reference_offsets(len(before) - 1)[index] / per_ms
