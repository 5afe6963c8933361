"""Charts whose horizontal axis is time, with phases, gaps and events: of the run, of its clients, and of each node."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

from collector.load_results.client_result import ClientResult
from exporters.charts import axes
from exporters.charts.axes import Scale, TimeAxis, groups, time_axis
from exporters.charts.plot_data import (
    CLUSTER,
    Gap,
    Mark,
    Phase,
    PlotData,
    Values,
    gaps_of,
    other_operations,
    overlaps_warm_up,
    present,
    rates,
    series,
    slowest,
)
from exporters.charts.plot_style import OPERATION_STYLES
from exporters.report.report_blocks import WIDTH, Chart, ChartLine, Event, Panel, Span, Tic
from exporters.results.summary.client_values import client_points, with_breaks, without_rests
from exporters.texts import clock_text, shown, value_text

_HEIGHT_PX = 130
OPERATIONS_PER_S, MS = "operations/s", "ms"
_USUAL = (
    ("reads_per_s", "reads", OPERATIONS_PER_S, "reads"),
    ("writes_per_s", "writes", OPERATIONS_PER_S, "writes"),
    ("read_p99_ms", "read p99", MS, "reads"),
    ("write_p99_ms", "write p99", MS, "writes"),
)
"""The columns, names, units and styles of the lines for reads and writes."""
_RESOURCES = {
    "CPU and garbage collection, %": (("cpu_busy_pct", "CPU busy", "%", "orange"), ("gc_pct", "GC", "%", "writes")),
    "pending compactions": (("compactions_pending", "pending compactions", "", "ink"),),
    "disk, MiB/s": (
        ("disk_read_mb_per_s", "disk read", "MiB/s", "reads"),
        ("disk_write_mb_per_s", "disk written", "MiB/s", "writes"),
    ),
    "disk utilisation, %": (("disk_util_pct", "disk busy", "%", "ink"),),
}
"""For each panel of resources: the columns, names, units and styles of its lines."""
_NODE_PX = 80
_MAX_CHARTS = 40
"""With more nodes, only those with the highest p99 get a chart."""


@dataclass(frozen=True)
class TimeLine:
    """A line: its name, unit and style, and its values, each with the begin and the end of its interval.

    Times are in seconds since the epoch.
    """

    name: str
    unit: str
    style: str
    begins: Sequence[float]
    times: Sequence[float]
    values: Values


@dataclass(frozen=True)
class TimePanel:
    """The lines of a panel; if `scale` is None, a scale is chosen that contains all their values."""

    title: str
    lines: Sequence[TimeLine]
    log: bool = False
    scale: Scale | None = None
    height: int = _HEIGHT_PX


def node_lines(run: PlotData, node: str) -> list[TimeLine]:
    """Return the lines of a node, or of the cluster: reads, writes and their p99, including those without values."""
    return [_line_of(run, name, unit, style, series(run, node, column)) for column, name, unit, style in _USUAL]


def slowest_line(run: PlotData, node: str) -> TimeLine:
    """Return the line of the slowest operation of a node, or of the cluster."""
    return _line_of(run, "slowest operation", MS, "max", slowest(run, node))


def resource_panels(run: PlotData) -> list[TimePanel]:
    """Return the panels of the cluster's CPU, garbage collection, pending compactions and disk."""
    return [
        TimePanel(
            title,
            [_line_of(run, name, unit, style, series(run, CLUSTER, column)) for column, name, unit, style in lines],
            height=_HEIGHT_PX // 2,
        )
        for title, lines in _RESOURCES.items()
    ]


def _line_of(run: PlotData, name: str, unit: str, style: str, values: Values) -> TimeLine:
    """Return a line with a value for each interval of the run."""
    return TimeLine(name, unit, style, [time_s - run.interval_s for time_s in run.times], run.times, values)


def other_lines(run: PlotData, node: str) -> tuple[list[TimeLine], list[TimeLine]]:
    """Return the lines of the rates and of the p99 of a node's, or the cluster's, other operations that occur."""
    of_rates, tails = [], []
    for operation in other_operations(run):
        style, title = OPERATION_STYLES[operation.word][0], operation.title
        of_rates.append(_line_of(run, title, OPERATIONS_PER_S, style, rates(run, node, operation)))
        tails.append(_line_of(run, f"{title} p99", MS, style, series(run, node, f"{operation.word}_p99_ms")))
    return of_rates, tails


def time_chart(
    name: str,
    title: str,
    run: PlotData,
    panels: Sequence[TimePanel],
    gaps: Sequence[Gap],
    marks: Sequence[Mark],
    texts: Sequence[str] = (),
) -> Chart | None:
    """Return the chart of those panels that have values; None if none has.

    The lines show the whole run; the text alternative describes the measured phases.
    """
    drawn = [panel for panel in panels if any(present(line.values) for line in panel.lines)]
    if not drawn:
        return None
    axis = time_axis(run, 0.0, WIDTH)
    line_texts = [_line_text(line, run) for panel in drawn for line in panel.lines if present(line.values)]
    return Chart(
        name,
        title,
        f"local time; a point covers {run.interval_s:g} s",
        [_panel(panel, axis) for panel in drawn],
        time_tics(axis),
        [*line_texts, *texts],
        (),
        time_spans(run, axis, gaps),
        [Event(axis.px(group.time_s), group.details(run.zone_s)) for group in groups(marks, axis)],
        axis,
    )


