"""The node table: a row for the cluster, then a row for each node."""

from collections.abc import Callable
from dataclasses import dataclass

from cli.top.screen_rows import LEVEL_STYLES, RenderContext, are_shown, cluster_level, level, severity, worst_index
from cli.top.styled_text import Line, Marks, Span, clean, cut, fit, number, span_of_time, spark
from cli.top.view_state import columns, set_of
from collector.live.cluster_interval import State
from dashboards.thresholds import Severity
from exporters.live.frame import GroupFrame, NodeFrame
from exporters.live.live_columns import Cells, value
from exporters.rows.columns import Column

MIN_COLUMN, MAX_NAME, MIN_NAME = 6, 28, 7
TREND, MAX_TREND, TREND_KEEP, LOCATION_KEEP, COUNT_KEEP = 12, 120, 4, 3, 9
OF_STATE = {State.UP: "good", State.CHANGING: "warn", State.SILENT: "bad", State.GONE: "bad", State.NEW: "dim"}
CLUSTER = "cluster"
NO_LOCATION = "(unknown)"


@dataclass(frozen=True)
class Layout:
    """The visible columns with their widths, and the widths of the name, location and trend columns (0 if hidden)."""

    name: int
    location: int
    trend: int
    columns: tuple[tuple[Column, int], ...]


