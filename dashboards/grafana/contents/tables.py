"""Keyspaces and tables: which of them is busy, slow, large, or badly modelled."""

from dashboards.grafana.panel_model import Dashboard, Graph, Row, Split, Worst, of

TABLE = ("keyspace", "table")
ALL = Split.CLUSTER


def _graph(signal: str) -> Graph:
    return Graph(of(signal), split=ALL, each=TABLE, top=True)


def _worst(signal: str, title: str) -> Worst:
    return Worst(of(signal), title, split=ALL, each=TABLE)


BOARD = Dashboard(
    "tables",
    "Tables",
    "Keyspaces and tables. Which is busy, slow, large, or badly modelled; of all nodes that are chosen together.",
    (
        Row(
            "Worst tables",
            (
                _worst("table_read_p99", "Read p99"),
                _worst("tombstones_per_read_p99", "Tombstones per read, p99"),
                _worst("max_partition", "Largest partition"),
            ),
        ),
        Row(
            "Operations",
            (
                Graph(of("keyspace_operations"), split=ALL, each=("keyspace", "operation"), top=True),
                _graph("table_reads"),
                _graph("table_writes"),
                _graph("table_read_p99"),
                _graph("table_write_p99"),
                _graph("speculative_retries"),
            ),
        ),
        Row(
            "Cost of reads",
            (
                _graph("sstables_per_read_p99"),
                _graph("tombstones_per_read_p99"),
                _graph("cells_per_read_p99"),
                _graph("bloom_false_share"),
                _graph("max_partition"),
                _graph("repaired_share"),
            ),
        ),
        Row(
            "Size on disk",
            (
                _graph("table_bytes"),
                _graph("live_sstables"),
                _graph("table_pending_compactions"),
                _graph("flushed_bytes"),
            ),
        ),
    ),
    tables=True,
)
