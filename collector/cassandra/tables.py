"""Keyspaces and tables: what this node did locally, as a replica."""

from collections.abc import Callable, Sequence
from typing import Any

from collector.jolokia.mbean import METRICS, Many, MBean, counter, gauge, histogram
from collector.model.histogram import COUNTS_WITH_ZERO
from collector.model.metric import Aggregation, ScrapeInterval

LOCAL = {"operation": ("Read", "Write", "Range")}
COORDINATOR = {"operation": ("Read", "Write")}
_TABLE = METRICS + "type=Table,keyspace={keyspace},scope={table},name="
_KEYSPACE = METRICS + "type=Keyspace,keyspace={keyspace},name="


def is_system_keyspace(keyspace: str) -> bool:
    """Return whether a keyspace is Cassandra's own."""
    return keyspace == "system" or keyspace.startswith("system_")


def _local(kind: str, bean: str) -> tuple[MBean, ...]:
    """Return operations, their time and their durations, of a keyspace or of a table."""
    return (
        counter(
            f"cassandra_{kind}_operations_total",
            f"Local operations on the {kind}.",
            bean + "{operation}Latency",
            only=LOCAL,
        ),
        counter(
            f"cassandra_{kind}_operation_seconds_total",
            "Time that these operations took, added up.",
            bean + "{operation}TotalLatency",
            unit="seconds",
            scale=1e-6,
            only=LOCAL,
        ),
        histogram(
            f"cassandra_{kind}_operation_duration_seconds",
            "How long these operations took.",
            bean + "{operation}Latency",
            count=f"cassandra_{kind}_operations_total",
            total=f"cassandra_{kind}_operation_seconds_total",
            only=LOCAL,
        ),
    )


def _size(what: str, text: str, attribute: str, name: str, across: Aggregation = Aggregation.SUM) -> MBean:
    return gauge(
        f"cassandra_table_{what}",
        text,
        _TABLE + name,
        attribute,
        across=across,
        unit="bytes",
        scrape_interval=ScrapeInterval.SLOW,
    )


def _per_read(what: str, text: str, name: str, many: Callable[[Any], Many] | None = None) -> MBean:
    return histogram(f"cassandra_table_{what}", text, _TABLE + name, unit="1", many=many)


def _zeros_apart(counts: Sequence[int]) -> Many:
    """Yield counts with a bucket for zero.

    Cassandra counts reads that met no tombstone and those that met one in the same bucket. Nearly all met none.
    """
    yield (), [counts[0], 0, *counts[1:]] if len(counts) == COUNTS_WITH_ZERO - 1 else counts


_OF_KEYSPACE = _local("keyspace", _KEYSPACE)
_OF_TABLE = _local("table", _TABLE)
OPERATIONS = _OF_TABLE[0]
# Counters of a keyspace, and those of its tables that add up to them.
REMAINDERS = {k.metric.name: t.metric.name for k, t in zip(_OF_KEYSPACE[:2], _OF_TABLE[:2], strict=True)}
# Of the most active tables, what is read in every tick; the rest once a minute.
EVERY_TICK = frozenset(bean.metric.name for bean in _OF_TABLE)

BEANS = (
    *_OF_KEYSPACE,
    *_OF_TABLE,
    counter(
        "cassandra_table_coordinated_total",
        "Requests on the table that this node coordinated (4.0 and later).",
        _TABLE + "Coordinator{operation}Latency",
        only=COORDINATOR,
    ),
    histogram(
        "cassandra_table_coordinated_duration_seconds",
        "How long these requests took.",
        _TABLE + "Coordinator{operation}Latency",
        count="cassandra_table_coordinated_total",
        only=COORDINATOR,
    ),
    _per_read("sstables_per_read", "SSTables that a read touched.", "SSTablesPerReadHistogram"),
    _per_read(
        "tombstones_per_read",
        "Tombstones that a read met; one is counted as none.",
        "TombstoneScannedHistogram",
        _zeros_apart,
    ),
    _per_read("live_cells_per_read", "Live cells that a read met.", "LiveScannedHistogram"),
    gauge("cassandra_table_live_sstables", "SSTables in use.", _TABLE + "LiveSSTableCount", across=Aggregation.SUM),
    gauge(
        "cassandra_table_pending_compactions",
        "Compactions that are due.",
        _TABLE + "PendingCompactions",
        across=Aggregation.SUM,
    ),
    gauge(
        "cassandra_table_pending_flushes",
        "Flushes that wait.",
        _TABLE + "PendingFlushes",
        "Count",
        across=Aggregation.SUM,
    ),
    counter("cassandra_table_flushed_bytes_total", "Bytes flushed.", _TABLE + "BytesFlushed", unit="bytes"),
    counter(
        "cassandra_table_compacted_bytes_total",
        "Bytes that compactions wrote.",
        _TABLE + "CompactionBytesWritten",
        unit="bytes",
    ),
    counter(
        "cassandra_table_speculative_retries_total",
        "Reads also sent to a further replica.",
        _TABLE + "SpeculativeRetries",
    ),
    _size("live_disk_bytes", "Disk space of SSTables in use.", "Count", "LiveDiskSpaceUsed"),
    _size("total_disk_bytes", "Disk space of all SSTables, obsolete ones too.", "Count", "TotalDiskSpaceUsed"),
    _size(
        "memtable_bytes",
        "Live data in memtables, with secondary indexes.",
        "Value",
        "AllMemtablesLiveDataSize",
    ),
    _size("max_partition_bytes", "Largest compacted partition.", "Value", "MaxPartitionSize", Aggregation.MAX),
    _size("mean_partition_bytes", "Mean compacted partition.", "Value", "MeanPartitionSize", Aggregation.MEAN),
    gauge(
        "cassandra_table_snapshots_bytes",
        "Disk space that only snapshots hold.",
        _TABLE + "SnapshotsSize",
        unit="bytes",
        scrape_interval=ScrapeInterval.HOURLY,
        across=Aggregation.SUM,
    ),
    gauge(
        "cassandra_table_compression_ratio",
        "Compressed size over uncompressed size.",
        _TABLE + "CompressionRatio",
        unit="ratio",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.MEAN,
    ),
    gauge(
        "cassandra_table_bloom_filter_false_ratio",
        "False positives of the bloom filter, of all its answers.",
        _TABLE + "BloomFilterFalseRatio",
        unit="ratio",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.MEAN,
    ),
    gauge(
        "cassandra_table_repaired_ratio",
        "Share of the data that is repaired.",
        _TABLE + "PercentRepaired",
        unit="ratio",
        scale=0.01,
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.MEAN,
    ),
    gauge(
        "cassandra_table_partitions",
        "Estimated number of partitions.",
        _TABLE + "EstimatedPartitionCount",
        scrape_interval=ScrapeInterval.HOURLY,
        across=Aggregation.SUM,
    ),
)
