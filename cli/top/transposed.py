"""One figure of all nodes beside each other: a line for each tick, the newest at the bottom, a column for each node."""

from cli.top.column_sets import set_of
from cli.top.render_context import RenderContext, clock_time
from cli.top.severity import cluster_level, level
from cli.top.styled_text import Line, Span, cut, fit, number
from exporters.live.live_columns import COLUMNS, PLACES

TIME, WIDTH = 9, 9
LEVELS = ("", "warn", "bad")


def metric_of(scene: RenderContext) -> str:
    """Return the column that is shown."""
    look = scene.look
    return look.metric or (look.sort if look.sort in PLACES else (set_of(look).columns or ("reads_per_s",))[0])


def shown(scene: RenderContext) -> list[int]:
    """Return the nodes that have room, from the first one on."""
    room = max((scene.width - TIME - WIDTH) // width_of_node(scene), 0)
    return scene.order[scene.look.first : scene.look.first + room]


def width_of_node(scene: RenderContext) -> int:
    """Return how wide each node's column is: for whole names where all nodes fit beside each other."""
    order = scene.order
    longest = max((len(scene.name(node)) for node in order), default=0) + 1
    return min(max(longest, WIDTH), max((scene.width - TIME - WIDTH) // max(len(order), 1), WIDTH))


def lines(scene: RenderContext, room: int) -> list[Line]:
    """Return the whole of it: two lines of heads, then ticks."""
    if scene.frame is None or room < 1:
        return [cut((), scene.width)] * max(room, 0)
    name = metric_of(scene)
    column = COLUMNS[PLACES[name]]
    nodes = shown(scene)
    more = len(scene.order) - len(nodes) - scene.look.first
    beyond = f"{more} more to the right: pgdn" if more > 0 else ""
    heads = [
        cut((Span(f" {column.header}  {name}  ", "bold"), Span(f"m: next  {beyond}", "dim")), scene.width),
        _heads(scene, nodes),
    ]
    last = scene.place + 1
    frames = scene.frames[max(0, last - max(room - len(heads), 0)) : last]
    return [*heads, *(_line(scene, place, nodes) for place in range(last - len(frames), last))][:room]


def _heads(scene: RenderContext, nodes: list[int]) -> Line:
    width = width_of_node(scene)
    names = "".join(f" {_end(scene, node, width - 1):>{width - 1}}" for node in nodes)
    return cut(
        (Span(f" {fit('TIME', TIME - 1, scene.marks)}{'cluster':>{WIDTH}}{names}{' ' * scene.width}", "head"),),
        scene.width,
    )


def _end(scene: RenderContext, node: int, width: int) -> str:
    # Of names that begin alike, as addresses do, the ends tell them apart.
    name = scene.name(node)
    return name if len(name) <= width else f"{scene.marks.ellipsis}{name[-(width - 1) :]}"


def _line(scene: RenderContext, place: int, nodes: list[int]) -> Line:
    frame, name = scene.frames[place], metric_of(scene)
    column = PLACES[name]
    spans = [Span(f" {clock_time(frame.time_s)[: TIME - 1]}", "dim")]
    width = width_of_node(scene)
    for node in (None, *nodes):
        cells = frame.cluster if node is None else frame.nodes[node].cells if node < len(frame.nodes) else None
        found = None if cells is None or cells[column] != cells[column] else cells[column]
        text = f"{number(found, COLUMNS[column].digits, WIDTH - 2):>{WIDTH if node is None else width}}"
        if node is None and found is not None and frame.counted < len(frame.nodes):
            # Of fewer nodes than there are: no dip is to be taken for less load.
            text = f"{text[1:]}{scene.marks.fault}"
        usual = "bold" if node is None else "dim" if found is None else ""
        bad = (cluster_level if node is None else level)(name, found)
        spans.append(Span(text, LEVELS[bad] or usual))
    return cut(tuple(spans), scene.width)
