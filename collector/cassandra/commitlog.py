"""Commit log and memtables: where writes wait."""

from collector.jolokia.mbean import METRICS, counter, gauge, histogram
from collector.model.metric import Aggregation, ScrapeInterval

_LOG = METRICS + "type=CommitLog,name="
_MEMTABLES = METRICS + "type=MemtablePool,name="

BEANS = (
    gauge(
        "cassandra_commitlog_pending",
        "Writes to the commit log that wait.",
        _LOG + "PendingTasks",
        across=Aggregation.SUM,
    ),
    counter("cassandra_commitlog_completed_total", "Writes to the commit log.", _LOG + "CompletedTasks", "Value"),
    gauge(
        "cassandra_commitlog_bytes",
        "Size of all commit log segments.",
        _LOG + "TotalCommitLogSize",
        unit="bytes",
        scrape_interval=ScrapeInterval.SLOW,
        across=Aggregation.SUM,
    ),
    histogram("cassandra_commitlog_commit_wait_seconds", "Waits for the log to be synced.", _LOG + "WaitingOnCommit"),
    histogram(
        "cassandra_commitlog_segment_wait_seconds",
        "Waits for a new segment.",
        _LOG + "WaitingOnSegmentAllocation",
    ),
    histogram(
        "cassandra_memtable_wait_seconds",
        "Writes' waits for memtable space.",
        _MEMTABLES + "BlockedOnAllocation",
    ),
)
