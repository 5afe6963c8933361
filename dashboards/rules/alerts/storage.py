"""Alerts on memtables, flushes, commit log, compaction and tables."""

from dashboards.promql import selector
from dashboards.rules.alert import CRITICAL, MATCH, TABLE, WARNING, WHERE, aggregate, signal_alerts

_VALUE = "{{ $value | humanize }}"
_TIME = "{{ $value | humanizeDuration }}"
_NAME = "{{ $labels.keyspace }}.{{ $labels.table }} ({{ $labels.cluster }})"
_GROWS = aggregate("sum", f"deriv({selector('cassandra_compaction_pending', (), MATCH)}[30m])")

ALERTS = (
    *signal_alerts(
        "CassandraCompactionsGrowing",
        "compactions_pending",
        f"{_VALUE} compactions are pending on {WHERE}, and the number is growing.",
        only=WARNING,
        also=f"and {_GROWS} > 0",
    ),
    *signal_alerts(
        "CassandraCompactionsPending",
        "compactions_pending",
        f"{_VALUE} compactions are pending on {WHERE}.",
        only=CRITICAL,
    ),
    *signal_alerts(
        "CassandraFlushesPending", "flushes_pending", f"{_VALUE} memtables are waiting for a flush writer on {WHERE}."
    ),
    *signal_alerts(
        "CassandraCommitlogPending", "commitlog_pending", f"{_VALUE} writes are waiting for the commit log on {WHERE}."
    ),
    *signal_alerts(
        "CassandraCommitlogWaits", "commitlog_wait_p99", f"The p99 wait for the commit log on {WHERE} is {_TIME}."
    ),
    *signal_alerts(
        "CassandraCommitlogSegmentWaits",
        "segment_wait_p99",
        f"The p99 wait for a new commit log segment on {WHERE} is {_TIME}.",
    ),
    *signal_alerts(
        "CassandraMemtableWaits", "memtable_wait_p99", f"The p99 wait for memtable memory on {WHERE} is {_TIME}."
    ),
    *signal_alerts(
        "CassandraTombstones",
        "tombstones_per_read_p99",
        f"1% of the reads of {_NAME} scan {_VALUE} or more tombstones.",
        by=TABLE,
    ),
    *signal_alerts(
        "CassandraSSTablesPerRead",
        "sstables_per_read_p99",
        f"1% of the reads of {_NAME} touch {_VALUE} or more SSTables.",
        by=TABLE,
    ),
    *signal_alerts(
        "CassandraPartitionLarge",
        "max_partition",
        f"The size of the largest partition of {_NAME} is {_VALUE}B.",
        by=TABLE,
    ),
    *signal_alerts(
        "CassandraBloomFilterUseless",
        "bloom_false_share",
        f"{{{{ $value | humanizePercentage }}}} of bloom filter results for {_NAME} are false positives.",
        by=TABLE,
    ),
)
