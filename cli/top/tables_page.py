"""The tables of the cluster or a node, busiest first, and the running compactions."""

from collections.abc import Mapping, Sequence
from typing import Any

from cli.top.node_table import why_not
from cli.top.screen_rows import RenderContext
from cli.top.styled_text import Line, Span, clean, cut, fit, number
from collector.live.cluster_interval import State
from exporters.live.frame import ALL
from exporters.rows.table_rows import TableColumn, fitting

WIDTH, MIN_NAME = 9, 20


def rows_of(context: RenderContext, node: int | None) -> Sequence[Mapping[str, Any]]:
    """Return a node's tables or, if `node` is None, the cluster's tables that match the filter."""
    frame, view = context.frame, context.view
    rows = frame.tables.get(ALL if node is None else node, ()) if frame else ()
    wanted = view.filter.lower() if node is None else ""
    return [
        row
        for row in rows
        if (wanted in f"{row['keyspace']}.{row['table']}".lower()) is not (view.inverse and bool(wanted))
    ]


def header(context: RenderContext) -> Line:
    text = "".join(f"{column.header:>{WIDTH}}" for column in _fitting(context.width))
    return cut(
        (Span(f"   {fit('TABLE', _name(context.width), context.marks)}{text}{' ' * context.width}", "head"),),
        context.width,
    )


def lines(context: RenderContext, node: int | None, first: int, room: int) -> list[Line]:
    """Return at most `room` table rows, beginning with the one at index `first`."""
    rows = rows_of(context, node)
    if not rows:
        return [cut((Span(f"   {_why_none(context, node)}", "dim"),), context.width)][:room]
    return [_line(context, row) for row in rows[first : first + room]]


def _why_none(context: RenderContext, node: int | None) -> str:
    """Return why there are no tables to show."""
    frame, view = context.frame, context.view
    if frame is None:
        return "no tables: waiting for the first responses"
    if frame.tables.get(ALL) and node is None:
        return "no table matches the filter"
    nodes = frame.nodes if node is None else frame.nodes[node : node + 1]
    if all(row.state not in (State.UP, State.CHANGING) for row in nodes):
        reasons = dict.fromkeys(why_not(row, context.marks) for row in nodes)
        return f"no tables: no node answers ({'; '.join(reasons)})" if reasons else "no tables: no nodes"
    if context.source == "live" and view.at_s is None:
        return "no tables yet: rates need two readings, and system tables are not shown"
    return "no tables in this interval"


def compactions(context: RenderContext, node: int | None, room: int) -> list[Line]:
    """Return lines for the running compactions, those closest to completion first."""
    frame = context.frame
    rows = frame.running.get(ALL if node is None else node, ()) if frame else ()
    lines = []
    for row in rows[:room]:
        name = clean(f"{row['keyspace']}.{row['table']}" if row["table"] else "", context.marks)
        text = f"   {row['done_pct']:5.1f}%  {clean(row['type'], context.marks)} {name}"
        lines.append(cut((Span(text),), context.width))
    return lines


def _line(context: RenderContext, row: Mapping[str, Any]) -> Line:
    name = clean(f"{row['keyspace']}.{row['table']}", context.marks)
    cells = (f"{number(row[key], digits, WIDTH - 1):>{WIDTH}}" for _, key, digits in _fitting(context.width))
    return cut((Span(f"   {fit(name, _name(context.width), context.marks)}"), Span("".join(cells))), context.width)


def _fitting(width: int) -> list[TableColumn]:
    return fitting(max((width - 3 - MIN_NAME) // WIDTH, 0))


def _name(width: int) -> int:
    return max(min(width - 3 - WIDTH * len(_fitting(width)), 44), 1)
