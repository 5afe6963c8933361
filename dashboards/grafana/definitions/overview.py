"""The overview dashboard: the cluster's health at a glance."""

from dashboards.grafana.panel_model import Dashboard, Row, Split, Spread, Stat, TimeSeries, WorstTable, graphs, lines

CLUSTER = Split.CLUSTER
TABLE = ("keyspace", "table")

DASHBOARD = Dashboard(
    "overview",
    "Cluster overview",
    "Health of the cluster. Lists of the worst nodes and tables link to the detailed dashboards.",
    (
        Row(
            "Now",
            (
                Stat(lines("nodes_up"), "Nodes up", split=CLUSTER, width=4, height=4, severity="nodes_unreachable"),
                Stat(lines("nodes_unreachable"), "Unreachable nodes", split=CLUSTER, width=4, height=4),
                Stat(lines("reads"), split=CLUSTER, width=4, height=4),
                Stat(lines("writes"), split=CLUSTER, width=4, height=4),
                Stat(lines("read_p99"), "Read p99", split=CLUSTER, width=4, height=4),
                Stat(lines("write_p99"), "Write p99", split=CLUSTER, width=4, height=4),
            ),
        ),
        Row(
            "Requests: rate, errors, duration",
            (
                *graphs("requests", split=CLUSTER, labels=("operation",)),
                TimeSeries(
                    lines(
                        ("timeouts", "timeouts"),
                        ("unavailables", "unavailables"),
                        ("failures", "failures"),
                        ("aborts", "aborts"),
                        ("native_discarded", "discarded"),
                    ),
                    "Failed requests",
                    split=CLUSTER,
                ),
                *graphs("connections"),
                TimeSeries(
                    lines(("read_p50", "p50"), ("read_p99", "p99"), ("read_p999", "p99.9")),
                    "Read latency",
                    split=CLUSTER,
                ),
                TimeSeries(
                    lines(("write_p50", "p50"), ("write_p99", "p99"), ("write_p999", "p99.9")),
                    "Write latency",
                    split=CLUSTER,
                ),
                Spread(lines("read_p99"), "Read latency p99: worst and best node"),
            ),
        ),
        Row(
            "Worst nodes and tables",
            (
                WorstTable(lines("read_p99"), "Read p99", split=Split.NODE, width=6),
                WorstTable(lines("write_p99"), "Write p99", split=Split.NODE, width=6),
                WorstTable(lines("gc_pause_share"), "GC pause time", split=Split.NODE, width=6),
                WorstTable(lines("pools_pending"), "Pending tasks", split=Split.NODE, width=6),
                WorstTable(lines("table_read_p99"), "Table read p99", split=CLUSTER, labels=TABLE, width=12),
                WorstTable(lines("table_write_p99"), "Table write p99", split=CLUSTER, labels=TABLE, width=12),
            ),
        ),
        Row(
            "Machines: utilisation, saturation, errors",
            (
                *graphs("cpu_busy", "disk_util", "disk_free_share"),
                *graphs("pressure_cpu", "pressure_io", "heap_share"),
                *graphs("compactions_pending"),
                *graphs("dropped", split=CLUSTER, labels=("message",), top=True),
                *graphs("hints"),
                *graphs("pools_pending", split=CLUSTER, labels=("pool",), top=True),
                *graphs("exceptions", "tcp_retransmits"),
            ),
        ),
    ),
)
