"""Charts of the cluster's last ticks, where few nodes leave room for them."""

from cli.top.column_sets import set_of
from cli.top.render_context import RenderContext
from cli.top.sparkline import chart
from cli.top.styled_text import Line, Span, cut, number
from exporters.live.live_columns import COLUMNS, PLACES, value

# The least and most lines of a chart, its title included; from this width on two stand beside each other.
LOWEST, HIGHEST, TWO_WIDE = 5, 14, 80


def lines(scene: RenderContext, room: int) -> list[Line]:
    """Return as many charts as there is room for."""
    beside = 2 if scene.width >= TWO_WIDE else 1
    names = _names(scene)
    rows = min(room // LOWEST, -(-len(names) // beside))
    if scene.frame is None or not rows:
        return []
    height = min(room // rows, HIGHEST)
    width = scene.width // beside
    made: list[Line] = []
    for row in range(rows):
        charts = [_chart(scene, name, width, height) for name in names[row * beside : (row + 1) * beside]]
        made += [
            cut(tuple(span for line in parts for span in line), scene.width) for parts in zip(*charts, strict=True)
        ]
    return made


def _names(scene: RenderContext) -> list[str]:
    """Return the columns to draw: the one sorted by, the first of the set, what makes a node the worst, the others."""
    chosen = set_of(scene.look)
    first = [scene.look.sort] if scene.look.sort in PLACES else []
    return list(dict.fromkeys([*first, *chosen.columns[:1], *chosen.worst, *chosen.columns[1:]]))[:4]


def _chart(scene: RenderContext, name: str, width: int, height: int) -> list[Line]:
    """Return one chart with its title, so many cells wide and lines high."""
    column = COLUMNS[PLACES[name]]
    values = scene.trend(name, None, width - 2)
    now = None if scene.frame is None else value(scene.frame.cluster, name)
    most = max((each for each in values if each == each), default=None)
    figures = f"  now {number(now, column.digits)}  max {number(most, column.digits)}"
    title = cut((Span(f" {column.header}", "bold"), Span(figures, "dim")), width)
    body = chart(values, width - 2, height - 1, scene.marks.spark)
    return [title, *(cut((Span(f" {text} ", "spark"),), width) for text in body)]
