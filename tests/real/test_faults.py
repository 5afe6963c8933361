"""A node that dies, hangs and comes back: marked rows, nothing lost, no spike."""

import pytest

from cli.demo.demo_node import Node
from tests.real.programs import Row, ask, casstat, increase, load, prepare

RATE = 200


def marked(row: Row, kind: str) -> bool:
    return any(event["kind"] == kind for event in row["events"])


def reads(node: Node) -> int:
    name = "org.apache.cassandra.metrics:type=ClientRequest,scope=Read,name=Latency"
    return int(ask(node, {"type": "read", "mbean": name, "attribute": "Count"}))


def test_a_killed_node_leaves_marked_rows_and_returns_without_a_spike(node: Node) -> None:
    prepare(node)
    with casstat("1", "--wide", "--jolokia", node.spec.jolokia_url) as line, load(node, RATE):
        line.wait_for(lambda rows: bool(rows) and (rows[-1]["reads_per_s"] or 0) > 50)
        node.kill()
        line.wait_for(lambda rows: sum(marked(row, "no_answer") for row in rows) >= 3)
        node.start()
        node.wait()
        line.wait_for(lambda rows: any(marked(row, "restart") for row in rows))
        line.wait_for(lambda rows: all((row["reads_per_s"] or 0) > 10 for row in rows[-3:]))
    away = [row for row in line.rows if marked(row, "no_answer")]
    assert all(row["reads_per_s"] is None and row["read_p99_ms"] is None for row in away)
    assert [row for row in away if row["cpu_user_pct"] is None or row["net_rx_kbit_per_s"] is None] == []
    back = next(row for row in line.rows if marked(row, "restart"))
    assert back["reads_per_s"] is None
    # The driver retries what failed, so a little more than the rate may come; a counter since start would be far more.
    assert max(row["reads_per_s"] or 0 for row in line.rows) < 3 * RATE
    assert {row["node"] for row in line.rows} == {node.spec.address}


def test_a_node_that_stands_still_loses_no_operation(node: Node) -> None:
    prepare(node)
    with casstat("1", "--jolokia", node.spec.jolokia_url) as line:
        line.wait_for_rows(1)
        before = reads(node)
        with load(node, RATE):
            line.wait_for(lambda rows: (rows[-1]["reads_per_s"] or 0) > 50)
            node.suspend()
            try:
                line.wait_for(lambda rows: sum(marked(row, "no_answer") for row in rows) >= 3)
            finally:
                node.resume()
            line.wait_for(lambda rows: (rows[-1]["reads_per_s"] or 0) > 50)
        line.wait_for_rows(2)
        after = reads(node)
    waited = next(row for row in line.rows if row["interval_s"] > 2.5)
    assert waited["reads_per_s"] is not None
    assert increase(line.rows, "reads_per_s") == pytest.approx(after - before, rel=0.005)
    # Ticks go on each second all the while.
    times = [row["time"] for row in line.rows]
    assert times == list(range(times[0], times[0] + len(times)))


def test_a_dropped_table_becomes_unknown_and_a_new_one_is_found(node: Node) -> None:
    prepare(node)
    with casstat("1", "-k", "fleeting", "-c", "t000", "--wait", "--jolokia", node.spec.jolokia_url) as line:
        line.wait_for_rows(1)
        assert line.rows[-1]["reads_per_s"] is None
        with load(node, 100, "--keyspace", "fleeting"):
            line.wait_for(lambda rows: (rows[-1]["reads_per_s"] or 0) > 20)
        drop(node, "fleeting")
        line.wait_for(lambda rows: rows[-1]["reads_per_s"] is None)
        with load(node, 100, "--keyspace", "fleeting"):
            line.wait_for(lambda rows: (rows[-1]["reads_per_s"] or 0) > 20)
    assert max(row["reads_per_s"] or 0 for row in line.rows) < 150


def drop(node: Node, keyspace: str) -> None:
    from cassandra.cluster import Cluster

    with Cluster([node.spec.address]) as cluster, cluster.connect() as session:
        session.execute(f"DROP KEYSPACE {keyspace}", timeout=60)
