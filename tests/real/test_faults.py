"""A node that is killed, hangs and recovers: events, no lost operations and no spike."""

import pytest

from cli.setup.demo.demo_node import Node
from tests.real.programs import Row, ask, casstat, increase, load, prepare, session

RATE = 200


def marked(row: Row, kind: str) -> bool:
    return any(event["kind"] == kind for event in row["events"])


def is_idle(rows: list[Row]) -> bool:
    return bool(rows) and bool(rows[-1]["reads_per_s"] == 0)


def reads(node: Node) -> int:
    name = "org.apache.cassandra.metrics:type=ClientRequest,scope=Read,name=Latency"
    return int(ask(node, {"type": "read", "mbean": name, "attribute": "Count"}))


def test_an_outage_causes_events_and_the_restart_causes_no_spike(node: Node) -> None:
    prepare(node)
    with casstat("1", "--wide", "--jolokia", node.spec.jolokia_url) as line:
        with load(node, RATE):
            line.wait_for(lambda rows: bool(rows) and (rows[-1]["reads_per_s"] or 0) > 0)
        line.wait_for(is_idle)
        before = reads(node)
        node.kill()
        line.wait_for(lambda rows: sum(marked(row, "no_answer") for row in rows) >= 3)
        node.start()
        node.wait()
        line.wait_for(lambda rows: any(marked(row, "restart") for row in rows))
        with load(node, RATE):
            line.wait_for(lambda rows: (rows[-1]["reads_per_s"] or 0) > 0)
        line.wait_for(is_idle)
        after = reads(node)
    outage_rows = [row for row in line.rows if marked(row, "no_answer")]
    assert all(row["reads_per_s"] is None and row["read_p99_ms"] is None for row in outage_rows)
    assert [row for row in outage_rows if row["cpu_user_pct"] is None or row["net_rx_kbit_per_s"] is None] == []
    first_row = next(row for row in line.rows if marked(row, "restart"))
    assert first_row["reads_per_s"] is None
    # If the count since the start were mistaken for an increase, or a decrease for a reset, there would be more reads.
    restart = line.rows.index(first_row)
    assert increase(line.rows[:restart], "reads_per_s") <= before
    assert increase(line.rows[restart:], "reads_per_s") <= after
    assert {row["node"] for row in line.rows} == {node.spec.address}


def test_a_suspended_node_loses_no_operation(node: Node) -> None:
    prepare(node)
    with casstat("1", "--jolokia", node.spec.jolokia_url) as line:
        line.wait_for_rows(1)
        before = reads(node)
        with load(node, RATE):
            line.wait_for(lambda rows: (rows[-1]["reads_per_s"] or 0) > 0)
            node.suspend()
            try:
                line.wait_for(lambda rows: sum(marked(row, "no_answer") for row in rows) >= 3)
            finally:
                node.resume()
            line.wait_for(lambda rows: (rows[-1]["reads_per_s"] or 0) > 0)
        line.wait_for(is_idle)
        after = reads(node)
    gap_row = next(row for row in line.rows if row["interval_s"] > 2.5)
    assert gap_row["reads_per_s"] is not None
    assert increase(line.rows, "reads_per_s") == pytest.approx(after - before, rel=0.005)
    # Ticks go on while the node is suspended. A busy machine may miss some of them.
    times = [row["time"] for row in line.rows]
    assert times == sorted({int(time_s) for time_s in times})


def test_a_dropped_table_is_absent_and_a_new_one_is_discovered(node: Node) -> None:
    prepare(node)
    with casstat("1", "-k", "fleeting", "-c", "t000", "--wait", "--jolokia", node.spec.jolokia_url) as line:
        line.wait_for_rows(1)
        assert line.rows[-1]["reads_per_s"] is None
        counted = 0
        for _ in range(2):
            line.wait_for(lambda rows: rows[-1]["reads_per_s"] is None)
            with load(node, 100, "--keyspace", "fleeting") as running:
                line.wait_for(lambda rows: (rows[-1]["reads_per_s"] or 0) > 0)
                counted += running.end()["reads"]
            line.wait_for(is_idle)
            drop(node, "fleeting")
        line.wait_for(lambda rows: rows[-1]["reads_per_s"] is None)
    assert increase(line.rows, "reads_per_s") <= counted


def drop(node: Node, keyspace: str) -> None:
    with session(node.spec.address) as driver:
        driver.execute(f"DROP KEYSPACE {keyspace}")
