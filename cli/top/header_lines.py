"""The lines above the table: what, when, how many, and the cluster's figures with their last minutes."""

from cli.top.column_sets import set_of
from cli.top.render_context import RenderContext, clock_time
from cli.top.severity import level, worst
from cli.top.sparkline import spark
from cli.top.styled_text import Line, Span, clean, cut, number, span_of_time, width_of
from collector.cluster.live.cluster_interval import State
from exporters.live.frame import Frame
from exporters.live.live_columns import value

STYLES = ("", "warn", "bad")


def title(scene: RenderContext) -> Line:
    """Return the first line: the most important first, for what is too long is cut off."""
    frame, dot = scene.frame, scene.marks.dot
    parts = [Span(" casstat top", "title")]
    if frame is None:
        return cut((*parts, Span(f"{dot}waiting for the first answers")), scene.width)
    up = sum(node.state in (State.UP, State.CHANGING) for node in frame.nodes)
    style = "good" if up == len(frame.nodes) == frame.counted else "bad" if up < len(frame.nodes) else "warn"
    parts += [
        Span(dot, "dim"),
        Span(_when(scene, frame), "title" if scene.look.at_s is None else "warn"),
        Span(dot, "dim"),
        Span(f"{frame.counted} of {len(frame.nodes)} nodes", style),
    ]
    if frame.name:
        parts += [Span(dot, "dim"), Span(clean(frame.name, scene.marks))]
    own = Span(f"{scene.own} ", "dim")
    room = scene.width - width_of(tuple(parts)) - len(own.text)
    # Its own cost is at the right; where there is no room for all, who it is gives way.
    if room < 1 and frame.name:
        parts = parts[:-2]
        room = scene.width - width_of(tuple(parts)) - len(own.text)
    return cut((*parts, Span(" " * room), own) if room > 0 else tuple(parts), scene.width)


def _when(scene: RenderContext, frame: Frame) -> str:
    look = scene.look
    moment = clock_time(frame.time_s, date=scene.source != "live" and scene.width > 90)
    if scene.source != "live":
        return f"{moment} {f'x{look.speed:g}' if look.playing else 'PAUSED'}"
    if look.at_s is None:
        return moment
    return f"{moment} PAUSED, {span_of_time(scene.frames[-1].time_s - frame.time_s)} ago"


def summary(scene: RenderContext, lines: int) -> list[Line]:
    """Return the cluster's figures: reads, writes and the rest, in so many lines."""
    frame = scene.frame
    if frame is None:
        return [cut((), scene.width)] * lines
    made = [_operations(scene, frame, "reads", "read"), _operations(scene, frame, "writes", "write")]
    return [*made, _others(scene, frame)][:lines]


def _operations(scene: RenderContext, frame: Frame, name: str, word: str) -> Line:
    cells = frame.cluster
    p99 = value(cells, f"{word}_p99_ms")
    spans = [
        Span(f" {name:<7}", "bold"),
        Span(f"{number(value(cells, f'{word}s_per_s'), 0):>7}/s "),
        Span(spark(scene.trend(f"{word}s_per_s", None, _trend(scene)), _trend(scene), scene.marks.spark), "spark"),
        Span("  p99 ", "dim"),
        Span(f"{number(p99, 2):>6} ms ", STYLES[level(f"{word}_p99_ms", p99)]),
        Span(spark(scene.trend(f"{word}_p99_ms", None, _trend(scene)), _trend(scene), scene.marks.spark), "spark"),
    ]
    if (most := worst(frame, f"{word}_p99_ms")) is not None:
        slowest = value(most.cells, f"{word}_p99_ms")
        spans += [Span("  worst ", "dim"), Span(clean(most.name, scene.marks))]
        spans += [Span(f" {number(slowest, 1)} ms", STYLES[level(f"{word}_p99_ms", slowest)])]
    return cut(tuple(spans), scene.width)


def _others(scene: RenderContext, frame: Frame) -> Line:
    cells = frame.cluster
    spans = [Span(" machine", "bold")]
    gap = "  " if scene.width > 90 else " "
    for text, found, digits, name in (
        ("cpu%", value(cells, "cpu_busy_pct"), 0, ""),
        ("iowait%", value(cells, "cpu_iowait_pct"), 0, "cpu_iowait_pct"),
        ("GC%", value(cells, "gc_pct"), 1, "gc_pct"),
        ("pending", value(cells, "compactions_pending"), 0, ""),
        ("timeouts/s", _sum(frame, "read_timeouts_per_s", "write_timeouts_per_s"), 1, "read_timeouts_per_s"),
        ("dropped/s", _sum(frame, "dropped_reads_per_s", "dropped_mutations_per_s"), 1, "dropped_reads_per_s"),
    ):
        spans += [Span(f"{gap}{text} ", "dim"), Span(number(found, digits), STYLES[level(name, found)])]
    if (most := worst(frame, "gc_pct")) is not None and scene.width >= 100:
        longest = value(most.cells, "gc_pct")
        spans += [Span("  most GC ", "dim"), Span(f"{clean(most.name, scene.marks)} {number(longest, 1)} %")]
    return cut(tuple(spans), scene.width)


def _sum(frame: Frame, *names: str) -> float | None:
    known = [found for name in names if (found := value(frame.cluster, name)) is not None]
    return sum(known) if known else None


def _trend(scene: RenderContext) -> int:
    return min(max((scene.width - 70) // 2, 5), 60)


def footer(scene: RenderContext) -> Line:
    """Return the last line: the keys that matter most, or what is being typed."""
    look = scene.look
    if look.prompt:
        asked = {"/": "filter (!: all others)", "s": "sort by column", "S": "go to (02:31:07, or back by 90, 5m)"}
        return cut((Span(f" {asked[look.prompt]}: ", "bold"), Span(look.typed), Span("_", "bold")), scene.width)
    if look.said:
        return cut((Span(f" {look.said}", "warn"),), scene.width)
    spans: list[Span] = []
    keys = [("?", "help"), ("q", "quit"), ("1-7", set_of(look).name)]
    keys += [("/", f"{'not ' * look.inverse}{clean(look.filter, scene.marks)}" if look.filter else "filter")]
    keys += [("f", "FAULTS ONLY" if look.faults else "faults"), ("s<>", look.sort or "worst first")]
    keys += [("space", "go on" if look.at_s is not None and not look.playing else "pause"), ("[]", "step")]
    keys += [("t", "transpose"), ("enter", "node"), ("esc", "back")]
    for key, text in keys:
        hint = (Span(f" {key}", "bold"), Span(f" {text} ", "dim"))
        if width_of((*spans, *hint)) > scene.width:
            break
        spans += hint
    return cut(tuple(spans), scene.width)
