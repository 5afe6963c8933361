"""Commit log and memtables: writes, the log's size, and wait times."""

from collector.model.mbean import METRICS, counter, histogram, size, total

_LOG = METRICS + "type=CommitLog,name="
_MEMTABLES = METRICS + "type=MemtablePool,name="

BEANS = (
    total("cassandra_commitlog_pending", "Number of pending commit log writes.", _LOG + "PendingTasks"),
    counter(
        "cassandra_commitlog_completed_total",
        "Number of completed commit log writes.",
        _LOG + "CompletedTasks",
        "Value",
    ),
    size("cassandra_commitlog_bytes", "Size of all commit log segments in bytes.", _LOG + "TotalCommitLogSize"),
    histogram(
        "cassandra_commitlog_commit_wait_seconds",
        "Time spent waiting for a commit log sync, in seconds.",
        _LOG + "WaitingOnCommit",
    ),
    histogram(
        "cassandra_commitlog_segment_wait_seconds",
        "Time spent waiting for a new commit log segment, in seconds.",
        _LOG + "WaitingOnSegmentAllocation",
    ),
    histogram(
        "cassandra_memtable_wait_seconds",
        "Time writes spent waiting for memtable space, in seconds.",
        _MEMTABLES + "BlockedOnAllocation",
    ),
)
