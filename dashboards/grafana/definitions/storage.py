"""The storage dashboard: memtables, commit log, flushes, compaction, disks, caches and repair."""

from dashboards.grafana.panel_model import Dashboard, Row, Split, Stat, TimeSeries, graphs, lines, table_graphs

TABLE = ("keyspace", "table")

DASHBOARD = Dashboard(
    "storage",
    "Compaction and storage",
    "Flushes, compactions and disk space. Shows whether the nodes keep up with writes, and how much space is left.",
    (
        Row(
            "Compaction",
            (
                *graphs("compactions_pending", "compaction_bytes", "compactions"),
                *table_graphs("table_pending_compactions", "live_sstables", "sstables_per_read_p99"),
            ),
        ),
        Row(
            "Memtables and commit log",
            (
                *graphs("flushed_bytes", "flushes_pending", "memtable_wait_p99"),
                *graphs("commitlog_pending", "commitlog_wait_p99", "segment_wait_p99"),
                *graphs("commitlog_bytes", "mutations_pending"),
                TimeSeries(lines(("streams_in", "in"), ("streams_out", "out")), "Streaming throughput"),
            ),
        ),
        Row(
            "Disks",
            (
                Stat(lines("load_bytes"), "Cluster data size", split=Split.CLUSTER, width=6),
                *graphs("disk_free_share", "disk_free", labels=("mountpoint",), width=6),
                *graphs("disk_util", labels=("device",), width=6),
                TimeSeries(lines(("disk_read_bytes", "read"), ("disk_written_bytes", "written")), "Disk throughput"),
                TimeSeries(lines(("disk_read_time", "read"), ("disk_write_time", "write")), "Disk latency, mean"),
                *table_graphs("table_bytes"),
            ),
        ),
        Row(
            "Caches and repair",
            (
                *graphs("cache_hits", "cache_bytes", labels=("cache",)),
                *graphs("page_cache"),
                *table_graphs("repaired_share"),
                *graphs("read_repairs", "hints"),
            ),
        ),
    ),
    tables=True,
)
