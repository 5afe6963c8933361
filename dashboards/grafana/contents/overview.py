"""The cluster at a glance: is it well, and if not, where to look."""

from dashboards.grafana.panel_model import Dashboard, Graph, Number, Row, Split, Spread, Worst, of

CLUSTER = Split.CLUSTER
TABLE = ("keyspace", "table")

BOARD = Dashboard(
    "overview",
    "Cluster overview",
    "Whether the cluster is well. The worst nodes and tables lead to the boards that tell more.",
    (
        Row(
            "Now",
            (
                Number(of("nodes_up"), "Nodes up", split=CLUSTER, width=4, height=4),
                Number(of("nodes_unreachable"), "Unreachable nodes", split=CLUSTER, width=4, height=4),
                Number(of("reads"), split=CLUSTER, width=4, height=4),
                Number(of("writes"), split=CLUSTER, width=4, height=4),
                Number(of("read_p99"), "Read p99", split=CLUSTER, width=4, height=4),
                Number(of("write_p99"), "Write p99", split=CLUSTER, width=4, height=4),
            ),
        ),
        Row(
            "Requests: rate, errors, duration",
            (
                Graph(of("requests"), split=CLUSTER, each=("operation",)),
                Graph(
                    of(
                        ("timeouts", "timeouts"),
                        ("unavailables", "unavailables"),
                        ("failures", "failures"),
                        ("aborts", "aborts"),
                        ("native_discarded", "discarded"),
                    ),
                    "Failed requests",
                    split=CLUSTER,
                ),
                Graph(of("connections")),
                Graph(
                    of(("read_p50", "p50"), ("read_p99", "p99"), ("read_p999", "p99.9")),
                    "Read latency",
                    split=CLUSTER,
                ),
                Graph(
                    of(("write_p50", "p50"), ("write_p99", "p99"), ("write_p999", "p99.9")),
                    "Write latency",
                    split=CLUSTER,
                ),
                Spread(of("read_p99"), "Read latency p99: worst and best node"),
            ),
        ),
        Row(
            "Worst nodes and tables",
            (
                Worst(of("read_p99"), "Read p99", split=Split.NODE, width=6),
                Worst(of("write_p99"), "Write p99", split=Split.NODE, width=6),
                Worst(of("gc_pause_share"), "GC pause time", split=Split.NODE, width=6),
                Worst(of("pools_pending"), "Pending tasks", split=Split.NODE, width=6),
                Worst(of("table_read_p99"), "Table read p99", split=CLUSTER, each=TABLE, width=12),
                Worst(of("table_write_p99"), "Table write p99", split=CLUSTER, each=TABLE, width=12),
            ),
        ),
        Row(
            "Machines: utilisation, saturation, errors",
            (
                Graph(of("cpu_busy")),
                Graph(of("disk_util")),
                Graph(of("disk_free_share")),
                Graph(of("pressure_cpu")),
                Graph(of("pressure_io")),
                Graph(of("heap_share")),
                Graph(of("compactions_pending")),
                Graph(of("dropped"), split=CLUSTER, each=("message",), top=True),
                Graph(of("hints")),
                Graph(of("pools_pending"), split=CLUSTER, each=("pool",), top=True),
                Graph(of("exceptions")),
                Graph(of("tcp_retransmits")),
            ),
        ),
    ),
)
