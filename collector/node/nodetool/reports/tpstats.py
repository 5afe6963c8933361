"""`nodetool tpstats`: thread pools and dropped messages."""

import re
from collections.abc import Mapping
from typing import Any

from collector.node.nodetool.reports.report import Columns, Draft, Report, columns, objects, shown, whole

ARGUMENTS = ("tpstats", "-F", "json")

# Each row contains the metric, its column in the text report, and its key in the JSON report.
_POOL = (
    ("cassandra_pool_active", "Active", "ActiveTasks"),
    ("cassandra_pool_pending", "Pending", "PendingTasks"),
    ("cassandra_pool_blocked", "Blocked", "CurrentlyBlockedTasks"),
    ("cassandra_pool_completed_total", "Completed", "CompletedTasks"),
    ("cassandra_pool_blocked_total", "All time blocked", "TotalBlockedTasks"),
)
_DROPPED = "cassandra_messages_dropped_total"
FILLS = frozenset({_DROPPED, *(name for name, _, _ in _POOL)})
_POOL_COLUMNS = ("Pool Name", *(column for _, column, _ in _POOL))
_MESSAGE_COLUMNS = ("Message type", "Dropped", "50%", "95%", "99%", "Max")

# Maps paths to pools, because the report lacks a pool's path, which is part of its MBean name. All pools of Cassandra
# 3.11 to 5.0 are listed, except those with numbered names.
_PATHS = {
    "request": """
        CounterMutationStage MutationStage ReadRepairStage ReadStage RequestResponseStage ViewMutationStage
    """,
    "transport": "Native-Transport-Auth-Requests Native-Transport-Requests",
    "internal": """
        AntiEntropyStage CacheCleanupExecutor CommitLogArchiver CompactionExecutor GossipStage HintsDispatcher
        ImmediateStage InternalResponseStage LocalSystemKeyspacesDiskMemtableFlushWriter MemtableFlushWriter
        MemtablePostFlush MemtableReclaimMemory MigrationStage MiscStage PaxosRepairStage PendingRangeCalculator
        Repair-Task SASI-General SASI-Memtable Sampler SecondaryIndexExecutor SecondaryIndexManagement
        StatusPropagationExecutor TracingStage ValidationExecutor ViewBuildExecutor
    """,
}
_PATH = {pool: path for path, pools in _PATHS.items() for pool in pools.split()}
_MESSAGE = re.compile(r"[A-Z0-9_]+")
# The title above the message table. It must be skipped, or else it would be parsed as a row of the pool table, which
# continues until the next header.
_TITLE = "Latencies waiting in queue"
_NUMBERED = ("PerDiskMemtableFlushWriter_", "Repair#")


def parse(text: str) -> Report:
    """Return the thread pools and dropped messages in a report, which is either JSON or text."""
    draft = Draft(text)
    reports = [content for content in objects(text) if isinstance(content.get("ThreadPools"), dict)]
    if len(reports) == 1:
        draft = Draft("")
        _json(draft, reports[0])
    else:
        _text(draft)
    return draft.report()


def _json(draft: Draft, report: Mapping[str, Any]) -> None:
    draft.recognised = True
    if not report["ThreadPools"]:
        draft.problem("missing thread pools")
    for pool, figures in report["ThreadPools"].items():
        if isinstance(figures, dict):
            _pool(draft, pool, {column: figures[key] for _, column, key in _POOL if key in figures})
        else:
            draft.problem("thread pool without values", pool)
    dropped = report.get("DroppedMessage")
    if not isinstance(dropped, dict) or not dropped:
        draft.problem("missing dropped messages")
        return
    for message, number in dropped.items():
        _dropped(draft, message, number)


def _text(draft: Draft) -> None:
    table: Columns | None = None
    found_tables = set()
    for line in draft.lines:
        pools = columns(line, _POOL_COLUMNS, _POOL_COLUMNS[:1])
        messages = columns(line, _MESSAGE_COLUMNS, _MESSAGE_COLUMNS[:2])
        if pools or messages:
            table = pools or messages
            found_tables.add("pools" if pools else "dropped messages")
        elif table and line.strip() and not line.startswith(_TITLE):
            _row(draft, table, line)
    for table_name in sorted({"pools", "dropped messages"} - found_tables if found_tables else found_tables):
        draft.problem(f"missing {table_name}")


def _row(draft: Draft, table: Columns, line: str) -> None:
    cells = table.cells(line)
    if cells is None:
        draft.problem("row does not match its header", line.split()[0])
    elif "Pool Name" in cells:
        _pool(draft, cells.pop("Pool Name"), cells)
    else:
        _dropped(draft, cells["Message type"], cells["Dropped"])


def _dropped(draft: Draft, message: str, number: object) -> None:
    if _MESSAGE.fullmatch(message):
        draft.take((_DROPPED, message), whole, number, "'Dropped'", message)
    else:
        draft.problem("unexpected message type", shown(message))


def _pool(draft: Draft, pool: str, figures: Mapping[str, Any]) -> None:
    path = _path(pool)
    if not path:
        draft.problem("unknown thread pool", pool)
        return
    for name, column, _ in _POOL:
        if column in figures:
            draft.take((name, path, pool), whole, figures[column], repr(column), pool)
        else:
            draft.problem(f"missing {column!r}", pool)


def _path(pool: str) -> str:
    return _PATH.get(pool) or ("internal" if pool.startswith(_NUMBERED) else "")
