"""Keyspaces and tables: operations as replica and as coordinator, read cost, sizes, flushes and compaction."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from collector.model.histogram import COUNTS_WITH_ZERO
from collector.model.mbean import METRICS, Many, MBean, counter, gauge, histogram, size, text, total
from collector.model.metric import Aggregation, ScrapeInterval
from collector.node.metrics.storage import SERVICE

LOCAL = {"operation": ("Read", "Write", "Range")}
COORDINATOR = {"operation": ("Read", "Write")}
_TABLE = METRICS + "type=Table,keyspace={keyspace},scope={table},name="
_KEYSPACE = METRICS + "type=Keyspace,keyspace={keyspace},name="


def is_system_keyspace(keyspace: str) -> bool:
    """Return whether a keyspace is internal to Cassandra."""
    return keyspace == "system" or keyspace.startswith("system_")


def _local(kind: str, bean: str) -> tuple[MBean, ...]:
    """Return the MBeans for the count, total time and histogram of local operations on a keyspace or table."""
    return (
        counter(
            f"cassandra_{kind}_operations_total",
            f"Number of local operations on the {kind}.",
            bean + "{operation}Latency",
            only=LOCAL,
        ),
        counter(
            f"cassandra_{kind}_operation_seconds_total",
            f"Time spent on local operations on the {kind}, in seconds.",
            bean + "{operation}TotalLatency",
            unit="seconds",
            scale=1e-6,
            only=LOCAL,
        ),
        histogram(
            f"cassandra_{kind}_operation_duration_seconds",
            f"Duration of local operations on the {kind}, in seconds.",
            bean + "{operation}Latency",
            count=f"cassandra_{kind}_operations_total",
            total=f"cassandra_{kind}_operation_seconds_total",
            only=LOCAL,
        ),
    )


def _size(metric: str, help_text: str, attribute: str, name: str, across: Aggregation = Aggregation.SUM) -> MBean:
    return size(f"cassandra_table_{metric}", help_text, _TABLE + name, attribute, across=across)


_ratio = partial(gauge, unit="ratio", scrape_interval=ScrapeInterval.SLOW, across=Aggregation.MEAN)


def _per_read(metric: str, help_text: str, name: str, many: Callable[[Any], Many] | None = None) -> MBean:
    return histogram(f"cassandra_table_{metric}", help_text, _TABLE + name, unit="1", many=many)


def _with_zero_bucket(counts: Sequence[int]) -> Many:
    """Yield the counts with a separate bucket for zero.

    Cassandra counts reads that scanned no tombstones and reads that scanned one in the same bucket. Almost all of them
    scanned none, so the whole bucket is counted as zero.
    """
    yield (), [counts[0], 0, *counts[1:]] if len(counts) == COUNTS_WITH_ZERO - 1 else counts


_KEYSPACE_OPERATIONS = _local("keyspace", _KEYSPACE)
_TABLE_OPERATIONS = _local("table", _TABLE)
OPERATIONS = _TABLE_OPERATIONS[0]
# Maps keyspace counters to the table counters that add up to them.
REMAINDERS = {
    k.metric.name: t.metric.name for k, t in zip(_KEYSPACE_OPERATIONS[:2], _TABLE_OPERATIONS[:2], strict=True)
}
# The keyspace counters: the number of operations, and the time spent on them.
KEYSPACE_OPERATIONS, KEYSPACE_SECONDS = REMAINDERS
# The metrics that are read on every tick for the most active tables. All other table metrics are read once a minute or
# less often.
EVERY_TICK = frozenset(bean.metric.name for bean in _TABLE_OPERATIONS)

BEANS = (
    text(
        "cassandra_keyspace_replication",
        "Replication of the keyspace, if Jolokia's policy allows the operation that returns it.",
        _KEYSPACE + "ReadLatency",
        "getKeyspaceReplicationInfo(java.lang.String)",
        called=SERVICE,
    ),
    *_KEYSPACE_OPERATIONS,
    *_TABLE_OPERATIONS,
    counter(
        "cassandra_table_coordinated_total",
        "Number of requests to the table that this node coordinated (Cassandra 4.0 and later).",
        _TABLE + "Coordinator{operation}Latency",
        only=COORDINATOR,
    ),
    histogram(
        "cassandra_table_coordinated_duration_seconds",
        "Duration of requests to the table that this node coordinated, in seconds (Cassandra 4.0 and later).",
        _TABLE + "Coordinator{operation}Latency",
        count="cassandra_table_coordinated_total",
        only=COORDINATOR,
    ),
    _per_read("sstables_per_read", "Number of SSTables touched per read.", "SSTablesPerReadHistogram"),
    _per_read(
        "tombstones_per_read",
        "Number of tombstones scanned per read; reads of a single tombstone appear as 0.",
        "TombstoneScannedHistogram",
        _with_zero_bucket,
    ),
    _per_read("live_cells_per_read", "Number of live cells scanned per read.", "LiveScannedHistogram"),
    total("cassandra_table_live_sstables", "Number of live SSTables.", _TABLE + "LiveSSTableCount"),
    total(
        "cassandra_table_pending_compactions",
        "Estimated number of pending compactions of the table.",
        _TABLE + "PendingCompactions",
    ),
    total("cassandra_table_pending_flushes", "Number of pending flushes.", _TABLE + "PendingFlushes", "Count"),
    counter(
        "cassandra_table_flushed_bytes_total",
        "Number of bytes flushed from memtables.",
        _TABLE + "BytesFlushed",
        unit="bytes",
    ),
    counter(
        "cassandra_table_compacted_bytes_total",
        "Number of bytes written by compactions.",
        _TABLE + "CompactionBytesWritten",
        unit="bytes",
    ),
    counter(
        "cassandra_table_speculative_retries_total",
        "Number of reads also sent to an additional replica.",
        _TABLE + "SpeculativeRetries",
    ),
    _size("live_disk_bytes", "Disk space used by live SSTables, in bytes.", "Count", "LiveDiskSpaceUsed"),
    _size(
        "total_disk_bytes",
        "Disk space used by all SSTables, including obsolete ones, in bytes.",
        "Count",
        "TotalDiskSpaceUsed",
    ),
    _size(
        "memtable_bytes",
        "Size of live data in memtables, including secondary indexes, in bytes.",
        "Value",
        "AllMemtablesLiveDataSize",
    ),
    _size(
        "max_partition_bytes",
        "Size of the largest compacted partition, in bytes.",
        "Value",
        "MaxPartitionSize",
        Aggregation.MAX,
    ),
    _size(
        "mean_partition_bytes",
        "Mean size of compacted partitions, in bytes.",
        "Value",
        "MeanPartitionSize",
        Aggregation.MEAN,
    ),
    _ratio(
        "cassandra_table_compression_ratio", "Ratio of compressed to uncompressed size.", _TABLE + "CompressionRatio"
    ),
    _ratio(
        "cassandra_table_bloom_filter_false_ratio",
        "Ratio of false positives to all results of the bloom filter.",
        _TABLE + "BloomFilterFalseRatio",
    ),
    _ratio(
        "cassandra_table_repaired_ratio", "Ratio of repaired data to all data.", _TABLE + "PercentRepaired", scale=0.01
    ),
)
