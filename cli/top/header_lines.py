"""The lines above the table (the title, then the cluster's values with their trends) and the footer."""

from collections.abc import Sequence

from cli.top.screen_rows import LEVEL_STYLES, RenderContext, are_shown, clock_time, cluster_level, level, worst
from cli.top.styled_text import Line, Span, clean, cut, number, span_of_time, spark, width_of
from cli.top.view_state import set_of
from collector.live.cluster_interval import State
from collector.node.metrics.requests import Operation
from exporters.live.frame import Frame
from exporters.live.live_columns import other_operations, value
from exporters.rows.operation_columns import TOTAL_RATE


def title(context: RenderContext) -> Line:
    """Return the first line; it may be truncated to the screen's width, so the most important parts come first."""
    frame, dot = context.frame, context.marks.dot
    parts = [Span(" casstat top", "title")]
    if frame is None:
        return cut((*parts, Span(f"{dot}waiting for the first responses")), context.width)
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
    return cut((*parts, Span(" " * room), self_cost) if room > 0 else tuple(parts), context.width)


def _when(context: RenderContext, frame: Frame) -> str:
    view = context.view
    moment = clock_time(frame.time_s, date=context.source != "live" and context.width > 90)
    if context.source != "live":
        return f"{moment} {f'x{view.speed:g}' if view.playing else 'PAUSED'}"
    if view.at_s is None:
        return moment
    return f"{moment} PAUSED, {span_of_time(context.frames[-1].time_s - frame.time_s)} behind"


def summary(context: RenderContext, lines: int) -> list[Line]:
    """Return the cluster's values in at most `lines` lines: reads, writes, other operations, and all other values."""
    frame = context.frame
    if frame is None:
        return [cut((), context.width)] * lines
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
    return cut(tuple(spans), context.width)


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
    return cut(tuple(spans), context.width)


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
    return cut(tuple(spans), context.width)


def _sum(frame: Frame, *names: str) -> float | None:
    known = [cell for name in names if (cell := value(frame.cluster, name)) is not None]
    return sum(known) if known else None


def _trend(context: RenderContext, name: str) -> Span:
    width = min(max((context.width - 70) // 2, 5), 60)
    return Span(spark(context.trend(name, None, width), width, context.marks.spark), "spark")


def footer(context: RenderContext) -> Line:
    """Return the last line: the most important keys, a message, or the prompt."""
    view = context.view
    if view.prompt:
        prompts = {
            "/": "filter (! to exclude)",
            "s": "sort by column",
            "S": "go to a time (02:31:07) or back by a duration (90, 5m)",
        }
        return cut((Span(f" {prompts[view.prompt]}: ", "bold"), Span(view.typed), Span("_", "bold")), context.width)
    if view.message:
        return cut((Span(f" {view.message}", "warn"),), context.width)
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
    return cut(tuple(spans), context.width)
