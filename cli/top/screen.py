"""The complete screen: exactly `height` lines of exactly `width` cells."""

from cli.top import charts, header_lines, help_page, node_page, node_table, tables_page, transposed
from cli.top.column_sets import set_of
from cli.top.render_context import RenderContext, clock_time
from cli.top.styled_text import Line, Span, clean, cut
from collector.cluster.live.cluster_interval import ClusterEvent

# Pairs of a minimum screen height and the number of lines for events, including their heading.
EVENTS = ((60, 10), (40, 7), (24, 4), (20, 3), (12, 1))
TABLE_HEAD = 2
"""Number of table lines above the nodes: the header and the cluster's row."""
# Pairs of a minimum screen height and the number of lines for the cluster's values.
SUMMARY = ((18, 3), (14, 2), (10, 1))


def screen(context: RenderContext) -> list[Line]:
    """Return the screen: `context.height` lines, each `context.width` cells wide."""
    above = [header_lines.title(context), *header_lines.summary(context, _of(SUMMARY, context.height))]
    below = [header_lines.footer(context)]
    if not context.view.help:
        below = [*_events(context, _of(EVENTS, context.height)), *below]
    room = max(context.height - len(above) - len(below), 0)
    lines = [*above, *_body(context, room), *below]
    return [cut(line, context.width) for line in lines[: context.height]]


def head_lines(context: RenderContext) -> int:
    """Return the number of lines above the table or page."""
    return 1 + _of(SUMMARY, context.height)


def rows(context: RenderContext) -> int:
    """Return the number of node rows, or lines of a page, that fit on the screen."""
    fixed = head_lines(context) + 1 + (0 if context.view.help else _of(EVENTS, context.height))
    table_head = TABLE_HEAD if _is_table(context) else 0
    return max(context.height - fixed - table_head, 1)


def _is_table(context: RenderContext) -> bool:
    view = context.view
    return not view.help and view.node is None and not view.transposed


def _body(context: RenderContext, room: int) -> list[Line]:
    view = context.view
    if view.help:
        return help_page.lines(context, room)
    if view.node is not None:
        return node_page.lines(context, room)
    if set_of(view).is_tables:
        made = [tables_page.header(context), *tables_page.lines(context, None, view.first, max(room - 1, 0))]
    elif view.transposed:
        made = transposed.lines(context, room)
    else:
        made = _nodes(context, room)
    return (made + [cut((), context.width)] * room)[:room]


def _nodes(context: RenderContext, room: int) -> list[Line]:
    if context.frame is None:
        return []
    chosen = node_table.layout(context)
    made = [node_table.header(context, chosen), node_table.cluster_row(context, chosen)]
    nodes = context.order
    pointed = context.view.cursor if context.view.cursor in nodes else next(iter(nodes), None)
    shown = nodes[context.view.first : context.view.first + max(room - len(made), 0)]
    made += [node_table.node_row(context, chosen, node, pointed=node == pointed) for node in shown]
    if not nodes:
        reason = "no node matches the filter"
        if context.view.faults:
            reason = f"no {'matching ' if context.view.filter else ''}node has a problem"
        made.append(cut((Span(f"   {reason}", "dim"),), context.width))
    return made + charts.lines(context, room - len(made))


def _events(context: RenderContext, room: int) -> list[Line]:
    """Return the latest events up to the selected tick, with the newest at the bottom."""
    frame, events = context.frame, list[ClusterEvent]()
    if frame is not None and room:
        name = frame.nodes[context.view.node].name if context.view.node is not None else ""
        for earlier in reversed(context.frames[: context.frame_index + 1]):
            events += [event for event in reversed(earlier.events) if not name or event.node == name]
            if len(events) >= room - 1:
                break
    shown = [_event(context, event) for event in reversed(events[: room - 1])] if room else []
    blank = [cut((), context.width)] * (room - 1 - len(shown))
    return [_rule(context), *shown, *blank][:room]


def _rule(context: RenderContext) -> Line:
    nodes = len(context.order)
    room = rows(context)
    text = " events"
    if _is_table(context) and nodes > room:
        text += f"   (nodes {context.view.first + 1} to {min(context.view.first + room, nodes)} of {nodes})"
    hidden = _hidden(context)
    if hidden:
        verb = "does" if hidden == 1 else "do"
        text += f"   ({hidden} of {len(set_of(context.view).columns)} columns {verb} not fit)"
    return cut((Span(text + " " * context.width, "head"),), context.width)


def _hidden(context: RenderContext) -> int:
    """Return the number of the set's columns that do not fit into the table."""
    if not _is_table(context) or set_of(context.view).is_tables:
        return 0
    return len(set_of(context.view).columns) - len(node_table.layout(context).columns)


def _event(context: RenderContext, event: ClusterEvent) -> Line:
    style = {"gone": "bad", "silent": "bad", "up": "good", "restart": "warn", "disagreement": "warn"}.get(
        event.kind, ""
    )
    marks = context.marks
    return cut(
        (
            Span(f" {clock_time(event.time_s)[:8]} ", "dim"),
            Span(f"{clean(event.node, marks)} "),
            Span(f"{clean(event.kind, marks)} ", style),
            Span(clean(event.text, marks)),
        ),
        context.width,
    )


def _of(steps: tuple[tuple[int, int], ...], height: int) -> int:
    return next((lines for least, lines in steps if height >= least), 0)
