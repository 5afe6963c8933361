"""What becomes of the data: memtables, the commit log, flushes, compaction, disks, caches."""

from dashboards.grafana.panel_model import Dashboard, Graph, Number, Row, Split, of

TABLE = ("keyspace", "table")

BOARD = Dashboard(
    "storage",
    "Compaction and storage",
    "What becomes of the data on the nodes' disks. Whether flushes and compactions keep up, and the room they have.",
    (
        Row(
            "Compaction",
            (
                Graph(of("compactions_pending")),
                Graph(of("compaction_bytes")),
                Graph(of("compactions")),
                Graph(of("table_pending_compactions"), split=Split.CLUSTER, each=TABLE, top=True),
                Graph(of("live_sstables"), split=Split.CLUSTER, each=TABLE, top=True),
                Graph(of("sstables_per_read_p99"), split=Split.CLUSTER, each=TABLE, top=True),
            ),
        ),
        Row(
            "Memtables and commit log",
            (
                Graph(of("flushed_bytes")),
                Graph(of("flushes_pending")),
                Graph(of("memtable_wait_p99")),
                Graph(of("commitlog_pending")),
                Graph(of("commitlog_wait_p99")),
                Graph(of("segment_wait_p99")),
                Graph(of("commitlog_bytes")),
                Graph(of("mutations_pending")),
                Graph(of(("streams_in", "in"), ("streams_out", "out")), "Streaming throughput"),
            ),
        ),
        Row(
            "Disks",
            (
                Number(of("load_bytes"), "Data size of the cluster", split=Split.CLUSTER, width=6),
                Graph(of("disk_free_share"), each=("mountpoint",), width=6),
                Graph(of("disk_free"), each=("mountpoint",), width=6),
                Graph(of("disk_util"), each=("device",), width=6),
                Graph(of(("disk_read_bytes", "read"), ("disk_written_bytes", "written")), "Disk throughput"),
                Graph(of(("disk_read_time", "read"), ("disk_write_time", "write")), "Disk latency, mean"),
                Graph(of("table_bytes"), split=Split.CLUSTER, each=TABLE, top=True),
            ),
        ),
        Row(
            "Caches and repair",
            (
                Graph(of("cache_hits"), each=("cache",)),
                Graph(of("cache_bytes"), each=("cache",)),
                Graph(of("page_cache")),
                Graph(of("repaired_share"), split=Split.CLUSTER, each=TABLE, top=True),
                Graph(of("read_repairs")),
                Graph(of("hints")),
            ),
        ),
    ),
    tables=True,
)
