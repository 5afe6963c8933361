"""How long requests take: their distribution, percentiles of all nodes together and of each."""

from dashboards.grafana.panel_model import Dashboard, Graph, Heatmap, Line, Row, Split, Spread, of

ALL = Split.CLUSTER


def _ladder(operation: str) -> tuple[Line, ...]:
    return of(
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
            Heatmap(of(f"{operation}_p99"), f"{title}, distribution", width=12, height=9),
            Graph(_ladder(operation), f"{title}, all nodes together", split=ALL, width=12, height=9),
            Graph(of(f"{operation}_p50")),
            Graph(of(f"{operation}_p99")),
            Graph(of(f"{operation}_p999")),
            Spread(of(f"{operation}_p99"), f"{title} p99: worst and best node", width=12),
            Graph(of(f"{operation}_mean"), width=12),
        ),
    )


BOARD = Dashboard(
    "latency",
    "Latency",
    "How long requests take. Percentiles come from the buckets of all nodes that are drawn as one, never from others.",
    (
        _row("read", "Read latency"),
        _row("write", "Write latency"),
        Row(
            "Where time is spent",
            (
                Graph(of("request_p99"), split=ALL, each=("operation",)),
                Graph(of("message_latency_p99")),
                Graph(of("commitlog_wait_p99")),
                Graph(of("segment_wait_p99")),
                Graph(of("memtable_wait_p99")),
                Graph(of("pools_oldest"), each=("pool",), top=True),
                Graph(of("outside_gc"), split=Split.NODE),
                Graph(of("local_share")),
                Graph(of("error_share")),
            ),
        ),
        Row(
            "Replicas",
            (
                Graph(of("table_read_p99"), split=ALL, each=("keyspace", "table"), top=True),
                Graph(of("table_write_p99"), split=ALL, each=("keyspace", "table"), top=True),
                Graph(of("sstables_per_read_p99"), split=ALL, each=("keyspace", "table"), top=True),
            ),
        ),
    ),
    tables=True,
)
