"""`nodetool compactionstats`: compactions that are due and those that run."""

import re
from collections.abc import Sequence

from collector.model.metric import Metric
from collector.nodetool.reports.report import Columns, Draft, Report, columns, shown, whole

METRICS: tuple[Metric, ...] = ()
ARGUMENTS = ("compactionstats",)
FILLS = frozenset(
    {
        "cassandra_compaction_bytes_total",
        "cassandra_compaction_pending",
        "cassandra_compaction_pending_by_table",
        "cassandra_compaction_progress",
        "cassandra_compaction_size",
        "cassandra_compactions_total",
    }
)

_PENDING = "cassandra_compaction_pending"
_BY_TABLE = "cassandra_compaction_pending_by_table"
_PROGRESS = "cassandra_compaction_progress"
_SIZE = "cassandra_compaction_size"
_LABELS = ("id", "compaction type", "keyspace", "table", "completed", "total", "unit", "progress")
# Tasks that are no table's have neither.
_MAY_BE_EMPTY = ("keyspace", "table")

# Up to 4.1 there are `pending tasks: 2` and `- keyspace.table: 2`; from 5.0 on columns without a colon.
_PENDING_TASKS = re.compile(r"pending\s+tasks(:|\s)\s*(.*?)\s*")
_OF_TABLE = re.compile(r"- (\w+)\.([\w.]+): (\S+)\s*", re.ASCII)
_OF_TABLE_5 = re.compile(r"(\w+)\s+(\w[\w.]*)\s+(\S+)\s*", re.ASCII)
_COUNTERS = {
    "cassandra_compactions_total": re.compile(r"compactions\s+completed\s+(.*?)\s*"),
    "cassandra_compaction_bytes_total": re.compile(r"data\s+compacted\s+(.*?)\s*"),
}
_REMAINING = re.compile(r"\s*active\s+compaction\s+remaining\s+time\s*:?\s.*", re.IGNORECASE)
_PERCENT = re.compile(r"([0-9]{1,3})[.,]([0-9]{2})%")
_ROUNDED = re.compile(r"[0-9.,]+ ([KMGT]iB|bytes)")


def parse(text: str) -> Report:
    """Return what is due and what runs; with -H no progress, for that is rounded."""
    draft = Draft(text)
    table: Columns | None = None
    summary = []
    for line in draft.lines:
        if header := columns(line, _LABELS, _LABELS):
            table = header
        elif _REMAINING.fullmatch(line):
            if not table:
                draft.problem("what runs is not told in a form that is known")
            table = None
        elif table and line.strip():
            _running(draft, table, line)
        else:
            summary.append(line)
    if table:
        draft.problem("the table of running compactions has no end")
    _due(draft, summary)
    return draft.report()


def _due(draft: Draft, lines: Sequence[str]) -> None:
    found = [(match, line) for line in lines if (match := _PENDING_TASKS.fullmatch(line))]
    if len({match[2] for match, _ in found}) != 1:
        if draft.understood or found:
            draft.problem("'pending tasks' is not told once")
        return
    match, line = found[0]
    draft.take((_PENDING,), whole, match[2], "pending tasks")
    if match[1] == ":":
        parts = [part for each in lines if (part := _OF_TABLE.fullmatch(each))]
        if "" not in [each.strip() for each in lines[lines.index(line) :]]:
            draft.problem("it ends before what runs")
    else:
        # A name of two words is no keyspace and table: these stand in two columns.
        second = match.start(2)
        parts = [part for each in lines if (part := _OF_TABLE_5.fullmatch(each)) and part.start(2) == second]
        _counters(draft, lines)
    _by_table(draft, match[2], parts)


def _by_table(draft: Draft, pending: str, parts: Sequence[re.Match[str]]) -> None:
    try:
        if sum(whole(part[3]) for part in parts) != whole(pending):
            draft.problem("what is due by table does not add up to all that is due")
            return
    except ValueError as error:
        draft.problem(f"what is due by table {error}")
        return
    for part in parts:
        draft.put((_BY_TABLE, part[1], part[2]), whole(part[3]))


def _counters(draft: Draft, lines: Sequence[str]) -> None:
    for name, pattern in _COUNTERS.items():
        found = {match[1] for line in lines if (match := pattern.fullmatch(line))}
        if len(found) == 1:
            draft.take((name,), _exact, found.pop(), name)
        else:
            draft.problem("a counter that is not told once", name)


def _running(draft: Draft, table: Columns, line: str) -> None:
    cells = table.aligned(line, _MAY_BE_EMPTY)
    if cells is None:
        draft.problem("a row does not fit its header", shown(line.split()[0]))
        return
    labels = (cells["id"], cells["keyspace"], cells["table"], cells["compaction type"])
    try:
        completed, total = _exact(cells["completed"]), _exact(cells["total"])
        _check(completed, total, cells["progress"])
    except ValueError as error:
        draft.problem(f"the progress of a compaction {error}", labels[0])
        return
    draft.put((_PROGRESS, *labels), completed)
    draft.put((_SIZE, *labels), total)


def _exact(raw: object) -> int:
    if isinstance(raw, str) and _ROUNDED.fullmatch(raw):
        raise ValueError("is rounded: call nodetool without -H")
    return whole(raw)


def _check(completed: int, total: int, progress: str) -> None:
    """Raise ValueError when the progress is not that of the two numbers."""
    told = _PERCENT.fullmatch(progress)
    percent = int(told[1]) + int(told[2]) / 100 if told else -1.0
    fits = abs(percent - 100 * completed / total) < 0.011 if total else progress == "n/a"
    if not fits:
        raise ValueError(f"is not that of its numbers, {shown(progress)} of {total}")
