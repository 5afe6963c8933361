"""The complete screen: exactly `height` lines of exactly `width` cells.

From the top: the title, the cluster's values with their trends, a page or the node table with charts, events, footer.
"""

from collections.abc import Sequence

from cli.top import node_table, pages, screen_rows
from cli.top.screen_rows import LEVEL_STYLES, RenderContext, are_shown, clock_time, cluster_level, level, rows, worst
from cli.top.styled_text import Line, Span, chart, clean, cut, number, span_of_time, spark, width_of
from cli.top.view_state import set_of
from collector.live.cluster_interval import ClusterEvent, State
from collector.node.metrics.requests import Operation
from exporters.live.frame import Frame
from exporters.live.live_columns import COLUMN_INDEX, COLUMNS, other_operations, value
from exporters.rows.operation_columns import TOTAL_RATE

# A chart is between MIN_HEIGHT and MAX_HEIGHT lines high, including its title. Two charts are shown side by side if
# the screen is at least TWO_CHARTS_WIDTH cells wide.
MIN_HEIGHT, MAX_HEIGHT, TWO_CHARTS_WIDTH = 5, 14, 80


def screen(context: RenderContext) -> list[Line]:
    """Return the screen: `context.height` lines, each `context.width` cells wide."""
    above = [_title(context), *_summary(context, screen_rows.summary_lines(context))]
    below = [*_events(context, screen_rows.event_lines(context)), _footer(context)]
    room = max(context.height - len(above) - len(below), 0)
    body = (_body(context, room) + [()] * room)[:room]
    lines = [*above, *body, *below]
    return [cut(line, context.width) for line in lines[: context.height]]


def _body(context: RenderContext, room: int) -> list[Line]:
    """Return the lines for at least `room` lines, if there are as many; the screen truncates all lines."""
    view = context.view
    if view.help:
        return pages.help_lines(context, room)
    if view.node is not None:
        return pages.node_lines(context, room)
    if set_of(view).is_tables:
        return [pages.tables_header(context), *pages.table_lines(context, None, view.first, max(room - 1, 0))]
    return pages.transposed_lines(context, room) if view.transposed else _nodes(context, room)


def _nodes(context: RenderContext, room: int) -> list[Line]:
    if context.frame is None:
        return []
    chosen = node_table.layout(context)
    made = [node_table.header(context, chosen), node_table.merged_row(context, chosen)]
    if are_shown(context):
        groups = screen_rows.group_order(context)[context.view.first :][: max(room - len(made), 0)]
        selected = screen_rows.selected_group(context)
        made += [node_table.group_row(context, chosen, group, pointed=group == selected) for group in groups]
        return made + _charts(context, room - len(made))
    nodes = context.order
    pointed = context.view.cursor if context.view.cursor in nodes else next(iter(nodes), None)
    shown = nodes[context.view.first : context.view.first + max(room - len(made), 0)]
    made += [node_table.node_row(context, chosen, node, pointed=node == pointed) for node in shown]
    if not nodes:
        reason = "no node matches the filter"
        if context.view.faults:
            reason = f"no {'matching ' if context.view.filter else ''}node has a problem"
        made.append((Span(f"   {reason}", "dim"),))
    return made + _charts(context, room - len(made))


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
    blank = [()] * (room - 1 - len(shown))
    return [_rule(context), *shown, *blank][:room]


def _rule(context: RenderContext) -> Line:
    has_groups = are_shown(context)
    count = len(screen_rows.group_order(context) if has_groups else context.order)
    room = rows(context)
    text = " events"
    if screen_rows.is_table(context) and count > room:
        kind = "groups" if has_groups else "nodes"
        text += f"   ({kind} {context.view.first + 1} to {min(context.view.first + room, count)} of {count})"
    hidden = _hidden(context)
    if hidden:
        verb = "does" if hidden == 1 else "do"
        text += f"   ({hidden} of {len(set_of(context.view).columns)} columns {verb} not fit)"
    return (Span(text + " " * context.width, "head"),)


def _hidden(context: RenderContext) -> int:
    """Return the number of the set's columns that do not fit into the table."""
    if not screen_rows.is_table(context) or set_of(context.view).is_tables:
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
    return (*node, *words)


