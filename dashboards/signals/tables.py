"""Keyspaces and tables: what is done on the nodes that hold the data."""

from collector.model.metric import Aggregation
from dashboards.expression import Gauge, Quantile, Rate, where
from dashboards.signals.signal import Signal, Unit

TABLE = ("keyspace", "table")
READ = "Absent for a table that nobody reads."
FLUSHED = "Absent for a table that has nothing on the disk yet."
BUSY = "The most active tables are read one by one, the others together."
_DURATION = "cassandra_table_operation_duration_seconds"


def _latency(name: str, title: str, share: float, operation: str) -> Signal:
    text = "How long the operation took on a node that holds the data, without the way to it."
    return Signal(
        name,
        title,
        Quantile(share, _DURATION, where(operation=operation)),
        Unit.SECONDS,
        text,
        TABLE,
        "Absent for a table with which nothing is done, or that is not among the most active.",
    )


SIGNALS = (
    Signal(
        "table_reads",
        "Reads by table",
        Rate("cassandra_table_operations_total", where(operation="Read")),
        Unit.PER_S,
        f"Reads on the nodes that hold the data. {BUSY}",
        TABLE,
    ),
    Signal(
        "table_writes",
        "Writes by table",
        Rate("cassandra_table_operations_total", where(operation="Write")),
        Unit.PER_S,
        f"Writes on the nodes that hold the data. {BUSY}",
        TABLE,
    ),
    Signal(
        "keyspace_operations",
        "Operations by keyspace",
        Rate("cassandra_keyspace_operations_total"),
        Unit.PER_S,
        "Operations on the nodes that hold the data.",
        ("keyspace", "operation"),
    ),
    _latency("table_read_p99", "Read latency by table, p99", 0.99, "Read"),
    _latency("table_write_p99", "Write latency by table, p99", 0.99, "Write"),
    Signal(
        "sstables_per_read_p99",
        "SSTables per read, p99",
        Quantile(0.99, "cassandra_table_sstables_per_read"),
        Unit.COUNT,
        "Many mean that compaction does not keep up, or that the table's strategy does not fit its reads.",
        TABLE,
        READ,
    ),
    Signal(
        "tombstones_per_read_p99",
        "Tombstones per read, p99",
        Quantile(0.99, "cassandra_table_tombstones_per_read"),
        Unit.COUNT,
        "What was deleted and must be read all the same: queries like queues, or ranges over what is gone.",
        TABLE,
        READ,
    ),
    Signal(
        "cells_per_read_p99",
        "Live cells per read, p99",
        Quantile(0.99, "cassandra_table_live_cells_per_read"),
        Unit.COUNT,
        "How much a read returns: large answers are slow ones.",
        TABLE,
        READ,
    ),
    Signal(
        "live_sstables",
        "Live SSTables",
        Gauge("cassandra_table_live_sstables"),
        Unit.COUNT,
        "SSTables in use.",
        TABLE,
    ),
    Signal(
        "table_bytes",
        "Data size by table",
        Gauge("cassandra_table_live_disk_bytes"),
        Unit.BYTES,
        "Disk space of SSTables in use, replicas counted each.",
        TABLE,
    ),
    Signal(
        "table_pending_compactions",
        "Pending compactions by table",
        Gauge("cassandra_table_pending_compactions"),
        Unit.COUNT,
        "Compactions that are due.",
        TABLE,
    ),
    Signal(
        "max_partition",
        "Largest partition",
        Gauge("cassandra_table_max_partition_bytes"),
        Unit.BYTES,
        "Above 100 MB a partition is slow to read, to compact and to repair.",
        TABLE,
    ),
    Signal(
        "bloom_false_share",
        "Bloom filter false positive ratio, worst node",
        Gauge("cassandra_table_bloom_filter_false_ratio", aggregation=Aggregation.MAX),
        Unit.RATIO,
        "Reads of SSTables that did not have what was wanted, of all answers of the filters.",
        TABLE,
        FLUSHED,
        bounded=True,
    ),
    Signal(
        "repaired_share",
        "Repaired ratio, worst node",
        Gauge("cassandra_table_repaired_ratio", aggregation=Aggregation.MIN),
        Unit.RATIO,
        "How much of a table incremental repairs have covered.",
        TABLE,
        FLUSHED,
        bounded=True,
        low_is_worse=True,
    ),
    Signal(
        "speculative_retries",
        "Speculative retries",
        Rate("cassandra_table_speculative_retries_total"),
        Unit.PER_S,
        "Reads whose replica was slow to answer.",
        TABLE,
    ),
    Signal(
        "flushed_bytes",
        "Flush throughput",
        Rate("cassandra_table_flushed_bytes_total"),
        Unit.BYTES_PER_S,
        "Written from memtables into SSTables.",
        TABLE,
    ),
)
