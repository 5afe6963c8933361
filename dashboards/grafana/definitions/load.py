"""The load test dashboard: client and server measurements side by side."""

from dashboards.grafana.panel_model import Dashboard, Heatmap, Row, Split, TimeSeries, lines

ALL = Split.CLUSTER
EACH = ("client", "operation")
BOTH = (
    "The client lines, which are available only through Prometheus, cover the same seconds as the server lines. "
    "Latency that only the clients see comes from the network, the driver or a queue in front of the cluster."
)

DASHBOARD = Dashboard(
    "load",
    "Load test",
    "Client and server measurements of a load test. Annotations mark runs and their phases.",
    (
        Row(
            "Clients and servers",
            (
                TimeSeries(
                    lines(("load_operations", "client"), ("reads", "servers: reads"), ("writes", "servers: writes")),
                    "Operations: clients and servers",
                    text=BOTH,
                    split=ALL,
                    labels=EACH,
                    width=12,
                    height=9,
                ),
                TimeSeries(
                    lines(
                        ("load_errors", "client"),
                        ("timeouts", "servers: timeouts"),
                        ("unavailables", "servers: unavailables"),
                        ("failures", "servers: failures"),
                    ),
                    "Errors: clients and servers",
                    text=BOTH,
                    split=ALL,
                    labels=("client",),
                    width=12,
                    height=9,
                ),
                TimeSeries(
                    lines(
                        ("load_read_p50", "client p50"),
                        ("load_read_p99", "client p99"),
                        ("read_p50", "servers p50"),
                        ("read_p99", "servers p99"),
                    ),
                    "Read latency: clients and servers",
                    text=BOTH,
                    split=ALL,
                    labels=("client",),
                    width=12,
                    height=9,
                ),
                TimeSeries(
                    lines(
                        ("load_write_p50", "client p50"),
                        ("load_write_p99", "client p99"),
                        ("write_p50", "servers p50"),
                        ("write_p99", "servers p99"),
                    ),
                    "Write latency: clients and servers",
                    text=BOTH,
                    split=ALL,
                    labels=("client",),
                    width=12,
                    height=9,
                ),
                Heatmap(lines("load_read_p99"), "Client read latency distribution", width=12),
                Heatmap(lines("load_write_p99"), "Client write latency distribution", width=12),
            ),
        ),
        Row(
            "Saturation",
            (
                TimeSeries(lines("read_p99")),
                TimeSeries(lines("write_p99")),
                TimeSeries(lines("outside_gc"), split=Split.NODE),
                TimeSeries(lines("cpu_busy")),
                TimeSeries(lines("disk_util")),
                TimeSeries(lines("pressure_io")),
                TimeSeries(lines("requests_pending")),
                TimeSeries(lines("pools_pending"), split=ALL, labels=("pool",), top=True),
                TimeSeries(lines("dropped"), split=ALL, labels=("message",), top=True),
                TimeSeries(lines("compactions_pending")),
                TimeSeries(lines("commitlog_pending")),
                TimeSeries(lines("heap_used"), split=Split.NODE),
            ),
        ),
    ),
)