def _panel(panel: TimePanel, axis: TimeAxis) -> Panel:
    lines = [line for line in panel.lines if present(line.values)]
    scale = panel.scale or scale_of(lines, log=panel.log, height=panel.height)
    drawn = [ChartLine(line.name, line.style, line.unit, [*map(axis.px, line.times)], line.values) for line in lines]
    return Panel(panel.title, scale, panel.height, drawn)


def scale_of(lines: Sequence[TimeLine], *, log: bool, height: int = _HEIGHT_PX) -> Scale:
    """Return the scale that contains all values of the lines."""
    values = [value for line in lines for value in present(line.values)]
    return (axes.logarithmic if log else axes.linear)(values, height)


def time_tics(axis: TimeAxis) -> list[Tic]:
    """Return labels at round local times; two of every three are minor."""
    step_s = max(axis.step(), 1.0)
    first, last = ceil((axis.begin_s + axis.zone_s) / step_s), floor((axis.end_s + axis.zone_s) / step_s)
    letters = 8 if step_s < 60 else 5
    return [
        Tic(axis.px(number * step_s - axis.zone_s), clock_text(number * step_s, 0)[:letters], number % 3 != 0)
        for number in range(first, last + 1)
    ]


def time_spans(run: PlotData, axis: TimeAxis, gaps: Sequence[Gap]) -> list[Span]:
    """Return the visible phases and gaps."""
    parts: list[tuple[Phase | Gap, str, str]] = [
        *((phase, phase.name, "excluded" if phase.warm_up else "phase") for phase in run.phases),
        *((gap, gap.text(len(run.nodes)), "alarm") for gap in gaps),
    ]
    return [
        Span(axis.px(inside[0]), axis.px(inside[1]), name, style)
        for part, name, style in parts
        if (inside := axis.inside(part.begin_s, part.end_s))
    ]


def _line_text(time_line: TimeLine, run: PlotData) -> str:
    points = zip(time_line.begins, time_line.times, time_line.values, strict=True)
    measured = [(value, end_s) for begin_s, end_s, value in points if not overlaps_warm_up(run, begin_s, end_s)]
    values = [(value, end_s) for value, end_s in measured if value is not None]
    if not values:
        return f"{time_line.name}: no value in the measured phases"
    low, high = min(values), max(values, key=lambda pair: pair[0])
    absent = len(measured) - len(values)
    gaps = f"; no value at {absent} of {len(measured)} points" if absent else ""
    at = f"{value_text(high[0], time_line.unit)} at {clock_text(high[1], run.zone_s)}"
    return f"{time_line.name}: {value_text(low[0])} to {at}{gaps}"


def node_charts(run: PlotData) -> list[Chart]:
    """Return a chart for each node that has values, but at most _MAX_CHARTS."""
    rates, tails = dict[str, list[TimeLine]](), dict[str, list[TimeLine]]()
    for node in run.nodes:
        usual, (other_rates, other_tails) = node_lines(run, node), other_lines(run, node)
        rates[node], tails[node] = [*usual[:2], *other_rates], [*usual[2:], *other_tails]
    kept = sorted(tails, key=lambda node: _highest(tails[node]), reverse=True)[:_MAX_CHARTS]
    if not kept:
        return []
    slowest = {node: slowest_line(run, node) for node in kept}
    rate_scale = scale_of([line for node in kept for line in rates[node]], log=False, height=_NODE_PX)
    tail_scale = scale_of([line for node in kept for line in (slowest[node], *tails[node])], log=True, height=_NODE_PX)
    charts = (
        time_chart(
            f"node-{number}",
            shown(node),
            run,
            [
                TimePanel("operations/s", rates[node], scale=rate_scale, height=_NODE_PX),
                TimePanel("p99, ms", [slowest[node], *tails[node]], log=True, scale=tail_scale, height=_NODE_PX),
            ],
            gaps_of(run, node),
            [mark for mark in run.marks if mark.node == node],
        )
        for number, node in enumerate(run.nodes, 1)
        if node in kept
    )
    return [chart for chart in charts if chart]


def _highest(lines: list[TimeLine]) -> float:
    return max((value for line in lines for value in present(line.values)), default=0.0)


def client_lines(results: Sequence[ClientResult], begin_s: float, end_s: float, step_s: float) -> list[TimeLine]:
    """Return the client's throughput and p99 in a time range; [] if no result has intervals in it.

    The points are those of `client_points` that no gap shortens. The p99 is that of the response time or, if this is
    unknown throughout, of the service time.
    """
    points = with_breaks(without_rests(client_points(results, begin_s, end_s, step_s), step_s))
    if not points:
        return []
    begins, times = [point.begin_s for point in points], [point.end_s for point in points]
    kind = "response" if any("response" in point.p99_ms for point in points) else "service"
    return [
        TimeLine("client operations", OPERATIONS_PER_S, "client", begins, times, [point.ops_per_s for point in points]),
        TimeLine(
            f"client p99 ({kind} time)", MS, "client", begins, times, [point.p99_ms.get(kind) for point in points]
        ),
    ]
