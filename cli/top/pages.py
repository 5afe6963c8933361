"""The pages beside the node table: a node's values, the tables, one metric of all nodes over time, and the help."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from cli.top.node_table import glyph_of, why_not
from cli.top.screen_rows import LEVEL_STYLES, RenderContext, clock_time, cluster_level, level
from cli.top.styled_text import Line, Span, clean, fit, number, spark
from cli.top.view_state import SETS, columns, set_of
from collector.live.cluster_interval import State
from exporters.live.frame import ALL, NodeFrame
from exporters.live.live_columns import COLUMN_INDEX, COLUMNS, other_operations, value
from exporters.rows.table_rows import TableColumn, fitting

CELL, TREND = 40, 12
# The width of a column of numbers, and the least width of a table's name.
WIDTH, MIN_NAME = 9, 20
TIME = 9
KEYS = (
    ("1 to 8", " ".join(f"{number}: {column_set.name}" for number, column_set in enumerate(SETS, 1))),
    ("up down pgup pgdn home end", "move; j and k too"),
    ("enter, esc", "open a node with all its values and tables; back"),
    ("g", "data centres and racks, or all nodes; enter opens a group, esc closes it"),
    ("/ and /!", "show only nodes with this text in their name, location or state; hide them"),
    ("f", "show only nodes with a problem"),
    ("< > s r", "sort by the previous, next or named column; reverse the order"),
    ("w", "show the worst first"),
    ("t, m M", "nodes as columns, a line per tick; next, previous column"),
    ("space", "pause, resume"),
    ("left right [ ]", "step by one tick; { } by ten"),
    ("S", "go to a time (10:47) or back by a duration (5m)"),
    ("+ -", "play a recording faster, slower"),
    ("F1, ? or h", "this page"),
    ("q", "quit"),
)
STATES = {
    State.UP: "is answering",
    State.CHANGING: "is joining, leaving, starting or drained",
    State.SILENT: "its agent is answering, but Cassandra is not",
    State.GONE: "is not answering",
    State.NEW: "has not answered yet",
}
NOTES = (
    "The cluster's row covers the nodes on which Cassandra is answering: sums, and percentiles of merged buckets.",
    "Percentages of a node's own resources (heap, GC, JVM CPU, disk) are means. '-' means unknown.",
    "The percentage at the top right is the CPU usage of casstat top; 100% is one full core.",
)
LABEL = 27


def node_lines(context: RenderContext, room: int) -> list[Line]:
    node, frame = context.view.node, context.frame
    if node is None or frame is None or node >= len(frame.nodes):
        return []
    row = frame.nodes[node]
    page = [_title(context, row), *_values(context, node, row)]
    running = compaction_lines(context, node, room)
    if running:
        page += [(Span(" compactions", "bold"),), *running]
    if row.state is not State.GONE:
        tables = len(tables_of(context, node))
        page += [tables_header(context), *table_lines(context, node, 0, tables or 1)]
    first = min(context.view.first, max(len(page) - room, 0))
    return page[first:]


def _title(context: RenderContext, node: NodeFrame) -> Line:
    glyph, colour = glyph_of(node, context.marks)
    spans = [Span(f" {glyph} ", colour), Span(clean(node.name, context.marks), "bold")]
    spans.append(Span(f"  {clean(node.location, context.marks)}", "dim"))
    if node.age_s is not None:
        spans.append(Span(f"  {why_not(node, context.marks)}", "bad"))
    else:
        spans += [Span(f"  {node.state.value}", "dim"), Span(f"  {clean(node.reason, context.marks)}", "warn")]
    return tuple(spans)


def _values(context: RenderContext, node: int, row: NodeFrame) -> list[Line]:
    """Return the lines with the node's values, grouped by column set, with as many values per line as fit."""
    per_line = max(context.width // CELL, 1)
    made: list[Line] = []
    shown: set[str] = set()
    sets = SETS if other_operations(row.cells) else SETS[:-1]
    for column_set in sets:
        names = [name for name in column_set.columns if name not in shown and value(row.cells, name) is not None]
        shown.update(names)
        if names:
            made.append((Span(f" {column_set.name}", "bold"),))
        for begin in range(0, len(names), per_line):
            spans = [span for name in names[begin : begin + per_line] for span in _cell(context, node, row, name)]
            made.append(tuple(spans))
    return made


def _cell(context: RenderContext, node: int, row: NodeFrame, name: str) -> list[Span]:
    cell = value(row.cells, name)
    column = COLUMNS[COLUMN_INDEX[name]]
    trend = spark(context.trend(name, node, TREND), TREND, context.marks.spark)
    text = f"{number(cell, column.digits, 9):>10}"
    rest = CELL - 16 - len(text) - TREND
    return [
        Span(f"   {column.header:<13}", "dim"),
        Span(text, LEVEL_STYLES[level(name, cell)]),
        Span(f" {trend}{' ' * (rest - 1)}", "spark"),
    ]


def tables_of(context: RenderContext, node: int | None) -> Sequence[Mapping[str, Any]]:
    """Return a node's tables or, if `node` is None, the cluster's tables that match the filter."""
    frame, view = context.frame, context.view
    rows = frame.tables.get(ALL if node is None else node, ()) if frame else ()
    wanted = view.filter.lower() if node is None else ""
    return [
        row
        for row in rows
        if (wanted in f"{row['keyspace']}.{row['table']}".lower()) is not (view.inverse and bool(wanted))
    ]


def tables_header(context: RenderContext) -> Line:
    name = fit("TABLE", _name(context.width), context.marks)
    text = "".join(f"{column.header:>{WIDTH}}" for column in _fitting(context.width))
    return (Span(f"   {name}{text}{' ' * context.width}", "head"),)


def table_lines(context: RenderContext, node: int | None, first: int, room: int) -> list[Line]:
    """Return at most `room` table rows, beginning with the one at index `first`; a line with the reason if none."""
    rows = tables_of(context, node)
    if not rows:
        return [(Span(f"   {_why_none(context, node)}", "dim"),)]
    return [_table_line(context, row) for row in rows[first : first + room]]


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


def compaction_lines(context: RenderContext, node: int | None, room: int) -> list[Line]:
    """Return lines for the running compactions, those closest to completion first."""
    frame = context.frame
    rows = frame.running.get(ALL if node is None else node, ()) if frame else ()
    lines: list[Line] = []
    for row in rows[:room]:
        name = clean(f"{row['keyspace']}.{row['table']}" if row["table"] else "", context.marks)
        text = f"   {row['done_pct']:5.1f}%  {clean(row['type'], context.marks)} {name}"
        lines.append((Span(text),))
    return lines


def _table_line(context: RenderContext, row: Mapping[str, Any]) -> Line:
    name = clean(f"{row['keyspace']}.{row['table']}", context.marks)
    cells = (f"{number(row[key], digits, WIDTH - 1):>{WIDTH}}" for _, key, digits in _fitting(context.width))
    return (Span(f"   {fit(name, _name(context.width), context.marks)}"), Span("".join(cells)))


def _fitting(width: int) -> list[TableColumn]:
    return fitting(max((width - 3 - MIN_NAME) // WIDTH, 0))


def _name(width: int) -> int:
    return max(min(width - 3 - WIDTH * len(_fitting(width)), 44), 1)


def metric_of(context: RenderContext) -> str:
    """Return the name of the column whose values are shown."""
    view = context.view
    return view.metric or (view.sort if view.sort in COLUMN_INDEX else (set_of(view).columns or ("reads_per_s",))[0])


def shown_nodes(context: RenderContext) -> list[int]:
    """Return the indices of the nodes that fit, starting with the first visible one."""
    room = max((context.width - TIME - WIDTH) // width_of_node(context), 0)
    return context.order[context.view.first : context.view.first + room]


def width_of_node(context: RenderContext) -> int:
    """Return the width of a node column: as wide as the longest name if space permits, but at least WIDTH."""
    order = context.order
    longest = max((len(context.name(node)) for node in order), default=0) + 1
    return min(max(longest, WIDTH), max((context.width - TIME - WIDTH) // max(len(order), 1), WIDTH))


def transposed_lines(context: RenderContext, room: int) -> list[Line]:
    """Return two header lines, followed by a line per tick."""
    if context.frame is None:
        return []
    name = metric_of(context)
    column = COLUMNS[COLUMN_INDEX[name]]
    nodes, width = shown_nodes(context), width_of_node(context)
    more = len(context.order) - len(nodes) - context.view.first
    beyond = f"pgdn: {more} more" if more > 0 else ""
    heads = [
        (Span(f" {column.header}  {name}  ", "bold"), Span(f"m: next column  {beyond}", "dim")),
        _heads(context, nodes, width),
    ]
    last = context.frame_index + 1
    frames = context.frames[max(0, last - max(room - len(heads), 0)) : last]
    return [*heads, *(_tick_line(context, index, nodes, width) for index in range(last - len(frames), last))]


def _heads(context: RenderContext, nodes: list[int], width: int) -> Line:
    names = "".join(f" {_end(context, node, width - 1):>{width - 1}}" for node in nodes)
    first = f" {fit('TIME', TIME - 1, context.marks)}{'cluster':>{WIDTH}}"
    return (Span(f"{first}{names}{' ' * context.width}", "head"),)


def _end(context: RenderContext, node: int, width: int) -> str:
    # Addresses often share a prefix, so keep the end of the name.
    name = context.name(node)
    return name if len(name) <= width else f"{context.marks.ellipsis}{name[-(width - 1) :]}"


def _tick_line(context: RenderContext, index: int, nodes: list[int], width: int) -> Line:
    frame, name = context.frames[index], metric_of(context)
    column = COLUMN_INDEX[name]
    spans = [Span(f" {clock_time(frame.time_s)[: TIME - 1]}", "dim")]
    for node in (None, *nodes):
        cells = frame.cluster if node is None else frame.nodes[node].cells if node < len(frame.nodes) else None
        cell = None if cells is None or cells[column] != cells[column] else cells[column]
        text = f"{number(cell, COLUMNS[column].digits, WIDTH - 2):>{WIDTH if node is None else width}}"
        if node is None and cell is not None and frame.counted < len(frame.nodes):
            # Mark a value that does not cover all nodes, so that a dip is not mistaken for less load.
            text = f"{text[1:]}{context.marks.fault}"
        usual = "bold" if node is None else "dim" if cell is None else ""
        bad = (cluster_level if node is None else level)(name, cell)
        spans.append(Span(text, LEVEL_STYLES[bad] or usual))
    return tuple(spans)


def help_lines(context: RenderContext, room: int) -> list[Line]:
    width = context.width
    signs = [(context.marks.states[state], text) for state, text in STATES.items()]
    signs.append((context.marks.fault, "a value exceeds its threshold and is coloured"))
    whole: list[Line] = []
    for keys, text in KEYS:
        whole += _described(f"   {keys:<{LABEL}} ", text, width)
    chosen = columns(set_of(context.view))
    if chosen:
        whole.append((Span(f" columns of {set_of(context.view).name}", "bold"),))
    for column in chosen:
        whole += _described(f"   {column.header:<{LABEL}} ", column.help, width)
    whole.append((Span(" states", "bold"),))
    for sign, text in signs:
        whole += _described(f"   {sign}  ", text, width)
    for text in NOTES:
        whole += _described(" ", text, width)
    shown = max(room - 1, 0)
    first = min(context.view.first, max(len(whole) - shown, 0))
    more = "" if first + shown >= len(whole) else "  (down: more)"
    return [(Span(" keys", "bold"), Span(more, "dim")), *whole[first:]]


def _described(label: str, text: str, width: int) -> list[Line]:
    """Return the lines for a label with its wrapped text beside it."""
    parts = wrap(text, max(width - len(label), 1))
    return [(Span(" " * len(label) if number else label), Span(part, "dim")) for number, part in enumerate(parts)]
