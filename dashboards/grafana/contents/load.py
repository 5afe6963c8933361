"""A load test: what the clients saw and what the servers did, on one axis."""

from dashboards.grafana.panel_model import Dashboard, Graph, Heatmap, Row, Split, of

ALL = Split.CLUSTER
EACH = ("client", "operation")
BOTH = (
    "The clients' lines and the servers' are of the same seconds: what the clients saw beyond the servers' time is the "
    "network, the driver, or a queue before the cluster."
)

BOARD = Dashboard(
    "load",
    "Load test",
    "A load test. What the clients saw and what the servers did, on one axis; runs and their phases are marked.",
    (
        Row(
            "Clients and servers",
            (
                Graph(
                    of(("load_operations", "client"), ("reads", "servers: reads"), ("writes", "servers: writes")),
                    "Operations: clients and servers",
                    text=BOTH,
                    split=ALL,
                    each=EACH,
                    width=12,
                    height=9,
                ),
                Graph(
                    of(
                        ("load_errors", "client"),
                        ("timeouts", "servers: timeouts"),
                        ("unavailables", "servers: unavailables"),
                        ("failures", "servers: failures"),
                    ),
                    "Errors: clients and servers",
                    text=BOTH,
                    split=ALL,
                    each=("client",),
                    width=12,
                    height=9,
                ),
                Graph(
                    of(
                        ("load_read_p50", "client p50"),
                        ("load_read_p99", "client p99"),
                        ("read_p50", "servers p50"),
                        ("read_p99", "servers p99"),
                    ),
                    "Read latency: clients and servers",
                    text=BOTH,
                    split=ALL,
                    each=("client",),
                    width=12,
                    height=9,
                ),
                Graph(
                    of(
                        ("load_write_p50", "client p50"),
                        ("load_write_p99", "client p99"),
                        ("write_p50", "servers p50"),
                        ("write_p99", "servers p99"),
                    ),
                    "Write latency: clients and servers",
                    text=BOTH,
                    split=ALL,
                    each=("client",),
                    width=12,
                    height=9,
                ),
                Heatmap(of("load_read_p99"), "Client read latency, distribution", width=12),
                Heatmap(of("load_write_p99"), "Client write latency, distribution", width=12),
            ),
        ),
        Row(
            "Saturation",
            (
                Graph(of("read_p99")),
                Graph(of("write_p99")),
                Graph(of("outside_gc"), split=Split.NODE),
                Graph(of("cpu_busy")),
                Graph(of("disk_util")),
                Graph(of("pressure_io")),
                Graph(of("requests_pending")),
                Graph(of("pools_pending"), split=ALL, each=("pool",), top=True),
                Graph(of("dropped"), split=ALL, each=("message",), top=True),
                Graph(of("compactions_pending")),
                Graph(of("commitlog_pending")),
                Graph(of("heap_used"), split=Split.NODE),
            ),
        ),
    ),
)
