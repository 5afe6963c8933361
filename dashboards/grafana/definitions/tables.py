"""The tables dashboard: activity, latency, size and read cost."""

from dashboards.grafana.panel_model import Dashboard, Row, Split, WorstTable, graphs, lines, table_graphs

TABLE = ("keyspace", "table")
ALL = Split.CLUSTER


def _worst(signal: str, title: str) -> WorstTable:
    return WorstTable(lines(signal), title, split=ALL, labels=TABLE)


DASHBOARD = Dashboard(
    "tables",
    "Tables",
    "Activity, latency, size and read cost of keyspaces and tables. Values combine all selected nodes.",
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
                *graphs("keyspace_operations", split=ALL, labels=("keyspace", "operation"), top=True),
                *table_graphs("table_reads", "table_writes", "table_read_p99"),
                *table_graphs("table_write_p99", "speculative_retries"),
            ),
        ),
        Row(
            "Read cost",
            (
                *table_graphs("sstables_per_read_p99", "tombstones_per_read_p99", "cells_per_read_p99"),
                *table_graphs("bloom_false_share", "max_partition", "repaired_share"),
            ),
        ),
        Row(
            "Size on disk",
            (
                *table_graphs("table_bytes", "live_sstables", "table_pending_compactions"),
                *table_graphs("flushed_bytes"),
            ),
        ),
    ),
    tables=True,
)
