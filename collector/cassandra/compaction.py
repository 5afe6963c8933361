"""Compactions: what is due, what runs and how far it is."""

from collections.abc import Mapping
from typing import Any

from collector.jolokia.mbean import METRICS, Many, counter, gauge
from collector.model.metric import Aggregation, ScrapeInterval, WideColumn

_BEAN = METRICS + "type=Compaction,name="
_MANAGER = "org.apache.cassandra.db:type=CompactionManager"
_RUNNING = ("id", "keyspace", "table", "type")


def _done(running: Any) -> Many:
    return [(_which(each), int(each["completed"])) for each in running]


def _whole(running: Any) -> Many:
    return [(_which(each), int(each["total"])) for each in running]


def _which(compaction: Mapping[str, Any]) -> tuple[str, ...]:
    # `compactionId` names it from 4.0 on; 3.11 has `id`, which is the keyspace and table's.
    number = compaction.get("compactionId") or compaction.get("id") or ""
    return number, compaction["keyspace"] or "", compaction["columnfamily"] or "", compaction["taskType"]


def _by_table(pending: Any) -> Many:
    return [((keyspace, table), number) for keyspace, tables in pending.items() for table, number in tables.items()]


BEANS = (
    gauge(
        "cassandra_compaction_pending",
        "Compactions that are due, estimated.",
        _BEAN + "PendingTasks",
        columns=(WideColumn("compactions_pending", "CmpPnd"),),
        across=Aggregation.SUM,
    ),
    counter(
        "cassandra_compaction_completed_total",
        "Compaction tasks completed.",
        _BEAN + "CompletedTasks",
        "Value",
    ),
    counter("cassandra_compactions_total", "Compactions completed.", _BEAN + "TotalCompactionsCompleted"),
    counter(
        "cassandra_compaction_bytes_total",
        "Bytes that compactions read.",
        _BEAN + "BytesCompacted",
        unit="bytes",
        columns=(WideColumn("compaction_mb_per_s", "CmpMB/s", scale=1 / 2**20, digits=2),),
    ),
    gauge(
        "cassandra_compaction_pending_by_table",
        "Compactions that are due, by table.",
        _BEAN + "PendingTasksByTableName",
        scrape_interval=ScrapeInterval.SLOW,
        labels=("keyspace", "table"),
        many=_by_table,
        across=Aggregation.SUM,
    ),
    gauge(
        "cassandra_compaction_progress",
        "What a running compaction has done, in its own unit (mostly bytes).",
        _MANAGER,
        "Compactions",
        labels=_RUNNING,
        many=_done,
        across=Aggregation.SUM,
    ),
    gauge(
        "cassandra_compaction_size",
        "What a running compaction has to do, in the same unit.",
        _MANAGER,
        "Compactions",
        labels=_RUNNING,
        many=_whole,
        across=Aggregation.SUM,
    ),
)
