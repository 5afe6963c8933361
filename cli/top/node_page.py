"""One node alone: all its figures with their last minutes, its compactions and tables."""

from cli.top import tables_page
from cli.top.column_sets import SETS
from cli.top.node_table import glyph_of, why_not
from cli.top.render_context import RenderContext
from cli.top.severity import level
from cli.top.sparkline import spark
from cli.top.styled_text import Line, Span, clean, cut, number
from collector.cluster.live.cluster_interval import State
from exporters.live.frame import NodeFrame
from exporters.live.live_columns import COLUMNS, PLACES, value

CELL, TREND = 40, 12
LEVELS = ("", "warn", "bad")


def lines(scene: RenderContext, room: int) -> list[Line]:
    """Return the page, from the line that is scrolled to on."""
    node, frame = scene.look.node, scene.frame
    if node is None or frame is None or node >= len(frame.nodes):
        return [cut((), scene.width)] * max(room, 0)
    found = frame.nodes[node]
    whole = [_title(scene, found), *_figures(scene, node, found)]
    running = tables_page.compactions(scene, node, room)
    if running:
        whole += [cut((Span(" compactions", "bold"),), scene.width), *running]
    if found.state is not State.GONE:
        tables = len(tables_page.rows_of(scene, node))
        whole += [tables_page.header(scene), *tables_page.lines(scene, node, 0, tables or 1)]
    first = min(scene.look.first, max(len(whole) - room, 0))
    shown = whole[first : first + room]
    return shown + [cut((), scene.width)] * (room - len(shown))


def _title(scene: RenderContext, node: NodeFrame) -> Line:
    glyph, colour = glyph_of(node, scene.marks)
    spans = [Span(f" {glyph} ", colour), Span(clean(node.name, scene.marks), "bold")]
    spans.append(Span(f"  {clean(node.place, scene.marks)}", "dim"))
    if node.age_s is not None:
        spans.append(Span(f"  {why_not(node, scene.marks)}", "bad"))
    else:
        spans += [Span(f"  {node.state.value}", "dim"), Span(f"  {clean(node.why, scene.marks)}", "warn")]
    return cut(tuple(spans), scene.width)


def _figures(scene: RenderContext, node: int, found: NodeFrame) -> list[Line]:
    """Return all that the sets of columns show, set by set, as many beside each other as fit."""
    beside = max(scene.width // CELL, 1)
    whole: list[Line] = []
    told: set[str] = set()
    for each in SETS:
        names = [name for name in each.columns if name not in told and value(found.cells, name) is not None]
        told.update(names)
        if names:
            whole.append(cut((Span(f" {each.name}", "bold"),), scene.width))
        for begin in range(0, len(names), beside):
            row = [span for name in names[begin : begin + beside] for span in _cell(scene, node, found, name)]
            whole.append(cut(tuple(row), scene.width))
    return whole


def _cell(scene: RenderContext, node: int, found: NodeFrame, name: str) -> list[Span]:
    number_of = value(found.cells, name)
    column = COLUMNS[PLACES[name]]
    trend = spark(scene.trend(name, node, TREND), TREND, scene.marks.spark)
    text = f"{number(number_of, column.digits, 9):>10}"
    rest = CELL - 16 - len(text) - TREND
    return [
        Span(f"   {column.header:<13}", "dim"),
        Span(text, LEVELS[level(name, number_of)]),
        Span(f" {trend}{' ' * (rest - 1)}", "spark"),
    ]
