"""Charts of the cluster's recent ticks, shown if there is room below the nodes."""

from cli.top.screen_rows import RenderContext
from cli.top.styled_text import Line, Span, chart, cut, number
from cli.top.view_state import set_of
from exporters.live.live_columns import COLUMN_INDEX, COLUMNS, value

# A chart is between MIN_HEIGHT and MAX_HEIGHT lines high, including its title. Two charts are shown side by side if
# the screen is at least TWO_CHARTS_WIDTH cells wide.
MIN_HEIGHT, MAX_HEIGHT, TWO_CHARTS_WIDTH = 5, 14, 80


def lines(context: RenderContext, room: int) -> list[Line]:
    """Return the lines of as many charts as fit into `room` lines."""
    beside = 2 if context.width >= TWO_CHARTS_WIDTH else 1
    names = _names(context)
    rows = min(room // MIN_HEIGHT, -(-len(names) // beside))
    if context.frame is None or not rows:
        return []
    height = min(room // rows, MAX_HEIGHT)
    width = context.width // beside
    made: list[Line] = []
    for row in range(rows):
        charts = [_chart(context, name, width, height) for name in names[row * beside : (row + 1) * beside]]
        made += [
            cut(tuple(span for line in parts for span in line), context.width) for parts in zip(*charts, strict=True)
        ]
    return made


def _names(context: RenderContext) -> list[str]:
    """Return up to four columns to draw.

    The sort column comes first, then the set's first column, its `worst` columns and its other columns.
    """
    chosen = set_of(context.view)
    first = [context.view.sort] if context.view.sort in COLUMN_INDEX else []
    return list(dict.fromkeys([*first, *chosen.columns[:1], *chosen.worst, *chosen.columns[1:]]))[:4]


def _chart(context: RenderContext, name: str, width: int, height: int) -> list[Line]:
    """Return a chart with its title, `width` cells wide and `height` lines high."""
    column = COLUMNS[COLUMN_INDEX[name]]
    values = context.trend(name, None, width - 2)
    now = None if context.frame is None else value(context.frame.cluster, name)
    most = max((value for value in values if value == value), default=None)
    figures = f"  now {number(now, column.digits)}  max {number(most, column.digits)}"
    title = cut((Span(f" {column.header}", "bold"), Span(figures, "dim")), width)
    body = chart(values, width - 2, height - 1, context.marks.spark)
    return [title, *(cut((Span(f" {text} ", "spark"),), width) for text in body)]
