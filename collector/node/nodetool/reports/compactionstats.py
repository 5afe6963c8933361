"""`nodetool compactionstats`: pending and running compactions."""

import re
from collections.abc import Sequence

from collector.node.nodetool.reports.report import Columns, Draft, Report, columns, shown, whole

ARGUMENTS = ("compactionstats",)
_PENDING = "cassandra_compaction_pending"
_BY_TABLE = "cassandra_compaction_pending_by_table"
_PROGRESS = "cassandra_compaction_progress"
_SIZE = "cassandra_compaction_size"
_LABELS = ("id", "compaction type", "keyspace", "table", "completed", "total", "unit", "progress")
# In these columns, the cells of a task that does not belong to a table are empty.
_MAY_BE_EMPTY = ("keyspace", "table")

# Up to Cassandra 4.1, the lines about pending compactions are `pending tasks: 2` and `- keyspace.table: 2`; from 5.0
# on, they have columns instead of colons.
_PENDING_TASKS = re.compile(r"pending\s+tasks(:|\s)\s*(\S.*|)")
_TABLE_LINE = re.compile(r"- (\w+)\.([\w.]+): (\S+)\s*", re.ASCII)
_TABLE_LINE_5 = re.compile(r"(\w+)\s+(\w[\w.]*)\s+(\S+)\s*", re.ASCII)
_COUNTERS = {
    "cassandra_compactions_total": re.compile(r"compactions\s+completed\s(.*)"),
    "cassandra_compaction_bytes_total": re.compile(r"data\s+compacted\s(.*)"),
}
FILLS = frozenset({_PENDING, _BY_TABLE, _PROGRESS, _SIZE, *_COUNTERS})
_REMAINING = re.compile(r"\s*active\s+compaction\s+remaining\s+time\s*:?\s.*", re.IGNORECASE)
_PERCENT = re.compile(r"([0-9]{1,3})[.,]([0-9]{2})%")
_ROUNDED = re.compile(r"[0-9.,]+ ([KMGT]iB|bytes)")


def parse(text: str) -> Report:
    """Return pending and running compactions; no running ones if nodetool rounded their progress (option -H)."""
    draft = Draft(text)
    table: Columns | None = None
    summary = []
    for line in draft.lines:
        if header := columns(line, _LABELS, _LABELS):
            table = header
        elif _REMAINING.fullmatch(line):
            if not table:
                draft.problem("the table of running compactions has an unknown format")
            table = None
        elif table and line.strip():
            _running(draft, table, line)
        else:
            summary.append(line)
    if table:
        draft.problem("the table of running compactions is truncated")
    _pending(draft, summary)
    return draft.report()


def _pending(draft: Draft, lines: Sequence[str]) -> None:
    matches = [(match, line) for line in lines if (match := _PENDING_TASKS.fullmatch(line))]
    if len({match[2].rstrip() for match, _ in matches}) != 1:
        if draft.recognised or matches:
            draft.problem("'pending tasks' is missing or ambiguous")
        return
    match, line = matches[0]
    pending = match[2].rstrip()
    draft.take((_PENDING,), whole, pending, "pending tasks")
    if match[1] == ":":
        by_table = [table_match for other in lines if (table_match := _TABLE_LINE.fullmatch(other))]
        if "" not in [other.strip() for other in lines[lines.index(line) :]]:
            draft.problem("truncated before the running compactions")
    else:
        # The keyspace and the table are in two aligned columns; other lines with two words and a number are aligned
        # differently.
        second = match.start(2)
        by_table = [
            table_match
            for other in lines
            if (table_match := _TABLE_LINE_5.fullmatch(other)) and table_match.start(2) == second
        ]
        _counters(draft, lines)
    _by_table(draft, pending, by_table)


def _by_table(draft: Draft, pending: str, matches: Sequence[re.Match[str]]) -> None:
    try:
        if sum(whole(match[3]) for match in matches) != whole(pending):
            draft.problem("pending tasks by table do not add up to the total")
            return
    except ValueError as error:
        draft.problem(f"a pending task count {error}")
        return
    for match in matches:
        draft.put((_BY_TABLE, match[1], match[2]), whole(match[3]))


def _counters(draft: Draft, lines: Sequence[str]) -> None:
    for name, pattern in _COUNTERS.items():
        amounts = {match[1].strip() for line in lines if (match := pattern.fullmatch(line))}
        if len(amounts) == 1:
            draft.take((name,), _exact, amounts.pop(), name)
        else:
            draft.problem("missing or ambiguous counter", name)


def _running(draft: Draft, table: Columns, line: str) -> None:
    cells = table.aligned(line, _MAY_BE_EMPTY)
    if cells is None:
        draft.problem("row does not match its header", shown(line.split()[0]))
        return
    labels = (cells["id"], cells["keyspace"], cells["table"], cells["compaction type"])
    try:
        completed, total = _exact(cells["completed"]), _exact(cells["total"])
        _check(completed, total, cells["progress"])
    except ValueError as error:
        draft.problem(f"a compaction's progress {error}", labels[0])
        return
    draft.put((_PROGRESS, *labels), completed)
    draft.put((_SIZE, *labels), total)


def _exact(raw: object) -> int:
    if isinstance(raw, str) and _ROUNDED.fullmatch(raw):
        raise ValueError("is rounded, probably by nodetool's -H option")
    return whole(raw)


def _check(completed: int, total: int, progress: str) -> None:
    """Raise ValueError if the progress does not match `completed` and `total`."""
    match = _PERCENT.fullmatch(progress)
    percent = int(match[1]) + int(match[2]) / 100 if match else -1.0
    fits = abs(percent - 100 * completed / total) < 0.011 if total else progress == "n/a"
    if not fits:
        raise ValueError(f"is {shown(progress)}, which does not match {completed} of {total}")