def layout(context: RenderContext) -> Layout:
    """Return the columns that fit; hide the least important ones first, equally important ones from right to left."""
    frame, view = context.frame, context.view
    has_groups = are_shown(context)
    if frame and has_groups:
        names = [len(group_name(context, location)) for location in frame.groups]
        locations = [len(_count(frame.counted, len(frame.nodes)))]
    else:
        names = [len(context.name(node)) for node in range(len(frame.nodes))] if frame else []
        locations = [len(clean(node.location, context.marks)) for node in frame.nodes] if frame else []
    longest = min(MAX_NAME, max(MIN_NAME, context.width // 4))
    name = min(max([len(CLUSTER), *names]), longest)
    location_width = min(max([*locations, MIN_NAME if any(locations) else 0]), MAX_NAME)
    chosen = columns(set_of(view))
    # The sort column is hidden last.
    kept = {
        column.name: (99 if column.name == view.sort else column.keep, -index) for index, column in enumerate(chosen)
    }
    kept["location"] = (COUNT_KEEP if has_groups else LOCATION_KEEP), -len(chosen)
    if len(context.frames) > 1:
        kept["trend"] = TREND_KEEP, -len(chosen)
    widths = {column.name: max(len(column.header), MIN_COLUMN) + 1 for column in chosen}
    widths["location"], widths["trend"] = (location_width + 1 if location_width else 0), TREND + 1
    while kept and 3 + name + sum(widths[key] for key in kept) > context.width:
        del kept[min(kept, key=lambda key: kept[key])]
    left = context.width - 3 - name - sum(widths[key] for key in kept)
    trend = min(TREND + left, MAX_TREND) if "trend" in kept else 0
    fitting = tuple((column, widths[column.name]) for column in chosen if column.name in kept)
    return Layout(name, location_width if "location" in kept else 0, trend, fitting)


def header(context: RenderContext, chosen: Layout) -> Line:
    """Return the header, with the sort column marked."""
    view = context.view
    mark = context.marks.up if view.reverse else context.marks.down
    name, location = ("DC/RACK", "NODES") if are_shown(context) else ("NODE", "DC/RACK")
    spans = [Span(f"   {fit(name, chosen.name, context.marks)}", "head")]
    if chosen.location:
        spans.append(Span(f" {fit(location, chosen.location, context.marks)}", "head"))
    for column, width in chosen.columns:
        is_sorted = column.name == view.sort
        text = f"{mark}{column.header}" if is_sorted else column.header
        spans.append(Span(f"{text:>{width}}"[-width:], "sorted" if is_sorted else "head"))
    if chosen.trend:
        spans.append(Span(f" {fit(trend_name(context), chosen.trend, context.marks)}", "head"))
    return (*spans, Span(" " * context.width, "head"))


def column_at(context: RenderContext, x: int) -> str:
    """Return the column whose header is at cell `x`: "node" for the node names, "" if it is not sortable."""
    chosen = layout(context)
    left = 3 + chosen.name
    if x < left:
        return "node"
    left += chosen.location + 1 if chosen.location else 0
    for column, width in chosen.columns:
        if left <= x < left + width:
            return column.name
        left += width
    return ""


def trend_name(context: RenderContext) -> str:
    """Return the header of the trend column."""
    return f"{next(c.header for c in columns(set_of(context.view)) if c.name == trend_column(context))} trend"


def trend_column(context: RenderContext) -> str:
    """Return the column that the sparklines show: the sort column if it is in the set, else the set's first column."""
    chosen = set_of(context.view)
    return context.view.sort if context.view.sort in chosen.columns else chosen.columns[0]


def merged_row(context: RenderContext, chosen: Layout) -> Line:
    """Return the row of all nodes or, if a group is open, of its nodes; blank before the first frame."""
    frame, location = context.frame, context.view.group
    if frame is None:
        return ()
    group = None if location is None else frame.groups.get(location)
    if group is None or location is None:
        whole = GroupFrame(tuple(range(len(frame.nodes))), frame.cluster, frame.counted)
        name, trend = CLUSTER, context.trend(trend_column(context), None, chosen.trend)
    else:
        whole, name = group, clean(location, context.marks) or NO_LOCATION
        trend = context.group_trend(trend_column(context), location, chosen.trend)
    spans = [Span(f" = {fit(name, chosen.name, context.marks)}", "bold")]
    return _merged_line(context, chosen, spans, whole, trend, "bold")


def group_row(context: RenderContext, chosen: Layout, location: str, *, pointed: bool) -> Line:
    """Return the row of a data centre or rack: its values, and on how many of its nodes Cassandra is answering."""
    frame = context.frame
    if frame is None:
        return ()
    group = frame.groups[location]
    worst, style = frame.nodes[worst_index(context, group)], "" if group.counted else "dim"
    spans = _first_spans(context, worst, group_name(context, location), chosen.name, style, pointed=pointed)
    trend = context.group_trend(trend_column(context), location, chosen.trend)
    return _marked(context, _merged_line(context, chosen, spans, group, trend, ""), pointed=pointed)


def _first_spans(
    context: RenderContext, node: NodeFrame, name: str, width: int, style: str, *, pointed: bool
) -> list[Span]:
    """Return the beginning of a row: the cursor, the symbol for the state of `node`, and the name."""
    cursor = ">" if pointed and context.view.prompt == "" else " "
    return [Span(cursor), Span(*glyph_of(node, context.marks)), Span(f" {fit(name, width, context.marks)}", style)]


def _marked(context: RenderContext, line: Line, *, pointed: bool) -> Line:
    if not pointed:
        return line
    return tuple(Span(span.text, f"cursor {span.style}".strip()) for span in cut(line, context.width))


def group_name(context: RenderContext, location: str) -> str:
    """Return a data centre's name, or the indented name of a rack."""
    dc, _, rack = location.partition("/")
    return f"  {clean(rack, context.marks)}" if rack else clean(dc, context.marks) or NO_LOCATION


def _merged_line(
    context: RenderContext, chosen: Layout, spans: list[Span], group: GroupFrame, trend: list[float], usual: str
) -> Line:
    if chosen.location:
        spans.append(Span(f" {fit(_count(group.counted, len(group.nodes)), chosen.location, context.marks)}"))
    return (*spans, *_numbers(chosen, group.cells, cluster_level, usual), *_trend(context, chosen, trend))


def _count(counted: int, nodes: int) -> str:
    return f"{counted}/{nodes}"


def node_row(context: RenderContext, chosen: Layout, node: int, *, pointed: bool) -> Line:
    """Return a node's row: its values, or the reason why it has none."""
    frame = context.frame
    if frame is None:
        return ()
    row = frame.nodes[node]
    # If a node's Cassandra is silent, its host values appear only on its own page.
    is_known = row.state is not State.SILENT and any(cell == cell for cell in row.cells)
    spans = _first_spans(context, row, context.name(node), chosen.name, "" if is_known else "dim", pointed=pointed)
    if chosen.location:
        spans.append(Span(f" {fit(clean(row.location, context.marks), chosen.location, context.marks)}", "dim"))
    if is_known:
        spans += _numbers(chosen, row.cells, level, "")
        spans += _trend(context, chosen, context.trend(trend_column(context), node, chosen.trend))
    else:
        spans.append(Span(f" {why_not(row, context.marks)}", "dim"))
    return _marked(context, tuple(spans), pointed=pointed)


def why_not(node: NodeFrame, marks: Marks) -> str:
    """Return a message that explains why a node has no values and, if known, for how long it has had none."""
    words = {
        State.GONE: "gone",
        State.SILENT: "Cassandra has not answered",
        State.NEW: "no answer yet" if node.age_s is None else "first interval",
        State.CHANGING: "no values yet",
        State.UP: "late" if node.age_s is not None else "first interval",
    }[node.state]
    age = "" if node.age_s is None or node.state is State.NEW else f" for {span_of_time(node.age_s)}"
    why = f": {clean(node.reason, marks)}" if node.reason else ""
    return f"{words}{age}{why}"


def glyph_of(node: NodeFrame, marks: Marks) -> tuple[str, str]:
    """Return the symbol for a node's state and its style, or those for a fault if the node is up but has a problem."""
    if node.state is State.UP and (bad := severity(node)):
        return marks.fault, LEVEL_STYLES[bad]
    return marks.states[node.state], OF_STATE[node.state]


def _numbers(chosen: Layout, cells: Cells, level_of: Callable[[str, float | None], Severity], usual: str) -> list[Span]:
    spans = []
    for column, width in chosen.columns:
        cell = value(cells, column.name)
        text = f"{number(cell, column.digits, width - 1):>{width}}"
        spans.append(Span(text, LEVEL_STYLES[level_of(column.name, cell)] or ("dim" if cell is None else usual)))
    return spans


def _trend(context: RenderContext, chosen: Layout, values: list[float]) -> list[Span]:
    return [Span(f" {spark(values, chosen.trend, context.marks.spark)}", "spark")] if chosen.trend else []
