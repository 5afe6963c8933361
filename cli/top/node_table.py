"""The table: a line for all nodes together, then one for each."""

from dataclasses import dataclass

from cli.top.column_sets import columns, set_of
from cli.top.render_context import RenderContext
from cli.top.severity import cluster_level, level, severity
from cli.top.sparkline import spark
from cli.top.styled_text import Line, Marks, Span, clean, cut, fit, number, span_of_time
from collector.cluster.live.cluster_interval import State
from exporters.line.columns import Column
from exporters.live.frame import NodeFrame
from exporters.live.live_columns import Cells, value

NARROWEST, LONGEST_NAME, SHORTEST_NAME = 6, 28, 7
TREND, LONGEST_TREND, TREND_KEEP, PLACE_KEEP = 12, 120, 4, 3
LEVELS = ("", "warn", "bad")
OF_STATE = {
    State.UP: "good",
    State.CHANGING: "warn",
    State.SILENT: "bad",
    State.GONE: "bad",
    State.NEW: "dim",
}
CLUSTER = "cluster"


@dataclass(frozen=True)
class Layout:
    """What fits: the columns with their widths, and how wide names, places and trends are (0 for not shown)."""

    name: int
    place: int
    trend: int
    columns: tuple[tuple[Column, int], ...]


def layout(scene: RenderContext) -> Layout:
    """Return what of the chosen columns fits: whole ones go, the least important first, the later of equals."""
    frame, look = scene.frame, scene.look
    names = [len(scene.name(node)) for node in range(len(frame.nodes))] if frame else []
    places = [len(clean(node.place, scene.marks)) for node in frame.nodes] if frame else []
    longest = min(LONGEST_NAME, max(SHORTEST_NAME, scene.width // 4))
    name = min(max([len(CLUSTER), *names]), longest)
    place = min(max([*places, SHORTEST_NAME if any(places) else 0]), LONGEST_NAME)
    chosen = columns(set_of(look))
    kept = {column.name: (_keep(column, look.sort), -index) for index, column in enumerate(chosen)}
    kept["place"] = PLACE_KEEP, -len(chosen)
    if len(scene.frames) > 1:
        kept["trend"] = TREND_KEEP, -len(chosen)
    widths = {column.name: max(len(column.header), NARROWEST) + 1 for column in chosen}
    widths["place"], widths["trend"] = (place + 1 if place else 0), TREND + 1
    while kept and 3 + name + sum(widths[each] for each in kept) > scene.width:
        del kept[min(kept, key=lambda each: kept[each])]
    left = scene.width - 3 - name - sum(widths[each] for each in kept)
    trend = min(TREND + left, LONGEST_TREND) if "trend" in kept else 0
    fitting = tuple((column, widths[column.name]) for column in chosen if column.name in kept)
    return Layout(name, place if "place" in kept else 0, trend, fitting)


def _keep(column: Column, sort: str) -> int:
    # What one sorts by stays to the last.
    return 99 if column.name == sort else column.keep


def header(scene: RenderContext, chosen: Layout) -> Line:
    """Return the line with the columns' names; the one sorted by is marked."""
    look = scene.look
    mark = scene.marks.up if look.reverse else scene.marks.down
    spans = [Span(f"   {fit('NODE', chosen.name, scene.marks)}", "head")]
    if chosen.place:
        spans.append(Span(f" {fit('DC/RACK', chosen.place, scene.marks)}", "head"))
    for column, width in chosen.columns:
        is_sorted = column.name == look.sort
        text = f"{mark}{column.header}" if is_sorted else column.header
        spans.append(Span(f"{text:>{width}}"[-width:], "sorted" if is_sorted else "head"))
    if chosen.trend:
        spans.append(Span(f" {fit(trend_name(scene), chosen.trend, scene.marks)}", "head"))
    return cut((*spans, Span(" " * scene.width, "head")), scene.width)


def column_at(scene: RenderContext, x: int) -> str:
    """Return the column whose header stands at a cell, "node" for the names; "" for none."""
    chosen = layout(scene)
    left = 3 + chosen.name
    if x < left:
        return "node"
    left += chosen.place + 1 if chosen.place else 0
    for column, width in chosen.columns:
        if left <= x < left + width:
            return column.name
        left += width
    return ""


def trend_name(scene: RenderContext) -> str:
    """Return what the sparklines are about: the column sorted by, else what makes a node the worst."""
    return f"{next(c.header for c in columns(set_of(scene.look)) if c.name == trend_column(scene))} trend"


def trend_column(scene: RenderContext) -> str:
    """Return the column that sparklines show."""
    chosen = set_of(scene.look)
    return scene.look.sort if scene.look.sort in chosen.columns else chosen.columns[0]


def cluster_row(scene: RenderContext, chosen: Layout) -> Line:
    """Return the line of all nodes together."""
    frame = scene.frame
    if frame is None:
        return cut((), scene.width)
    place = f"{frame.counted}/{len(frame.nodes)}"
    spans = [Span(f" = {fit(CLUSTER, chosen.name, scene.marks)}", "bold")]
    if chosen.place:
        spans.append(Span(f" {fit(place, chosen.place, scene.marks)}"))
    return cut((*spans, *_numbers(scene, chosen, frame.cluster, None, "bold")), scene.width)


def node_row(scene: RenderContext, chosen: Layout, node: int, *, pointed: bool) -> Line:
    """Return a node's line: its figures, or why there are none."""
    frame = scene.frame
    if frame is None:
        return cut((), scene.width)
    found = frame.nodes[node]
    # Of a node whose Cassandra is silent the machine's figures stand on its own page.
    is_known = found.state is not State.SILENT and any(cell == cell for cell in found.cells)
    style = "" if is_known else "dim"
    glyph, colour = glyph_of(found, scene.marks)
    spans = [
        Span(">" if pointed and scene.look.prompt == "" else " "),
        Span(glyph, colour),
        Span(f" {fit(scene.name(node), chosen.name, scene.marks)}", style),
    ]
    if chosen.place:
        spans.append(Span(f" {fit(clean(found.place, scene.marks), chosen.place, scene.marks)}", "dim"))
    if is_known:
        spans += _numbers(scene, chosen, found.cells, node, "")
    else:
        spans.append(Span(f" {why_not(found, scene.marks)}", "dim"))
    line = cut(tuple(spans), scene.width)
    return tuple(Span(span.text, f"cursor {span.style}".strip()) for span in line) if pointed else line


def why_not(node: NodeFrame, marks: Marks) -> str:
    """Return in words why there are no figures of a node, with the age of the last ones."""
    words = {
        State.GONE: "gone",
        State.SILENT: "Cassandra does not answer",
        State.NEW: "no answer yet" if node.age_s is None else "its first interval",
        State.CHANGING: "nothing to tell yet",
        State.UP: "late" if node.age_s is not None else "its first interval",
    }[node.state]
    age = "" if node.age_s is None or node.state is State.NEW else f" for {span_of_time(node.age_s)}"
    why = f": {clean(node.why, marks)}" if node.why else ""
    return f"{words}{age}{why}"


def glyph_of(node: NodeFrame, marks: Marks) -> tuple[str, str]:
    """Return the sign of how a node is, and its style."""
    if node.state is State.UP and (bad := severity(node)):
        return marks.fault, LEVELS[bad]
    return marks.states[node.state], OF_STATE[node.state]


def _numbers(scene: RenderContext, chosen: Layout, cells: Cells, node: int | None, usual: str) -> list[Span]:
    spans = []
    for column, width in chosen.columns:
        found = value(cells, column.name)
        text = f"{number(found, column.digits, width - 1):>{width}}"
        bad = (cluster_level if node is None else level)(column.name, found)
        spans.append(Span(text, LEVELS[bad] or ("dim" if found is None else usual)))
    if chosen.trend:
        trend = scene.trend(trend_column(scene), node, chosen.trend)
        spans.append(Span(f" {spark(trend, chosen.trend, scene.marks.spark)}", "spark"))
    return spans
