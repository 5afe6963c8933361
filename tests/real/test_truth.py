"""casstat's values match the client's counts and the node's buckets."""

import time
from collections.abc import Callable
from itertools import accumulate

import pytest

from cli.demo.demo_node import Node
from tests.real.programs import (
    Casstat,
    Load,
    Row,
    ask,
    bucket_counts,
    casstat,
    increase,
    load,
    prepare,
    text_of_casstat,
)

RATE = 400
LIGHT = 300
SECONDS = 15


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
    assert RATE * SECONDS / 2 < counted["reads"] + counted["writes"] <= RATE * SECONDS
    assert increase(line.rows, "reads_per_s") == pytest.approx(counted["reads"], rel=0.005)
    assert increase(line.rows, "writes_per_s") == pytest.approx(counted["writes"], rel=0.005)
    average = average_row(text)
    for scope, short in (("Read", "Rd"), ("Write", "Wrt")):
        for q in (50, 99):
            index = reference_percentile_bucket(before[scope], after[scope], q / 100)
            assert_within_one_bucket(float(average[f"{short}{q}th"]), index, len(before[scope]))


def test_a_table_shows_its_own_operations(jolokia_node: Node) -> None:
    prepare(jolokia_node, "--tables", "3")
    keyspace = ("1", "-k", "demo", "--jolokia", jolokia_node.spec.jolokia_url)
    with casstat(*keyspace, "-c", "t001") as table, casstat(*keyspace) as keyspace_line:
        table.wait_for_rows(1)
        keyspace_line.wait_for_rows(1)
        counted = Load(jolokia_node, RATE, 8, "--tables", "3").wait()
        table.wait_for_rows(2)
        keyspace_line.wait_for_rows(2)
    assert increase(keyspace_line.rows, "reads_per_s") == pytest.approx(counted["reads"], rel=0.005)
    assert increase(keyspace_line.rows, "writes_per_s") == pytest.approx(counted["writes"], rel=0.005)
    assert increase(table.rows, "reads_per_s") == pytest.approx(counted["reads"] / 3, rel=0.15)
    assert any(row["read_p99_ms"] for row in table.rows)


def test_percentiles_are_absent_once_the_load_has_stopped(node: Node) -> None:
    prepare(node)
    with casstat("1", "--jolokia", node.spec.jolokia_url) as line:
        with load(node, 200):
            line.wait_for(lambda rows: bool(rows) and (rows[-1]["reads_per_s"] or 0) > 50)
        ended_s = time.time()

        # Rows may be printed late, so compare the times of their readings with the end of the load.
        def later(rows: list[Row]) -> list[Row]:
            return [row for row in rows if row["interval_s"] and row["time"] - row["interval_s"] >= ended_s]

        line.wait_for(lambda rows: len(later(rows)) >= 3)
    for row in later(line.rows):
        assert row["reads_per_s"] == 0
        assert [row[f"read_{statistic}_ms"] for statistic in ("mean", "p50", "p95", "p99", "max")] == [None] * 5


def test_percentiles_recover_in_the_first_rows_after_a_heavy_phase(node: Node) -> None:
    prepare(node)

    # If the node pauses between the readings of a counter and of its buckets, the row has no percentiles.
    def is_light(row: Row) -> bool:
        return row["read_p99_ms"] is not None and 0.7 * LIGHT / 2 < row["reads_per_s"] < 1.3 * LIGHT / 2

    def is_heavy(row: Row) -> bool:
        return row["read_p99_ms"] is not None and row["reads_per_s"] > LIGHT

    def median_p99_ms(line: Casstat, rate: float, is_of_phase: Callable[[Row], bool], number: int) -> float:
        """Put the node under load until there are `number` rows of a phase; return the median p99 of the last 12.

        Earlier rows may be slower, because the JVM is still compiling.
        """
        start = len(line.rows)
        with load(node, rate):
            line.wait_for(lambda rows: sum(map(is_of_phase, rows[start:])) >= number)
        return float(sorted(row["read_p99_ms"] for row in [*filter(is_of_phase, line.rows[start:])][-12:])[6])

    with casstat("1", "--jolokia", node.spec.jolokia_url) as line:
        # Other load on the machine can hide the difference between the phases, so there are three attempts.
        for _ in range(3):
            typical_ms = median_p99_ms(line, LIGHT, is_light, 25)
            heavy_ms = median_p99_ms(line, 1e6, is_heavy, 12)
            halfway_ms = (typical_ms + heavy_ms) / 2
            # Wait for an idle row, because a row with only the end of the heavy phase may look like a light one.
            line.wait_for(lambda rows: rows[-1]["reads_per_s"] == 0)
            start, before = len(line.rows), bucket_counts(node, "Read")
            with load(node, LIGHT):
                line.wait_for(lambda rows, start=start: sum(map(is_light, rows[start:])) >= 5)  # type: ignore[misc]
                decayed_ms = decayed_p99_ms(node)
                after = bucket_counts(node, "Read")
            light_again = [row["read_p99_ms"] for row in line.rows[start:] if is_light(row)][:5]
            # Compare the median, because a single slow read raises the p99 of the second in which it falls.
            if heavy_ms > 2 * typical_ms and sorted(light_again)[2] < halfway_ms:
                break
    assert heavy_ms > 2 * typical_ms
    assert sorted(light_again)[2] < halfway_ms
    # Cassandra's decaying p99, which other tools show, still includes the heavy phase.
    assert decayed_ms > halfway_ms
    # No row may exceed the slowest read since the heavy phase.
    assert max(light_again) <= 1.001 * highest_bound_ms(before, after)


def highest_bound_ms(before: list[int], after: list[int]) -> float:
    """Return the upper bound of the highest bucket in which a value was counted between two readings."""
    index = max(index for index, (a, b) in enumerate(zip(before, after, strict=True)) if b > a)
    per_ms = {128: 1e3, 165: 1e6}[len(before)]
    return reference_offsets(len(before) - 1)[index] / per_ms


def decayed_p99_ms(node: Node) -> float:
    name = "org.apache.cassandra.metrics:type=ClientRequest,scope=Read,name=Latency"
    return float(ask(node, {"type": "read", "mbean": name, "attribute": "99thPercentile"})) / 1000
