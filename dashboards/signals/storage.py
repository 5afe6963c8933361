"""Signals for memtables, commit log, compaction and data size."""

from dashboards.expression import Gauge, Quantile, Rate
from dashboards.signals.signal import Signal, Unit

WAITED = "Absent while no write is waiting."

SIGNALS = (
    Signal(
        "compactions_pending",
        "Pending compactions",
        Gauge("cassandra_compaction_pending"),
        Unit.COUNT,
        "Estimated number of pending compactions. While it grows, reads touch more and more SSTables.",
    ),
    Signal(
        "compaction_bytes",
        "Compaction throughput",
        Rate("cassandra_compaction_bytes_total"),
        Unit.BYTES_PER_S,
        "Data read by compactions. At the configured limit, Cassandra throttles compactions.",
    ),
    Signal(
        "compactions",
        "Completed compactions",
        Rate("cassandra_compactions_total"),
        Unit.PER_S,
        "Completed compactions per second.",
    ),
    Signal(
        "commitlog_pending",
        "Pending commit log writes",
        Gauge("cassandra_commitlog_pending"),
        Unit.COUNT,
        "Writes that are waiting for a sync of the commit log. A long queue means that the commit log's disk is too "
        "slow.",
    ),
    Signal(
        "commitlog_wait_p99",
        "Commit log sync wait, p99",
        Quantile(0.99, "cassandra_commitlog_commit_wait_seconds"),
        Unit.SECONDS,
        "Time that writes waited for a sync of the commit log.",
        absent=WAITED,
    ),
    Signal(
        "segment_wait_p99",
        "Commit log segment wait, p99",
        Quantile(0.99, "cassandra_commitlog_segment_wait_seconds"),
        Unit.SECONDS,
        "Time that writes waited for a new commit log segment because flushes did not free segments fast enough.",
        absent=WAITED,
    ),
    Signal(
        "memtable_wait_p99",
        "Memtable space wait, p99",
        Quantile(0.99, "cassandra_memtable_wait_seconds"),
        Unit.SECONDS,
        "Time that writes waited for memtable memory because flushes were not keeping up.",
        absent=WAITED,
    ),
    Signal(
        "commitlog_bytes",
        "Commit log size",
        Gauge("cassandra_commitlog_bytes"),
        Unit.BYTES,
        "Total size of the commit log segments.",
    ),
    Signal(
        "load_bytes",
        "Data size",
        Gauge("cassandra_load_bytes"),
        Unit.BYTES,
        "Size of the data on the nodes' disks, including all replicas.",
    ),
)
