"""The load test dashboard: client and server measurements side by side."""

from dashboards.grafana.panel_model import Dashboard, Heatmap, Row, Split, TimeSeries, graphs, lines

ALL = Split.CLUSTER
BOTH = (
    "The client lines, which are available only through Prometheus, cover the same seconds as the server lines. "
    "Latency that only the clients see comes from the network, the driver or a queue in front of the cluster."
)


def _both(title: str, *signals: tuple[str, str], labels: tuple[str, ...] = ("client",)) -> TimeSeries:
    name = f"{title}: clients and servers"
    return TimeSeries(lines(*signals), name, text=BOTH, split=ALL, labels=labels, width=12, height=9)


def _latency(word: str) -> TimeSeries:
    clients = ((f"load_{word}_{name}", f"client {name}") for name in ("p50", "p99"))
    servers = ((f"{word}_{name}", f"servers {name}") for name in ("p50", "p99"))
    return _both(f"{word.capitalize()} latency", *clients, *servers)


DASHBOARD = Dashboard(
    "load",
    "Load test",
    "Client and server measurements of a load test. Annotations mark runs and their phases.",
    (
        Row(
            "Clients and servers",
            (
                _both(
                    "Operations",
                    ("load_operations", "client"),
                    ("reads", "servers: reads"),
                    ("writes", "servers: writes"),
                    labels=("client", "operation"),
                ),
                _both(
                    "Errors",
                    ("load_errors", "client"),
                    ("timeouts", "servers: timeouts"),
                    ("unavailables", "servers: unavailables"),
                    ("failures", "servers: failures"),
                ),
                _latency("read"),
                _latency("write"),
                Heatmap(lines("load_read_p99"), "Client read latency distribution", width=12),
                Heatmap(lines("load_write_p99"), "Client write latency distribution", width=12),
            ),
        ),
        Row(
            "Saturation",
            (
                *graphs("read_p99", "write_p99"),
                *graphs("outside_gc", split=Split.NODE),
                *graphs("cpu_busy", "disk_util", "pressure_io"),
                *graphs("requests_pending"),
                *graphs("pools_pending", split=ALL, labels=("pool",), top=True),
                *graphs("dropped", split=ALL, labels=("message",), top=True),
                *graphs("compactions_pending", "commitlog_pending"),
                *graphs("heap_used", split=Split.NODE),
            ),
        ),
    ),
)
