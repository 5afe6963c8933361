"""The page for one node: all its values with their trends, its running compactions and its tables."""

from cli.top import tables_page
from cli.top.node_table import glyph_of, why_not
from cli.top.screen_rows import LEVEL_STYLES, RenderContext, level
from cli.top.styled_text import Line, Span, clean, cut, number, spark
from cli.top.view_state import SETS
from collector.live.cluster_interval import State
from exporters.live.frame import NodeFrame
from exporters.live.live_columns import COLUMN_INDEX, COLUMNS, other_operations, value

CELL, TREND = 40, 12


def lines(context: RenderContext, room: int) -> list[Line]:
    node, frame = context.view.node, context.frame
    if node is None or frame is None or node >= len(frame.nodes):
        return [cut((), context.width)] * max(room, 0)
    row = frame.nodes[node]
    page = [_title(context, row), *_values(context, node, row)]
    running = tables_page.compactions(context, node, room)
    if running:
        page += [cut((Span(" compactions", "bold"),), context.width), *running]
    if row.state is not State.GONE:
        tables = len(tables_page.rows_of(context, node))
        page += [tables_page.header(context), *tables_page.lines(context, node, 0, tables or 1)]
    first = min(context.view.first, max(len(page) - room, 0))
    shown = page[first : first + room]
    return shown + [cut((), context.width)] * (room - len(shown))


def _title(context: RenderContext, node: NodeFrame) -> Line:
    glyph, colour = glyph_of(node, context.marks)
    spans = [Span(f" {glyph} ", colour), Span(clean(node.name, context.marks), "bold")]
    spans.append(Span(f"  {clean(node.location, context.marks)}", "dim"))
    if node.age_s is not None:
        spans.append(Span(f"  {why_not(node, context.marks)}", "bad"))
    else:
        spans += [Span(f"  {node.state.value}", "dim"), Span(f"  {clean(node.reason, context.marks)}", "warn")]
    return cut(tuple(spans), context.width)


def _values(context: RenderContext, node: int, row: NodeFrame) -> list[Line]:
    """Return the lines with the node's values, grouped by column set, with as many values per line as fit."""
    per_line = max(context.width // CELL, 1)
    lines: list[Line] = []
    shown: set[str] = set()
    sets = SETS if other_operations(row.cells) else SETS[:-1]
    for column_set in sets:
        names = [name for name in column_set.columns if name not in shown and value(row.cells, name) is not None]
        shown.update(names)
        if names:
            lines.append(cut((Span(f" {column_set.name}", "bold"),), context.width))
        for begin in range(0, len(names), per_line):
            spans = [span for name in names[begin : begin + per_line] for span in _cell(context, node, row, name)]
            lines.append(cut(tuple(spans), context.width))
    return lines


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