def _title(context: RenderContext) -> Line:
    """Return the first line; it may be truncated to the screen's width, so the most important parts come first."""
    frame, dot = context.frame, context.marks.dot
    parts = [Span(" casstat top", "title")]
    if frame is None:
        return (*parts, Span(f"{dot}waiting for the first responses"))
    up = sum(node.state in (State.UP, State.CHANGING) for node in frame.nodes)
    style = "good" if up == len(frame.nodes) == frame.counted else "bad" if up < len(frame.nodes) else "warn"
    parts += [
        Span(dot, "dim"),
        Span(_when(context, frame), "title" if context.view.at_s is None else "warn"),
        Span(dot, "dim"),
        Span(f"{frame.counted} of {len(frame.nodes)} nodes", style),
    ]
    if frame.name:
        parts += [Span(dot, "dim"), Span(clean(frame.name, context.marks))]
    self_cost = Span(f"{context.own} ", "dim")
    room = context.width - width_of(tuple(parts)) - len(self_cost.text)
    # If space is short, omit the cluster's name to keep the CPU and memory use of casstat top visible at the right.
    if room < 1 and frame.name:
        parts = parts[:-2]
        room = context.width - width_of(tuple(parts)) - len(self_cost.text)
    return (*parts, Span(" " * room), self_cost) if room > 0 else tuple(parts)


def _when(context: RenderContext, frame: Frame) -> str:
    view = context.view
    moment = clock_time(frame.time_s, date=context.source != "live" and context.width > 90)
    if context.source != "live":
        return f"{moment} {f'x{view.speed:g}' if view.playing else 'PAUSED'}"
    if view.at_s is None:
        return moment
    return f"{moment} PAUSED, {span_of_time(context.frames[-1].time_s - frame.time_s)} behind"


def _summary(context: RenderContext, lines: int) -> list[Line]:
    """Return the cluster's values in at most `lines` lines: reads, writes, other operations, and all other values."""
    frame = context.frame
    if frame is None:
        return [()] * lines
    made = [_operations(context, frame, "reads", "read"), _operations(context, frame, "writes", "write")]
    if others := other_operations(frame.cluster):
        made.append(_other_operations(context, frame, others))
    return [*made, _others(context, frame)][:lines]


def _other_operations(context: RenderContext, frame: Frame, others: Sequence[Operation]) -> Line:
    spans = [
        Span(" all    ", "bold"),
        Span(f"{number(value(frame.cluster, TOTAL_RATE), 0):>7}/s "),
        *_incomplete(frame),
    ]
    for operation in others:
        rate, p99 = (value(frame.cluster, f"{operation.word}{end}") for end in ("s_per_s", "_p99_ms"))
        spans += [Span(f" {operation.title} ", "dim"), Span(f"{number(rate, 0)}/s")]
        spans += [Span(" p99 ", "dim"), Span(f"{number(p99, 2)} ms ")]
    return tuple(spans)


def _operations(context: RenderContext, frame: Frame, name: str, word: str) -> Line:
    cells = frame.cluster
    p99 = value(cells, f"{word}_p99_ms")
    spans = [
        Span(f" {name:<7}", "bold"),
        Span(f"{number(value(cells, f'{word}s_per_s'), 0):>7}/s "),
        *_incomplete(frame),
        _trend(context, f"{word}s_per_s"),
        Span("  p99 ", "dim"),
        Span(f"{number(p99, 2):>6} ms ", LEVEL_STYLES[level(f"{word}_p99_ms", p99)]),
        _trend(context, f"{word}_p99_ms"),
    ]
    if (most := worst(frame, f"{word}_p99_ms")) is not None:
        slowest = value(most.cells, f"{word}_p99_ms")
        spans += [Span("  worst ", "dim"), Span(clean(most.name, context.marks))]
        spans += [Span(f" {number(slowest, 1)} ms", LEVEL_STYLES[level(f"{word}_p99_ms", slowest)])]
    return tuple(spans)


