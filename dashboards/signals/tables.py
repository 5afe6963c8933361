"""Signals for keyspaces and tables: operations on the replicas, read cost, disk space, flushes, compaction, repair."""

from functools import partial

from collector.model.metric import Aggregation
from dashboards.expression import Gauge, Quantile, Rate, where
from dashboards.signals.signal import Signal, Unit

TABLE = ("keyspace", "table")
READ = "Absent for a table without reads, and for one that is neither selected by name nor among the most active."
UNREAD = "Absent for a table that is neither selected by name nor among the most active."
BUSY = "The most active tables have series of their own; the others are combined."
_DURATION = "cassandra_table_operation_duration_seconds"
_of_table = partial(Signal, labels=TABLE, absent=UNREAD)


def _latency(name: str, title: str, share: float, operation: str) -> Signal:
    description = "Duration of the operation on a replica, excluding the coordinator and the network."
    return Signal(
        name,
        title,
        Quantile(share, _DURATION, where(operation=operation)),
        Unit.SECONDS,
        description,
        TABLE,
        "Absent for an idle table, and for one that is neither selected by name nor among the most active.",
    )


SIGNALS = (
    Signal(
        "table_reads",
        "Reads by table",
        Rate("cassandra_table_operations_total", where(operation="Read")),
        Unit.PER_S,
        f"Reads on the replicas. {BUSY}",
        TABLE,
    ),
    Signal(
        "table_writes",
        "Writes by table",
        Rate("cassandra_table_operations_total", where(operation="Write")),
        Unit.PER_S,
        f"Writes on the replicas. {BUSY}",
        TABLE,
    ),
    Signal(
        "keyspace_operations",
        "Operations by keyspace",
        Rate("cassandra_keyspace_operations_total"),
        Unit.PER_S,
        "Operations on the replicas.",
        ("keyspace", "operation"),
    ),
    _latency("table_read_p99", "Read latency by table, p99", 0.99, "Read"),
    _latency("table_write_p99", "Write latency by table, p99", 0.99, "Write"),
    _of_table(
        "sstables_per_read_p99",
        "SSTables per read, p99",
        Quantile(0.99, "cassandra_table_sstables_per_read"),
        Unit.COUNT,
        "SSTables that a read touches. A high value means that compaction is not keeping up, or that the compaction "
        "strategy does not suit the read pattern.",
        absent=READ,
    ),
    _of_table(
        "tombstones_per_read_p99",
        "Tombstones per read, p99",
        Quantile(0.99, "cassandra_table_tombstones_per_read"),
        Unit.COUNT,
        "Tombstones that a read scans. Typical causes are queue-like tables and range reads over deleted rows.",
        absent=READ,
    ),
    _of_table(
        "cells_per_read_p99",
        "Live cells per read, p99",
        Quantile(0.99, "cassandra_table_live_cells_per_read"),
        Unit.COUNT,
        "Live cells that a read scans. Large results are slow.",
        absent=READ,
    ),
    _of_table(
        "live_sstables",
        "Live SSTables",
        Gauge("cassandra_table_live_sstables"),
        Unit.COUNT,
        "SSTables in use.",
    ),
    _of_table(
        "table_bytes",
        "Data size by table",
        Gauge("cassandra_table_live_disk_bytes"),
        Unit.BYTES,
        "Disk space of live SSTables, including all replicas.",
    ),
    _of_table(
        "table_pending_compactions",
        "Pending compactions by table",
        Gauge("cassandra_table_pending_compactions"),
        Unit.COUNT,
        "Estimated number of pending compactions.",
    ),
    _of_table(
        "max_partition",
        "Largest partition",
        Gauge("cassandra_table_max_partition_bytes"),
        Unit.BYTES,
        "Size of the largest partition. Above 100 MB, a partition is slow to read, compact and repair.",
    ),
    _of_table(
        "bloom_false_share",
        "Bloom filter false positive ratio, worst node",
        Gauge("cassandra_table_bloom_filter_false_ratio", aggregation=Aggregation.MAX),
        Unit.RATIO,
        "Fraction of bloom filter results that are false positives, which cause needless SSTable reads.",
        bounded=True,
    ),
    _of_table(
        "repaired_share",
        "Repaired ratio, worst node",
        Gauge("cassandra_table_repaired_ratio", aggregation=Aggregation.MIN),
        Unit.RATIO,
        "Fraction of a table's data that is marked as repaired.",
        bounded=True,
        low_is_worse=True,
    ),
    _of_table(
        "speculative_retries",
        "Speculative retries",
        Rate("cassandra_table_speculative_retries_total"),
        Unit.PER_S,
        "Reads that were also sent to another replica because the first replica was slow.",
    ),
    _of_table(
        "flushed_bytes",
        "Flush throughput",
        Rate("cassandra_table_flushed_bytes_total"),
        Unit.BYTES_PER_S,
        "Data written from memtables to SSTables.",
    ),
)
