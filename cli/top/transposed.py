"""One metric for all nodes side by side: a line per tick with the newest at the bottom, and a column per node."""

from cli.top.screen_rows import LEVEL_STYLES, RenderContext, clock_time, cluster_level, level
from cli.top.styled_text import Line, Span, cut, fit, number
from cli.top.view_state import set_of
from exporters.live.live_columns import COLUMN_INDEX, COLUMNS

TIME, WIDTH = 9, 9


def metric_of(context: RenderContext) -> str:
    """Return the name of the column whose values are shown."""
    view = context.view
    return view.metric or (view.sort if view.sort in COLUMN_INDEX else (set_of(view).columns or ("reads_per_s",))[0])


def shown(context: RenderContext) -> list[int]:
    """Return the indices of the nodes that fit, starting with the first visible one."""
    room = max((context.width - TIME - WIDTH) // width_of_node(context), 0)
    return context.order[context.view.first : context.view.first + room]


def width_of_node(context: RenderContext) -> int:
    """Return the width of a node column: as wide as the longest name if space permits, but at least WIDTH."""
    order = context.order
    longest = max((len(context.name(node)) for node in order), default=0) + 1
    return min(max(longest, WIDTH), max((context.width - TIME - WIDTH) // max(len(order), 1), WIDTH))


def lines(context: RenderContext, room: int) -> list[Line]:
    """Return two header lines, followed by a line per tick."""
    if context.frame is None or room < 1:
        return [cut((), context.width)] * max(room, 0)
    name = metric_of(context)
    column = COLUMNS[COLUMN_INDEX[name]]
    nodes, width = shown(context), width_of_node(context)
    more = len(context.order) - len(nodes) - context.view.first
    beyond = f"pgdn: {more} more" if more > 0 else ""
    heads = [
        cut((Span(f" {column.header}  {name}  ", "bold"), Span(f"m: next column  {beyond}", "dim")), context.width),
        _heads(context, nodes, width),
    ]
    last = context.frame_index + 1
    frames = context.frames[max(0, last - max(room - len(heads), 0)) : last]
    return [*heads, *(_line(context, index, nodes, width) for index in range(last - len(frames), last))][:room]


def _heads(context: RenderContext, nodes: list[int], width: int) -> Line:
    names = "".join(f" {_end(context, node, width - 1):>{width - 1}}" for node in nodes)
    return cut(
        (Span(f" {fit('TIME', TIME - 1, context.marks)}{'cluster':>{WIDTH}}{names}{' ' * context.width}", "head"),),
        context.width,
    )


def _end(context: RenderContext, node: int, width: int) -> str:
    # Addresses often share a prefix, so keep the end of the name.
    name = context.name(node)
    return name if len(name) <= width else f"{context.marks.ellipsis}{name[-(width - 1) :]}"


def _line(context: RenderContext, index: int, nodes: list[int], width: int) -> Line:
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
    return cut(tuple(spans), context.width)
