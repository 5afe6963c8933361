"""The complete screen: exactly `height` lines of exactly `width` cells."""

from cli.top import charts, header_lines, help_page, node_page, node_table, tables_page, transposed
from cli.top.screen_rows import (
    RenderContext,
    are_shown,
    clock_time,
    event_lines,
    group_order,
    is_table,
    rows,
    selected_group,
    summary_lines,
)
from cli.top.styled_text import Line, Span, clean, cut
from cli.top.view_state import set_of
from collector.live.cluster_interval import ClusterEvent


def screen(context: RenderContext) -> list[Line]:
    """Return the screen: `context.height` lines, each `context.width` cells wide."""
    above = [header_lines.title(context), *header_lines.summary(context, summary_lines(context))]
    below = [*_events(context, event_lines(context)), header_lines.footer(context)]
    room = max(context.height - len(above) - len(below), 0)
    lines = [*above, *_body(context, room), *below]
    return [cut(line, context.width) for line in lines[: context.height]]


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
    made = [node_table.header(context, chosen), node_table.merged_row(context, chosen)]
    if are_shown(context):
        groups = group_order(context)[context.view.first :][: max(room - len(made), 0)]
        selected = selected_group(context)
        made += [node_table.group_row(context, chosen, group, pointed=group == selected) for group in groups]
        return made + charts.lines(context, room - len(made))
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
    has_groups = are_shown(context)
    count = len(group_order(context) if has_groups else context.order)
    room = rows(context)
    text = " events"
    if is_table(context) and count > room:
        kind = "groups" if has_groups else "nodes"
        text += f"   ({kind} {context.view.first + 1} to {min(context.view.first + room, count)} of {count})"
    hidden = _hidden(context)
    if hidden:
        verb = "does" if hidden == 1 else "do"
        text += f"   ({hidden} of {len(set_of(context.view).columns)} columns {verb} not fit)"
    return cut((Span(text + " " * context.width, "head"),), context.width)


def _hidden(context: RenderContext) -> int:
    """Return the number of the set's columns that do not fit into the table."""
    if not is_table(context) or set_of(context.view).is_tables:
        return 0
    return len(set_of(context.view).columns) - len(node_table.layout(context).columns)


def _event(context: RenderContext, event: ClusterEvent) -> Line:
    style = {"gone": "bad", "silent": "bad", "up": "good", "restart": "warn", "disagreement": "warn"}.get(
        event.kind, ""
    )
    marks = context.marks
    kind, text = clean(event.kind, marks), clean(event.text, marks)
    node = (Span(f" {clock_time(event.time_s)[:8]} ", "dim"), Span(f"{clean(event.node, marks)} "))
    # A text such as "restarted: ..." or "is up again" already states the kind.
    is_stated = any(word.startswith(kind) for word in text.split()[:2])
    words = (Span(text, style),) if is_stated else (Span(f"{kind} ", style), Span(text))
    return cut((*node, *words), context.width)
