"""The whole screen: exactly as many lines as it is high, each exactly as wide."""

from cli.top import charts, header_lines, help_page, node_page, node_table, tables_page, transposed
from cli.top.column_sets import set_of
from cli.top.render_context import RenderContext, clock_time
from cli.top.styled_text import Line, Span, clean, cut
from collector.cluster.live.cluster_interval import ClusterEvent

# So high, so many lines of events and of the cluster's figures.
EVENTS = ((60, 10), (40, 7), (24, 4), (20, 3), (12, 1))
TABLE_HEAD = 2
"""The lines of the table above its nodes: the headers, and the cluster's row."""
SUMMARY = ((18, 3), (14, 2), (10, 1))


def screen(scene: RenderContext) -> list[Line]:
    """Return the lines."""
    above = [header_lines.title(scene), *header_lines.summary(scene, _of(SUMMARY, scene.height))]
    below = [header_lines.footer(scene)]
    if not scene.look.help:
        below = [*_events(scene, _of(EVENTS, scene.height)), *below]
    room = max(scene.height - len(above) - len(below), 0)
    lines = [*above, *_body(scene, room), *below]
    return [cut(line, scene.width) for line in lines[: scene.height]]


def head_lines(scene: RenderContext) -> int:
    """Return how many lines stand above the table or page."""
    return 1 + _of(SUMMARY, scene.height)


def rows(scene: RenderContext) -> int:
    """Return how many rows of nodes, or lines of a page, there is room for."""
    fixed = head_lines(scene) + 1 + (0 if scene.look.help else _of(EVENTS, scene.height))
    own = TABLE_HEAD if _is_table(scene) else 0
    return max(scene.height - fixed - own, 1)


def _is_table(scene: RenderContext) -> bool:
    look = scene.look
    return not look.help and look.node is None and not look.transposed


def _body(scene: RenderContext, room: int) -> list[Line]:
    look = scene.look
    if look.help:
        return help_page.lines(scene, room)
    if look.node is not None:
        return node_page.lines(scene, room)
    if set_of(look).is_tables:
        made = [tables_page.header(scene), *tables_page.lines(scene, None, look.first, max(room - 1, 0))]
    elif look.transposed:
        made = transposed.lines(scene, room)
    else:
        made = _nodes(scene, room)
    return (made + [cut((), scene.width)] * room)[:room]


def _nodes(scene: RenderContext, room: int) -> list[Line]:
    if scene.frame is None:
        return []
    chosen = node_table.layout(scene)
    made = [node_table.header(scene, chosen), node_table.cluster_row(scene, chosen)]
    nodes = scene.order
    pointed = scene.look.cursor if scene.look.cursor in nodes else next(iter(nodes), None)
    shown = nodes[scene.look.first : scene.look.first + max(room - len(made), 0)]
    made += [node_table.node_row(scene, chosen, node, pointed=node == pointed) for node in shown]
    if not nodes:
        why = "nothing is wrong with any node" if scene.look.faults else "no node fits the filter"
        made.append(cut((Span(f"   {why}", "dim"),), scene.width))
    return made + charts.lines(scene, room - len(made))


def _events(scene: RenderContext, room: int) -> list[Line]:
    """Return what happened last, up to the tick that is looked at; the newest at the bottom."""
    frame, found = scene.frame, list[ClusterEvent]()
    if frame is not None and room:
        name = frame.nodes[scene.look.node].name if scene.look.node is not None else ""
        for each in reversed(scene.frames[: scene.place + 1]):
            found += [told for told in reversed(each.events) if not name or told.node == name]
            if len(found) >= room - 1:
                break
    shown = [_event(scene, told) for told in reversed(found[: room - 1])] if room else []
    blank = [cut((), scene.width)] * (room - 1 - len(shown))
    return [_rule(scene), *shown, *blank][:room]


def _rule(scene: RenderContext) -> Line:
    nodes = len(scene.order)
    room = rows(scene)
    text = " events"
    if _is_table(scene) and nodes > room:
        text += f"   (nodes {scene.look.first + 1} to {min(scene.look.first + room, nodes)} of {nodes})"
    hidden = _hidden(scene)
    if hidden:
        text += f"   ({hidden} of {len(set_of(scene.look).columns)} columns do not fit)"
    return cut((Span(text + " " * scene.width, "head"),), scene.width)


def _hidden(scene: RenderContext) -> int:
    """Return how many columns of the set have no room in the table."""
    if not _is_table(scene) or set_of(scene.look).is_tables:
        return 0
    return len(set_of(scene.look).columns) - len(node_table.layout(scene).columns)


def _event(scene: RenderContext, told: ClusterEvent) -> Line:
    style = {"gone": "bad", "silent": "bad", "up": "good", "restart": "warn", "disagreement": "warn"}.get(told.kind, "")
    marks = scene.marks
    return cut(
        (
            Span(f" {clock_time(told.time_s)[:8]} ", "dim"),
            Span(f"{clean(told.node, marks)} "),
            Span(f"{clean(told.kind, marks)} ", style),
            Span(clean(told.text, marks)),
        ),
        scene.width,
    )


def _of(steps: tuple[tuple[int, int], ...], height: int) -> int:
    return next((lines for least, lines in steps if height >= least), 0)
