"""The tables dashboard: activity, latency, size and read cost."""

from dashboards.grafana.panel_model import Dashboard, Row, Split, TimeSeries, WorstTable, lines

TABLE = ("keyspace", "table")
ALL = Split.CLUSTER


def _graph(signal: str) -> TimeSeries:
    return TimeSeries(lines(signal), split=ALL, labels=TABLE, top=True)


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
                TimeSeries(lines("keyspace_operations"), split=ALL, labels=("keyspace", "operation"), top=True),
                _graph("table_reads"),
                _graph("table_writes"),
                _graph("table_read_p99"),
                _graph("table_write_p99"),
                _graph("speculative_retries"),
            ),
        ),
        Row(
            "Read cost",
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
