"""What becomes of the data: memtables, the commit log, compaction, SSTables."""

from dashboards.expression import Gauge, Quantile, Rate
from dashboards.signals.signal import Signal, Unit

WAITED = "Absent while nobody waits."

SIGNALS = (
    Signal(
        "compactions_pending",
        "Pending compactions",
        Gauge("cassandra_compaction_pending"),
        Unit.COUNT,
        "Compactions that are due, estimated: when they only grow, reads will touch more and more SSTables.",
    ),
    Signal(
        "compaction_bytes",
        "Compaction throughput",
        Rate("cassandra_compaction_bytes_total"),
        Unit.BYTES_PER_S,
        "What compactions read: at the configured limit they cannot keep up any better.",
    ),
    Signal(
        "compactions",
        "Completed compactions",
        Rate("cassandra_compactions_total"),
        Unit.PER_S,
        "Compactions completed.",
    ),
    Signal(
        "commitlog_pending",
        "Pending commit log writes",
        Gauge("cassandra_commitlog_pending"),
        Unit.COUNT,
        "Writes that wait until the commit log is synced: the disk under it is too slow.",
    ),
    Signal(
        "commitlog_wait_p99",
        "Commit log sync wait, p99",
        Quantile(0.99, "cassandra_commitlog_commit_wait_seconds"),
        Unit.SECONDS,
        "How long writes waited for the commit log to be synced.",
        absent=WAITED,
    ),
    Signal(
        "segment_wait_p99",
        "Commit log segment wait, p99",
        Quantile(0.99, "cassandra_commitlog_segment_wait_seconds"),
        Unit.SECONDS,
        "How long writes waited for a new segment of the commit log: flushes do not make room fast enough.",
        absent=WAITED,
    ),
    Signal(
        "memtable_wait_p99",
        "Memtable space wait, p99",
        Quantile(0.99, "cassandra_memtable_wait_seconds"),
        Unit.SECONDS,
        "How long writes waited for memory: flushes do not keep up.",
        absent=WAITED,
    ),
    Signal(
        "commitlog_bytes",
        "Commit log size",
        Gauge("cassandra_commitlog_bytes"),
        Unit.BYTES,
        "Size of all segments of the commit log.",
    ),
    Signal(
        "load_bytes",
        "Data size",
        Gauge("cassandra_load_bytes"),
        Unit.BYTES,
        "Size of the data on the nodes' disks, replicas counted each.",
    ),
)
