"""The storage dashboard: memtables, commit log, flushes, compaction, disks, caches and repair."""

from dashboards.grafana.panel_model import Dashboard, Row, Split, Stat, TimeSeries, lines

TABLE = ("keyspace", "table")

DASHBOARD = Dashboard(
    "storage",
    "Compaction and storage",
    "Flushes, compactions and disk space. Shows whether the nodes keep up with writes, and how much space is left.",
    (
        Row(
            "Compaction",
            (
                TimeSeries(lines("compactions_pending")),
                TimeSeries(lines("compaction_bytes")),
                TimeSeries(lines("compactions")),
                TimeSeries(lines("table_pending_compactions"), split=Split.CLUSTER, labels=TABLE, top=True),
                TimeSeries(lines("live_sstables"), split=Split.CLUSTER, labels=TABLE, top=True),
                TimeSeries(lines("sstables_per_read_p99"), split=Split.CLUSTER, labels=TABLE, top=True),
            ),
        ),
        Row(
            "Memtables and commit log",
            (
                TimeSeries(lines("flushed_bytes")),
                TimeSeries(lines("flushes_pending")),
                TimeSeries(lines("memtable_wait_p99")),
                TimeSeries(lines("commitlog_pending")),
                TimeSeries(lines("commitlog_wait_p99")),
                TimeSeries(lines("segment_wait_p99")),
                TimeSeries(lines("commitlog_bytes")),
                TimeSeries(lines("mutations_pending")),
                TimeSeries(lines(("streams_in", "in"), ("streams_out", "out")), "Streaming throughput"),
            ),
        ),
        Row(
            "Disks",
            (
                Stat(lines("load_bytes"), "Cluster data size", split=Split.CLUSTER, width=6),
                TimeSeries(lines("disk_free_share"), labels=("mountpoint",), width=6),
                TimeSeries(lines("disk_free"), labels=("mountpoint",), width=6),
                TimeSeries(lines("disk_util"), labels=("device",), width=6),
                TimeSeries(lines(("disk_read_bytes", "read"), ("disk_written_bytes", "written")), "Disk throughput"),
                TimeSeries(lines(("disk_read_time", "read"), ("disk_write_time", "write")), "Disk latency, mean"),
                TimeSeries(lines("table_bytes"), split=Split.CLUSTER, labels=TABLE, top=True),
            ),
        ),
        Row(
            "Caches and repair",
            (
                TimeSeries(lines("cache_hits"), labels=("cache",)),
                TimeSeries(lines("cache_bytes"), labels=("cache",)),
                TimeSeries(lines("page_cache")),
                TimeSeries(lines("repaired_share"), split=Split.CLUSTER, labels=TABLE, top=True),
                TimeSeries(lines("read_repairs")),
                TimeSeries(lines("hints")),
            ),
        ),
    ),
    tables=True,
)
