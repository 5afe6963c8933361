"""The latency dashboard: distributions and percentiles, for all nodes combined and for each node."""

from dashboards.grafana.panel_model import (
    Dashboard,
    Heatmap,
    Row,
    Split,
    Spread,
    TimeSeries,
    graphs,
    lines,
    table_graphs,
)

ALL = Split.CLUSTER


def _row(operation: str, title: str) -> Row:
    legends = {"p50": "p50", "p95": "p95", "p99": "p99", "p999": "p99.9", "mean": "mean"}
    statistics = lines(*((f"{operation}_{name}", legend) for name, legend in legends.items()))
    return Row(
        title,
        (
            Heatmap(lines(f"{operation}_p99"), f"{title} distribution", width=12, height=9),
            TimeSeries(statistics, f"{title}, all nodes combined", split=ALL, width=12, height=9),
            *graphs(f"{operation}_p50", f"{operation}_p99", f"{operation}_p999"),
            Spread(lines(f"{operation}_p99"), f"{title} p99: worst and best node", width=12),
            *graphs(f"{operation}_mean", width=12),
        ),
    )


DASHBOARD = Dashboard(
    "latency",
    "Latency",
    "Request latency of the cluster and of each node. Percentiles are never averaged over nodes.",
    (
        _row("read", "Read latency"),
        _row("write", "Write latency"),
        Row(
            "Latency breakdown",
            (
                *graphs("request_p99", split=ALL, labels=("operation",)),
                *graphs("message_latency_p99", "commitlog_wait_p99", "segment_wait_p99"),
                *graphs("memtable_wait_p99"),
                *graphs("pools_oldest", labels=("pool",), top=True),
                *graphs("outside_gc", split=Split.NODE),
                *graphs("local_share", "error_share"),
            ),
        ),
        Row("Replica latency", table_graphs("table_read_p99", "table_write_p99", "sstables_per_read_p99")),
    ),
    tables=True,
)
