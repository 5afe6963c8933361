"""The latency dashboard: distributions and percentiles, for all nodes combined and for each node."""

from dashboards.grafana.panel_model import Dashboard, Heatmap, Line, Row, Split, Spread, TimeSeries, lines

ALL = Split.CLUSTER


def _ladder(operation: str) -> tuple[Line, ...]:
    return lines(
        (f"{operation}_p50", "p50"),
        (f"{operation}_p95", "p95"),
        (f"{operation}_p99", "p99"),
        (f"{operation}_p999", "p99.9"),
        (f"{operation}_mean", "mean"),
    )


def _row(operation: str, title: str) -> Row:
    return Row(
        title,
        (
            Heatmap(lines(f"{operation}_p99"), f"{title} distribution", width=12, height=9),
            TimeSeries(_ladder(operation), f"{title}, all nodes combined", split=ALL, width=12, height=9),
            TimeSeries(lines(f"{operation}_p50")),
            TimeSeries(lines(f"{operation}_p99")),
            TimeSeries(lines(f"{operation}_p999")),
            Spread(lines(f"{operation}_p99"), f"{title} p99: worst and best node", width=12),
            TimeSeries(lines(f"{operation}_mean"), width=12),
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
                TimeSeries(lines("request_p99"), split=ALL, labels=("operation",)),
                TimeSeries(lines("message_latency_p99")),
                TimeSeries(lines("commitlog_wait_p99")),
                TimeSeries(lines("segment_wait_p99")),
                TimeSeries(lines("memtable_wait_p99")),
                TimeSeries(lines("pools_oldest"), labels=("pool",), top=True),
                TimeSeries(lines("outside_gc"), split=Split.NODE),
                TimeSeries(lines("local_share")),
                TimeSeries(lines("error_share")),
            ),
        ),
        Row(
            "Replica latency",
            (
                TimeSeries(lines("table_read_p99"), split=ALL, labels=("keyspace", "table"), top=True),
                TimeSeries(lines("table_write_p99"), split=ALL, labels=("keyspace", "table"), top=True),
                TimeSeries(lines("sstables_per_read_p99"), split=ALL, labels=("keyspace", "table"), top=True),
            ),
        ),
    ),
    tables=True,
)