def _incomplete(frame: Frame) -> list[Span]:
    """Return how many nodes a sum covers, if some are missing from it: it is then lower than the cluster's."""
    missing = 0 < frame.counted < len(frame.nodes)
    return [Span(f"{frame.counted}/{len(frame.nodes)} nodes ", "warn")] if missing else []


def _others(context: RenderContext, frame: Frame) -> Line:
    cells = frame.cluster
    spans = [Span(" machine", "bold")]
    gap = "  " if context.width > 90 else " "
    for text, cell, digits, name in (
        ("cpu%", value(cells, "cpu_busy_pct"), 0, ""),
        ("iowait%", value(cells, "cpu_iowait_pct"), 0, "cpu_iowait_pct"),
        ("GC%", value(cells, "gc_pct"), 1, "gc_pct"),
        ("pending", value(cells, "compactions_pending"), 0, "compactions_pending"),
        ("timeouts/s", value(cells, "timeouts_per_s"), 1, "timeouts_per_s"),
        ("dropped/s", _sum(frame, "dropped_reads_per_s", "dropped_mutations_per_s"), 1, "dropped_reads_per_s"),
    ):
        spans += [Span(f"{gap}{text} ", "dim"), Span(number(cell, digits), LEVEL_STYLES[cluster_level(name, cell)])]
    if (most := worst(frame, "gc_pct")) is not None and context.width >= 100:
        longest = value(most.cells, "gc_pct")
        spans += [Span("  most GC ", "dim"), Span(f"{clean(most.name, context.marks)} {number(longest, 1)}%")]
    return tuple(spans)


def _sum(frame: Frame, *names: str) -> float | None:
    known = [cell for name in names if (cell := value(frame.cluster, name)) is not None]
    return sum(known) if known else None


def _trend(context: RenderContext, name: str) -> Span:
    width = min(max((context.width - 70) // 2, 5), 60)
    return Span(spark(context.trend(name, None, width), width, context.marks.spark), "spark")


def _footer(context: RenderContext) -> Line:
    """Return the last line: the most important keys, a message, or the prompt."""
    view = context.view
    if view.prompt:
        prompts = {
            "/": "filter (! to exclude)",
            "s": "sort by column",
            "S": "go to a time (02:31:07) or back by a duration (90, 5m)",
        }
        return (Span(f" {prompts[view.prompt]}: ", "bold"), Span(view.typed), Span("_", "bold"))
    if view.message:
        return (Span(f" {view.message}", "warn"),)
    spans: list[Span] = []
    keys = [("F1 ?", "help"), ("q", "quit"), ("1-8", set_of(view).name)]
    keys += [("/", f"{'not ' * view.inverse}{clean(view.filter, context.marks)}" if view.filter else "filter")]
    keys += [("f", "FAULTS ONLY" if view.faults else "faults"), ("s<>", view.sort or "worst first")]
    keys += [("space", "play" if view.at_s is not None and not view.playing else "pause"), ("[]", "step")]
    has_groups = are_shown(context)
    keys += [("t", "transpose"), ("enter", "nodes" if has_groups else "node"), ("esc", "back")]
    keys += [("g", "all nodes" if has_groups else "racks")] if context.source == "live" else []
    for key, text in keys:
        hint = (Span(f" {key}", "bold"), Span(f" {text} ", "dim"))
        if width_of((*spans, *hint)) > context.width:
            break
        spans += hint
    return tuple(spans)


def _charts(context: RenderContext, room: int) -> list[Line]:
    """Return the lines of as many charts as fit into `room` lines."""
    beside = 2 if context.width >= TWO_CHARTS_WIDTH else 1
    names = _chart_names(context)
    rows = min(room // MIN_HEIGHT, -(-len(names) // beside))
    if context.frame is None or not rows:
        return []
    height = min(room // rows, MAX_HEIGHT)
    width = context.width // beside
    made: list[Line] = []
    for row in range(rows):
        charts = [_chart(context, name, width, height) for name in names[row * beside : (row + 1) * beside]]
        made += [tuple(span for line in parts for span in line) for parts in zip(*charts, strict=True)]
    return made


def _chart_names(context: RenderContext) -> list[str]:
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
