"""`nodetool tpstats`: thread pools, and messages that were dropped."""

import re
from collections.abc import Mapping
from typing import Any

from collector.model.metric import Metric
from collector.nodetool.reports.report import Columns, Draft, Report, columns, objects, shown, whole

METRICS: tuple[Metric, ...] = ()
ARGUMENTS = ("tpstats", "-F", "json")
FILLS = frozenset(
    {
        "cassandra_messages_dropped_total",
        "cassandra_pool_active",
        "cassandra_pool_blocked",
        "cassandra_pool_blocked_total",
        "cassandra_pool_completed_total",
        "cassandra_pool_pending",
    }
)

# The metric, the column of the text and the key of the JSON that have it.
_POOL = (
    ("cassandra_pool_active", "Active", "ActiveTasks"),
    ("cassandra_pool_pending", "Pending", "PendingTasks"),
    ("cassandra_pool_blocked", "Blocked", "CurrentlyBlockedTasks"),
    ("cassandra_pool_completed_total", "Completed", "CompletedTasks"),
    ("cassandra_pool_blocked_total", "All time blocked", "TotalBlockedTasks"),
)
_DROPPED = "cassandra_messages_dropped_total"
_POOL_COLUMNS = ("Pool Name", *(column for _, column, _ in _POOL))
_MESSAGE_COLUMNS = ("Message type", "Dropped", "50%", "95%", "99%", "Max")

# The report leaves out what MBeans call a pool's path. These are all pools of 3.11 to 5.0.
_PATHS = {
    "request": (
        "CounterMutationStage",
        "MutationStage",
        "ReadRepairStage",
        "ReadStage",
        "RequestResponseStage",
        "ViewMutationStage",
    ),
    "transport": ("Native-Transport-Auth-Requests", "Native-Transport-Requests"),
    "internal": (
        "AntiEntropyStage",
        "CacheCleanupExecutor",
        "CommitLogArchiver",
        "CompactionExecutor",
        "GossipStage",
        "HintsDispatcher",
        "ImmediateStage",
        "InternalResponseStage",
        "LocalSystemKeyspacesDiskMemtableFlushWriter",
        "MemtableFlushWriter",
        "MemtablePostFlush",
        "MemtableReclaimMemory",
        "MigrationStage",
        "MiscStage",
        "PaxosRepairStage",
        "PendingRangeCalculator",
        "Repair-Task",
        "SASI-General",
        "SASI-Memtable",
        "Sampler",
        "SecondaryIndexExecutor",
        "SecondaryIndexManagement",
        "StatusPropagationExecutor",
        "TracingStage",
        "ValidationExecutor",
        "ViewBuildExecutor",
    ),
}
_PATH = {pool: path for path, pools in _PATHS.items() for pool in pools}
_MESSAGE = re.compile(r"[A-Z0-9_]+")
# Above the second table; rows go on behind an empty line.
_TITLE = "Latencies waiting in queue"
_NUMBERED = ("PerDiskMemtableFlushWriter_", "Repair#")


def parse(text: str) -> Report:
    """Return pools and dropped messages, from JSON or text."""
    draft = Draft(text)
    found = [each for each in objects(text) if isinstance(each.get("ThreadPools"), dict)]
    if len(found) == 1:
        draft = Draft("")
        _json(draft, found[0])
    else:
        _text(draft)
    return draft.report()


def _json(draft: Draft, report: Mapping[str, Any]) -> None:
    draft.understood = True
    if not report["ThreadPools"]:
        draft.problem("there are no pools")
    for pool, figures in report["ThreadPools"].items():
        if isinstance(figures, dict):
            _pool(draft, pool, {column: figures[key] for _, column, key in _POOL if key in figures})
        else:
            draft.problem("a pool without figures", pool)
    dropped = report.get("DroppedMessage")
    if not isinstance(dropped, dict) or not dropped:
        draft.problem("there are no dropped messages")
        return
    for message, number in dropped.items():
        _dropped(draft, message, number)


def _text(draft: Draft) -> None:
    table: Columns | None = None
    seen = set()
    for line in draft.lines:
        pools = columns(line, _POOL_COLUMNS, _POOL_COLUMNS[:1])
        messages = columns(line, _MESSAGE_COLUMNS, _MESSAGE_COLUMNS[:2])
        if pools or messages:
            table = pools or messages
            seen.add("pools" if pools else "dropped messages")
        elif table and line.strip() and not line.startswith(_TITLE):
            _row(draft, table, line)
    for missing in sorted({"pools", "dropped messages"} - seen if seen else seen):
        draft.problem(f"there are no {missing}")


def _row(draft: Draft, table: Columns, line: str) -> None:
    cells = table.cells(line)
    if cells is None:
        draft.problem("a row does not fit its header", line.split()[0])
    elif "Pool Name" in cells:
        _pool(draft, cells.pop("Pool Name"), cells)
    else:
        _dropped(draft, cells["Message type"], cells["Dropped"])


def _dropped(draft: Draft, message: str, number: object) -> None:
    if _MESSAGE.fullmatch(message):
        draft.take((_DROPPED, message), whole, number, "'Dropped'", message)
    else:
        draft.problem("a message that is none", shown(message))


def _pool(draft: Draft, pool: str, figures: Mapping[str, Any]) -> None:
    path = _path(pool)
    if not path:
        draft.problem("a pool that is not known, and thus its path", pool)
        return
    for name, column, _ in _POOL:
        if column in figures:
            draft.take((name, path, pool), whole, figures[column], repr(column), pool)
        else:
            draft.problem(f"there is no {column!r}", pool)


def _path(pool: str) -> str:
    return _PATH.get(pool) or ("internal" if pool.startswith(_NUMBERED) else "")
